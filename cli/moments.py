"""Points in time as an operator types them."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from cli.failures import UsageProblem

MOMENT_HELP: Final = "A time (RFC 3339), a date (its beginning, UTC), or how long ago: 90s, 15m, 2h, 7d, 4w."

_AGO: Final = re.compile(r"([0-9]{1,9})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def moment(text: str | None, option: str, *, now: datetime | None = None) -> datetime | None:
    """The time that `text` names, in UTC; None for None. Raises UsageProblem, which names the option."""
    if text is None:
        return None
    from mnemostream.instants import parse_instant

    problem = UsageProblem(f"{option}: must be a time like 2026-11-21T10:00:00Z, a date, or how long ago (2h, 7d)")
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return (now or datetime.now(UTC)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        return parse_instant(text)
    except (ValueError, OverflowError):
        raise problem from None

"""Instants as RFC 3339 writes them: strict, because producers in many languages meet here.

Python's own `fromisoformat` takes dates that the RFC doesn't know and refuses some that it allows.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_LAST_SECOND: Final = 59


def parse_instant(text: str) -> datetime:
    """The instant that `text` names, aware and in UTC.

    Fractions beyond a microsecond are cut. `-00:00` is taken as UTC. A leap second (23:59:60 UTC on the last day of a
    month, the only place where the RFC allows one) becomes the last microsecond before midnight: it keeps its date and
    its order. Raises ValueError, naming the rule and never the text.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 date-time with an offset")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    leaps = second == _LAST_SECOND + 1
    microsecond = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    instant = _moment(year, month, day, hour, minute, _LAST_SECOND if leaps else second, microsecond)
    if sign:
        instant = _shifted(instant, sign, int(offset_hours), int(offset_minutes))
    if leaps:
        if not _ends_a_month(instant):
            raise ValueError("second 60 is allowed only at 23:59 UTC on the last day of a month")
        instant = instant.replace(microsecond=999_999)
    return instant


def format_instant(instant: datetime) -> str:
    """`instant` in UTC as RFC 3339. Raises ValueError if it is naive or leaves the years 0001-9999 in UTC."""
    if instant.utcoffset() is None:
        raise ValueError("must have a UTC offset")
    return _in_utc(instant).replace(tzinfo=None).isoformat() + "Z"


def _moment(year: int, month: int, day: int, hour: int, minute: int, second: int, microsecond: int) -> datetime:
    try:
        return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)
    except ValueError:
        raise ValueError("must be a date and time that exist") from None


def _shifted(local: datetime, sign: str, hours: int, minutes: int) -> datetime:
    if hours > 23 or minutes > 59:
        raise ValueError("the offset must lie between -23:59 and +23:59")
    offset = timedelta(hours=hours, minutes=minutes)
    try:
        return local - offset if sign == "+" else local + offset
    except OverflowError:
        raise ValueError("must lie in the years 0001 to 9999 in UTC") from None


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie in the years 0001 to 9999 in UTC") from None


def _ends_a_month(instant: datetime) -> bool:
    if (instant.hour, instant.minute) != (23, 59):
        return False
    last_of_all = (instant.year, instant.month, instant.day) == (9999, 12, 31)
    return last_of_all or (instant + timedelta(days=1)).day == 1

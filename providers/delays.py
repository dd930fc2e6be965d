"""The delay that a provider names before it wants to be asked again."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = timedelta(hours=1)
"""A provider that names more is asked again after this."""


def named_delay(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """What `retry-after-ms`, else `retry-after`, of an answer says."""
    delay = retry_after(headers.get("retry-after-ms"), now, unit=timedelta(milliseconds=1))
    return delay if delay is not None else retry_after(headers.get("retry-after"), now)


def retry_after(value: str | None, now: datetime, unit: timedelta = timedelta(seconds=1)) -> timedelta | None:
    """The delay that a Retry-After header names, in seconds or as a date; None where it names none."""
    if value is None:
        return None
    try:
        delay = float(value) * unit
    except OverflowError:
        return None
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        delay = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    return min(max(delay, timedelta()), _LONGEST)

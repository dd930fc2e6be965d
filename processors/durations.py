"""How long something stays true, as models say it: `7d`, or an ISO 8601 duration."""

import re
from datetime import datetime, timedelta
from typing import Final

from processors.dates import later

_NUMBER: Final = r"(\d{1,9}(?:[.,]\d{1,9})?)"
_ISO: Final = re.compile(
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"P(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)", re.ASCII)
"""The other form of the standard: P0001-02-10T02:30:00."""
_SHORT: Final = re.compile(r"(\d{1,4})\s*(h|d|w|hours?|days?|weeks?|months?|years?)", re.IGNORECASE | re.ASCII)
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_FOREVER: Final = timedelta(days=36_600)


def expiry_of(text: str, said_at: datetime) -> datetime | None:
    """When what was said at `said_at` ends; None where `text` is no duration, or leads out of the calendar."""
    span = duration_of(text)
    return later(said_at, span) if span is not None else None


def duration_of(text: str) -> timedelta | None:
    """`7d` (also hours and weeks) or an ISO 8601 duration (a year is 365 days, a month 30; the last part may be a
    fraction); None where it is neither, zero, or over a century."""
    text = text.strip()
    span: timedelta | None
    if short := _SHORT.fullmatch(text):
        span = timedelta(hours=int(short[1]) * _HOURS[short[2][0].lower()])
    elif digits := _DIGITS.fullmatch(text.upper()):
        years, months, *rest = map(float, digits.groups())
        span = _span([years, months, 0, *rest])
    elif (iso := _ISO.fullmatch(text.upper())) and _is_sound(iso):
        span = _span([float((part or "0").replace(",", ".")) for part in iso.groups()])
    else:
        return None
    return span if span is not None and timedelta() < span <= _FOREVER else None


def _is_sound(iso: re.Match[str]) -> bool:
    """Whether it names anything, nothing after a T that is not there, and a fraction only in its last part."""
    parts = [part for part in iso.groups() if part is not None]
    return bool(parts) and not iso[0].endswith("T") and all(part.isdigit() for part in parts[:-1])


def _span(parts: list[float]) -> timedelta | None:
    years, months, weeks, days, hours, minutes, seconds = parts
    days += years * 365 + months * 30 + weeks * 7
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        return None

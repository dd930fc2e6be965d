"""From the days that a text names to moments, on the speaker's clock."""

from datetime import UTC, datetime, time, timedelta
from typing import Final

from processors.local.times import Span

SHORTLY_AFTER: Final = timedelta(days=1)
"""How long a plan is kept behind the end of its last day: long enough to be asked how it was."""


def start_of(span: Span, local: datetime, *, ahead: bool = False) -> datetime | None:
    """The first moment of `span` in the speaker's zone, never after what was said in the past tense: only `ahead` lies
    in the future. None beyond the calendar."""
    try:
        start = datetime.combine(span.start, time(), local.tzinfo).astimezone(UTC)
        return start if ahead else min(start, local.astimezone(UTC))
    except OverflowError:
        return None


def end_of(span: Span, local: datetime) -> datetime | None:
    """The first moment after `span`; None beyond the calendar."""
    try:
        return datetime.combine(span.end, time(), local.tzinfo).astimezone(UTC)
    except OverflowError:
        return None

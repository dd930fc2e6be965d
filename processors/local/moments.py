"""From the days that a text names to moments, on the speaker's clock."""

from datetime import UTC, datetime, time

from processors.local.times import Span


def start_of(span: Span, local: datetime) -> datetime | None:
    """The first moment of `span` in the speaker's zone, never after what was said in the past tense. None beyond the
    calendar."""
    try:
        return min(datetime.combine(span.start, time(), local.tzinfo).astimezone(UTC), local.astimezone(UTC))
    except OverflowError:
        return None


def end_of(span: Span, local: datetime) -> datetime | None:
    """The first moment after `span`; None beyond the calendar."""
    try:
        return datetime.combine(span.end, time(), local.tzinfo).astimezone(UTC)
    except OverflowError:
        return None

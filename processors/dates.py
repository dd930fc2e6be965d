"""What time a turn means by a day: its own zone, never the clock of the machine that reads it."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mnemostream.turns import Turn

from processors.records import AppProfile


def zone_of(turn: Turn, profile: AppProfile) -> tzinfo:
    """The turn's zone, else the app's, else UTC; a name that is no zone counts as absent."""
    for name in (turn.time_zone, profile.time_zone):
        if name:
            try:
                return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                continue
    return UTC


def local_time(turn: Turn, profile: AppProfile) -> datetime:
    """When the turn was said, on the speaker's own clock. UTC where that would leave the calendar."""
    try:
        return turn.said_at.astimezone(zone_of(turn, profile))
    except OverflowError:
        return turn.said_at


def start_of_day(moment: datetime) -> datetime:
    """Midnight of the day of `moment`, in its zone."""
    return datetime.combine(moment.date(), time(), moment.tzinfo)


def later(moment: datetime, span: timedelta) -> datetime | None:
    """`moment + span`; None where that leaves the calendar."""
    try:
        return moment + span
    except OverflowError:
        return None

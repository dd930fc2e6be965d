"""What delivery tells of itself, for metrics."""

from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """How an attempt at a window ended, or a record that was not attempted."""

    DONE = "done"
    PARKED = "parked"
    REJECTED = "rejected"
    """Refused: parked next, or tried record by record."""
    UNAVAILABLE = "unavailable"
    """Something is away; the window is tried again."""
    FAILED = "failed"
    """An error that nobody foresaw; tried again a few times, then parked."""
    STALE = "stale"
    """Dropped un-acked: another assignment delivers it again."""
    REPEATED = "repeated"
    """Delivered again after it was done here: acked without handling."""


class Observer(Protocol):
    """Hears of every attempt and every dropped record. Called on the event loop; must not wait."""

    def attempted(self, outcome: Outcome, records: int, seconds: float) -> None:
        """A window of `records` was tried for `seconds`."""
        ...

    def skipped(self, outcome: Outcome, records: int) -> None:
        """Records left the lanes without an attempt."""
        ...


class Silent:
    """Hears and says nothing."""

    def attempted(self, outcome: Outcome, records: int, seconds: float) -> None:
        """Nothing."""

    def skipped(self, outcome: Outcome, records: int) -> None:
        """Nothing."""

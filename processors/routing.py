"""What becomes of a candidate, given its neighbours: cosine routes, it does not judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from processors.memories import State


class Route(StrEnum):
    """Which way a candidate goes, by its nearest neighbour."""

    SAME_TEXT = "same_text"
    """The same normalised text is live: confirm, without asking a model."""
    MERGE = "merge"
    """At or above the auto-merge threshold, and the guards agree."""
    ARBITRATE = "arbitrate"
    """Between the thresholds, or the guards disagree, or the same slot is taken."""
    NEW = "new"
    EXACT = "exact"
    """The application asked for no comparison."""


class Action(StrEnum):
    """What was done with a candidate."""

    ADD = "ADD"
    CONFIRM = "CONFIRM"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory of the same owner that a candidate was compared with, live or not."""

    memory_id: UUID
    similarity: float | None
    """Cosine in [-1, 1]; None where it was found by its text or its slot, not by its vector."""
    state: State
    same_text: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The route of a candidate, and what to do. `target` is the memory that a CONFIRM confirms."""

    route: Route
    action: Action
    reason: str
    target: UUID | None = None

    @classmethod
    def exact(cls) -> "Verdict":
        """Add without comparing, as the application asked."""
        return cls(Route.EXACT, Action.ADD, "told as exact")


def decide(neighbours: Sequence[Neighbour]) -> Verdict:
    """What to do with a candidate among `neighbours`, in any order. Pure: the caller applies it.

    Only the same text meets its like here; the routes by similarity come with the router of near-duplicates.
    """
    same = [n for n in neighbours if n.same_text and n.state is State.LIVE]
    if same:
        first = min(same, key=lambda n: n.memory_id)
        return Verdict(Route.SAME_TEXT, Action.CONFIRM, "the same text is already known", first.memory_id)
    return Verdict(Route.NEW, Action.ADD, "nothing known says the same")

"""Which way a candidate goes, by its neighbours: cosine routes, it does not judge (DESIGN.md §5)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from mnemostream.turns import Role

from processors.memories import State, StatementOrder


class Route(StrEnum):
    """Which way a candidate goes."""

    SAME_TEXT = "same_text"
    """The same normalised text is known: no model is asked."""
    MERGE = "merge"
    """At or above the auto-merge threshold, and the guards agree: no model is asked."""
    ARBITRATE = "arbitrate"
    """Between the thresholds, or the guards disagree, or the same slot is taken."""
    NEW = "new"
    EXACT = "exact"
    """The application asked for no comparison."""
    FORGOTTEN = "forgotten"
    """It was forgotten on request after it had been received."""


class Action(StrEnum):
    """What was done with a candidate."""

    ADD = "ADD"
    CONFIRM = "CONFIRM"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A memory of the owner, live or not, as a decision sees it."""

    id: UUID
    state: State
    """One past its `expires_at` is EXPIRED, one past its `valid_to` SUPERSEDED, whether or not the timer was there."""
    order: StatementOrder
    """Of the statement that its text comes from."""
    last: StatementOrder
    """Of the latest statement that said it: only a later one retires it."""
    valid_from: datetime
    content: str = ""
    """Empty where it is too far from the candidate to matter."""
    valid_to: datetime | None = None
    category: str = "general"
    importance: int = 5
    confidence: float = 1.0
    role: Role | None = None
    subject: str | None = None
    attribute: str | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    supersedes: UUID | None = None
    superseded_by: UUID | None = None
    expires_at: datetime | None = None

    @property
    def live(self) -> bool:
        """Whether it is found by default."""
        return self.state is State.LIVE

    @property
    def slot(self) -> tuple[str, str] | None:
        """Whom it is about, and what about them; None where either is unknown."""
        return None if self.subject is None or self.attribute is None else (self.subject, self.attribute)


DORMANT: Final = frozenset({State.ARCHIVED, State.EXPIRED, State.EVICTED})
"""Not found, but nothing says that it does not hold: stated again it is revived."""

REPLACED: Final = frozenset({State.SUPERSEDED, State.RETRACTED})
"""Something was said against it: stated again it comes back as a new memory."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory of the same owner that a candidate was compared with."""

    memory: Known
    similarity: float | None
    """Cosine in [-1, 1]; None where it was found by its text or its slot, not by its vector."""
    same_text: bool
    same_slot: bool = False

    @property
    def memory_id(self) -> UUID:
        """Of the memory."""
        return self.memory.id

    @property
    def state(self) -> State:
        """Of the memory."""
        return self.memory.state

    @property
    def rank(self) -> tuple[bool, int, bool, float, float, UUID]:
        """The order of neighbours: the same text first (live, then dormant, then what was replaced), then the same
        slot, then by similarity, then what was said last."""
        standing = (0 if self.memory.live else 1 if self.state in DORMANT else 2) if self.same_text else 0
        similarity = -1.0 if self.similarity is None else self.similarity
        said = self.memory.last.stated_at.timestamp()
        return (not self.same_text, standing, not self.same_slot, -similarity, -said, self.memory.id)

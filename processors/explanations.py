"""Why a memory is believed: the records that its story is told from."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemostream.turns import Role

from processors.facts import Reading
from processors.memories import Memory, State
from processors.routing import Action, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A message that supports a memory, as the log of turns has it."""

    turn_id: str
    message_index: int | None
    """None: the turn as a whole."""
    role: Role | None
    said_at: datetime
    name: str | None = None
    text: str = ""
    """Its beginning, redacted; empty where the log no longer has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A memory that a candidate was compared with, as it stood then."""

    memory_id: UUID
    similarity: float | None
    state: State
    same_text: bool
    same_slot: bool
    content: str = ""
    """Empty where it was forgotten or purged since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was done with a candidate, and why."""

    id: UUID
    at: datetime
    cause_kind: str
    """`turn`, `request` or `timer`."""
    cause_id: str
    candidate: str
    """The text as it was read, or told."""
    said_at: datetime | None = None
    role: Role | None = None
    """Who said it; None for what an application told."""
    route: Route
    action: Action
    reason: str
    memory_id: UUID | None
    """What was added, confirmed or taken back."""
    marked: bool = False
    compared: tuple[Compared, ...] = ()
    retired: tuple[UUID, ...] = ()
    reading: Reading | None = None
    arbitration: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A memory and all that is known of how it came to be; everything oldest first."""

    memory: Memory
    statements: tuple[Statement, ...]
    decisions: tuple[Decision, ...]
    line: tuple[Memory, ...]
    """Its versions: itself, what it replaced, what replaced it and what it says again, all the way."""
    now: datetime
    """Postgres's clock."""
    time_zone: str = "UTC"
    """Of the app."""

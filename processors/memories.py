"""A memory as a value, and the order of the statements that it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from mnemostream.turns import Role

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far ahead of its arrival a statement may be dated and still be believed."""


class State(StrEnum):
    """Where a memory stands. Only LIVE is found unless a query asks for history."""

    LIVE = "LIVE"
    ARCHIVED = "ARCHIVED"
    EXPIRED = "EXPIRED"
    SUPERSEDED = "SUPERSEDED"
    RETRACTED = "RETRACTED"
    EVICTED = "EVICTED"
    FORGOTTEN = "FORGOTTEN"


READING: Final = 100_000
"""Ordinals of one reading of a record: more than it can have statements."""
_MAX_RUNS: Final = 20_000
"""Readings that are told apart: an ordinal is kept as a 32-bit number."""


class StatementOrder(NamedTuple):
    """The order of an owner's statements in time. A turn dated 2099 cannot make a slot uncorrectable."""

    stated_at: datetime
    received_at: datetime
    offset: int
    ordinal: int
    """Among the statements of that record; those of a later reading of it come behind those of an earlier one."""

    @classmethod
    def of(
        cls, *, said_at: datetime, received_at: datetime, offset: int, ordinal: int, run: int = 0
    ) -> "StatementOrder":
        """The order of what was said at `said_at`, in the record at `offset`, as its `ordinal`-th statement in `run`.

        So a reading corrects an earlier one of the same words, and nothing that was said after them.
        """
        place = min(run, _MAX_RUNS) * READING + ordinal
        return cls(min(said_at, received_at + CLOCK_SKEW), received_at, offset, place)

    def rereads(self, other: "StatementOrder") -> bool:
        """Whether both come from the same record, by different readings."""
        same_record = (self.received_at, self.offset) == (other.received_at, other.offset)
        return same_record and self.ordinal // READING != other.ordinal // READING


@dataclass(frozen=True, slots=True)
class Source:
    """One message that supports a memory."""

    turn_id: str
    message_index: int | None
    role: Role | None
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored fact. Two time axes: `valid_*` in the world, `recorded_at`/`retired_at` in the store."""

    id: UUID
    app: str
    owner: str
    content: str
    category: str
    importance: int
    confidence: float
    state: State
    strength: float
    """At the moment of reading, in [0, 1]."""
    valid_from: datetime
    recorded_at: datetime
    version: int
    """Raised by every change of the row; the etag."""
    session: str | None = None
    data: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    subject: str | None = None
    attribute: str | None = None
    role: Role | None = None
    valid_to: datetime | None = None
    retired_at: datetime | None = None
    retired_reason: str | None = None
    supersedes: UUID | None = None
    superseded_by: UUID | None = None
    restates: UUID | None = None
    """A memory that said the same, was superseded or retracted, and is said again by this one."""
    access_count: int = 0
    accessed_at: datetime | None = None
    confirmed_at: datetime | None = None
    confirmations: int = 0
    expires_at: datetime | None = None
    fades_at: datetime | None = None
    sources: tuple[Source, ...] = field(default=())

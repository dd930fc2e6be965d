"""What the query service answers, as values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypedDict


class State(StrEnum):
    """Where a memory stands. Only LIVE is found unless a call asks for history."""

    LIVE = "LIVE"
    ARCHIVED = "ARCHIVED"
    EXPIRED = "EXPIRED"
    SUPERSEDED = "SUPERSEDED"
    RETRACTED = "RETRACTED"
    EVICTED = "EVICTED"
    FORGOTTEN = "FORGOTTEN"
    UNRECOGNIZED = "UNRECOGNIZED"
    """The service is newer than this client."""


class Mode(StrEnum):
    """How the two arms of a search make one score."""

    WEIGHTED = "WEIGHTED"
    RRF = "RRF"
    VECTOR = "VECTOR"
    TEXT = "TEXT"


class TurnState(StrEnum):
    """How far a turn got."""

    UNKNOWN = "UNKNOWN"
    """Not seen yet."""
    PENDING = "PENDING"
    STORED = "STORED"
    """It took effect, perhaps without a memory."""
    PARKED = "PARKED"
    ERASED = "ERASED"
    UNRECOGNIZED = "UNRECOGNIZED"
    """The service is newer than this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The shares of the parts of a weighted score, each at least 0; None is the service's default."""

    similarity: float | None = None
    text: float | None = None
    strength: float | None = None
    recency: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One message that supports a memory. `message_index` None: the turn as a whole."""

    turn_id: str
    message_index: int | None
    role: str | None
    said_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored fact. Two time axes: `valid_*` in the world, `recorded_at` and `retired_at` in the store."""

    id: str
    owner: str
    content: str
    category: str
    importance: int
    """1 to 10."""
    confidence: float
    """0 to 1."""
    state: State
    strength: float
    """What fading has left of it, 0 to 1."""
    etag: str
    session: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    subject: str | None = None
    attribute: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime | None = None
    retired_at: datetime | None = None
    retired_reason: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    access_count: int = 0
    accessed_at: datetime | None = None
    confirmed_at: datetime | None = None
    confirmations: int = 0
    expires_at: datetime | None = None
    fades_at: datetime | None = None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found, and the parts of its score, each in 0 to 1."""

    memory: Memory
    score: float
    similarity: float
    text_score: float
    strength: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first; the result itself can be iterated.

    degraded: the embedding model was away and only the text was searched. query_cut: the query was too long.
    """

    hits: tuple[Hit, ...]
    degraded: bool = False
    query_cut: bool = False

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page of a list. `next_page_token` is None on the last; `total_size` counts all pages."""

    memories: tuple[Memory, ...]
    next_page_token: str | None
    total_size: int


@dataclass(frozen=True, slots=True)
class TurnReport:
    """How far a turn got; why it is parked; the memories that it made or confirmed."""

    turn_id: str
    state: TurnState
    reason: str | None
    detail: str | None
    memory_ids: tuple[str, ...]


class Filters(TypedDict, total=False):
    """Which memories are asked about; what is not given does not restrict."""

    categories: Iterable[str]
    """Any of them."""
    types: Iterable[str]
    """Any of them."""
    tags: Iterable[str]
    """All of them."""
    session: str
    data_contains: Mapping[str, Any]
    min_importance: int
    min_confidence: float
    said_after: datetime
    said_before: datetime
    include_retired: bool
    """Also what is no longer live."""

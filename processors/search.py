"""A question to an owner's memories, and its hits, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from mnemostream.turns import Reason

from processors.memories import Memory

MAX_QUERY_CHARACTERS = 1000
"""A longer query is cut."""


class Mode(StrEnum):
    """How the two arms of a search make one score."""

    WEIGHTED = "WEIGHTED"
    RRF = "RRF"
    VECTOR = "VECTOR"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True)
class Weights:
    """The shares of the parts of a weighted score, each ≥ 0."""

    similarity: float = 0.6
    text: float = 0.2
    strength: float = 0.2
    recency: float = 0.0
    """Of 1 / (1 + days / 30)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which memories are asked about; what is empty or None does not restrict."""

    categories: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of them."""
    session: str | None = None
    data_contains: Mapping[str, Any] | None = None
    min_importance: int | None = None
    min_confidence: float | None = None
    said_after: datetime | None = None
    said_before: datetime | None = None
    include_retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """One question. `text` is at most MAX_QUERY_CHARACTERS; `limit` 1 to 100."""

    text: str
    limit: int = 10
    mode: Mode = Mode.WEIGHTED
    weights: Weights = field(default_factory=Weights)
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found, and how its score is made: each part in [0, 1]."""

    memory: Memory
    score: float
    similarity: float
    text_score: float
    """Relative to the best of this query."""
    strength: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Best first, ties by id. `degraded`: the embedding model was away, so only the text arm was asked."""

    hits: tuple[Hit, ...]
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of memories in the order in which they were recorded."""

    memories: tuple[Memory, ...]
    total: int
    next_after: tuple[datetime, str] | None = None
    """(recorded_at, id) of the last one, where more follow."""


class TurnState(StrEnum):
    """How far a turn got, as it is told."""

    UNKNOWN = "UNKNOWN"
    PENDING = "PENDING"
    STORED = "STORED"
    PARKED = "PARKED"
    ERASED = "ERASED"


@dataclass(frozen=True, slots=True)
class TurnReport:
    """A turn's state, why it is parked, and the ids of the memories that it made or confirmed."""

    state: TurnState
    reason: Reason | None = None
    detail: str | None = None
    memory_ids: tuple[str, ...] = ()

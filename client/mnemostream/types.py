"""What the query service answers, as values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias, TypedDict


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
    restates: str | None = None
    """The id of a memory that said the same, was superseded or retracted, and is said again by this one."""


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


@dataclass(frozen=True, slots=True)
class Statement:
    """A message that supports a memory, as the log of turns has it. `message_index` None: the turn as a whole."""

    turn_id: str
    message_index: int | None
    role: str | None
    name: str | None
    said_at: datetime | None
    text: str
    """Its first 500 characters, redacted; empty where the log no longer has it."""


class Route(StrEnum):
    """Which way a candidate went."""

    SAME_TEXT = "SAME_TEXT"
    """The same normalised text was known."""
    MERGE = "MERGE"
    """At or above the auto-merge threshold, and numbers, dates, names and negation agreed."""
    ARBITRATE = "ARBITRATE"
    """Between the thresholds, or what was compared differed, or the same slot was taken."""
    NEW = "NEW"
    EXACT = "EXACT"
    """The application asked for no comparison."""
    FORGOTTEN = "FORGOTTEN"
    """It was forgotten on request after it had been received."""
    UNRECOGNIZED = "UNRECOGNIZED"
    """The service is newer than this client."""


class Action(StrEnum):
    """What was done with a candidate."""

    ADD = "ADD"
    CONFIRM = "CONFIRM"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"
    UNRECOGNIZED = "UNRECOGNIZED"
    """The service is newer than this client."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A memory that a candidate was compared with, as it stood then.

    similarity: cosine, -1 to 1; None where it was found by its text or its slot. content: empty where it was forgotten
    or purged since.
    """

    memory_id: str
    similarity: float | None
    state: State
    same_text: bool
    same_slot: bool
    content: str


@dataclass(frozen=True, slots=True)
class ModelCall:
    """How a model was asked: for a reading, of the whole window that was read at once."""

    model: str
    prompt_version: str
    tokens_in: int
    tokens_out: int
    latency_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was done with a candidate, and why."""

    id: str
    at: datetime | None
    cause_kind: str
    """`turn`, `request` or `timer`."""
    cause_id: str
    candidate: str
    """The text as it was read, or told."""
    route: Route
    action: Action
    reason: str
    marked: bool = False
    """The safe default: the arbitrator was not, or could not be, heard."""
    neighbours: tuple[Compared, ...] = ()
    """Nearest first."""
    retired: tuple[str, ...] = ()
    """The ids of the memories that it superseded, retracted, or gave an end."""
    memory_id: str | None = None
    """What was added, confirmed or taken back."""
    reading: ModelCall | None = None
    """None where no model read it."""
    arbitration: ModelCall | None = None
    """None where no arbitrator was asked."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory is believed: its story in words, and the records that it is told from, oldest first."""

    memory: Memory
    story: str
    statements: tuple[Statement, ...]
    decisions: tuple[Decision, ...]
    line: tuple[Memory, ...]
    """Its versions: itself, what it replaced, what replaced it and what it says again, all the way."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What made a change: `turn` or `request` with its id, or `timer`."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of an owner's history. The same `seq` is the same change."""

    seq: int
    """1, 2, 3 … per owner, without a gap."""
    app: str
    owner: str
    kind: str
    """`added`, `confirmed`, `superseded` … New kinds may come: what counts is `memory`."""
    at: datetime
    memory: Memory | None
    """Whole, as it was after the change. None where the change is about the owner as a whole: it was erased."""
    cause: Cause
    decision: str | None
    """The id of the decision behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHeader:
    """The first line of an export: whose it is, and of which moment."""

    app: str
    owner: str
    seq: int
    """The last change that is in it: follow the feed from here. 0 where nothing is known of the owner."""
    version: int
    exported_at: datetime | None
    schema: int


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """One message of a turn, redacted."""

    role: str
    content: str
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTurn:
    """A turn of conversation as the log has it. One that was parked, or is off the record, may have no messages."""

    turn_id: str
    state: TurnState
    received_at: datetime | None
    said_at: datetime | None = None
    reason: str | None = None
    detail: str | None = None
    session: str | None = None
    time_zone: str | None = None
    off_record: bool = False
    messages: tuple[LoggedMessage, ...] = ()
    recalled: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnd:
    """The last line of an export that is whole: how many lines of each kind came before it."""

    memories: int
    changes: int
    turns: int
    decisions: int


ExportLine: TypeAlias = ExportHeader | Memory | Change | LoggedTurn | Decision | ExportEnd
"""What an export is made of: the header, the memories, the changes, the turns, the decisions, the end."""


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

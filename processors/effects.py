"""What is read of an owner before deciding, and what is written after: values between the use cases and a store."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemostream.turns import Role

from processors.facts import Reading
from processors.memories import Memory, Source, StatementOrder
from processors.records import AppProfile, Place
from processors.routing import Neighbour, Verdict
from processors.vectors import EmbeddingModel, Vector


@dataclass(frozen=True, slots=True)
class Probe:
    """What neighbours are looked up by: the hash of the normalised text, and the vector where there is one."""

    content_hash: bytes
    vector: Vector | None
    subject: str | None = None
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class RequestId:
    """The caller's name for a tell, so that the same again has no second effect. `body_hash`: SHA-256 of its fields."""

    method: str
    request_id: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was answered before: the hash of its fields, and the memory as it was after it."""

    body_hash: bytes
    memory: Memory


@dataclass(frozen=True, slots=True)
class Look:
    """An owner as it is read before deciding, in one snapshot."""

    version: int
    now: datetime
    """Postgres's clock."""
    settled: frozenset[str]
    """Those of the turns that have a ledger row in this run."""
    neighbours: tuple[tuple[Neighbour, ...], ...]
    """For each probe: the same text first, then the nearest by vector."""
    profile: AppProfile = field(default_factory=AppProfile)
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class TurnEffect:
    """A turn that takes effect (perhaps with no memory): its ledger row."""

    turn_id: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to be added. Fields as in `Memory`; fading as `processors.fading` has it."""

    id: UUID
    content: str
    content_hash: bytes
    category: str
    importance: int
    confidence: float
    order: StatementOrder
    valid_from: datetime
    half_life_seconds: float | None
    fades_at: datetime | None
    session: str | None = None
    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    subject: str | None = None
    attribute: str | None = None
    role: Role | None = None
    expires_at: datetime | None = None
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A live memory is stated again: counted, and reinforced at the time it was said, never backwards."""

    memory_id: UUID
    stated_at: datetime
    archive_factor: float
    """Half-lives from a reinforcement to the archive line: log2(1 / archive_below)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One candidate's decision and what it does. Exactly one of `new` and `confirmed` is set for ADD and CONFIRM."""

    decision_id: UUID
    cause_id: str
    """The turn's id, or the request's."""
    candidate: dict[str, Any]
    """The candidate as it was read, without its vector: JSON."""
    neighbours: tuple[Neighbour, ...]
    verdict: Verdict
    memory_id: UUID
    new: NewMemory | None = None
    confirmed: Confirmation | None = None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Everything that becomes of one window or one request: all of it, or nothing."""

    cause_kind: str
    """`turn` or `request`."""
    run: int = 0
    turns: tuple[TurnEffect, ...] = ()
    effects: tuple[Effect, ...] = ()
    """In the order of their changes in the feed."""
    reading: Reading | None = None
    embedding_model: EmbeddingModel | None = None
    language: str = "english"
    request: RequestId | None = None

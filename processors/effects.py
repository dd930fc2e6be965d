"""What is read of an owner before deciding, and what is written after: values between the use cases and a store."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemostream.turns import Role

from processors.facts import Reading
from processors.memories import Memory, Source, State, StatementOrder
from processors.records import AppProfile, Place
from processors.routing import Action, Known, Neighbour, Route
from processors.vectors import EmbeddingModel, Vector


@dataclass(frozen=True, slots=True)
class Probe:
    """What neighbours are looked up by: the hash of the normalised text, and vector and slot where there are any."""

    content_hash: bytes
    vector: Vector | None
    subject: str | None = None
    attribute: str | None = None
    order: StatementOrder | None = None
    """When it was said; None: now. Of what is older than a neighbour the neighbour's whole line is read."""
    turn_id: str | None = None
    """The turn that it comes from, to see whether that was forgotten."""


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
    """For each probe: the same text first, then the same slot (live ones), then the nearest by vector."""
    lines: tuple[Known, ...] = ()
    """The lines (`supersedes` and `superseded_by`, all the way) of neighbours that were replaced, and of live ones that
    were said after their probe: with their texts, each memory once."""
    forgotten: tuple[bool, ...] = ()
    """For each probe whether it was forgotten on request after it had been received. Empty: none was."""
    over: tuple[bool, ...] = ()
    """For each probe of a turn that is read again whether a memory of the same text rests on that turn, and none that
    does is live: what became of it since stands, unless it was another reading of that turn. Empty: none."""
    profile: AppProfile = field(default_factory=AppProfile)
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class TurnEffect:
    """A turn that takes effect (perhaps with no memory): its ledger row."""

    turn_id: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to be added. Fields as in `Memory`; fading as `processors.fading` has it.

    One that comes late takes its place in history: it is SUPERSEDED from the start.
    """

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
    state: State = State.LIVE
    """LIVE or SUPERSEDED."""
    valid_to: datetime | None = None
    retired_reason: str | None = None
    supersedes: UUID | None = None
    """What it replaced, or comes after on the line."""
    superseded_by: UUID | None = None
    restates: UUID | None = None
    """A memory that said the same, was superseded or retracted, and is said again by this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A memory is stated again: counted, and reinforced at the time it was said, never backwards.

    revives: it was ARCHIVED, EXPIRED or EVICTED, and is LIVE again.
    """

    memory_id: UUID
    order: StatementOrder
    archive_factor: float
    """Half-lives from a reinforcement to the archive line: log2(1 / archive_below)."""
    revives: bool = False
    expires_at: datetime | None = None
    """Of what was said now. What is revived takes it; what is confirmed ends with the later of both, and never where
    one of them never ends."""
    valid_from: datetime | None = None
    """It holds since then already: earlier than was known."""
    confidence: float = 0.0
    """What is confirmed is as sure as the surer of both."""
    role: Role | None = None
    """What an assistant or a tool said becomes the user's own word when a user says it."""

    @property
    def stated_at(self) -> datetime:
        """When it was said."""
        return self.order.stated_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """A memory that no longer holds, or takes another place on its line.

    state: SUPERSEDED with `superseded_by`, RETRACTED without, or LIVE for one that ends at a `valid_to` to come.
    """

    memory_id: UUID
    state: State
    valid_to: datetime | None
    """Where the memory that replaces it begins; never before its own `valid_from`. None with LIVE: what was to replace
    it is off, and it goes on."""
    reason: str
    superseded_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The route of a candidate, what to do, and why."""

    route: Route
    action: Action
    reason: str
    marked: bool = False
    """It is the safe default: the arbitrator was not, or could not be, heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One candidate's decision and what it does: at most one of `new` and `confirmed`.

    Its changes in the feed: what is retired, in order, then what is added or confirmed.
    """

    decision_id: UUID
    cause_id: str
    """The turn's id, or the request's."""
    candidate: dict[str, Any]
    """The candidate as it was read, without its vector: JSON."""
    neighbours: tuple[Neighbour, ...]
    verdict: Verdict
    memory_id: UUID | None
    """What came of it: the memory that was added, confirmed or revived; for a retraction what it took back."""
    new: NewMemory | None = None
    confirmed: Confirmation | None = None
    retired: tuple[Retirement, ...] = ()
    sources: tuple[Source, ...] = ()
    arbitration: Reading | None = None
    """How the arbitrator was asked, where it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Everything that becomes of one window or one request: all of it, or nothing.

    A memory that an effect adds may be confirmed or retired by a later one.
    """

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

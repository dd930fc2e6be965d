"""The query service on parts in this process: what stands behind it answers as a test says."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from mnemostream.turns import Reason, Role
from prometheus_client import CollectorRegistry

from processors.effects import RequestId
from processors.explanations import Compared, Decision, Explanation, Statement
from processors.exports import Header, Line, LoggedMessage, LoggedTurn
from processors.facts import Reading
from processors.feed import Change
from processors.memories import Memory, State
from processors.records import Owner
from processors.routing import Action, Route
from processors.search import Filters, Hit, MemoryPage, SearchQuery, SearchResult, TurnReport, TurnState
from processors.statements import NewStatement
from query.asgi import application
from query.auth import Authenticator
from query.exporting import Exporter, Patience
from query.gate import Gate
from query.grpc_port import GrpcPort
from query.metrics import QueryMetrics
from query.ports import Listening, Ports
from query.service import AnyMethod, MemoryService, methods
from tests.fakes.values import NOON, id_of

KEY = "mnk_a-key-of-acme"
READER = "mnk_a-key-of-acme-that-reads"
OTHER = "mnk_a-key-of-other"
BROKEN = "break down"
"""A query that a defect answers; what it raises quotes a secret."""


def memory_named(name: str, owner: Owner, **fields: object) -> Memory:
    """A memory whose text is its name."""
    values = {
        "id": id_of(name),
        "app": owner.app,
        "owner": owner.owner,
        "content": name,
        "category": "general",
        "importance": 5,
        "confidence": 0.95,
        "state": State.LIVE,
        "strength": 1.0,
        "valid_from": NOON,
        "recorded_at": NOON,
        "version": 1,
    }
    return Memory(**{**values, **fields})  # type: ignore[arg-type] # of the types above


@dataclass(frozen=True, slots=True)
class FakeKey:
    app: str
    scopes: frozenset[str]
    id: UUID


class FakeKeys:
    """The port `Keys`. `revoked`: hashes that are no longer good."""

    def __init__(self) -> None:
        everything = frozenset({"read", "write", "admin"})
        self.known = {
            _hash(KEY): FakeKey("acme", everything, id_of(KEY)),
            _hash(READER): FakeKey("acme", frozenset({"read"}), id_of(READER)),
            _hash(OTHER): FakeKey("other", everything, id_of(OTHER)),
        }
        self.asked = 0

    async def authenticate(self, key_hash: bytes, /) -> FakeKey | None:
        self.asked += 1
        return self.known.get(key_hash)

    def revoke(self, key: str) -> None:
        del self.known[_hash(key)]


def _hash(key: str) -> bytes:
    return sha256(key.encode()).digest()


@dataclass(slots=True)
class Behind:
    """What stands behind the service, and what it was asked. `error`: raised by whatever is asked."""

    error: Exception | None = None
    memories: list[Memory] = field(default_factory=list)
    reports: dict[str, TurnReport] = field(default_factory=dict)
    queries: list[tuple[Owner, SearchQuery]] = field(default_factory=list)
    told: list[tuple[Owner, NewStatement, RequestId | None, bool]] = field(default_factory=list)
    explanations: dict[UUID, Explanation] = field(default_factory=dict)
    waits: list[timedelta] = field(default_factory=list)
    filters: list[Filters] = field(default_factory=list)
    exported: list[str] = field(default_factory=list)
    """The memories that exports went beyond."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The export is over."""
    hang: bool = False
    hanging: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    """One for each call that hangs."""
    cancelled: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    """One for each that was ended."""

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResult:
        await self._asked()
        if query.text == BROKEN:
            raise RuntimeError("SELECT the text of somebody")
        self.queries.append((owner, query))
        found = [m for m in self.memories if (m.app, m.owner) == owner][: query.limit]
        return SearchResult(tuple(Hit(m, 0.9, 0.8, 1.0, m.strength) for m in found))

    async def wait(self, owner: Owner, turn_id: str, timeout: timedelta) -> TurnReport:
        await self._asked()
        self.waits.append(timeout)
        return self.reports.get(turn_id, TurnReport(TurnState.UNKNOWN))

    async def create(
        self, owner: Owner, statement: NewStatement, *, request: RequestId | None = None, exact: bool = False
    ) -> Memory:
        await self._asked()
        self.told.append((owner, statement, request, exact))
        return memory_named(statement.content, owner, data=statement.data, tags=statement.tags)

    async def get(self, owner: Owner, memory_id: UUID) -> Memory | None:
        await self._asked()
        return next((m for m in self.memories if (m.app, m.owner) == owner and m.id == memory_id), None)

    async def explain(self, owner: Owner, memory_id: UUID) -> Explanation | None:
        memory = await self.get(owner, memory_id)
        return None if memory is None else self.explanations.get(memory_id, explanation_of(memory))

    async def forget(self, owner: Owner, memory_id: UUID) -> bool:
        memory = await self.get(owner, memory_id)
        if memory is not None:
            self.memories.remove(memory)
        return memory is not None

    async def export(self, owner: Owner) -> AsyncGenerator[Sequence[Line], None]:
        """Its memories, one at a time, each with what is known of it."""
        await self._asked()
        mine = [m for m in self.memories if (m.app, m.owner) == owner]
        self.closed.clear()
        try:
            yield (Header(owner, len(mine), 7, NOON),)
            for seq, memory in enumerate(mine, 1):
                yield exported(seq, memory)
                self.exported.append(memory.content)
        finally:
            self.closed.set()

    async def list_page(
        self, owner: Owner, filters: Filters, *, page_size: int, after: tuple[datetime, str] | None
    ) -> MemoryPage:
        await self._asked()
        self.filters.append(filters)
        mine = sorted((m for m in self.memories if (m.app, m.owner) == owner), key=_place)
        rest = [m for m in mine if after is None or _place(m) > after]
        page = tuple(rest[:page_size])
        return MemoryPage(page, len(mine), _place(page[-1]) if len(rest) > page_size else None)

    def park(self, turn_id: str, reason: Reason, detail: str) -> None:
        self.reports[turn_id] = TurnReport(TurnState.PARKED, reason, detail)

    async def _asked(self) -> None:
        if self.error is not None:
            raise self.error
        if self.hang:
            self.hanging.put_nowait(None)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.put_nowait(None)
                raise


def explanation_of(memory: Memory) -> Explanation:
    """A story with every field: `memory` was said in turn t-1, and replaced `old`."""
    old = memory_named("old", Owner(memory.app, memory.owner), state=State.SUPERSEDED, superseded_by=memory.id)
    near = Compared(
        memory_id=old.id, similarity=0.9, state=State.LIVE, same_text=False, same_slot=False, content=old.content
    )
    decision = Decision(
        id=id_of(f"decision on {memory.id}"),
        at=NOON,
        cause_kind="turn",
        cause_id="t-1",
        candidate=memory.content,
        route=Route.ARBITRATE,
        action=Action.DELETE,
        reason="moved",
        marked=True,
        memory_id=memory.id,
        compared=(near, replace(near, similarity=None, same_slot=True)),
        retired=(old.id,),
        reading=Reading(
            model="reader", prompt_version="extraction.v2", tokens_in=10, tokens_out=2, latency_seconds=1.5
        ),
        arbitration=Reading(
            model="judge", prompt_version="arbitration.v1", tokens_in=20, tokens_out=4, latency_seconds=2
        ),
    )
    return Explanation(
        memory=memory,
        statements=(
            Statement(turn_id="t-0", message_index=None, role=None, said_at=NOON),
            Statement(turn_id="t-1", message_index=0, role=Role.USER, said_at=NOON, name="Ana", text="I moved."),
        ),
        decisions=(decision,),
        line=(old, memory),
        now=NOON,
    )


def exported(seq: int, memory: Memory) -> Sequence[Line]:
    """A line of each kind about `memory`."""
    owner = Owner(memory.app, memory.owner)
    turn = LoggedTurn(
        turn_id="t-1",
        state=TurnState.STORED,
        reason=None,
        detail=None,
        session="s-1",
        off_record=False,
        said_at=NOON,
        received_at=NOON,
        time_zone="Europe/Lisbon",
        messages=(LoggedMessage("user", "I moved.", "m-1", "Ana"), LoggedMessage("assistant", "I see.")),
        recalled=("Lives in Porto",),
        metadata={"n": 1, "x": [1.5]},
    )
    change = Change(owner, seq, "added", NOON, memory, "turn", "t-1", id_of("decision"))
    return memory, change, replace(change, memory=None, decision_id=None), turn, explanation_of(memory).decisions[0]


def _place(memory: Memory) -> tuple[datetime, str]:
    return memory.recorded_at, str(memory.id)


@dataclass(frozen=True, slots=True)
class Parts:
    """A service and what it is made of."""

    service: MemoryService
    exporter: Exporter
    gate: Gate
    registry: CollectorRegistry

    @property
    def methods(self) -> tuple[AnyMethod, ...]:
        return methods(self.service, self.exporter)


def parts(
    behind: Behind,
    keys: FakeKeys | None = None,
    *,
    redact: Callable[[str], str] = lambda text: text,
    exports: int = 4,
    patience: Patience | None = None,
) -> Parts:
    """The service on `behind`."""
    registry = CollectorRegistry()
    metrics = QueryMetrics(registry)
    service = MemoryService(
        recall=behind,
        turns=behind,
        tell=behind,
        memories=behind,
        decisions=behind,
        forget=behind,
        redact=redact,
        metrics=metrics,
    )
    exporter = Exporter(behind, at_once=exports, patience=patience)
    gate = Gate(Authenticator(keys or FakeKeys()), methods(service, exporter), metrics)
    return Parts(service, exporter, gate, registry)


@asynccontextmanager
async def listening(made: Parts, *, drain_seconds: float = 1.0) -> AsyncIterator[Listening]:
    """The service on two free ports of this machine."""
    ports = Ports(application(made.gate, made.methods), GrpcPort(made.gate, made.methods), drain_seconds=drain_seconds)
    where = await ports.start(http=("127.0.0.1", 0), grpc=("127.0.0.1", 0))
    try:
        yield where
    finally:
        await ports.stop()

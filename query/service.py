"""The handlers: one for each method, whatever the protocol. Plain functions over use cases.

`methods` is the table that all protocols serve.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from mnemostream.redaction import REDACTED
from mnemostream.v1 import memory_service_pb as pb
from protobuf import Message

from processors.effects import RequestId
from processors.errors import InvalidRequest
from processors.explanations import Explanation
from processors.memories import Memory
from processors.records import Owner
from processors.search import Filters, MemoryPage, SearchQuery, SearchResult, TurnReport, TurnState
from processors.statements import NewStatement
from processors.stories import story
from query import records, rules, wire
from query.auth import Caller, Scope
from query.errors import NotFound, TurnNotOver, TurnParked
from query.exporting import Exporter
from query.metrics import QueryMetrics

SERVICE: Final = "mnemostream.v1.MemoryService"

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)


class Searching(Protocol):
    """memory.recall.Recall."""

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResult:
        """The owner's memories that answer `query`."""
        ...


class Waiting(Protocol):
    """memory.recall.TurnWatch."""

    async def wait(self, owner: Owner, turn_id: str, timeout: timedelta) -> TurnReport:
        """The turn's state once it has ended, or as it is when `timeout` is over."""
        ...


class Telling(Protocol):
    """memory.tell.Tell."""

    async def create(
        self, owner: Owner, statement: NewStatement, *, request: RequestId | None = None, exact: bool = False
    ) -> Memory:
        """Remember `statement`."""
        ...


class Memories(Protocol):
    """store.memories.MemoryRepository."""

    async def get(self, owner: Owner, memory_id: UUID) -> Memory | None:
        """The memory; None where this owner has none by that id."""
        ...

    async def list_page(
        self, owner: Owner, filters: Filters, *, page_size: int, after: tuple[datetime, str] | None
    ) -> MemoryPage:
        """One page of the owner's memories."""
        ...


class Explaining(Protocol):
    """store.decisions.DecisionRepository."""

    async def explain(self, owner: Owner, memory_id: UUID) -> Explanation | None:
        """How a memory came to be; None where this owner has none by that id."""
        ...


class Forgetting(Protocol):
    """memory.forget.Forget."""

    async def forget(self, owner: Owner, memory_id: UUID) -> bool:
        """Erase a memory for good; False where this owner has none by that id."""
        ...


class MemoryService:
    """The handlers. Each takes the request and its caller, and raises what `query.errors` has in its table."""

    def __init__(
        self,
        *,
        recall: Searching,
        turns: Waiting,
        tell: Telling,
        memories: Memories,
        decisions: Explaining,
        forget: Forgetting,
        redact: Callable[[str], str],
        metrics: QueryMetrics,
    ) -> None:
        self._recall = recall
        self._turns = turns
        self._tell = tell
        self._memories = memories
        self._decisions = decisions
        self._forget = forget
        self._redact = redact
        self._metrics = metrics

    async def search(self, request: pb.SearchRequest, caller: Caller) -> pb.SearchResponse:
        """The memories that answer a question; waits for a turn first where it is asked to."""
        asked = wire.search(caller.app, request)
        if asked.after_turn is not None:
            await self._turn_over(asked.owner, asked.after_turn, asked.timeout)
        started = time.perf_counter()
        result = await self._recall.search(asked.owner, asked.query)
        self._metrics.search_seconds.labels(asked.query.mode.value).observe(time.perf_counter() - started)
        return wire.found(result, query_cut=asked.query_cut)

    async def get_memory(self, request: pb.GetMemoryRequest, caller: Caller) -> pb.Memory:
        """One memory."""
        memory = await self._memories.get(wire.owner(caller.app, request.owner), wire.memory_id(request.id))
        if memory is None:
            raise NotFound("the owner has no such memory")
        return wire.memory(memory)

    async def list_memories(self, request: pb.ListMemoriesRequest, caller: Caller) -> pb.ListMemoriesResponse:
        """One page of memories."""
        asked = wire.listing(caller.app, request)
        page = await self._memories.list_page(asked.owner, asked.filters, page_size=asked.page_size, after=asked.after)
        return wire.page(asked, page)

    async def get_turn(self, request: pb.GetTurnRequest, caller: Caller) -> pb.Turn:
        """How far a turn got. An unknown one is a state, no error: it may not have arrived yet."""
        turn_id = wire.turn_id("turnId", request.turn_id)
        wait = wire.wait("wait", request.wait, timedelta(0))
        return wire.turn(turn_id, await self._turns.wait(wire.owner(caller.app, request.owner), turn_id, wait))

    async def create_memory(self, request: pb.CreateMemoryRequest, caller: Caller) -> pb.Memory:
        """Remember a statement, redacted like a turn."""
        told = wire.telling(caller.app, request)
        statement = _redacted(told.statement, self._redact)
        request_id = None
        if told.request_id is not None:
            request_id = RequestId("CreateMemory", told.request_id, _body_hash(statement, exact=told.exact))
        memory = await self._tell.create(told.owner, statement, request=request_id, exact=told.exact)
        return wire.memory(memory)

    async def explain_memory(self, request: pb.ExplainMemoryRequest, caller: Caller) -> pb.ExplainMemoryResponse:
        """Why a memory is believed, in words and as records."""
        found = await self._decisions.explain(wire.owner(caller.app, request.owner), wire.memory_id(request.id))
        if found is None:
            raise NotFound("the owner has no such memory")
        return records.explained(found, _in_words(found))

    async def delete_memory(self, request: pb.DeleteMemoryRequest, caller: Caller) -> pb.DeleteMemoryResponse:
        """Forget a memory."""
        owner, memory_id = wire.owner(caller.app, request.owner), wire.memory_id(request.id)
        if not await self._forget.forget(owner, memory_id):
            raise NotFound("the owner has no such memory")
        return wire.deleted()

    async def _turn_over(self, owner: Owner, turn_id: str, timeout: timedelta) -> None:
        report = await self._turns.wait(owner, turn_id, timeout)
        match report.state:
            case TurnState.STORED | TurnState.ERASED:
                return
            case TurnState.PARKED:
                raise TurnParked(turn_id, report.reason, report.detail)
            case TurnState.UNKNOWN | TurnState.PENDING:
                raise TurnNotOver(f"the turn is {report.state.value} after {timeout.total_seconds():g} s")


@dataclass(frozen=True, slots=True)
class Streaming(Generic[Req, Res]):
    """A method whose answer is a stream of messages."""

    name: str
    request: type[Req]
    response: type[Res]
    scope: Scope
    handle: Callable[[Req, Caller], AsyncGenerator[Res, None]]


@dataclass(frozen=True, slots=True)
class Method(Generic[Req, Res]):
    """One method of the proto, the scope that it needs, and its handler."""

    name: str
    request: type[Req]
    response: type[Res]
    scope: Scope
    handle: Callable[[Req, Caller], Awaitable[Res]]


AnyMethod: TypeAlias = Method[Any, Any] | Streaming[Any, Any]


def methods(service: MemoryService, exporter: Exporter) -> tuple[AnyMethod, ...]:
    """All methods that are served."""
    return (
        Method("Search", pb.SearchRequest, pb.SearchResponse, Scope.READ, service.search),
        Method("GetMemory", pb.GetMemoryRequest, pb.Memory, Scope.READ, service.get_memory),
        Method("ListMemories", pb.ListMemoriesRequest, pb.ListMemoriesResponse, Scope.READ, service.list_memories),
        Method("GetTurn", pb.GetTurnRequest, pb.Turn, Scope.READ, service.get_turn),
        Method("CreateMemory", pb.CreateMemoryRequest, pb.Memory, Scope.WRITE, service.create_memory),
        Method("ExplainMemory", pb.ExplainMemoryRequest, pb.ExplainMemoryResponse, Scope.READ, service.explain_memory),
        Method("DeleteMemory", pb.DeleteMemoryRequest, pb.DeleteMemoryResponse, Scope.WRITE, service.delete_memory),
        Streaming("ExportOwner", pb.ExportOwnerRequest, pb.ExportOwnerResponse, Scope.READ, exporter.export_owner),
    )


def _in_words(found: Explanation) -> str:
    try:
        zone: tzinfo = ZoneInfo(found.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name that this machine's data does not hold
        zone = UTC
    return story(found.memory, found.statements, found.decisions, found.line, found.now, zone=zone)


def _redacted(statement: NewStatement, redact: Callable[[str], str]) -> NewStatement:
    content = rules.content("content", redact(statement.content))
    if content != statement.content and not content.replace(REDACTED, "").strip():
        raise InvalidRequest("content", "must hold more than secrets, which are never kept")
    return replace(
        statement,
        content=content,
        data=_redacted_data(statement.data, redact) if statement.data is not None else None,
        tags=tuple(redact(tag) for tag in statement.tags),
        type=redact(statement.type) if statement.type is not None else None,
    )


def _redacted_data(value: Any, redact: Callable[[str], str], name: str = "") -> Any:
    """`value` without secrets. A text is also read with the name that it stands under: `password` makes one of it."""
    match value:
        case str():
            labelled = f"{name}: {value}"
            return REDACTED if name and redact(labelled) != labelled else redact(value)
        case Mapping():
            return {redact(key): _redacted_data(item, redact, key) for key, item in value.items()}
        case list():
            return [_redacted_data(item, redact, name) for item in value]
        case int() | float() if not isinstance(value, bool):
            number = f"{value:.0f}" if float(value).is_integer() else str(value)
            labelled = f"{name}: {number}"
            return REDACTED if redact(labelled) != labelled else value
        case _:
            return value


def _body_hash(statement: NewStatement, *, exact: bool) -> bytes:
    """SHA-256 of what is told, after redaction: nobody can try secrets against it."""
    return sha256(msgspec.json.encode([statement, exact], order="deterministic")).digest()

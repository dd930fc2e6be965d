"""Between the messages of the wire and the values of the domain.

Only this module reads messages, and only it and `query.records` build them. Requests become values that keep every
rule, or InvalidRequest names the field. Fields are named as JSON has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from mnemostream.v1 import memory_service_pb as pb
from protobuf import enum_is_unknown
from protobuf.wkt import Duration, Struct, Timestamp

from processors import memories
from processors.errors import InvalidRequest
from processors.records import Owner
from processors.search import (
    MAX_QUERY_CHARACTERS,
    Filters,
    Hit,
    MemoryPage,
    Mode,
    SearchQuery,
    SearchResult,
    TurnReport,
    TurnState,
    Weights,
)
from processors.statements import NewStatement
from query import paging, rules

DEFAULT_LIMIT: Final = 10
DEFAULT_PAGE: Final = 100
DEFAULT_WAIT: Final = timedelta(seconds=10)
_MAX_INT32: Final = 2**31 - 1
_UNTOLD: Final = NewStatement(content="")
"""Where the defaults of a statement stand."""

STATES: Final = {state: pb.Memory.State[state.name] for state in memories.State}
TURN_STATES: Final = {state: pb.Turn.State[state.name] for state in TurnState}
_MODES: Final = {pb.SearchRequest.Mode[mode.name]: mode for mode in Mode} | {
    pb.SearchRequest.Mode.UNSPECIFIED: Mode.WEIGHTED
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question, and the turn that it waits for."""

    owner: Owner
    query: SearchQuery
    query_cut: bool
    after_turn: str | None
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of a list."""

    owner: Owner
    filters: Filters
    page_size: int
    after: tuple[datetime, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A statement to remember, not yet redacted."""

    owner: Owner
    statement: NewStatement
    exact: bool
    request_id: str | None


class _Filtered(Protocol):
    """The filters, which several requests share."""

    categories: list[str]
    types: list[str]
    tags: list[str]
    session: str
    data_contains: Struct | None
    min_importance: int
    min_confidence: float
    said_after: Timestamp | None
    said_before: Timestamp | None
    include_retired: bool


def owner(app: str, name: str) -> Owner:
    """The owner that a request names, inside the app of its key."""
    return Owner(app, rules.name("owner", name, 256))


def memory_id(value: str) -> UUID:
    """The id of a memory."""
    return rules.uuid("id", value)


def turn_id(field: str, value: str) -> str:
    """The id of a turn."""
    return rules.name(field, value, 128)


def wait(field: str, value: Duration | None, default: timedelta) -> timedelta:
    """How long to wait."""
    if value is None:
        return default
    try:
        return rules.wait(field, value.to_timedelta())
    except OverflowError:
        raise InvalidRequest(field, "must be a duration") from None


def search(app: str, request: pb.SearchRequest) -> Search:
    """What `Search` asks."""
    after = request.after_turn
    weights = request.weights
    return Search(
        owner=owner(app, request.owner),
        query=SearchQuery(
            text=rules.text(request.query[:MAX_QUERY_CHARACTERS]),
            limit=rules.whole("limit", request.limit, 1, 100, DEFAULT_LIMIT),
            mode=_mode(request.mode),
            weights=_weights(weights) if weights is not None else Weights(),
            filters=_filters(request),
        ),
        query_cut=len(request.query) > MAX_QUERY_CHARACTERS,
        after_turn=turn_id("afterTurn.turnId", after.turn_id) if after is not None else None,
        timeout=wait("afterTurn.timeout", after.timeout if after is not None else None, DEFAULT_WAIT),
    )


def listing(app: str, request: pb.ListMemoriesRequest) -> Listing:
    """What `ListMemories` asks."""
    whose = owner(app, request.owner)
    filters = _filters(request)
    return Listing(
        owner=whose,
        filters=filters,
        page_size=rules.whole("pageSize", request.page_size, 1, 1000, DEFAULT_PAGE),
        after=paging.position(whose, filters, request.page_token),
    )


def telling(app: str, request: pb.CreateMemoryRequest) -> Telling:
    """What `CreateMemory` tells."""
    confidence = request.confidence if request.has_field("confidence") else _UNTOLD.confidence
    return Telling(
        owner=owner(app, request.owner),
        statement=NewStatement(
            content=rules.content("content", request.content),
            category=rules.category("category", request.category) if request.category else _UNTOLD.category,
            importance=rules.whole("importance", request.importance, 1, 10, _UNTOLD.importance),
            confidence=rules.number("confidence", confidence, 1),
            data=_data("data", request.data) if request.data is not None else None,
            tags=rules.names("tags", request.tags),
            type=rules.optional_name("type", request.type, rules.MAX_LIST),
            pinned=request.pinned,
            expires_at=_moment("expiresAt", request.expires_at),
            valid_from=_moment("validFrom", request.valid_from),
        ),
        exact=request.exact,
        request_id=rules.optional_name("requestId", request.request_id, 128),
    )


def _filters(request: _Filtered) -> Filters:
    least = request.min_importance
    return Filters(
        categories=rules.names("categories", request.categories),
        types=rules.names("types", request.types),
        tags=rules.names("tags", request.tags),
        session=rules.optional_name("session", request.session, 256),
        data_contains=_data("dataContains", request.data_contains) if request.data_contains is not None else None,
        min_importance=rules.whole("minImportance", least, 1, 10, 0) or None,
        min_confidence=rules.number("minConfidence", request.min_confidence, 1) or None,
        said_after=_moment("saidAfter", request.said_after),
        said_before=_moment("saidBefore", request.said_before),
        include_retired=request.include_retired,
    )


def _mode(value: pb.SearchRequest.Mode) -> Mode:
    if enum_is_unknown(value):
        raise InvalidRequest("mode", "must be WEIGHTED, RRF, VECTOR or TEXT")
    return _MODES[value]


def _weights(given: pb.Weights) -> Weights:
    default = Weights()
    weights = Weights(
        similarity=_weight(given, "similarity", default.similarity),
        text=_weight(given, "text", default.text),
        strength=_weight(given, "strength", default.strength),
        recency=_weight(given, "recency", default.recency),
    )
    if weights.similarity + weights.text + weights.strength + weights.recency <= 0:
        raise InvalidRequest("weights", "must not all be 0")
    return weights


def _weight(given: pb.Weights, part: Literal["similarity", "text", "strength", "recency"], default: float) -> float:
    value: float = getattr(given, part) if given.has_field(part) else default
    return rules.number(f"weights.{part}", value, rules.MAX_WEIGHT)


def _moment(field: str, value: Timestamp | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = value.to_datetime()
    except OverflowError:
        moment = None
    if moment is None or not 0 <= value.nanos < 10**9:
        raise InvalidRequest(field, "must be a time of the years 1 to 9999")
    return moment


def _data(field: str, value: Struct) -> dict[str, Any]:
    try:
        return rules.data(field, value.to_python())
    except (ValueError, RecursionError):  # a Value of no kind, which only a binary message can hold
        raise InvalidRequest(field, "must be a JSON object") from None


def memory(value: memories.Memory) -> pb.Memory:
    """A memory as it is shown."""
    return pb.Memory(
        id=str(value.id),
        owner=value.owner,
        session=value.session or "",
        content=value.content,
        data=struct(value.data),
        tags=list(value.tags),
        type=value.type or "",
        category=value.category,
        importance=value.importance,
        confidence=value.confidence,
        pinned=value.pinned,
        state=STATES[value.state],
        strength=value.strength,
        subject=value.subject or "",
        attribute=value.attribute or "",
        valid_from=timestamp(value.valid_from),
        valid_to=timestamp(value.valid_to),
        recorded_at=timestamp(value.recorded_at),
        retired_at=timestamp(value.retired_at),
        retired_reason=value.retired_reason or "",
        supersedes=str(value.supersedes) if value.supersedes is not None else "",
        superseded_by=str(value.superseded_by) if value.superseded_by is not None else "",
        access_count=min(value.access_count, _MAX_INT32),
        accessed_at=timestamp(value.accessed_at),
        confirmed_at=timestamp(value.confirmed_at),
        confirmations=value.confirmations,
        expires_at=timestamp(value.expires_at),
        fades_at=None if value.pinned else timestamp(value.fades_at),
        etag=str(value.version),
        sources=[source(each) for each in value.sources],
        restates=str(value.restates) if value.restates is not None else "",
    )


def found(result: SearchResult, *, query_cut: bool) -> pb.SearchResponse:
    """The answer of `Search`."""
    return pb.SearchResponse(hits=[_hit(hit) for hit in result.hits], degraded=result.degraded, query_cut=query_cut)


def page(asked: Listing, answer: MemoryPage) -> pb.ListMemoriesResponse:
    """The answer of `ListMemories`."""
    more = answer.next_after
    return pb.ListMemoriesResponse(
        memories=[memory(value) for value in answer.memories],
        next_page_token=paging.token(asked.owner, asked.filters, more) if more is not None else "",
        total_size=min(answer.total, _MAX_INT32),
    )


def turn(turn_id: str, report: TurnReport) -> pb.Turn:
    """The answer of `GetTurn`."""
    return pb.Turn(
        turn_id=turn_id,
        state=TURN_STATES[report.state],
        reason=str(report.reason or ""),
        detail=report.detail or "",
        memory_ids=list(report.memory_ids),
    )


def deleted() -> pb.DeleteMemoryResponse:
    """The answer of `DeleteMemory`."""
    return pb.DeleteMemoryResponse()


def _hit(hit: Hit) -> pb.Hit:
    return pb.Hit(
        memory=memory(hit.memory),
        score=hit.score,
        similarity=hit.similarity,
        text_score=hit.text_score,
        strength=hit.strength,
    )


def source(source: memories.Source) -> pb.Source:
    """One message that supports a memory."""
    return pb.Source(
        turn_id=source.turn_id,
        message_index=source.message_index,
        role=str(source.role or ""),
        said_at=timestamp(source.said_at),
    )


def timestamp(value: datetime | None) -> Timestamp | None:
    """A time; unset where there is none."""
    return Timestamp.from_datetime(value) if value is not None else None


def struct(value: Mapping[str, Any] | None) -> Struct:
    """A JSON object."""
    return Struct.from_python(value) if value else Struct()

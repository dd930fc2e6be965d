"""Between the values of this client and the messages of the wire: no other module here builds or reads messages."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from mnemostream import types
from mnemostream.v1 import memory_service_pb as pb
from protobuf import Enum, enum_is_unknown
from protobuf.wkt import Duration, Struct, Timestamp

E = TypeVar("E", bound=StrEnum)


_MODES: Final = {mode: pb.SearchRequest.Mode[mode.name] for mode in types.Mode}


def search_request(
    owner: str,
    query: str,
    filters: types.Filters,
    *,
    limit: int,
    mode: types.Mode | None,
    weights: types.Weights | None,
    after_turn: str | None,
    after_turn_seconds: float,
    dry_run: bool,
) -> pb.SearchRequest:
    """What `search` sends."""
    request = pb.SearchRequest(owner=owner, query=query, limit=limit, dry_run=dry_run, **_filter_fields(filters))
    if mode is not None:
        request.mode = _MODES[types.Mode(mode)]
    if weights is not None:
        request.weights = pb.Weights(
            similarity=weights.similarity, text=weights.text, strength=weights.strength, recency=weights.recency
        )
    if after_turn is not None:
        request.after_turn = pb.AfterTurn(turn_id=after_turn, timeout=_duration(after_turn_seconds))
    return request


def list_request(
    owner: str, filters: types.Filters, *, page_size: int, page_token: str | None
) -> pb.ListMemoriesRequest:
    """What `list_memories` sends."""
    return pb.ListMemoriesRequest(
        owner=owner, page_size=page_size, page_token=page_token or "", **_filter_fields(filters)
    )


def get_request(owner: str, memory_id: str) -> pb.GetMemoryRequest:
    """What `get_memory` sends."""
    return pb.GetMemoryRequest(owner=owner, id=memory_id)


def explain_request(owner: str, memory_id: str) -> pb.ExplainMemoryRequest:
    """What `explain` sends."""
    return pb.ExplainMemoryRequest(owner=owner, id=memory_id)


def delete_request(owner: str, memory_id: str) -> pb.DeleteMemoryRequest:
    """What `delete` sends."""
    return pb.DeleteMemoryRequest(owner=owner, id=memory_id)


def turn_request(owner: str, turn_id: str, wait_seconds: float) -> pb.GetTurnRequest:
    """What `get_turn` sends."""
    return pb.GetTurnRequest(owner=owner, turn_id=turn_id, wait=_duration(wait_seconds))


def create_request(
    owner: str,
    content: str,
    *,
    data: Mapping[str, Any] | None,
    tags: Iterable[str],
    type: str | None,  # noqa: A002 (the field's name)
    category: str | None,
    importance: int | None,
    confidence: float | None,
    pinned: bool,
    expires_at: datetime | None,
    valid_from: datetime | None,
    exact: bool,
    request_id: str,
) -> pb.CreateMemoryRequest:
    """What `create_memory` sends."""
    return pb.CreateMemoryRequest(
        owner=owner,
        content=content,
        data=Struct.from_python(data) if data is not None else None,
        tags=list(tags),
        type=type or "",
        category=category or "",
        importance=importance or 0,
        confidence=confidence,
        pinned=pinned,
        expires_at=_timestamp(expires_at),
        valid_from=_timestamp(valid_from),
        exact=exact,
        request_id=request_id,
    )


def memory(message: pb.Memory) -> types.Memory:
    """A memory that was answered."""
    return types.Memory(
        id=message.id,
        owner=message.owner,
        content=message.content,
        category=message.category,
        importance=message.importance,
        confidence=message.confidence,
        state=known(types.State, message.state),
        strength=message.strength,
        etag=message.etag,
        session=message.session or None,
        data=whole(message.data.to_python()) if message.data is not None else {},
        tags=tuple(message.tags),
        type=message.type or None,
        pinned=message.pinned,
        subject=message.subject or None,
        attribute=message.attribute or None,
        valid_from=moment(message.valid_from),
        valid_to=moment(message.valid_to),
        recorded_at=moment(message.recorded_at),
        retired_at=moment(message.retired_at),
        retired_reason=message.retired_reason or None,
        supersedes=message.supersedes or None,
        superseded_by=message.superseded_by or None,
        access_count=message.access_count,
        accessed_at=moment(message.accessed_at),
        confirmed_at=moment(message.confirmed_at),
        confirmations=message.confirmations,
        expires_at=moment(message.expires_at),
        fades_at=moment(message.fades_at),
        sources=tuple(_source(source) for source in message.sources),
        restates=message.restates or None,
    )


def search_result(message: pb.SearchResponse) -> types.SearchResult:
    """What `search` gives."""
    return types.SearchResult(tuple(_hit(hit) for hit in message.hits), message.degraded, message.query_cut)


def memory_page(message: pb.ListMemoriesResponse) -> types.MemoryPage:
    """What `list_memories` gives."""
    return types.MemoryPage(
        tuple(memory(one) for one in message.memories), message.next_page_token or None, message.total_size
    )


def turn_report(message: pb.Turn) -> types.TurnReport:
    """What `get_turn` gives."""
    return types.TurnReport(
        message.turn_id,
        known(types.TurnState, message.state),
        message.reason or None,
        message.detail or None,
        tuple(message.memory_ids),
    )


def explanation(message: pb.ExplainMemoryResponse) -> types.Explanation:
    """What `explain` gives."""
    return types.Explanation(
        memory(message.memory if message.memory is not None else pb.Memory()),
        message.story,
        tuple(_statement(one) for one in message.statements),
        tuple(decision(one) for one in message.decisions),
        tuple(memory(one) for one in message.line),
    )


def _statement(message: pb.Statement) -> types.Statement:
    index = message.message_index if message.has_field("message_index") else None
    return types.Statement(
        message.turn_id, index, message.role or None, message.name or None, moment(message.said_at), message.text
    )


def decision(message: pb.Decision) -> types.Decision:
    """What was done with a candidate."""
    arbitration = message.arbitration
    return types.Decision(
        id=message.id,
        at=moment(message.at),
        cause_kind=message.cause_kind,
        cause_id=message.cause_id,
        candidate=message.candidate,
        route=known(types.Route, message.route),
        action=known(types.Action, message.action),
        reason=message.reason,
        marked=message.marked,
        neighbours=tuple(_compared(one) for one in message.neighbours),
        retired=tuple(message.retired),
        memory_id=message.memory_id or None,
        reading=_model_call(message) if message.model else None,
        arbitration=_model_call(arbitration) if arbitration is not None else None,
    )


def _compared(message: pb.DecisionNeighbour) -> types.Compared:
    return types.Compared(
        message.memory_id,
        message.similarity if message.has_field("similarity") else None,
        known(types.State, message.state),
        message.same_text,
        message.same_slot,
        message.content,
    )


def _model_call(message: pb.Decision | pb.Arbitration) -> types.ModelCall:
    seconds = message.latency.to_timedelta().total_seconds() if message.latency is not None else 0.0
    return types.ModelCall(message.model, message.prompt_version, message.tokens_in, message.tokens_out, seconds)


def _filter_fields(filters: types.Filters) -> dict[str, Any]:
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    for name in ("categories", "types", "tags"):
        if name in given:
            given[name] = list(given[name])
    for name in ("said_after", "said_before"):
        if name in given:
            given[name] = _timestamp(given[name])
    if "data_contains" in given:
        given["data_contains"] = Struct.from_python(given["data_contains"])
    return given


def known(kind: type[E], value: Enum) -> E:
    """The member of `kind` with the name of `value`; UNRECOGNIZED where it has none."""
    return kind.__members__.get("" if enum_is_unknown(value) else value.name, kind.__members__["UNRECOGNIZED"])


def _hit(hit: pb.Hit) -> types.Hit:
    found = hit.memory if hit.memory is not None else pb.Memory()
    return types.Hit(memory(found), hit.score, hit.similarity, hit.text_score, hit.strength)


def _source(source: pb.Source) -> types.Source:
    index = source.message_index if source.has_field("message_index") else None
    return types.Source(source.turn_id, index, source.role or None, moment(source.said_at))


def _timestamp(value: datetime | None) -> Timestamp | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone")
    return Timestamp.from_datetime(value)


def moment(value: Timestamp | None) -> datetime | None:
    """A time; None where it is unset."""
    return value.to_datetime() if value is not None else None


def _duration(seconds: float) -> Duration:
    return Duration.from_timedelta(timedelta(seconds=seconds))


def whole(value: Any) -> Any:
    """JSON's numbers travel as doubles: 3.0 was a 3."""
    match value:
        case dict():
            return {key: whole(item) for key, item in value.items()}
        case list():
            return [whole(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value

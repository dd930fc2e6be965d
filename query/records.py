"""The records behind memories as messages of the wire: statements, decisions, and the lines of an export."""

from datetime import timedelta
from typing import Final, Literal, assert_never

from mnemostream.v1 import memory_service_pb as pb
from protobuf import Oneof
from protobuf.wkt import Duration

from processors import explanations, exports
from processors.facts import Reading
from processors.feed import Change
from processors.memories import Memory
from processors.routing import Action, Route
from query import wire

_ROUTES: Final = {route: pb.Decision.Route[route.name] for route in Route}
_ACTIONS: Final = {action: pb.Decision.Action[action.name] for action in Action}


def line(value: exports.Line) -> pb.ExportOwnerResponse:
    """One line of an export."""
    match value:
        case exports.Header():
            return pb.ExportOwnerResponse(line=Oneof[Literal["header"], pb.ExportHeader]("header", _header(value)))
        case Memory():
            return pb.ExportOwnerResponse(line=Oneof[Literal["memory"], pb.Memory]("memory", wire.memory(value)))
        case Change():
            return pb.ExportOwnerResponse(line=Oneof[Literal["change"], pb.Change]("change", _change(value)))
        case exports.LoggedTurn():
            return pb.ExportOwnerResponse(line=Oneof[Literal["turn"], pb.LoggedTurn]("turn", _logged(value)))
        case explanations.Decision():
            return pb.ExportOwnerResponse(line=Oneof[Literal["decision"], pb.Decision]("decision", _decision(value)))
        case _:
            assert_never(value)


def end(counts: dict[str, int]) -> pb.ExportOwnerResponse:
    """The last line of an export, by how many of each there were."""
    said = pb.ExportEnd(
        memories=counts.get("memory", 0),
        changes=counts.get("change", 0),
        turns=counts.get("turn", 0),
        decisions=counts.get("decision", 0),
    )
    return pb.ExportOwnerResponse(line=Oneof[Literal["end"], pb.ExportEnd]("end", said))


def _header(header: exports.Header) -> pb.ExportHeader:
    return pb.ExportHeader(
        app=header.owner.app,
        owner=header.owner.owner,
        seq=header.seq,
        version=header.version,
        exported_at=wire.timestamp(header.at),
        schema=exports.SCHEMA,
    )


def _change(change: Change) -> pb.Change:
    return pb.Change(
        seq=change.seq,
        app=change.owner.app,
        owner=change.owner.owner,
        kind=change.kind,
        at=wire.timestamp(change.at),
        memory=None if change.memory is None else wire.memory(change.memory),
        cause=pb.Cause(kind=change.cause_kind, id=change.cause_id),
        decision="" if change.decision_id is None else str(change.decision_id),
    )


def _logged(turn: exports.LoggedTurn) -> pb.LoggedTurn:
    return pb.LoggedTurn(
        turn_id=turn.turn_id,
        state=wire.TURN_STATES[turn.state],
        reason=str(turn.reason or ""),
        detail=turn.detail or "",
        session=turn.session or "",
        said_at=wire.timestamp(turn.said_at),
        received_at=wire.timestamp(turn.received_at),
        time_zone=turn.time_zone or "",
        off_record=turn.off_record,
        messages=[
            pb.LoggedMessage(role=message.role, content=message.content, id=message.id or "", name=message.name or "")
            for message in turn.messages
        ],
        recalled=list(turn.recalled),
        metadata=wire.struct(turn.metadata),
    )


def explained(value: explanations.Explanation, story: str) -> pb.ExplainMemoryResponse:
    """The answer of `ExplainMemory`."""
    return pb.ExplainMemoryResponse(
        memory=wire.memory(value.memory),
        story=story,
        statements=[_statement(statement) for statement in value.statements],
        decisions=[_decision(decision) for decision in value.decisions],
        line=[wire.memory(version) for version in value.line],
    )


def _statement(statement: explanations.Statement) -> pb.Statement:
    return pb.Statement(
        turn_id=statement.turn_id,
        message_index=statement.message_index,
        role=str(statement.role or ""),
        name=statement.name or "",
        said_at=wire.timestamp(statement.said_at),
        text=statement.text,
    )


def _decision(decision: explanations.Decision) -> pb.Decision:
    reading = decision.reading or Reading(model="", prompt_version="")
    return pb.Decision(
        id=str(decision.id),
        at=wire.timestamp(decision.at),
        cause_kind=decision.cause_kind,
        cause_id=decision.cause_id,
        candidate=decision.candidate,
        route=_ROUTES[decision.route],
        action=_ACTIONS[decision.action],
        reason=decision.reason,
        marked=decision.marked,
        neighbours=[_compared(compared) for compared in decision.compared],
        retired=[str(memory_id) for memory_id in decision.retired],
        model=reading.model,
        prompt_version=reading.prompt_version,
        tokens_in=reading.tokens_in,
        tokens_out=reading.tokens_out,
        latency=_duration(reading.latency_seconds),
        arbitration=_arbitration(decision.arbitration) if decision.arbitration is not None else None,
        memory_id=str(decision.memory_id) if decision.memory_id is not None else "",
    )


def _compared(compared: explanations.Compared) -> pb.DecisionNeighbour:
    return pb.DecisionNeighbour(
        memory_id=str(compared.memory_id),
        similarity=compared.similarity,
        state=wire.STATES[compared.state],
        same_text=compared.same_text,
        same_slot=compared.same_slot,
        content=compared.content,
    )


def _arbitration(reading: Reading) -> pb.Arbitration:
    return pb.Arbitration(
        model=reading.model,
        prompt_version=reading.prompt_version,
        tokens_in=reading.tokens_in,
        tokens_out=reading.tokens_out,
        latency=_duration(reading.latency_seconds),
    )


def _duration(seconds: float) -> Duration:
    return Duration.from_timedelta(timedelta(seconds=seconds))

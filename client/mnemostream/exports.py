"""The lines of an export, between the messages of the wire and the values of this client."""

from datetime import UTC, datetime
from typing import Final

from mnemostream import messages, types
from mnemostream.v1 import memory_service_pb as pb

_UNSET: Final = datetime.fromtimestamp(0, UTC)
"""What a time that is not there stands for in proto3."""


def export_request(owner: str) -> pb.ExportOwnerRequest:
    """What `export` sends."""
    return pb.ExportOwnerRequest(owner=owner)


def export_line(message: pb.ExportOwnerResponse) -> types.ExportLine | None:
    """A line of an export; None where the service is newer than this client and sends another kind."""
    if message.line is None:
        return None
    match message.line.value:
        case pb.ExportHeader() as header:
            return _header(header)
        case pb.Memory() as memory:
            return messages.memory(memory)
        case pb.Change() as change:
            return _change(change)
        case pb.LoggedTurn() as turn:
            return _turn(turn)
        case pb.Decision() as decision:
            return messages.decision(decision)
        case pb.ExportEnd() as end:
            return types.ExportEnd(memories=end.memories, changes=end.changes, turns=end.turns, decisions=end.decisions)


def _header(message: pb.ExportHeader) -> types.ExportHeader:
    return types.ExportHeader(
        app=message.app,
        owner=message.owner,
        seq=message.seq,
        version=message.version,
        exported_at=messages.moment(message.exported_at),
        schema=message.schema,
    )


def _change(message: pb.Change) -> types.Change:
    cause = message.cause if message.cause is not None else pb.Cause()
    return types.Change(
        seq=message.seq,
        app=message.app,
        owner=message.owner,
        kind=message.kind,
        at=messages.moment(message.at) or _UNSET,
        memory=None if message.memory is None else messages.memory(message.memory),
        cause=types.Cause(cause.kind, cause.id),
        decision=message.decision or None,
    )


def _turn(message: pb.LoggedTurn) -> types.LoggedTurn:
    return types.LoggedTurn(
        turn_id=message.turn_id,
        state=messages.known(types.TurnState, message.state),
        reason=message.reason or None,
        detail=message.detail or None,
        session=message.session or None,
        said_at=messages.moment(message.said_at),
        received_at=messages.moment(message.received_at),
        time_zone=message.time_zone or None,
        off_record=message.off_record,
        messages=tuple(
            types.LoggedMessage(one.role, one.content, one.id or None, one.name or None) for one in message.messages
        ),
        recalled=tuple(message.recalled),
        metadata=messages.whole(message.metadata.to_python()) if message.metadata is not None else {},
    )

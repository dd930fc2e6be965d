"""Records of `changes.v1` as values."""

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from mnemostream.types import Cause, Change, Memory, Source, State
from msgspec import Meta, Struct

SCHEMA_HEADER: Final = "mnemo-schema"
SCHEMA: Final = b"1"

_Time = Annotated[datetime, Meta(tz=True)]


class UnreadableChange(ValueError):
    """What is wrong with a record: the field and the rule, never the value."""


class _Source(Struct, rename="camel"):
    turn_id: str
    said_at: _Time
    message_index: int | None = None
    role: str = ""


class _Memory(Struct, rename="camel", kw_only=True):
    """As the RPC shows it: what is empty stands for what is not there."""

    id: str
    owner: str
    content: str
    category: str
    importance: int
    confidence: float
    state: str
    strength: float
    etag: str
    session: str = ""
    data: dict[str, Any] = {}
    tags: list[str] = []
    type: str = ""
    pinned: bool = False
    subject: str = ""
    attribute: str = ""
    valid_from: _Time | None = None
    valid_to: _Time | None = None
    recorded_at: _Time | None = None
    retired_at: _Time | None = None
    retired_reason: str = ""
    supersedes: str = ""
    superseded_by: str = ""
    access_count: int = 0
    accessed_at: _Time | None = None
    confirmed_at: _Time | None = None
    confirmations: int = 0
    expires_at: _Time | None = None
    fades_at: _Time | None = None
    sources: list[_Source] = []
    restates: str = ""


class _Cause(Struct):
    kind: str
    id: str


class _Change(Struct, kw_only=True):
    seq: Annotated[int, Meta(ge=1)]
    app: str
    owner: str
    kind: str
    at: _Time
    memory: _Memory | None
    cause: _Cause
    decision: str | None


_DECODER: Final = msgspec.json.Decoder(_Change)


def change_of(key: bytes | None, value: bytes | None, schema: bytes | None) -> Change:
    """The change in a record, by its header `mnemo-schema` (absent means 1). Fields that are not known are ignored.

    Raises UnreadableChange.
    """
    if schema not in (None, SCHEMA):
        raise UnreadableChange(f"header {SCHEMA_HEADER}: must be {SCHEMA.decode()} or absent; is this client too old?")
    if not value:
        raise UnreadableChange("value: is empty")
    try:
        change = _DECODER.decode(value)
    except msgspec.ValidationError as error:  # names the field and the types
        rule = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        rule = f"is not JSON in UTF-8 (length {len(value)})"
    else:
        if f"{change.app}/{change.owner}".encode() != key:
            raise UnreadableChange("key: must be app/owner of the value")
        return _shown(change)
    raise UnreadableChange(f"value: {rule}")


def _shown(change: _Change) -> Change:
    return Change(
        seq=change.seq,
        app=change.app,
        owner=change.owner,
        kind=change.kind,
        at=change.at,
        memory=None if change.memory is None else _memory(change.memory),
        cause=Cause(change.cause.kind, change.cause.id),
        decision=change.decision,
    )


def _memory(memory: _Memory) -> Memory:
    return Memory(
        id=memory.id,
        owner=memory.owner,
        content=memory.content,
        category=memory.category,
        importance=memory.importance,
        confidence=memory.confidence,
        state=State.__members__.get(memory.state, State.UNRECOGNIZED),
        strength=memory.strength,
        etag=memory.etag,
        session=memory.session or None,
        data=memory.data,
        tags=tuple(memory.tags),
        type=memory.type or None,
        pinned=memory.pinned,
        subject=memory.subject or None,
        attribute=memory.attribute or None,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        recorded_at=memory.recorded_at,
        retired_at=memory.retired_at,
        retired_reason=memory.retired_reason or None,
        supersedes=memory.supersedes or None,
        superseded_by=memory.superseded_by or None,
        access_count=memory.access_count,
        accessed_at=memory.accessed_at,
        confirmed_at=memory.confirmed_at,
        confirmations=memory.confirmations,
        expires_at=memory.expires_at,
        fades_at=memory.fades_at,
        sources=tuple(
            Source(source.turn_id, source.message_index, source.role or None, source.said_at)
            for source in memory.sources
        ),
        restates=memory.restates or None,
    )

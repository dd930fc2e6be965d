"""The change feed: a change as a value, and as the JSON of `changes.v1`.

A memory in it is the JSON that the RPC answers with (proto3 JSON), made without the classes of the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from processors.memories import Memory, Source
from processors.records import Owner

MAX_VALUE_BYTES: Final = 7 * 1024 * 1024
"""Of a record. What a topic takes is 8 MiB."""
KEPT_SOURCES: Final = 1_000
"""The latest ones, of a memory that was said so often that its record would be too large."""
_MAX_INT32: Final = 2**31 - 1

Time = Annotated[str, Meta(description="RFC 3339, in UTC.", extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]
Kind = Literal[
    "added",
    "confirmed",
    "superseded",
    "retracted",
    "archived",
    "expired",
    "evicted",
    "revived",
    "restored",
    "edited",
    "pinned",
    "unpinned",
    "promoted",
    "linked",
    "unlinked",
    "forgotten",
    "purged",
    "owner_erased",
]
StateName = Literal["LIVE", "ARCHIVED", "EXPIRED", "SUPERSEDED", "RETRACTED", "EVICTED", "FORGOTTEN"]
CauseKind = Literal["turn", "request", "timer"]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of an owner's history: the memory as it was after it, with its strength at that moment."""

    owner: Owner
    seq: int
    """1, 2, 3 … per owner, without a gap."""
    kind: Kind
    at: datetime
    memory: Memory | None
    """None where the change is about the owner as a whole."""
    cause_kind: CauseKind
    cause_id: str
    decision_id: UUID | None


class SourceJson(Struct, rename="camel", kw_only=True):
    """One message that supports a memory."""

    turn_id: str
    message_index: Count | UnsetType = UNSET
    """Absent: the turn as a whole."""
    role: str
    said_at: Time


class MemoryJson(Struct, rename="camel", kw_only=True):
    """A memory as the RPC shows it. A time that is not set is absent; every other field is there."""

    id: str
    owner: str
    session: str
    content: str
    data: dict[str, Any]
    tags: list[str]
    type: str
    category: str
    importance: int
    confidence: float
    pinned: bool
    state: StateName
    strength: float
    subject: str
    attribute: str
    valid_from: Time
    valid_to: Time | UnsetType = UNSET
    recorded_at: Time
    retired_at: Time | UnsetType = UNSET
    retired_reason: str
    supersedes: str
    superseded_by: str
    access_count: Count
    accessed_at: Time | UnsetType = UNSET
    confirmed_at: Time | UnsetType = UNSET
    confirmations: Count
    expires_at: Time | UnsetType = UNSET
    fades_at: Time | UnsetType = UNSET
    etag: str
    sources: list[SourceJson]
    restates: str


class CauseJson(Struct, kw_only=True):
    """What made the change: a turn or a request by its id, or a timer."""

    kind: CauseKind
    id: str


class ChangeJson(Struct, kw_only=True):
    """A change of an owner's memories: a record of `changes.v1`. The same `seq` is the same change."""

    seq: Annotated[int, Meta(ge=1, description="1, 2, 3 … per owner, without a gap.")]
    app: str
    owner: str
    kind: Kind
    at: Time
    memory: MemoryJson | None
    cause: CauseJson
    decision: str | None


_ENCODER: Final = msgspec.json.Encoder()


def change_value(change: Change) -> bytes:
    """The value of the record that tells of `change`: always the same for the same change."""
    shown = ChangeJson(
        seq=change.seq,
        app=change.owner.app,
        owner=change.owner.owner,
        kind=change.kind,
        at=_time(change.at),
        memory=None if change.memory is None else memory_json(change.memory),
        cause=CauseJson(kind=change.cause_kind, id=change.cause_id),
        decision=None if change.decision_id is None else str(change.decision_id),
    )
    value = _ENCODER.encode(shown)
    if len(value) > MAX_VALUE_BYTES and shown.memory is not None:
        shown.memory.sources = shown.memory.sources[-KEPT_SOURCES:]
        value = _ENCODER.encode(shown)
    return value


def memory_json(memory: Memory) -> MemoryJson:
    """`memory` as the RPC shows it."""
    return MemoryJson(
        id=str(memory.id),
        owner=memory.owner,
        session=memory.session or "",
        content=memory.content,
        data=_data(memory.data) if memory.data else {},
        tags=list(memory.tags),
        type=memory.type or "",
        category=memory.category,
        importance=memory.importance,
        confidence=memory.confidence,
        pinned=memory.pinned,
        state=memory.state.value,
        strength=memory.strength,
        subject=memory.subject or "",
        attribute=memory.attribute or "",
        valid_from=_time(memory.valid_from),
        valid_to=_time_or_none(memory.valid_to),
        recorded_at=_time(memory.recorded_at),
        retired_at=_time_or_none(memory.retired_at),
        retired_reason=memory.retired_reason or "",
        supersedes="" if memory.supersedes is None else str(memory.supersedes),
        superseded_by="" if memory.superseded_by is None else str(memory.superseded_by),
        access_count=min(memory.access_count, _MAX_INT32),
        accessed_at=_time_or_none(memory.accessed_at),
        confirmed_at=_time_or_none(memory.confirmed_at),
        confirmations=memory.confirmations,
        expires_at=_time_or_none(memory.expires_at),
        fades_at=UNSET if memory.pinned else _time_or_none(memory.fades_at),
        etag=str(memory.version),
        sources=[_source(source) for source in memory.sources],
        restates="" if memory.restates is None else str(memory.restates),
    )


def _source(source: Source) -> SourceJson:
    return SourceJson(
        turn_id=source.turn_id,
        message_index=UNSET if source.message_index is None else source.message_index,
        role="" if source.role is None else source.role.value,
        said_at=_time(source.said_at),
    )


def _time(value: datetime) -> str:
    """With 0, 3 or 6 digits of a second, as proto3 JSON has it."""
    micros = value.microsecond
    precision = "microseconds" if micros % 1000 else "milliseconds" if micros else "seconds"
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _time_or_none(value: datetime | None) -> str | UnsetType:
    return UNSET if value is None else _time(value)


def _data(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _number(value) for key, value in data.items()}


def _number(value: Any) -> Any:
    """Numbers of a Struct are doubles; whole ones are written as such."""
    match value:
        case Mapping():
            return _data(value)
        case list() | tuple():
            return [_number(item) for item in value]
        case bool() | None | str():
            return value
        case int() | float():
            double = float(value)
            return int(double) if double.is_integer() else double
        case _:
            return value

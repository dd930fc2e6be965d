"""Values for tests of what is stored: short to make, valid, and told apart by their names."""

import hashlib
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import numpy as np
from mnemostream.turns import Message, Role, Turn

from processors.effects import Commit, Confirmation, Effect, NewMemory, RequestId, Retirement, TurnEffect, Verdict
from processors.memories import Source, State, StatementOrder
from processors.normalization import text_hash
from processors.records import AcceptedTurn, Owner, Place
from processors.routing import Action, Route
from processors.vectors import EmbeddingModel, Vector

NOON = datetime(2025, 3, 21, 12, tzinfo=UTC)
"""In the past of every clock that these tests run by."""
OWNER = Owner("acme", "user/42")
MODEL = EmbeddingModel("test-model", 8)
HALF_LIFE = 1_000_000.0
ARCHIVE_FACTOR = math.log2(10)

_NAMES = UUID("8e0f2a0e-7a3c-4d58-9d0b-3f5f3f0f6a11")


def id_of(name: str) -> UUID:
    """The same for the same name."""
    return uuid5(_NAMES, name)


def vector_of(name: str, dimensions: int = 8) -> Vector:
    """A unit vector, the same for the same name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    values = np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)
    return values / np.float32(np.linalg.norm(values))


def place_of(offset: int, *, topic: str = "mnemo.turns.v1", partition: int = 0) -> Place:
    """The `offset`-th record, taken `offset` seconds after noon."""
    return Place(topic, partition, offset, NOON + timedelta(seconds=offset))


def accepted(
    turn_id: str, *texts: str, owner: Owner = OWNER, offset: int = 1, session: str | None = "s-1", **fields: Any
) -> AcceptedTurn:
    """A turn of one user message for each text."""
    messages = tuple(Message(Role.USER, text) for text in texts or (f"This is {turn_id}.",))
    turn = Turn(
        id=turn_id, app=owner.app, owner=owner.owner, said_at=NOON, messages=messages, session=session, **fields
    )
    fingerprint = hashlib.sha256("\0".join(m.content for m in messages).encode()).digest()
    return AcceptedTurn(turn, place_of(offset), fingerprint)


def new_memory(text: str, *, at: datetime = NOON, vector: Vector | None = None, **fields: Any) -> NewMemory:
    """A memory that says `text`, with an id and (unless another is given) a vector of its own."""
    values: dict[str, Any] = {
        "id": id_of(text),
        "content": text,
        "content_hash": text_hash(text),
        "category": "fact",
        "importance": 5,
        "confidence": 0.8,
        "order": StatementOrder(at, at, 1, 0),
        "valid_from": at,
        "half_life_seconds": HALF_LIFE,
        "fades_at": at + timedelta(seconds=HALF_LIFE * ARCHIVE_FACTOR),
        "vector": vector_of(text) if vector is None else vector,
    }
    return NewMemory(**(values | fields))


def source_of(turn_id: str, index: int | None = 0, *, at: datetime = NOON) -> Source:
    return Source(turn_id, index, Role.USER, at)


def order_of(at: datetime, *, received_at: datetime | None = None, offset: int = 1, ordinal: int = 0) -> StatementOrder:
    """The order of what was said at `at`, and received then unless another time is given."""
    return StatementOrder(at, received_at or at, offset, ordinal)


def retirement(
    memory_id: UUID, state: State = State.SUPERSEDED, *, at: datetime = NOON, by: UUID | None = None
) -> Retirement:
    """A memory ends at `at`."""
    return Retirement(memory_id=memory_id, state=state, valid_to=at, reason="it was said otherwise", superseded_by=by)


def addition(turn_id: str, new: NewMemory, *sources: Source, retired: Sequence[Retirement] = ()) -> Effect:
    """`turn_id` adds `new`, perhaps in place of something."""
    return Effect(
        decision_id=id_of(f"{turn_id} adds {new.id}"),
        cause_id=turn_id,
        candidate={"text": new.content},
        neighbours=(),
        verdict=Verdict(route=Route.NEW, action=Action.ADD, reason="nothing known says the same"),
        memory_id=new.id,
        new=new,
        retired=tuple(retired),
        sources=sources or (source_of(turn_id),),
    )


def confirmation(
    turn_id: str,
    memory_id: UUID,
    *sources: Source,
    at: datetime = NOON,
    nth: int = 0,
    retired: Sequence[Retirement] = (),
    order: StatementOrder | None = None,
    **fields: Any,
) -> Effect:
    """`turn_id` states a memory again, at `at`."""
    return Effect(
        decision_id=id_of(f"{turn_id} confirms {memory_id} {nth}"),
        cause_id=turn_id,
        candidate={"text": "again"},
        neighbours=(),
        verdict=Verdict(route=Route.SAME_TEXT, action=Action.CONFIRM, reason="the same text is already known"),
        memory_id=memory_id,
        confirmed=Confirmation(
            memory_id=memory_id, order=order or order_of(at), archive_factor=ARCHIVE_FACTOR, **fields
        ),
        retired=tuple(retired),
        sources=sources or (source_of(turn_id, at=at),),
    )


def revival(turn_id: str, memory_id: UUID, *sources: Source, at: datetime = NOON, **fields: Any) -> Effect:
    """`turn_id` states again what had faded, expired or made room."""
    return confirmation(turn_id, memory_id, *sources, at=at, revives=True, **fields)


def retraction(turn_id: str, *retired: Retirement) -> Effect:
    """`turn_id` takes something back."""
    return Effect(
        decision_id=id_of(f"{turn_id} retracts {[each.memory_id for each in retired]}"),
        cause_id=turn_id,
        candidate={"text": "not so"},
        neighbours=(),
        verdict=Verdict(route=Route.ARBITRATE, action=Action.DELETE, reason="it was taken back"),
        memory_id=retired[0].memory_id,
        retired=retired,
        sources=(source_of(turn_id),),
    )


def nothing_done(turn_id: str, memory_id: UUID | None = None) -> Effect:
    """`turn_id` says what needs nothing."""
    return Effect(
        decision_id=id_of(f"{turn_id} does nothing"),
        cause_id=turn_id,
        candidate={"text": "known"},
        neighbours=(),
        verdict=Verdict(route=Route.ARBITRATE, action=Action.NOOP, reason="it says nothing new"),
        memory_id=memory_id,
        sources=(source_of(turn_id),),
    )


def commit_of(turn_id: str, *effects: Effect, offset: int = 1, **fields: Any) -> Commit:
    """What becomes of one turn."""
    return Commit(
        cause_kind="turn",
        turns=(TurnEffect(turn_id, place_of(offset)),),
        effects=effects,
        embedding_model=MODEL,
        **fields,
    )


def request_commit(request: RequestId, *effects: Effect) -> Commit:
    """What becomes of one request."""
    return Commit(cause_kind="request", effects=effects, embedding_model=MODEL, request=request)

"""From candidates and their neighbours to effects: what the stream and a tell have in common."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log2
from typing import Any
from uuid import UUID

from mnemostream.turns import Role

from processors.effects import Confirmation, Effect, NewMemory, Probe
from processors.fading import Fading, fades_at, policy
from processors.memories import Source, State, StatementOrder
from processors.routing import Action, Neighbour, Verdict, decide
from processors.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement, from a turn or from a request, before it is decided."""

    cause_id: str
    """The turn's id, or the request's."""
    content: str
    content_hash: bytes
    vector: Vector | None
    category: str
    importance: int
    confidence: float
    order: StatementOrder
    record: Mapping[str, Any]
    """As it is kept with the decision: JSON, without the vector."""
    session: str | None = None
    data: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    subject: str | None = None
    attribute: str | None = None
    role: Role | None = None
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    sources: tuple[Source, ...] = ()

    @property
    def probe(self) -> Probe:
        """What its neighbours are looked up by."""
        return Probe(self.content_hash, self.vector, self.subject, self.attribute)


def decide_in_order(
    candidates: Iterable[tuple[Candidate, Sequence[Neighbour]]],
    *,
    new_id: Callable[[], UUID],
    exact: bool = False,
) -> tuple[Effect, ...]:
    """What becomes of `candidates`, each with the neighbours that the store knows.

    A later one also sees what an earlier one adds: two that concern each other are not decided on a stale picture.
    exact: add without comparing.
    """
    effects: list[Effect] = []
    added: dict[bytes, UUID] = {}
    for candidate, stored in candidates:
        neighbours = (*_just_added(candidate, added), *stored)
        verdict = Verdict.exact() if exact else decide(neighbours)
        effect = _effect(candidate, neighbours, verdict, new_id=new_id)
        if effect.new is not None:
            added.setdefault(candidate.content_hash, effect.memory_id)
        effects.append(effect)
    return tuple(effects)


def _just_added(candidate: Candidate, added: Mapping[bytes, UUID]) -> tuple[Neighbour, ...]:
    memory_id = added.get(candidate.content_hash)
    return () if memory_id is None else (Neighbour(memory_id, None, State.LIVE, same_text=True),)


def _effect(
    candidate: Candidate, neighbours: tuple[Neighbour, ...], verdict: Verdict, *, new_id: Callable[[], UUID]
) -> Effect:
    fading = policy(candidate.category)
    decision_id = new_id()
    new, confirmed = None, None
    if verdict.action is Action.CONFIRM and verdict.target is not None:
        memory_id = verdict.target
        confirmed = Confirmation(
            memory_id=memory_id,
            stated_at=candidate.order.stated_at,
            archive_factor=log2(1.0 / fading.archive_below),
        )
    else:
        memory_id = new_id()
        new = _new_memory(memory_id, candidate, fading)
    return Effect(
        decision_id=decision_id,
        cause_id=candidate.cause_id,
        candidate=dict(candidate.record),
        neighbours=neighbours,
        verdict=verdict,
        memory_id=memory_id,
        new=new,
        confirmed=confirmed,
        sources=candidate.sources,
    )


def _new_memory(memory_id: UUID, candidate: Candidate, fading: Fading) -> NewMemory:
    stated_at = candidate.order.stated_at
    return NewMemory(
        id=memory_id,
        content=candidate.content,
        content_hash=candidate.content_hash,
        category=candidate.category,
        importance=candidate.importance,
        confidence=candidate.confidence,
        order=candidate.order,
        valid_from=candidate.valid_from or stated_at,
        half_life_seconds=None if fading.half_life is None else fading.half_life.total_seconds(),
        fades_at=fades_at(stated_at, fading),
        session=candidate.session,
        data=None if candidate.data is None else dict(candidate.data),
        tags=candidate.tags,
        type=candidate.type,
        pinned=candidate.pinned,
        subject=candidate.subject,
        attribute=candidate.attribute,
        role=candidate.role,
        expires_at=candidate.expires_at,
        vector=candidate.vector,
    )

"""Effects as rows: which of them change a memory, in which order, and with which number in the owner's history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from processors.effects import Confirmation, Effect, NewMemory
from processors.memories import Source

Known = dict[UUID, set[tuple[str, int | None]]]
"""By memory: the messages that it rests on, as turn and index."""


@dataclass(slots=True)
class Plan:
    """Effects as rows. `confirms` come in rounds, each holding a memory at most once."""

    seq: int
    adds: list[dict[str, Any]] = field(default_factory=list)
    confirms: list[list[dict[str, Any]]] = field(default_factory=list)
    answer_seq: int | None = None


def planned(effects: Iterable[Effect], known: Known, seq: int, by_turn: bool) -> Plan:
    """Rows for `effects`, each change with the next number after `seq`.

    A turn that a memory rests on already does not reinforce it, and changes it only by another message.
    """
    plan = Plan(seq)
    rounds: dict[UUID, int] = {}
    for effect in effects:
        sources = {(source.turn_id, source.message_index): source for source in effect.sources}
        plan.answer_seq = None
        if effect.new is not None:
            known[effect.new.id] = set(sources)
            plan.seq += 1
            plan.adds.append(_caused(effect, plan.seq, sources) | _added(effect.new))
        elif effect.confirmed is not None:
            rests_on = known[effect.confirmed.memory_id]
            reinforces = not (by_turn and any(turn_id == effect.cause_id for turn_id, _ in rests_on))
            if not reinforces and sources.keys() <= rests_on:
                continue
            rests_on |= sources.keys()
            plan.seq += 1
            nth = rounds.get(effect.confirmed.memory_id, 0)
            rounds[effect.confirmed.memory_id] = nth + 1
            if nth == len(plan.confirms):
                plan.confirms.append([])
            plan.confirms[nth].append(
                _caused(effect, plan.seq, sources) | _confirmed(effect.confirmed, reinforces=reinforces)
            )
        else:
            continue
        plan.answer_seq = plan.seq
    return plan


def _caused(effect: Effect, seq: int, sources: Mapping[tuple[str, int | None], Source]) -> dict[str, Any]:
    return {
        "seq": seq,
        "decision_id": effect.decision_id,
        "cause_id": effect.cause_id,
        "sources": [
            {"turn_id": s.turn_id, "message_index": s.message_index, "role": s.role, "said_at": s.said_at}
            for s in sources.values()
        ],
    }


def _added(new: NewMemory) -> dict[str, Any]:
    return {
        "id": new.id,
        "session": new.session,
        "content": new.content,
        "content_hash": "\\x" + new.content_hash.hex(),
        "data": new.data,
        "tags": new.tags,
        "type": new.type,
        "category": new.category,
        "importance": new.importance,
        "confidence": new.confidence,
        "pinned": new.pinned,
        "subject": new.subject,
        "attribute": new.attribute,
        "role": new.role,
        "valid_from": new.valid_from,
        "stated_at": new.order.stated_at,
        "received_at": new.order.received_at,
        "source_offset": new.order.offset,
        "source_index": new.order.ordinal,
        "half_life_seconds": new.half_life_seconds,
        "fades_at": new.fades_at,
        "expires_at": new.expires_at,
    }


def _confirmed(confirmation: Confirmation, *, reinforces: bool) -> dict[str, Any]:
    return {
        "id": confirmation.memory_id,
        "stated_at": confirmation.stated_at,
        "archive_factor": confirmation.archive_factor,
        "reinforces": reinforces,
    }


def decision_row(effect: Effect) -> dict[str, Any]:
    """The row of what was decided, whether or not it changed anything."""
    return {
        "id": effect.decision_id,
        "cause_id": effect.cause_id,
        "candidate": effect.candidate,
        "route": effect.verdict.route,
        "neighbours": [
            {"id": n.memory_id, "similarity": n.similarity, "state": n.state, "same_text": n.same_text}
            for n in effect.neighbours
        ],
        "action": effect.verdict.action,
        "reason": effect.verdict.reason,
        "memory_id": effect.memory_id,
    }

"""Effects as rows: which of them change a memory, in which order, and with which number in the owner's history."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final
from uuid import UUID

from processors.effects import Confirmation, Effect, NewMemory, Retirement
from processors.memories import Source, State

Rests = dict[UUID, set[tuple[str, int | None]]]
"""By memory: the messages that it rests on, as turn and index."""

_KINDS: Final = {State.SUPERSEDED: "superseded", State.RETRACTED: "retracted", State.LIVE: "edited"}


class Need(StrEnum):
    """How a memory must stand in the store for what was decided on it to stand too."""

    LIVE = "live"
    """To be confirmed: it has neither ended nor expired."""
    DORMANT = "dormant"
    """To be revived: archived, expired or evicted."""
    THERE = "there"
    """To be retired: not forgotten."""


class Step(Enum):
    """What one statement does, to each memory at most once."""

    CONFIRM = 0
    RETIRE = 1


@dataclass(slots=True)
class Plan:
    """Effects as rows: what is added first, then `steps`. So each memory changes in the order of its seqs."""

    seq: int
    adds: list[dict[str, Any]] = field(default_factory=list)
    steps: list[tuple[Step, list[dict[str, Any]]]] = field(default_factory=list)
    answer_seq: int | None = None
    moves: bool = False
    """Content or state changes, not only counts and sources."""
    _last: dict[UUID, int] = field(default_factory=dict)

    def next(self) -> int:
        """The number of the next change."""
        self.seq += 1
        self.answer_seq = self.seq
        return self.seq

    def put(self, step: Step, row: dict[str, Any]) -> None:
        """Give `row` to the first step of that kind behind those that change its memory already."""
        at = self._last.get(row["id"], -1) + 1
        while at < len(self.steps) and self.steps[at][0] is not step:
            at += 1
        if at == len(self.steps):
            self.steps.append((step, []))
        self.steps[at][1].append(row)
        self._last[row["id"]] = at


def needs(effects: Iterable[Effect]) -> dict[UUID, Need]:
    """How each memory that `effects` confirm, revive or retire must stand before them."""
    needed: dict[UUID, Need] = {}
    for effect in effects:
        for retirement in effect.retired:
            needed.setdefault(retirement.memory_id, Need.THERE)
        if effect.confirmed is not None and needed.get(effect.confirmed.memory_id, Need.THERE) is Need.THERE:
            needed[effect.confirmed.memory_id] = Need.DORMANT if effect.confirmed.revives else Need.LIVE
    return needed


def planned(effects: Iterable[Effect], rests: Rests, seq: int, by_turn: bool) -> Plan:
    """Rows for `effects`, each change with the next number after `seq`: what an effect retires, then its memory.

    A turn that a memory rests on already does not reinforce it, and changes it only by another message, or by reviving
    it.
    """
    plan = Plan(seq)
    for effect in effects:
        plan.answer_seq = None
        for retirement in effect.retired:
            plan.put(Step.RETIRE, _caused(effect, plan.next()) | _retired(retirement))
            plan.moves = True
        sources = {(source.turn_id, source.message_index): source for source in effect.sources}
        if effect.new is not None:
            rests[effect.new.id] = set(sources)
            plan.adds.append(_caused(effect, plan.next()) | _said(sources.values()) | _added(effect.new))
            plan.moves = True
        elif effect.confirmed is not None:
            rests_on = rests[effect.confirmed.memory_id]
            reinforces = not (by_turn and any(turn_id == effect.cause_id for turn_id, _ in rests_on))
            if not (reinforces or effect.confirmed.revives) and sources.keys() <= rests_on:
                plan.answer_seq = None
                continue
            rests_on |= sources.keys()
            row = _caused(effect, plan.next()) | _said(sources.values())
            plan.put(Step.CONFIRM, row | _confirmed(effect.confirmed, reinforces=reinforces))
            plan.moves |= effect.confirmed.revives
    return plan


def _caused(effect: Effect, seq: int) -> dict[str, Any]:
    return {"seq": seq, "decision_id": effect.decision_id, "cause_id": effect.cause_id}


def _said(sources: Iterable[Source]) -> dict[str, Any]:
    return {
        "sources": [
            {"turn_id": s.turn_id, "message_index": s.message_index, "role": s.role, "said_at": s.said_at}
            for s in sources
        ]
    }


def _retired(retirement: Retirement) -> dict[str, Any]:
    return {
        "kind": _KINDS[retirement.state],
        "id": retirement.memory_id,
        "state": retirement.state,
        "valid_to": retirement.valid_to,
        "reason": retirement.reason,
        "superseded_by": retirement.superseded_by,
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
        "state": new.state,
        "valid_from": new.valid_from,
        "valid_to": new.valid_to,
        "retired_reason": new.retired_reason,
        "supersedes": new.supersedes,
        "superseded_by": new.superseded_by,
        "restates": new.restates,
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
        "stated_at": confirmation.order.stated_at,
        "received_at": confirmation.order.received_at,
        "source_offset": confirmation.order.offset,
        "source_index": confirmation.order.ordinal,
        "archive_factor": confirmation.archive_factor,
        "reinforces": reinforces,
        "revives": confirmation.revives,
        "expires_at": confirmation.expires_at,
        "valid_from": confirmation.valid_from,
        "confidence": confirmation.confidence,
        "role": confirmation.role,
    }


def decision_row(effect: Effect) -> dict[str, Any]:
    """The row of what was decided, whether or not it changed anything: of the neighbours without their texts."""
    verdict = effect.verdict
    row: dict[str, Any] = {
        "id": effect.decision_id,
        "cause_id": effect.cause_id,
        "candidate": effect.candidate,
        "route": verdict.route,
        "neighbours": [
            {
                "id": n.memory_id,
                "similarity": n.similarity,
                "state": n.state,
                "same_text": n.same_text,
                "same_slot": n.same_slot,
            }
            for n in effect.neighbours
        ],
        "action": verdict.action,
        "reason": verdict.reason,
        "marked": verdict.marked,
        "memory_id": effect.memory_id,
        "retired": [retirement.memory_id for retirement in effect.retired],
    }
    if effect.arbitration is not None:
        row |= {
            "arbitration_model": effect.arbitration.model,
            "arbitration_prompt_version": effect.arbitration.prompt_version,
            "arbitration_tokens_in": effect.arbitration.tokens_in,
            "arbitration_tokens_out": effect.arbitration.tokens_out,
            "arbitration_latency_seconds": effect.arbitration.latency_seconds,
        }
    return row

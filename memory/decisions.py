"""From candidates and what is known to effects, in order: what the stream and a tell have in common. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log2
from typing import Any
from uuid import UUID

from memory.candidates import Candidate
from memory.picture import Picture
from processors.arbitration import Judgement, Offered, Question, Unheard
from processors.effects import Confirmation, Effect, Look, NewMemory, Verdict
from processors.facts import Reading
from processors.fading import fades_at
from processors.guards import Difference, differences
from processors.memories import State
from processors.normalization import normalized, text_hash
from processors.placement import Addition, Placed, Statement, placed
from processors.records import AppProfile
from processors.router import Lines, Proposal, Routed, Thresholds, route
from processors.routing import Action, Known, Neighbour, Route
from processors.vectors import Vector
from processors.verdicts import composed

_CONTRADICTION = frozenset({Difference.NUMBER, Difference.NEGATION})
"""What two statements about one thing cannot differ in and both hold, whatever their slot."""


_SAME_TEXT = Judgement(Action.NOOP, "the same text was known, and is said again")


_NOT_ASKED = Unheard("was not asked, because the owner changed again and again")


@dataclass(slots=True)
class Heard:
    """What an arbitrator said so far about these candidates: asked once a pair, however often they are decided."""

    pairs: dict[tuple[UUID, UUID], Judgement | Unheard] = field(default_factory=dict)
    """By the candidate's new id and the memory's."""
    readings: dict[UUID, Reading] = field(default_factory=dict)
    """How it was asked, by the candidate's new id."""
    vectors: dict[str, Vector] = field(default_factory=dict)
    """Of merged texts."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The effects of candidates, and the questions whose answers they lacked (by the candidate's new id)."""

    effects: tuple[Effect, ...]
    questions: tuple[tuple[UUID, Question], ...]


def decide_in_order(
    candidates: Sequence[tuple[int, Candidate]],
    look: Look,
    heard: Heard,
    thresholds: Thresholds,
    *,
    exact: bool = False,
) -> Decided:
    """What becomes of `candidates`, each with its place among the probes of `look`.

    A later one sees what the earlier ones did: two that concern each other are not decided on a stale picture. A pair
    that nobody has judged yet counts as one that both stand. exact: add without comparing.
    """
    picture = Picture(look)
    effects: list[Effect] = []
    questions: list[tuple[UUID, Question]] = []
    for index, candidate in candidates:
        decision = _Decision(candidate, look.profile, look.now, heard)
        neighbours, lines = picture.neighbours(index, candidate), picture.lines()
        if exact:
            routed = Routed(Route.EXACT, Proposal(action=Action.ADD, reason="told as exact"))
        elif picture.forgotten(index):
            reason = "it was forgotten on request after it had been received"
            routed = Routed(Route.FORGOTTEN, Proposal(action=Action.NOOP, reason=reason))
        elif picture.over(index):
            reason = "it was read out of this turn before, and what became of it since stands"
            routed = Routed(Route.SAME_TEXT, Proposal(action=Action.NOOP, reason=reason))
        else:
            routed = route(
                candidate.content,
                candidate.slot,
                neighbours,
                lines,
                thresholds,
                retracts=candidate.retracts,
                order=candidate.order,
                begins_at=candidate.valid_from,
                now=look.now,
            )
        questions += decision.questions(routed.offered)
        effect = decision.effect(routed, neighbours, lines)
        picture.apply(effect)
        effects.append(effect)
    return Decided(tuple(effects), tuple(questions))


@dataclass(frozen=True, slots=True)
class _Decision:
    """The decision about one candidate."""

    candidate: Candidate
    profile: AppProfile
    now: datetime
    heard: Heard

    def questions(self, offered: Sequence[Neighbour]) -> list[tuple[UUID, Question]]:
        """What has to be asked about the pairs with `offered` that nobody was asked about yet."""
        candidate = self.candidate
        unheard = [n for n in offered if not n.same_text and (candidate.new_id, n.memory_id) not in self.heard.pairs]
        if not unheard:
            return []
        question = Question(
            text=candidate.content,
            stated_at=candidate.order.stated_at,
            role=candidate.role,
            retracts=candidate.retracts,
            subject=candidate.subject,
            attribute=candidate.attribute,
            offered=tuple(_offer(candidate, neighbour) for neighbour in unheard),
        )
        return [(candidate.new_id, question)]

    def effect(self, routed: Routed, neighbours: tuple[Neighbour, ...], lines: Lines) -> Effect:
        """What becomes of the candidate."""
        candidate = self.candidate
        proposal = routed.proposal or self._arbitrated(routed.offered, lines)
        place = placed(self._statement(proposal, neighbours), proposal, lines, self.now)
        confirmed = None if place.confirm is None else self._confirmation(place, place.confirm)
        return Effect(
            decision_id=candidate.decision_id,
            cause_id=candidate.cause_id,
            candidate=_kept(candidate, routed.route),
            neighbours=neighbours,
            verdict=Verdict(route=routed.route, action=place.action, reason=place.reason, marked=place.marked),
            memory_id=_outcome(candidate, place),
            new=None if place.add is None else self._new(place, place.add),
            confirmed=confirmed,
            retired=place.retired,
            sources=candidate.sources,
            arbitration=self.heard.readings.get(candidate.new_id) if routed.route is Route.ARBITRATE else None,
        )

    def _arbitrated(self, offered: Sequence[Neighbour], lines: Lines) -> Proposal:
        judgements = {
            n.memory_id: _SAME_TEXT
            if n.same_text
            else self.heard.pairs.get((self.candidate.new_id, n.memory_id), _NOT_ASKED)
            for n in offered
        }
        proposal = composed(self.candidate.content, offered, judgements, lines, retracts=self.candidate.retracts)
        if proposal.text is None:
            return proposal
        text = normalized(proposal.text)
        same = next((n.memory for n in offered if n.memory.live and normalized(n.memory.content) == text), None)
        if same is not None and not self.candidate.retracts:  # what was merged is what is known
            others = tuple(known for known in proposal.retire if known.id != same.id)
            return Proposal(action=Action.NOOP, reason=proposal.reason, confirm=same, retire=others)
        return proposal

    def _statement(self, proposal: Proposal, neighbours: Sequence[Neighbour]) -> Statement:
        candidate = self.candidate
        newer = [known for known in proposal.retire if not candidate.order > known.last]
        same_slot = {n.memory_id for n in neighbours if n.same_slot}
        return Statement(
            new_id=candidate.new_id,
            text=candidate.content,
            order=candidate.order,
            said_at=min(candidate.order.stated_at, candidate.order.received_at, self.now),
            confidence=candidate.confidence,
            role=candidate.role,
            valid_from=candidate.valid_from,
            expires_at=candidate.expires_at,
            retracts=candidate.retracts,
            differs=frozenset(k.id for k in newer if _contradicts(candidate.content, k, same_slot=k.id in same_slot)),
        )

    def _confirmation(self, place: Placed, known: Known) -> Confirmation:
        return Confirmation(
            memory_id=known.id,
            order=self.candidate.order,
            archive_factor=log2(1.0 / self.profile.fading(known.category).archive_below),
            revives=place.revives,
            valid_from=place.since,
            expires_at=self.candidate.expires_at,
            confidence=self.candidate.confidence,
            role=self.candidate.role,
        )

    def _new(self, place: Placed, add: Addition) -> NewMemory:
        candidate = self.candidate
        fading = self.profile.fading(candidate.category)
        merged = add.text != candidate.content
        merges = place.inherits if place.action is Action.UPDATE else ()
        return NewMemory(
            id=candidate.new_id,
            content=add.text,
            content_hash=text_hash(add.text) if merged else candidate.content_hash,
            category=candidate.category,
            importance=max([candidate.importance, *(known.importance for known in merges)]),
            confidence=max([candidate.confidence, *(known.confidence for known in merges)]),
            order=candidate.order,
            valid_from=add.valid_from,
            half_life_seconds=None if fading.half_life is None else fading.half_life.total_seconds(),
            fades_at=fades_at(candidate.order.stated_at, fading),
            session=candidate.session,
            data=None if candidate.data is None else dict(candidate.data),
            tags=tuple(dict.fromkeys([*candidate.tags, *(tag for known in place.inherits for tag in known.tags)])),
            type=candidate.type,
            pinned=candidate.pinned or any(known.pinned for known in place.inherits),
            subject=candidate.subject,
            attribute=candidate.attribute,
            role=candidate.role,
            expires_at=_end(candidate.expires_at, merges),
            vector=self.heard.vectors[add.text] if merged else candidate.vector,
            state=add.state,
            valid_to=add.valid_to,
            retired_reason=add.retired_reason,
            supersedes=add.supersedes,
            superseded_by=add.superseded_by,
            restates=add.restates,
        )


def _offer(candidate: Candidate, neighbour: Neighbour) -> Offered:
    known = neighbour.memory
    return Offered(
        memory_id=known.id,
        text=known.content,
        stated_at=known.last.stated_at,
        live=known.live,
        same_slot=neighbour.same_slot,
        similarity=neighbour.similarity,
        differences=differences(known.content, candidate.content),
    )


def _contradicts(text: str, known: Known, *, same_slot: bool) -> bool:
    found = differences(known.content, text)
    return bool(found) if same_slot else not found.isdisjoint(_CONTRADICTION)


def _kept(candidate: Candidate, way: Route) -> dict[str, Any]:
    """What a decision keeps of the candidate: of what was forgotten nothing but where it was said."""
    if way is Route.FORGOTTEN:
        return {"messages": candidate.record.get("messages", ())}
    return dict(candidate.record)


def _end(expires_at: datetime | None, merges: Sequence[Known]) -> datetime | None:
    """When a merger ends: with the last of what it is made of, and never where one of them never ends."""
    ends = [expires_at, *(known.expires_at for known in merges)]
    return None if None in ends else max(end for end in ends if end is not None)


def _outcome(candidate: Candidate, place: Placed) -> UUID | None:
    """The memory that came of it; for what was only taken back, that."""
    if place.add is not None:
        return candidate.new_id
    if place.confirm is not None:
        return place.confirm.id
    if place.said_by is not None:
        return place.said_by.id
    return next((gone.memory_id for gone in place.retired if gone.state is State.RETRACTED), None)

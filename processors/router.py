"""The router: what code alone decides about a candidate, and what it leaves to an arbitrator (DESIGN.md §5).

    nearest neighbour of the owner, live or not              route
    same normalised text                                     SAME_TEXT: confirm, revive, or say again
    similarity >= auto_merge, and the guards agree           MERGE: the same, or supersede where the new text says more
    similarity >= auto_merge, and they disagree              ARBITRATE
    arbitration <= similarity < auto_merge                   ARBITRATE
    same subject and attribute as a live memory              ARBITRATE, at any similarity
    otherwise                                                NEW

What is taken back goes the same ways: the same text goes at once, what is like it is arbitrated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final
from uuid import UUID

from processors.guards import differences, says_more
from processors.memories import StatementOrder
from processors.routing import DORMANT, REPLACED, Action, Known, Neighbour, Route

MAX_OFFERED: Final = 5
"""Known memories that an arbitrator is shown for one candidate."""

RETRACTION_FLOOR: Final = 0.5
"""From this cosine on something may be what the speaker takes back: they name it in other words."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines, on the scale of one embedding model."""

    auto_merge: float = 0.95
    arbitration: float = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is to become of a candidate, before the order of the statements is looked at."""

    action: Action
    reason: str
    confirm: Known | None = None
    """What says it already."""
    retire: tuple[Known, ...] = ()
    """What it replaces; for what is taken back, what goes."""
    text: str | None = None
    """Another text than the candidate's: a merged one."""
    restates: Known | None = None
    """What said the same, and was superseded or retracted."""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Routed:
    """The way of a candidate: a proposal, or what an arbitrator is asked about."""

    route: Route
    proposal: Proposal | None = None
    offered: tuple[Neighbour, ...] = ()


class Lines:
    """The lines that memories stand on: who was replaced by whom."""

    def __init__(self, known: Mapping[UUID, Known]) -> None:
        self._known = known

    @cached_property
    def _beside(self) -> dict[UUID, set[UUID]]:
        """Made when it is first asked for: most candidates meet nothing that was ever replaced."""
        beside: dict[UUID, set[UUID]] = {}
        for memory in self._known.values():
            for other in (memory.supersedes, memory.superseded_by):
                if other is not None and other in self._known:
                    beside.setdefault(memory.id, set()).add(other)
                    beside.setdefault(other, set()).add(memory.id)
        return beside

    def of(self, memory: Known) -> list[Known]:
        """All memories of the line of `memory`, itself too, in the order in which they were said."""
        found, waiting = {memory.id: self._known.get(memory.id, memory)}, [memory.id]
        while waiting:
            for other in self._beside.get(waiting.pop(), ()):
                if other not in found:
                    found[other] = self._known[other]
                    waiting.append(other)
        return sorted(found.values(), key=lambda member: (member.order, member.id))

    def ending_for(self, plan: Known) -> list[Known]:
        """What is to end when `plan` begins, and is live until then."""
        return [
            member
            for member in self._known.values()
            if member.live
            and member.id != plan.id
            and member.valid_to == plan.valid_from
            and (member.id == plan.supersedes or (plan.slot is not None and member.slot == plan.slot))
        ]

    def heads(self, memory: Known) -> tuple[Known, ...]:
        """What now stands where `memory` stood: the members of its line that nothing has replaced."""
        return tuple(
            member
            for member in self.of(memory)
            if member.id != memory.id and (member.live or member.state in DORMANT) and member.superseded_by is None
        )


def route(
    text: str,
    slot: tuple[str, str] | None,
    neighbours: Sequence[Neighbour],
    lines: Lines,
    thresholds: Thresholds,
    *,
    order: StatementOrder,
    now: datetime,
    begins_at: datetime | None = None,
    retracts: bool = False,
) -> Routed:
    """The way of a candidate with `text` and `slot` among `neighbours`: the same text first, then by similarity.

    begins_at: since when it holds, if it says so.
    """
    if retracts:
        return _taken_back(neighbours)
    same = [neighbour for neighbour in neighbours if neighbour.same_text]
    if same:
        known = same[0].memory
        if known.live and known.valid_from > now and begins_at != known.valid_from:
            reason = "the same is said to begin at another time"
            return Routed(Route.SAME_TEXT, Proposal(action=Action.UPDATE, reason=reason, retire=(known,)))
        if known.live and _something_between(order, known, lines):
            reason = "the same text is known, and something else was said in between"
            return Routed(Route.SAME_TEXT, Proposal(action=Action.DELETE, reason=reason, retire=(known,)))
        return _same_text(known, neighbours, lines)
    taken = [n for n in neighbours if n.same_slot and n.memory.live]
    near = [n for n in neighbours if n.similarity is not None and n.similarity >= thresholds.arbitration]
    agreeing = [
        n for n in near if (n.similarity or 0.0) >= thresholds.auto_merge and _one_statement(text, slot, n.memory)
    ]
    if agreeing:
        like = max(agreeing, key=lambda n: (n.memory.live, n.similarity, n.memory_id))
        if all(n.memory_id == like.memory_id for n in taken):
            return _merged(text, like.memory, lines)
    if near or taken:
        return Routed(Route.ARBITRATE, offered=_offered(near, taken, lines))
    return Routed(
        Route.NEW, Proposal(action=Action.ADD, reason="nothing known is like it, or of the same subject and attribute")
    )


def _something_between(order: StatementOrder, known: Known, lines: Lines) -> bool:
    """Whether what is said at `order`, before `known` was first said, was replaced by something else in between."""
    return order < known.order and any(order < member.order < known.order for member in lines.of(known))


def _same_text(known: Known, neighbours: Sequence[Neighbour], lines: Lines) -> Routed:
    """The same text, a live one before others: nothing is asked, unless something took the place of a dormant one."""
    if known.live and known.valid_to is None:
        proposal = Proposal(action=Action.CONFIRM, reason="the same text is known", confirm=known)
        return Routed(Route.SAME_TEXT, proposal)
    heads = {head.id for head in lines.heads(known)} if known.state in REPLACED else set()
    rivals = [n for n in neighbours if n.same_slot and n.memory.live and n.memory_id not in {known.id, *heads}]
    if rivals and not known.live:
        same = next(n for n in neighbours if n.memory_id == known.id)
        return Routed(Route.ARBITRATE, offered=(same, *rivals)[:MAX_OFFERED])
    if known.state in DORMANT:
        reason = f"the same text was {known.state.lower()}, and is said again"
        return Routed(Route.SAME_TEXT, Proposal(action=Action.CONFIRM, reason=reason, confirm=known))
    return Routed(Route.SAME_TEXT, _said_again(known, lines))


def _said_again(known: Known, lines: Lines) -> Proposal:
    """What was replaced or taken back is said again: a new memory that names it, in place of what stands there now."""
    if known.live:  # it has an end, and what follows it is known already
        heads = (known, *lines.heads(known))
        return Proposal(action=Action.UPDATE, reason="it was to end, and is said again", retire=heads)
    heads = lines.heads(known)
    if heads:
        reason = "what was superseded is said again, and replaces what had replaced it"
        return Proposal(action=Action.DELETE, reason=reason, retire=heads, restates=known)
    reason = f"what was {known.state.lower()} is said again"
    return Proposal(action=Action.ADD, reason=reason, restates=known)


def _merged(text: str, known: Known, lines: Lines) -> Routed:
    """As good as the same text: numbers, dates, units, names and negation agree."""
    more = says_more(known.content, text)
    if known.state in REPLACED:
        return Routed(Route.MERGE, _said_again(known, lines))
    if more:
        reason = "it says the same and more"
        return Routed(Route.MERGE, Proposal(action=Action.UPDATE, reason=reason, retire=(known,)))
    reason = "it says the same" if known.live else f"what says the same was {known.state.lower()}, and is said again"
    return Routed(Route.MERGE, Proposal(action=Action.CONFIRM, reason=reason, confirm=known))


def _one_statement(text: str, slot: tuple[str, str] | None, known: Known) -> bool:
    """Whether the guards agree that `text` and `known` are one statement about one thing."""
    about_another = slot is not None and known.slot is not None and slot != known.slot
    return not about_another and bool(known.content) and not differences(known.content, text)


def _offered(near: Sequence[Neighbour], taken: Sequence[Neighbour], lines: Lines) -> tuple[Neighbour, ...]:
    """What an arbitrator sees: who holds the slot, the nearest (live ones first), and what stands in the place of those
    that were replaced."""
    offered = {n.memory_id: n for n in (*taken, *sorted(near, key=lambda n: not n.memory.live))}
    for neighbour in list(offered.values()):
        if neighbour.state in REPLACED:
            for head in lines.heads(neighbour.memory):
                offered.setdefault(head.id, Neighbour(head, None, same_text=False))
    return tuple(sorted(offered.values(), key=lambda n: not n.memory.live)[:MAX_OFFERED])


def _taken_back(neighbours: Sequence[Neighbour]) -> Routed:
    """What the speaker takes back: the same text goes at once; of what is like it the arbitrator says what is meant."""
    standing = [n for n in neighbours if n.memory.live or n.state in DORMANT]
    same = tuple(n.memory for n in standing if n.same_text)
    if same:
        return Routed(Route.SAME_TEXT, Proposal(action=Action.DELETE, reason="the speaker takes it back", retire=same))
    near = [n for n in standing if n.same_slot or (n.similarity is not None and n.similarity >= RETRACTION_FLOOR)]
    offered = tuple(n for n in near if n.memory.content)[:MAX_OFFERED]
    if offered:
        return Routed(Route.ARBITRATE, offered=offered)
    return Routed(Route.NEW, Proposal(action=Action.NOOP, reason="nothing known is what the speaker takes back"))

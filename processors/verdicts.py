"""From an arbitrator's judgements of pairs to what is proposed for the candidate: the model proposes, code composes."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from processors.arbitration import Judgement, Unheard
from processors.guards import invented
from processors.memories import State
from processors.router import Lines, Proposal
from processors.routing import DORMANT, REPLACED, Action, Known, Neighbour


def composed(
    text: str,
    offered: Sequence[Neighbour],
    judgements: Mapping[UUID, Judgement | Unheard],
    lines: Lines,
    *,
    retracts: bool,
) -> Proposal:
    """The proposal for a candidate with `text` whose pairs with `offered` were judged. Of a pair that could not be
    judged both stand, marked.

    What is said already wins over what can be merged, that over what no longer holds, that over an addition. That a
    memory says it already is only believed where it holds every number, date, name and negation of the new text.
    """
    heard: list[tuple[Known, Judgement]] = []
    unheard: list[Unheard] = []
    for neighbour in offered:
        judgement = judgements[neighbour.memory_id]
        if isinstance(judgement, Unheard):
            unheard.append(judgement)
        elif judgement.action is Action.NOOP and not retracts and invented(text, [neighbour.memory.content]):
            unheard.append(Unheard("took for known what is not"))
        else:
            heard.append((neighbour.memory, judgement))
    if retracts:
        return _retraction(heard, unheard)
    by_action: dict[Action, list[tuple[Known, Judgement]]] = {action: [] for action in Action}
    for known, judgement in heard:
        by_action[judgement.action].append((known, judgement))
    gone = tuple(known for known, _ in by_action[Action.DELETE] if _can_go(known))
    if by_action[Action.NOOP]:
        return _known_already(by_action[Action.NOOP], gone, lines)
    if by_action[Action.UPDATE]:
        return _merger(by_action[Action.UPDATE], gone, lines)
    if gone:
        return Proposal(action=Action.DELETE, reason=by_action[Action.DELETE][0][1].reason, retire=gone)
    if unheard:
        return Proposal(action=Action.ADD, reason=f"the arbitrator {unheard[0].why}: both are kept", marked=True)
    reason = next((judgement.reason for _, judgement in heard), "the arbitrator sees nothing against it")
    return Proposal(action=Action.ADD, reason=reason)


def _known_already(said: Sequence[tuple[Known, Judgement]], gone: tuple[Known, ...], lines: Lines) -> Proposal:
    """It is said by a memory already, a live one before others. What was replaced comes back as a new memory."""
    known, judgement = min(said, key=lambda pair: (not pair[0].live, pair[0].state in REPLACED))
    if known.state in REPLACED:
        heads = lines.heads(known) if known.state is State.SUPERSEDED else ()
        retire = tuple({memory.id: memory for memory in (*gone, *heads)}.values())
        action = Action.DELETE if retire else Action.ADD
        return Proposal(action=action, reason=judgement.reason, retire=retire, restates=known)
    retire = tuple(memory for memory in gone if memory.id != known.id)
    if known.state in DORMANT and retire:
        # What is revived would overlap in time with what took its place meanwhile: it is said again instead.
        return Proposal(action=Action.DELETE, reason=judgement.reason, retire=(*retire, known), restates=known)
    return Proposal(action=Action.NOOP, reason=judgement.reason, confirm=known, retire=retire)


def _merger(merged: Sequence[tuple[Known, Judgement]], gone: tuple[Known, ...], lines: Lines) -> Proposal:
    """One text says what was known and what is new: live ones are merged before others."""
    merged = sorted(merged, key=lambda pair: not pair[0].live)
    known, judgement = merged[0]
    standing = [memory for memory, _ in merged if _can_go(memory)]
    if known.state in REPLACED:
        standing += lines.heads(known)
    retire = tuple({memory.id: memory for memory in (*standing, *gone)}.values())
    restates = known if known.state in REPLACED else None
    return Proposal(
        action=Action.UPDATE, reason=judgement.reason, retire=retire, text=judgement.text, restates=restates
    )


def _retraction(heard: Sequence[tuple[Known, Judgement]], unheard: Sequence[Unheard]) -> Proposal:
    """What is taken back goes, or what is left of it stays; nothing is ever added by a retraction alone."""
    for known, judgement in heard:
        if judgement.action is Action.UPDATE and _can_go(known):
            return Proposal(action=Action.UPDATE, reason=judgement.reason, retire=(known,), text=judgement.text)
    gone = tuple(known for known, judgement in heard if judgement.action is Action.DELETE and _can_go(known))
    if gone:
        reason = next(judgement.reason for _, judgement in heard if judgement.action is Action.DELETE)
        return Proposal(action=Action.DELETE, reason=reason, retire=gone)
    if unheard:
        return Proposal(action=Action.NOOP, reason=f"the arbitrator {unheard[0].why}: nothing goes", marked=True)
    return Proposal(action=Action.NOOP, reason="the arbitrator finds nothing that is taken back")


def _can_go(known: Known) -> bool:
    """Whether it stands, found or dormant: what was replaced is gone already."""
    return known.live or known.state in DORMANT

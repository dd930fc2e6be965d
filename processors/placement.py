"""From a proposal to its place in time: the guards that no model can talk round (DESIGN.md §5, §12).

Only a later statement retires what is known, and a guess or an assistant's word never retires what a user said
plainly. What comes late takes its place in history and leaves what is newer alone. What begins in the future leaves
what holds now until then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemostream.turns import Role

from processors.effects import Retirement
from processors.memories import State, StatementOrder
from processors.normalization import normalized
from processors.router import Lines, Proposal
from processors.routing import DORMANT, REPLACED, Action, Known

_SECOND_HAND: Final = frozenset({Role.ASSISTANT, Role.TOOL})

GUESSED_BELOW: Final = 0.5
"""A statement of less confidence is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A candidate as its place in time is looked for."""

    new_id: UUID
    """Of the memory, if it becomes one."""
    text: str
    order: StatementOrder
    said_at: datetime
    """Never in the future, however the speaker's clock goes."""
    confidence: float
    role: Role | None
    valid_from: datetime | None
    expires_at: datetime | None
    retracts: bool
    differs: frozenset[UUID]
    """The memories that it contradicts, as the guards or the slot see it: beside those it cannot stand live."""

    @property
    def begins_at(self) -> datetime:
        """Since when it holds in the world."""
        return self.valid_from or self.said_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A new memory's place."""

    text: str
    state: State = State.LIVE
    valid_from: datetime
    valid_to: datetime | None = None
    retired_reason: str | None = None
    supersedes: UUID | None = None
    superseded_by: UUID | None = None
    restates: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What is to be written: at most one of `add` and `confirm`, and what is retired."""

    action: Action
    reason: str
    marked: bool = False
    add: Addition | None = None
    confirm: Known | None = None
    revives: bool = False
    retired: tuple[Retirement, ...] = ()
    inherits: tuple[Known, ...] = ()
    """What it replaces: pins and tags go on."""
    since: datetime | None = None
    """What is confirmed holds since then already."""
    said_by: Known | None = None
    """Where nothing is written: what says it already."""


def placed(statement: Statement, proposal: Proposal, lines: Lines, now: datetime) -> Placed:
    """The place of `statement` in time. now: the store's clock."""
    if statement.retracts:
        return _retracted(statement, proposal, lines, now)
    if proposal.action is Action.NOOP and proposal.confirm is None:
        return Placed(action=Action.NOOP, reason=proposal.reason, marked=proposal.marked)
    if proposal.confirm is not None:
        return _confirmed(statement, proposal, proposal.confirm, lines)
    if _taken_back_since(statement, proposal.restates):
        reason = f"{proposal.reason}; but it comes late: it was taken back since"
        return Placed(action=Action.NOOP, reason=reason, marked=proposal.marked, said_by=proposal.restates)
    standing = [known for known in proposal.retire if known.state not in REPLACED]
    faded = [known for known in standing if _read_before(statement, known)]
    if faded:
        standing = [known for known in standing if known not in faded]
        if not standing or proposal.restates in faded:
            reason = f"{proposal.reason}; but it is only read again: what is {faded[0].state.lower()} stays so"
            return Placed(action=Action.NOOP, reason=reason, marked=proposal.marked, said_by=faded[0])
        if proposal.retire[0] in faded:  # a merger is made of the first: it would bring that back
            proposal = replace(proposal, action=Action.DELETE, text=None)
    newer = [known for known in standing if not statement.order > known.last]
    if newer:
        older = [known for known in standing if known not in newer]
        return _late(statement, proposal, newer, older, lines, now)
    merges = proposal.action is Action.UPDATE
    outranked = [known for known in standing if not _may_retire(statement, known, merges=merges)]
    if outranked:
        reason = f"{proposal.reason}; but {_why_outranked(statement)}: what was known stays"
        beside = Proposal(action=Action.ADD, reason=reason, restates=proposal.restates, marked=proposal.marked)
        return _added(statement, beside, (), lines, now)
    return _added(statement, proposal, standing, lines, now)


def _taken_back_since(statement: Statement, known: Known | None) -> bool:
    return (
        known is not None
        and known.state is State.RETRACTED
        and known.valid_to is not None
        and statement.said_at < known.valid_to
    )


def _read_before(statement: Statement, known: Known) -> bool:
    """Whether `known` is archived, expired or evicted, and the turn that said it last is read again."""
    return known.state in DORMANT and statement.order.rereads(known.last)


def _id(known: Known | None) -> UUID | None:
    return None if known is None else known.id


def _may_retire(statement: Statement, known: Known, *, merges: bool = False) -> bool:
    """A guess, hearsay, and what holds for a while only retire nothing that is surer, first-hand, or lasting."""
    guessed = statement.confidence < GUESSED_BELOW <= known.confidence
    second_hand = statement.role in _SECOND_HAND and known.role not in _SECOND_HAND
    passing = statement.expires_at is not None and known.expires_at is None and not merges
    return not guessed and not second_hand and not passing


def _why_outranked(statement: Statement) -> str:
    if statement.confidence < GUESSED_BELOW:
        return "it is only guessed"
    return f"it is the {statement.role}'s word" if statement.role in _SECOND_HAND else "it holds for a while only"


def _added(statement: Statement, proposal: Proposal, retire: Sequence[Known], lines: Lines, now: datetime) -> Placed:
    """A new live memory, in place of what it retires. In place of a plan, it ends what the plan was to end; what holds
    now leaves a plan for later alone, and ends when that begins."""
    begins_at, text = statement.begins_at, proposal.text or statement.text
    plans = [known for known in retire if known.valid_from > now >= begins_at and _is_another(known, text)]
    retire = [known for known in retire if known not in plans]
    retire = [*retire, *_freed(retire, lines, now)]
    add = Addition(
        text=text,
        valid_from=begins_at,
        valid_to=min((plan.valid_from for plan in plans), default=None),
        supersedes=retire[0].id if retire else None,
        restates=_id(proposal.restates),
    )
    return Placed(
        action=proposal.action if retire or proposal.action is not Action.DELETE else Action.ADD,
        reason=proposal.reason,
        marked=proposal.marked,
        add=add,
        retired=tuple(
            _replaced(_unplanned(known, retire, now), statement.new_id, begins_at, now, proposal.reason)
            for known in retire
        ),
        inherits=tuple(retire),
    )


def _is_another(known: Known, text: str) -> bool:
    return normalized(known.content) != normalized(text)


def _freed(gone: Sequence[Known], lines: Lines, now: datetime) -> list[Known]:
    """What was to end because of plans that are `gone` now, before they began, and is not gone itself."""
    ids = {member.id for member in gone}
    freed = {member.id: member for plan in gone if plan.valid_from > now for member in lines.ending_for(plan)}
    return [member for member in freed.values() if member.id not in ids]


def _unplanned(known: Known, gone: Sequence[Known], now: datetime) -> Known:
    """`known` without the end that a plan among `gone` had set it."""
    ends = {plan.valid_from for plan in gone if plan.valid_from > now and plan.id != known.id}
    return replace(known, valid_to=None) if known.valid_to in ends else known


def _replaced(known: Known, by: UUID, begins_at: datetime, now: datetime, reason: str) -> Retirement:
    """`known` ends where its successor begins: now or before, or at a day to come, until which it stays live."""
    if known.valid_from > now:  # a plan that never came to hold
        return _superseded(known, by, known.valid_from, reason)
    if begins_at > now and known.live:
        return Retirement(memory_id=known.id, state=State.LIVE, valid_to=_end(known, begins_at), reason=reason)
    return _superseded(known, by, begins_at, reason)


def _superseded(known: Known, by: UUID, at: datetime, reason: str) -> Retirement:
    return Retirement(
        memory_id=known.id, state=State.SUPERSEDED, valid_to=_end(known, at), reason=reason, superseded_by=by
    )


def _end(known: Known, at: datetime) -> datetime:
    """When `known` ends if something takes its place `at`: not before it began, not after an end that it has."""
    return max(known.valid_from, at if known.valid_to is None else min(known.valid_to, at))


def _confirmed(statement: Statement, proposal: Proposal, known: Known, lines: Lines) -> Placed:
    """It is known already. What is dormant is revived by a later statement, not by one that comes late or is only
    read again."""
    if known.state in DORMANT and (not statement.order > known.last or _read_before(statement, known)):
        reason = f"{proposal.reason}; but not after it was last said"
        return Placed(action=Action.NOOP, reason=reason, marked=proposal.marked, said_by=known)
    retired = tuple(
        _superseded(other, known.id, statement.said_at, proposal.reason)
        for other in proposal.retire
        if other.state not in REPLACED and statement.order > other.last and _may_retire(statement, other)
    )
    return Placed(
        action=proposal.action,
        reason=proposal.reason,
        marked=proposal.marked,
        confirm=known,
        revives=known.state in DORMANT,
        retired=retired,
        since=statement.begins_at if statement.order < known.order and lines.of(known)[0].id == known.id else None,
    )


def _late(
    statement: Statement,
    proposal: Proposal,
    newer: Sequence[Known],
    older: Sequence[Known],
    lines: Lines,
    now: datetime,
) -> Placed:
    """It was said before what it would replace: history, in its place on the line, and nothing newer is overturned.

    What contradicts nothing that is newer stands beside it: a merger would rest on an older word than what it ends.
    """
    line = lines.of(min(newer, key=lambda known: known.order))
    after = next((known for known in line if known.order > statement.order), None)
    before = next((known for known in reversed(line) if known.order < statement.order), None)
    text = normalized(statement.text)
    for known in (before, after):
        if known is not None and known.content and normalized(known.content) == text:
            reason = "it comes late, and the same text is in that place already"
            return Placed(action=Action.NOOP, reason=reason, marked=proposal.marked, said_by=known)
    if proposal.action is not Action.DELETE and not any(known.id in statement.differs for known in newer):
        beside = Proposal(
            action=Action.DELETE if older else Action.ADD,
            reason=f"{proposal.reason}; but it comes late: it stands beside what was said after it",
            restates=proposal.restates,
            marked=proposal.marked,
        )
        return _added(statement, beside, [known for known in older if _may_retire(statement, known)], lines, now)
    return _history(statement, proposal, before, after or min(newer, key=lambda known: known.last), older)


def _history(
    statement: Statement, proposal: Proposal, before: Known | None, after: Known, older: Sequence[Known]
) -> Placed:
    """A memory that held between `before` and `after`; where `after` was first said before it, until that was said
    again."""
    begins_at, reason = statement.begins_at, "it comes late: what was said after it stands"
    until = after.valid_from if after.order > statement.order else after.last.stated_at
    add = Addition(
        text=statement.text,
        state=State.SUPERSEDED,
        valid_from=begins_at,
        valid_to=max(begins_at, until),
        retired_reason=reason,
        supersedes=None if before is None or before.id == after.id else before.id,
        superseded_by=after.id,
        restates=_id(proposal.restates),
    )
    ends = {known.id: known for known in older if _may_retire(statement, known)}
    if before is not None and before.superseded_by == after.id:
        ends[before.id] = before
    retired = tuple(_superseded(known, statement.new_id, begins_at, proposal.reason) for known in ends.values())
    return Placed(
        action=Action.ADD, reason=f"{proposal.reason}; {reason}", marked=proposal.marked, add=add, retired=retired
    )


def _retracted(statement: Statement, proposal: Proposal, lines: Lines, now: datetime) -> Placed:
    """What is taken back goes if it was not said since; what is left of it, if anything, is a new memory.

    A plan that is taken back ends nothing any more. Nobody takes back for the user but the user, and plainly.
    """
    standing = [known for known in proposal.retire if known.state not in REPLACED and statement.order > known.last]
    gone = [known for known in standing if _may_retire(statement, known, merges=True)]
    if not gone or proposal.action is Action.NOOP:
        why = f"but {_why_outranked(statement)}" if standing else "but it was said since"
        reason = f"{proposal.reason}; {why}" if proposal.retire else proposal.reason
        return Placed(action=Action.NOOP, reason=reason, marked=proposal.marked)
    at = statement.said_at
    if proposal.action is Action.UPDATE and proposal.text is not None:
        return Placed(
            action=Action.UPDATE,
            reason=proposal.reason,
            add=Addition(text=proposal.text, valid_from=at, supersedes=gone[0].id),
            retired=tuple(_superseded(known, statement.new_id, at, proposal.reason) for known in gone),
            inherits=tuple(gone),
        )
    retired = tuple(
        Retirement(memory_id=known.id, state=State.RETRACTED, valid_to=_end(known, at), reason=proposal.reason)
        for known in gone
    )
    reopened = tuple(
        Retirement(memory_id=known.id, state=State.LIVE, valid_to=None, reason="what was to replace it is off")
        for known in _freed(gone, lines, now)
    )
    return Placed(action=Action.DELETE, reason=proposal.reason, retired=(*retired, *reopened))

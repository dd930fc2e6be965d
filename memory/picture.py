"""The owner as a decision sees it: what the store knew, and what the candidates before this one have changed since."""

from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from memory.candidates import Candidate
from processors.effects import Effect, Look, NewMemory
from processors.memories import State
from processors.normalization import text_hash
from processors.router import Lines
from processors.routing import Known, Neighbour


@dataclass(frozen=True, slots=True)
class _Added:
    memory_id: UUID
    new: NewMemory


class Picture:
    """One owner's memories, as far as a few candidates concern them. Changed by effects, in order."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._known: dict[UUID, Known] = {n.memory_id: n.memory for found in look.neighbours for n in found}
        # A memory may be far from one candidate, and come without its text there, and near to another.
        near = (n.memory for found in look.neighbours for n in found if n.memory.content)
        self._known.update((memory.id, memory) for memory in (*near, *look.lines))
        self._added: list[_Added] = []
        self._revived: list[UUID] = []

    def forgotten(self, index: int) -> bool:
        """Whether the `index`-th candidate was forgotten on request after it had been received."""
        return bool(self._look.forgotten) and self._look.forgotten[index]

    def over(self, index: int) -> bool:
        """Whether the `index`-th candidate was read out of its turn before, and does not hold any more."""
        return bool(self._look.over) and self._look.over[index]

    def lines(self) -> Lines:
        """The lines as they are now."""
        return Lines(self._known)

    def neighbours(self, index: int, candidate: Candidate) -> tuple[Neighbour, ...]:
        """Those of the `index`-th candidate: what the store found, as it is now, and what was added since."""
        stored = self._look.neighbours[index]
        found = [_as_it_is(neighbour, self._known[neighbour.memory.id], candidate) for neighbour in stored]
        if self._added:
            found += self._just_added(candidate)
        if self._revived:
            met = {neighbour.memory_id for neighbour in found}
            found += [_met(self._known[each], candidate) for each in self._revived if each not in met]
        return tuple(sorted(found, key=lambda neighbour: neighbour.rank))

    def _just_added(self, candidate: Candidate) -> list[Neighbour]:
        return [
            Neighbour(
                self._known[added.memory_id],
                _cosine(candidate, added.new),
                same_text=added.new.content_hash == candidate.content_hash,
                same_slot=_shares_slot(self._known[added.memory_id], candidate),
            )
            for added in self._added
        ]

    def apply(self, effect: Effect) -> None:
        """The owner after `effect`."""
        for retirement in effect.retired:
            self._known[retirement.memory_id] = replace(
                self._known[retirement.memory_id],
                state=retirement.state,
                valid_to=retirement.valid_to,
                superseded_by=retirement.superseded_by,
            )
        if effect.new is not None:
            self._known[effect.new.id] = _known(effect.new)
            self._added.append(_Added(effect.new.id, effect.new))
        if effect.confirmed is not None:
            known = self._known[effect.confirmed.memory_id]
            known = replace(known, last=max(known.last, effect.confirmed.order))
            known = replace(known, confidence=max(known.confidence, effect.confirmed.confidence))
            if effect.confirmed.revives:
                known = replace(known, state=State.LIVE, valid_to=None, superseded_by=None)
                self._revived.append(known.id)
            self._known[known.id] = known


def _as_it_is(neighbour: Neighbour, memory: Known, candidate: Candidate) -> Neighbour:
    if neighbour.memory is memory:
        return neighbour
    return replace(neighbour, memory=memory, same_slot=_shares_slot(memory, candidate))


def _met(memory: Known, candidate: Candidate) -> Neighbour:
    """A memory that the store did not find for `candidate`."""
    same_text = text_hash(memory.content) == candidate.content_hash
    return Neighbour(memory, None, same_text=same_text, same_slot=_shares_slot(memory, candidate))


def _shares_slot(memory: Known, candidate: Candidate) -> bool:
    return memory.live and candidate.slot is not None and candidate.slot == memory.slot


def _known(new: NewMemory) -> Known:
    return Known(
        id=new.id,
        state=new.state,
        order=new.order,
        last=new.order,
        valid_from=new.valid_from,
        content=new.content,
        valid_to=new.valid_to,
        category=new.category,
        importance=new.importance,
        confidence=new.confidence,
        role=new.role,
        subject=new.subject,
        attribute=new.attribute,
        pinned=new.pinned,
        tags=new.tags,
        supersedes=new.supersedes,
        superseded_by=new.superseded_by,
        expires_at=new.expires_at,
    )


def _cosine(candidate: Candidate, new: NewMemory) -> float | None:
    if candidate.vector is None or new.vector is None:
        return None
    return float(np.dot(candidate.vector, new.vector))

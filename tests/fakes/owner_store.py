"""An owner's memories in this process: what `store.owners` and `store.memories` do, without Postgres."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import numpy as np
from mnemostream.turns import Role

from processors.effects import Answered, Commit, Confirmation, Effect, Look, NewMemory, Probe, RequestId, Retirement
from processors.memories import Memory, Source, State, StatementOrder
from processors.records import AppProfile, Owner
from processors.routing import Known, Neighbour
from processors.vectors import EmbeddingModel, Vector
from tests.fakes.values import MODEL

_DORMANT: Final = {State.ARCHIVED, State.EXPIRED, State.EVICTED}
_KINDS: Final = {State.SUPERSEDED: "superseded", State.RETRACTED: "retracted", State.LIVE: "edited"}


@dataclass(slots=True)
class _Stored:
    new: NewMemory
    memory: Memory
    reinforced_at: datetime
    last: StatementOrder
    model: str | None


@dataclass(slots=True)
class _Tombstone:
    received_before: datetime
    content_hash: bytes
    slot: tuple[str, str] | None
    turn_ids: set[str]


@dataclass(slots=True)
class _Owned:
    version: int = 0
    seq: int = 0
    memories: dict[UUID, _Stored] = field(default_factory=dict)
    ledger: set[tuple[str, int]] = field(default_factory=set)
    parked: set[tuple[str, int]] = field(default_factory=set)
    decisions: list[Effect] = field(default_factory=list)
    changes: list[tuple[int, str, Memory]] = field(default_factory=list)
    answers: dict[tuple[str, str], Answered | None] = field(default_factory=dict)
    tombstones: list[_Tombstone] = field(default_factory=list)


class FakeOwnerStore:
    """The ports `OwnerStore` and `MemoryReader`. `now` is its clock."""

    def __init__(
        self, now: Callable[[], datetime] = lambda: datetime.now(UTC), profile: AppProfile | None = None
    ) -> None:
        self._now = now
        self._profile = profile or AppProfile()
        self._owners: dict[Owner, _Owned] = {}

    async def look(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> Look:
        owned = self._owners.get(owner, _Owned())
        answered = None if request is None else owned.answers.get((request.method, request.request_id))
        neighbours = tuple(self._neighbours(owned, probe, model, limit) for probe in probes)
        forgotten = tuple(_is_forgotten(owned, probe) for probe in probes)
        return Look(
            version=owned.version,
            now=self._now(),
            settled=frozenset(turn_id for turn_id in turn_ids if (turn_id, run) in owned.ledger),
            neighbours=neighbours,
            lines=self._lines(owned, probes, neighbours),
            forgotten=forgotten if any(forgotten) else (),
            over=tuple(self._is_over(owned, probe) for probe in probes) if run else (),
            profile=self._profile,
            answered=answered,
        )

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        owned = self._owners.get(owner, _Owned())
        turns = {(turn.turn_id, commit.run) for turn in commit.turns}
        request = commit.request
        if owned.version != version or turns & owned.ledger:
            return False
        if request is not None and (request.method, request.request_id) in owned.answers:
            return False
        if not self._stands(owned, commit):
            return False
        self._owners[owner] = owned
        owned.ledger |= turns
        # As in Postgres: what is new is written first, then each memory changes in the order of the effects.
        numbered = self._numbered(owned, commit)
        for effect, change, seq in sorted(numbered, key=lambda n: not isinstance(n[1], NewMemory)):
            match change:
                case NewMemory():
                    self._add(owner, owned, effect, change, commit, seq)
                case Confirmation():
                    self._confirm(owned, effect, change, commit, seq)
                case Retirement():
                    self._retire(owned, change, seq)
        owned.changes.sort(key=lambda change: change[0])
        owned.decisions.extend(commit.effects)
        owned.version += any(not isinstance(c, Confirmation) or c.revives for _, c, _ in numbered)
        last = commit.effects[-1].memory_id if commit.effects else None
        if request is not None:
            answered = None if last is None else Answered(request.body_hash, owned.memories[last].memory)
            owned.answers[request.method, request.request_id] = answered
        return True

    async def settle(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        decide: Callable[[Look], Commit | None],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> None:
        look = await self.look(owner, probes, model=model, turn_ids=turn_ids, run=run, request=request, limit=limit)
        commit = decide(look)
        if commit is not None:
            assert await FakeOwnerStore.commit(self, owner, look.version, commit)

    async def get(self, owner: Owner, memory_id: UUID) -> Memory | None:
        stored = self._owners.get(owner, _Owned()).memories.get(memory_id)
        return None if stored is None or stored.memory.state is State.FORGOTTEN else stored.memory

    def park(self, owner: Owner, turn_id: str) -> None:
        """Note that a turn was set aside; it can still become stored."""
        self._owners.setdefault(owner, _Owned()).parked.add((turn_id, 0))

    def retire(self, owner: Owner, memory_id: UUID, state: State) -> None:
        """Take a memory out of what is live, as timers and tells do."""
        owned = self._owners[owner]
        stored = owned.memories[memory_id]
        stored.memory = replace(stored.memory, state=state, retired_at=self._now(), version=stored.memory.version + 1)
        owned.version += 1

    def forget(self, owner: Owner, memory_id: UUID) -> None:
        """Scrub a memory on request, and leave a tombstone for what was received until now."""
        self.retire(owner, memory_id, State.FORGOTTEN)
        owned = self._owners[owner]
        stored = owned.memories[memory_id]
        memory, new = stored.memory, stored.new
        slot = None if memory.subject is None or memory.attribute is None else (memory.subject, memory.attribute)
        turn_ids = {source.turn_id for source in memory.sources}
        owned.tombstones.append(_Tombstone(self._now(), new.content_hash, slot, turn_ids))
        stored.memory = replace(memory, content="", data=None, tags=(), sources=(), subject=None, attribute=None)
        stored.new = replace(new, content="", content_hash=b"", data=None, vector=None)

    def memories(self, owner: Owner) -> list[Memory]:
        """All of an owner's memories, in the order in which they were recorded."""
        return [stored.memory for stored in self._owners.get(owner, _Owned()).memories.values()]

    def changes(self, owner: Owner) -> list[tuple[int, str, Memory]]:
        """The owner's history: seq, kind, and the memory after it."""
        return list(self._owners.get(owner, _Owned()).changes)

    def decisions(self, owner: Owner) -> list[Effect]:
        """What was decided for an owner, in order."""
        return list(self._owners.get(owner, _Owned()).decisions)

    def _state(self, memory: Memory) -> State:
        if memory.state is State.LIVE and memory.expires_at is not None and memory.expires_at <= self._now():
            return State.EXPIRED
        if memory.state is State.LIVE and memory.valid_to is not None and memory.valid_to <= self._now():
            return State.SUPERSEDED
        return memory.state

    def _is_over(self, owned: _Owned, probe: Probe) -> bool:
        """Whether its turn said it before, in these words, and nothing of that is live."""
        said = [
            stored
            for stored in owned.memories.values()
            if stored.new.content_hash == probe.content_hash
            and any(source.turn_id == probe.turn_id for source in stored.memory.sources)
        ]
        if not said or any(self._state(stored.memory) is State.LIVE for stored in said):
            return False
        last = max(said, key=lambda stored: stored.new.order)
        by = owned.memories.get(last.memory.superseded_by) if last.memory.superseded_by else None
        return by is None or not by.new.order.rereads(last.last)

    def _known(self, stored: _Stored) -> Known:
        memory = stored.memory
        last = stored.last._replace(stated_at=max(stored.last.stated_at, memory.confirmed_at or stored.last.stated_at))
        return Known(
            id=memory.id,
            state=self._state(memory),
            order=stored.new.order,
            last=last,
            valid_from=memory.valid_from,
            content=memory.content,
            valid_to=memory.valid_to,
            category=memory.category,
            importance=memory.importance,
            confidence=memory.confidence,
            role=memory.role,
            subject=memory.subject,
            attribute=memory.attribute,
            pinned=memory.pinned,
            tags=memory.tags,
            supersedes=memory.supersedes,
            superseded_by=memory.superseded_by,
            expires_at=memory.expires_at,
        )

    def _neighbours(
        self, owned: _Owned, probe: Probe, model: EmbeddingModel | None, limit: int
    ) -> tuple[Neighbour, ...]:
        text_from = 2.0 if model is None else model.arbitration_threshold - 0.35
        found = []
        for stored in owned.memories.values():
            known = self._known(stored)
            if known.state is State.FORGOTTEN:
                continue
            similarity = None
            if probe.vector is not None and stored.new.vector is not None and model and stored.model == model.name:
                similarity = _cosine(probe.vector, stored.new.vector)
            same_text = stored.new.content_hash == probe.content_hash
            in_slot = stored.memory.state is State.LIVE and known.slot == (probe.subject, probe.attribute)
            if not (same_text or in_slot or (similarity is not None and similarity >= text_from)):
                known = replace(known, content="")
            found.append(Neighbour(known, similarity, same_text, in_slot and known.live))
        found.sort(key=lambda neighbour: neighbour.rank)
        likest = sorted(found, key=lambda n: (1.0 if n.similarity is None else -n.similarity, n.memory_id))
        same = [n for n in found if n.same_text][:limit]
        slot = [n for n in likest if n.same_slot][:limit]
        near = [n for n in likest if n.similarity is not None][:limit]
        kept = {n.memory_id for n in (*same, *slot, *near)}
        return tuple(n for n in found if n.memory_id in kept)

    def _lines(
        self, owned: _Owned, probes: Sequence[Probe], neighbours: Sequence[Sequence[Neighbour]]
    ) -> tuple[Known, ...]:
        """All that is reached from the seeds by `supersedes` and `superseded_by`, both ways."""
        reached = {
            n.memory_id
            for probe, found in zip(probes, neighbours, strict=True)
            for n in found
            if (
                n.state in {State.SUPERSEDED, State.RETRACTED}
                and (n.same_text or (n.similarity or 0.0) >= MODEL.arbitration_threshold)
            )
            or (
                n.memory.live
                and n.memory.content
                and (n.memory.valid_from > self._now() or (probe.order is not None and n.memory.last > probe.order))
            )
        }
        known = {m: self._known(s) for m, s in owned.memories.items() if s.memory.state is not State.FORGOTTEN}
        links = [(m.id, other) for m in known.values() for other in (m.supersedes, m.superseded_by) if other in known]
        while more := {b if a in reached else a for a, b in links if (a in reached) != (b in reached)}:
            reached |= more
        return tuple(sorted((known[each] for each in reached), key=lambda m: (m.order.stated_at, m.id)))

    def _stands(self, owned: _Owned, commit: Commit) -> bool:
        """Whether what is confirmed is live, what is revived dormant, and what is retired not forgotten."""
        seen = {effect.new.id for effect in commit.effects if effect.new is not None}
        for effect in commit.effects:
            for memory_id in (retirement.memory_id for retirement in effect.retired):
                stored = owned.memories.get(memory_id)
                if memory_id not in seen and (stored is None or stored.memory.state is State.FORGOTTEN):
                    return False
            confirmed = effect.confirmed
            if confirmed is not None and confirmed.memory_id not in seen:
                stored = owned.memories.get(confirmed.memory_id)
                state = None if stored is None else self._state(stored.memory)
                if state not in (_DORMANT if confirmed.revives else {State.LIVE}):
                    return False
                seen.add(confirmed.memory_id)
        return True

    def _numbered(
        self, owned: _Owned, commit: Commit
    ) -> list[tuple[Effect, NewMemory | Confirmation | Retirement, int]]:
        """The changes of memories, each with its seq: what an effect retires, then what it adds or confirms."""
        rests_on = {memory_id: _keys(stored.memory.sources) for memory_id, stored in owned.memories.items()}
        changes: list[tuple[Effect, NewMemory | Confirmation | Retirement]] = []
        for effect in commit.effects:
            changes += [(effect, retirement) for retirement in effect.retired]
            if effect.new is not None:
                rests_on[effect.new.id] = _keys(effect.sources)
                changes.append((effect, effect.new))
            elif effect.confirmed is not None:
                known = rests_on[effect.confirmed.memory_id]
                told_before = commit.cause_kind == "turn" and any(turn_id == effect.cause_id for turn_id, _ in known)
                if told_before and not effect.confirmed.revives and _keys(effect.sources) <= known:
                    continue
                known |= _keys(effect.sources)
                changes.append((effect, effect.confirmed))
        first = owned.seq + 1
        owned.seq += len(changes)
        return [(effect, change, seq) for seq, (effect, change) in enumerate(changes, first)]

    def _add(self, owner: Owner, owned: _Owned, effect: Effect, new: NewMemory, commit: Commit, seq: int) -> None:
        now = self._now()
        memory = Memory(
            id=new.id,
            app=owner.app,
            owner=owner.owner,
            session=new.session,
            content=new.content,
            data=new.data,
            tags=new.tags,
            type=new.type,
            category=new.category,
            importance=new.importance,
            confidence=new.confidence,
            pinned=new.pinned,
            state=new.state,
            strength=1.0,
            subject=new.subject,
            attribute=new.attribute,
            role=new.role,
            valid_from=new.valid_from,
            valid_to=new.valid_to,
            recorded_at=now,
            retired_at=None if new.state is State.LIVE else now,
            retired_reason=new.retired_reason,
            supersedes=new.supersedes,
            superseded_by=new.superseded_by,
            restates=new.restates,
            expires_at=new.expires_at,
            fades_at=new.fades_at,
            version=1,
            sources=effect.sources,
        )
        model = commit.embedding_model.name if commit.embedding_model else None
        owned.memories[new.id] = _Stored(new, memory, new.order.stated_at, new.order, model)
        owned.changes.append((seq, "added", memory))

    def _confirm(self, owned: _Owned, effect: Effect, confirmed: Confirmation, commit: Commit, seq: int) -> None:
        stored = owned.memories[confirmed.memory_id]
        memory, stated_at = stored.memory, confirmed.stated_at
        known = _keys(memory.sources)
        sources = sorted(
            [*memory.sources, *(s for s in effect.sources if (s.turn_id, s.message_index) not in known)],
            key=lambda s: (s.said_at, s.turn_id, -1 if s.message_index is None else s.message_index),
        )
        memory = replace(memory, sources=tuple(sources), version=memory.version + 1)
        stored.last = max(stored.last, confirmed.order)
        if commit.cause_kind != "turn" or all(turn_id != effect.cause_id for turn_id, _ in known):
            stored.reinforced_at = max(stored.reinforced_at, stated_at)
            half_life = stored.new.half_life_seconds
            memory = replace(
                memory,
                confirmations=memory.confirmations + 1,
                confirmed_at=max(memory.confirmed_at or stated_at, stated_at),
                expires_at=_later(memory.expires_at, confirmed.expires_at),
                fades_at=None
                if half_life is None
                else stored.reinforced_at + timedelta(seconds=half_life * confirmed.archive_factor),
            )
        memory = replace(
            memory,
            confidence=max(memory.confidence, confirmed.confidence),
            valid_from=min(memory.valid_from, confirmed.valid_from or memory.valid_from),
        )
        if memory.role in {Role.ASSISTANT, Role.TOOL} and confirmed.role is Role.USER:
            memory = replace(memory, role=Role.USER)
        if confirmed.revives:
            memory = replace(
                memory,
                state=State.LIVE,
                valid_to=None,
                retired_at=None,
                retired_reason=None,
                superseded_by=None,
                expires_at=confirmed.expires_at,
            )
        stored.memory = memory
        owned.changes.append((seq, "revived" if confirmed.revives else "confirmed", memory))

    def _retire(self, owned: _Owned, retirement: Retirement, seq: int) -> None:
        stored = owned.memories[retirement.memory_id]
        memory = stored.memory
        valid_to = None if retirement.valid_to is None else max(memory.valid_from, retirement.valid_to)
        if retirement.state is State.LIVE:
            memory = replace(memory, valid_to=valid_to, version=memory.version + 1)
        else:
            memory = replace(
                memory,
                state=retirement.state,
                valid_to=valid_to,
                retired_at=self._now() if memory.state is State.LIVE else memory.retired_at,
                retired_reason=retirement.reason,
                superseded_by=retirement.superseded_by,
                version=memory.version + 1,
            )
        stored.memory = memory
        owned.changes.append((seq, _KINDS[retirement.state], memory))


def _is_forgotten(owned: _Owned, probe: Probe) -> bool:
    slot = None if probe.subject is None or probe.attribute is None else (probe.subject, probe.attribute)
    return probe.order is not None and any(
        probe.order.received_at < tombstone.received_before
        and (
            probe.content_hash == tombstone.content_hash
            or (slot is not None and slot == tombstone.slot)
            or probe.turn_id in tombstone.turn_ids
        )
        for tombstone in owned.tombstones
    )


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)


def _keys(sources: Iterable[Source]) -> set[tuple[str, int | None]]:
    return {(source.turn_id, source.message_index) for source in sources}


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))

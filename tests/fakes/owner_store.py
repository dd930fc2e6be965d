"""An owner's memories in this process: what `store.owners` and `store.memories` do, without Postgres."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from processors.effects import Answered, Commit, Effect, Look, NewMemory, Probe, RequestId
from processors.memories import Memory, Source, State
from processors.records import AppProfile, Owner
from processors.routing import Neighbour
from processors.vectors import EmbeddingModel, Vector


@dataclass(slots=True)
class _Stored:
    new: NewMemory
    memory: Memory
    reinforced_at: datetime
    model: str | None


@dataclass(slots=True)
class _Owned:
    version: int = 0
    seq: int = 0
    memories: dict[UUID, _Stored] = field(default_factory=dict)
    ledger: set[tuple[str, int]] = field(default_factory=set)
    parked: set[tuple[str, int]] = field(default_factory=set)
    decisions: list[Effect] = field(default_factory=list)
    changes: list[tuple[int, str, Memory]] = field(default_factory=list)
    answers: dict[tuple[str, str], Answered] = field(default_factory=dict)


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
        return Look(
            version=owned.version,
            now=self._now(),
            settled=frozenset(turn_id for turn_id in turn_ids if (turn_id, run) in owned.ledger),
            neighbours=tuple(self._neighbours(owned, probe, model, limit) for probe in probes),
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
        added = {effect.new.id for effect in commit.effects if effect.new is not None}
        confirmed = {effect.confirmed.memory_id for effect in commit.effects if effect.confirmed is not None} - added
        if any(
            memory_id not in owned.memories or not self._is_live(owned.memories[memory_id]) for memory_id in confirmed
        ):
            return False
        self._owners[owner] = owned
        owned.ledger |= turns
        # As in Postgres: what is new is written first, then confirmed, whatever the order of the effects.
        seqs = self._numbered(owned, commit)
        for effect, seq in seqs:
            if effect.new is not None:
                self._add(owner, owned, effect, effect.new, commit, seq)
        for effect, seq in seqs:
            if effect.confirmed is not None:
                self._confirm(owned, effect, commit, seq)
        owned.changes.sort(key=lambda change: change[0])
        owned.decisions.extend(commit.effects)
        owned.version += bool(added)
        if request is not None:
            last = commit.effects[-1].memory_id
            owned.answers[request.method, request.request_id] = Answered(request.body_hash, owned.memories[last].memory)
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
        return None if stored is None else stored.memory

    def park(self, owner: Owner, turn_id: str) -> None:
        """Note that a turn was set aside; it can still become stored."""
        self._owners.setdefault(owner, _Owned()).parked.add((turn_id, 0))

    def retire(self, owner: Owner, memory_id: UUID, state: State) -> None:
        """Take a memory out of what is live, as timers and tells do."""
        owned = self._owners[owner]
        stored = owned.memories[memory_id]
        stored.memory = replace(stored.memory, state=state, retired_at=self._now(), version=stored.memory.version + 1)
        owned.version += 1

    def memories(self, owner: Owner) -> list[Memory]:
        """All of an owner's memories, in the order in which they were recorded."""
        return [stored.memory for stored in self._owners.get(owner, _Owned()).memories.values()]

    def changes(self, owner: Owner) -> list[tuple[int, str, Memory]]:
        """The owner's history: seq, kind, and the memory after it."""
        return list(self._owners.get(owner, _Owned()).changes)

    def decisions(self, owner: Owner) -> list[Effect]:
        """What was decided for an owner, in order."""
        return list(self._owners.get(owner, _Owned()).decisions)

    def _is_live(self, stored: _Stored) -> bool:
        memory = stored.memory
        return memory.state is State.LIVE and (memory.expires_at is None or memory.expires_at > self._now())

    def _neighbours(
        self, owned: _Owned, probe: Probe, model: EmbeddingModel | None, limit: int
    ) -> tuple[Neighbour, ...]:
        found: dict[UUID, Neighbour] = {}
        for stored in owned.memories.values():
            same_text = stored.new.content_hash == probe.content_hash
            state = stored.memory.state
            if state is State.LIVE and not self._is_live(stored):
                state = State.EXPIRED
            similarity = None
            if probe.vector is not None and stored.new.vector is not None and model and stored.model == model.name:
                similarity = _cosine(probe.vector, stored.new.vector)
            found[stored.new.id] = Neighbour(stored.new.id, similarity, state, same_text)
        same = sorted(
            (n for n in found.values() if n.same_text), key=lambda n: (n.state is not State.LIVE, n.memory_id)
        )
        near = sorted(
            (n for n in found.values() if n.similarity is not None), key=lambda n: (-(n.similarity or 0), n.memory_id)
        )
        kept = {n.memory_id: n for n in [*same[:limit], *near[:limit]]}
        return tuple(sorted(kept.values(), key=_rank))

    def _numbered(self, owned: _Owned, commit: Commit) -> list[tuple[Effect, int]]:
        """The effects that change a memory, each with its seq."""
        rests_on = {memory_id: _keys(stored.memory.sources) for memory_id, stored in owned.memories.items()}
        numbered = []
        for effect in commit.effects:
            if effect.new is not None:
                rests_on[effect.new.id] = _keys(effect.sources)
            elif effect.confirmed is not None:
                known = rests_on[effect.confirmed.memory_id]
                told_before = commit.cause_kind == "turn" and any(turn_id == effect.cause_id for turn_id, _ in known)
                if told_before and _keys(effect.sources) <= known:
                    continue
                known |= _keys(effect.sources)
            else:
                continue
            owned.seq += 1
            numbered.append((effect, owned.seq))
        return numbered

    def _add(self, owner: Owner, owned: _Owned, effect: Effect, new: NewMemory, commit: Commit, seq: int) -> None:
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
            state=State.LIVE,
            strength=1.0,
            subject=new.subject,
            attribute=new.attribute,
            role=new.role,
            valid_from=new.valid_from,
            recorded_at=self._now(),
            expires_at=new.expires_at,
            fades_at=new.fades_at,
            version=1,
            sources=effect.sources,
        )
        model = commit.embedding_model.name if commit.embedding_model else None
        owned.memories[new.id] = _Stored(new, memory, new.order.stated_at, model)
        owned.changes.append((seq, "added", memory))

    def _confirm(self, owned: _Owned, effect: Effect, commit: Commit, seq: int) -> None:
        assert effect.confirmed is not None
        stored = owned.memories[effect.confirmed.memory_id]
        memory, stated_at = stored.memory, effect.confirmed.stated_at
        known = _keys(memory.sources)
        sources = sorted(
            [*memory.sources, *(s for s in effect.sources if (s.turn_id, s.message_index) not in known)],
            key=lambda s: (s.said_at, s.turn_id, -1 if s.message_index is None else s.message_index),
        )
        memory = replace(memory, sources=tuple(sources), version=memory.version + 1)
        if commit.cause_kind != "turn" or all(turn_id != effect.cause_id for turn_id, _ in known):
            stored.reinforced_at = max(stored.reinforced_at, stated_at)
            half_life = stored.new.half_life_seconds
            memory = replace(
                memory,
                confirmations=memory.confirmations + 1,
                confirmed_at=max(memory.confirmed_at or stated_at, stated_at),
                fades_at=None
                if half_life is None
                else stored.reinforced_at + timedelta(seconds=half_life * effect.confirmed.archive_factor),
            )
        stored.memory = memory
        owned.changes.append((seq, "confirmed", memory))


def _keys(sources: Iterable[Source]) -> set[tuple[str, int | None]]:
    return {(source.turn_id, source.message_index) for source in sources}


def _rank(neighbour: Neighbour) -> tuple[bool, bool, float, UUID]:
    similarity = -1.0 if neighbour.similarity is None else neighbour.similarity
    dead = neighbour.same_text and neighbour.state is not State.LIVE
    return (not neighbour.same_text, dead, -similarity, neighbour.memory_id)


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))

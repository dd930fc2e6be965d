"""Reconcile: what was read out of turns becomes memories, in one owner-serial step.

Look at the owner, decide, commit. Nothing is held between the look and the commit: the commit stands only if the
owner's version is still the one that was looked at, and each turn has no ledger row yet. Otherwise it is decided again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from mnemostream.turns import Reason

from memory.decisions import Candidate, decide_in_order
from memory.ports import Embedder, OwnerStore
from processors.effects import Commit, Look, TurnEffect
from processors.errors import Rejected
from processors.facts import Fact, Window, WindowTurn
from processors.memories import Source, StatementOrder
from processors.normalization import text_hash
from processors.records import Owner, Place
from processors.vectors import Vector, unpack

ROUNDS: Final = 3
"""How often a decision is made again because the owner changed meanwhile, before it is made under the owner's lock."""


class Reconciler:
    """The owner-serial step of the stream."""

    def __init__(self, store: OwnerStore, embedder: Embedder, *, new_id: Callable[[], UUID]) -> None:
        self._store = store
        self._embedder = embedder
        self._new_id = new_id

    async def reconcile(self, window: Window) -> None:
        """Give every turn of `window` its effect, once. A turn that took effect before changes nothing.

        Raises Rejected where the window contradicts itself, StoreUnavailable, and ModelUnavailable.
        """
        owner = Owner(window.app, window.owner)
        candidates = _candidates(window, await self._vectors(window))
        probes = [candidate.probe for candidate in candidates]
        model = self._embedder.model if candidates else None
        turn_ids = [turn.id for turn in window.turns]

        def decide(look: Look) -> Commit | None:
            return self._decided(window, candidates, look)

        for _ in range(ROUNDS):
            look = await self._store.look(owner, probes, model=model, turn_ids=turn_ids, run=window.run)
            commit = decide(look)
            if commit is None or await self._store.commit(owner, look.version, commit):
                return
        await self._store.settle(owner, probes, decide, model=model, turn_ids=turn_ids, run=window.run)

    def _decided(self, window: Window, candidates: Sequence[Candidate], look: Look) -> Commit | None:
        """What is to be written, by what `look` saw; None where every turn took effect before."""
        turns = [turn for turn in window.turns if turn.id not in look.settled]
        if not turns:
            return None
        known = [
            (candidate, neighbours)
            for candidate, neighbours in zip(candidates, look.neighbours, strict=True)
            if candidate.cause_id not in look.settled
        ]
        effects = decide_in_order(known, new_id=self._new_id)
        return Commit(
            cause_kind="turn",
            run=window.run,
            turns=tuple(TurnEffect(turn.id, _place(turn)) for turn in turns),
            effects=effects,
            reading=window.reading,
            embedding_model=self._embedder.model if effects else None,
            language=look.profile.language,
        )

    async def _vectors(self, window: Window) -> list[Vector]:
        """The vectors of the window's facts; embedded again where they come from another model than ours."""
        ours = self._embedder.model
        if window.embedding_model != ours.name:
            return await self._embedder.embed([fact.text for fact in window.facts]) if window.facts else []
        vectors = []
        for index, fact in enumerate(window.facts):
            try:
                vector = unpack(fact.embedding)
            except ValueError as error:
                raise Rejected(Reason.INVALID_FIELD, f"facts[{index}].embedding: must be finite float32") from error
            if vector.shape != (ours.dimensions,):
                raise Rejected(
                    Reason.INVALID_FIELD, f"facts[{index}].embedding: must have {ours.dimensions} dimensions"
                )
            vectors.append(vector)
        return vectors


def _candidates(window: Window, vectors: Sequence[Vector]) -> list[Candidate]:
    """The facts of `window` as candidates, in the order of their turns."""
    pairs = sorted(enumerate(zip(window.facts, vectors, strict=True)), key=lambda pair: (pair[1][0].turn, pair[0]))
    candidates = []
    for index, (fact, vector) in pairs:
        if fact.turn >= len(window.turns):
            raise Rejected(Reason.INVALID_FIELD, f"facts[{index}].turn: must be an index into turns")
        candidates.append(_candidate(fact, vector, window, index))
    return candidates


def _candidate(fact: Fact, vector: Vector, window: Window, index: int) -> Candidate:
    turn = window.turns[fact.turn]
    return Candidate(
        cause_id=turn.id,
        content=fact.text,
        content_hash=text_hash(fact.text),
        vector=vector,
        category=fact.category,
        importance=fact.importance,
        confidence=fact.confidence,
        order=StatementOrder.of(said_at=fact.said_at, received_at=turn.received_at, offset=turn.offset, ordinal=index),
        session=window.session,
        subject=fact.subject,
        attribute=fact.attribute,
        role=fact.role,
        valid_from=fact.valid_from,
        expires_at=fact.expires_at,
        sources=_sources(fact, turn),
        record=_record(fact),
    )


def _sources(fact: Fact, turn: WindowTurn) -> tuple[Source, ...]:
    messages: Sequence[int | None] = fact.messages or (None,)
    return tuple(Source(turn.id, message, fact.role, fact.said_at) for message in messages)


def _record(fact: Fact) -> Mapping[str, Any]:
    """The fact as it is kept with the decision: without its vector."""
    record: dict[str, Any] = msgspec.to_builtins(fact)
    del record["embedding"]
    return record


def _place(turn: WindowTurn) -> Place:
    return Place(turn.topic, turn.partition, turn.offset, turn.received_at)

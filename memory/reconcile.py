"""Reconcile: what was read out of turns becomes memories, in one owner-serial step.

Look at the owner, decide, hear the arbitrator where code alone cannot tell, commit. Nothing is held between the look
and the commit: the commit stands only if the owner's version is still the one that was looked at, and each turn has no
ledger row yet. Otherwise it is decided again, and the arbitrator is asked about pairs that are new to it only.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec
from mnemostream.turns import Reason

from memory.candidates import Candidate
from memory.decisions import Decided, Heard, decide_in_order
from memory.hearing import Hearing
from memory.ports import Arbitrator, Embedder, OwnerStore
from processors.effects import Commit, Effect, Look, Probe, TurnEffect
from processors.errors import Rejected
from processors.facts import Fact, Reading, Window, WindowTurn
from processors.memories import Source, StatementOrder
from processors.normalization import text_hash
from processors.records import Owner, Place
from processors.router import Thresholds
from processors.vectors import Vector, unpack
from runtime.failpoints import Failpoint, reach

ROUNDS: Final = 3
"""How often a decision is made again because the owner changed meanwhile, before it is made under the owner's lock."""


class ReconcileObserver(Protocol):
    """Hears of what was decided, for metrics."""

    def asked(self, reading: Reading, questions: int, refused: int) -> None:
        """An arbitrator was asked so many questions, and so many of its judgements broke a rule."""
        ...

    def decided(self, effects: Sequence[Effect]) -> None:
        """These effects were committed."""
        ...


class Silent:
    """The `ReconcileObserver` that counts nothing."""

    def asked(self, reading: Reading, questions: int, refused: int) -> None:
        """Nothing."""

    def decided(self, effects: Sequence[Effect]) -> None:
        """Nothing."""


class Reconciler:
    """The owner-serial step of the stream."""

    def __init__(
        self,
        store: OwnerStore,
        embedder: Embedder,
        arbitrator: Arbitrator,
        *,
        new_id: Callable[[], UUID],
        arbitration_limit: timedelta = timedelta(seconds=30),
        observer: ReconcileObserver | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._arbitrator = arbitrator
        self._new_id = new_id
        self._limit = arbitration_limit
        self._observer: ReconcileObserver = observer or Silent()

    async def reconcile(self, window: Window) -> None:
        """Give every turn of `window` its effect, once. A turn that took effect before changes nothing.

        Raises Rejected where the window contradicts itself, StoreUnavailable, and ModelUnavailable.
        """
        owner = Owner(window.app, window.owner)
        candidates = _candidates(window, await self._vectors(window), self._new_id)
        deciding = _Deciding(window, candidates, self._embedder)
        hearing = Hearing(
            self._arbitrator, self._embedder, deciding.decided, limit=self._limit, on_asked=self._observer.asked
        )
        probes = [candidate.probe for candidate in candidates]
        model = self._embedder.model if candidates else None
        turn_ids = [turn.id for turn in window.turns]
        for _ in range(ROUNDS):
            look = await self._store.look(owner, probes, model=model, turn_ids=turn_ids, run=window.run)
            reach(Failpoint.RECONCILE_LOOKED)
            decided = await hearing.complete(look)
            reach(Failpoint.RECONCILE_HEARD)
            commit = deciding.commit(look, decided)
            if commit is None:
                return
            if await self._store.commit(owner, look.version, commit):
                self._observer.decided(commit.effects)
                return
        await self._settle(owner, deciding, hearing.heard, probes, turn_ids)

    async def _settle(
        self, owner: Owner, deciding: "_Deciding", heard: Heard, probes: Sequence[Probe], turn_ids: Sequence[str]
    ) -> None:
        """Under the owner's lock, on what was heard: pairs that are new stand, marked."""
        commits: list[Commit] = []

        def decide(look: Look) -> Commit | None:
            commit = deciding.commit(look, deciding.decided(look, heard))
            commits[:] = [] if commit is None else [commit]
            return commit

        model = self._embedder.model if probes else None
        await self._store.settle(owner, probes, decide, model=model, turn_ids=turn_ids, run=deciding.window.run)
        for commit in commits:
            self._observer.decided(commit.effects)

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


class _Deciding:
    """A window's candidates, decided as often as it takes."""

    def __init__(self, window: Window, candidates: Sequence[Candidate], embedder: Embedder) -> None:
        model = embedder.model
        self.window = window
        self._candidates = candidates
        self._model = model
        self._thresholds = Thresholds(model.auto_merge_threshold, model.arbitration_threshold)

    def decided(self, look: Look, heard: Heard) -> Decided:
        """What becomes of the candidates of turns that have not taken effect yet."""
        candidates = [
            (place, candidate)
            for place, candidate in enumerate(self._candidates)
            if candidate.cause_id not in look.settled
        ]
        return decide_in_order(candidates, look, heard, self._thresholds)

    def commit(self, look: Look, decided: Decided) -> Commit | None:
        """What is to be written, as it was decided on `look`; None where every turn took effect before."""
        turns = [turn for turn in self.window.turns if turn.id not in look.settled]
        if not turns:
            return None
        effects = decided.effects
        return Commit(
            cause_kind="turn",
            run=self.window.run,
            turns=tuple(TurnEffect(turn.id, _place(turn)) for turn in turns),
            effects=effects,
            reading=self.window.reading,
            embedding_model=self._model if effects else None,
            language=look.profile.language,
        )


def _candidates(window: Window, vectors: Sequence[Vector], new_id: Callable[[], UUID]) -> list[Candidate]:
    """The facts of `window` as candidates, in the order of their turns."""
    pairs = sorted(enumerate(zip(window.facts, vectors, strict=True)), key=lambda pair: (pair[1][0].turn, pair[0]))
    candidates = []
    for index, (fact, vector) in pairs:
        if fact.turn >= len(window.turns):
            raise Rejected(Reason.INVALID_FIELD, f"facts[{index}].turn: must be an index into turns")
        candidates.append(_candidate(fact, vector, window, index, new_id))
    return candidates


def _candidate(fact: Fact, vector: Vector, window: Window, index: int, new_id: Callable[[], UUID]) -> Candidate:
    turn = window.turns[fact.turn]
    return Candidate(
        decision_id=new_id(),
        new_id=new_id(),
        cause_id=turn.id,
        content=fact.text,
        content_hash=text_hash(fact.text),
        vector=vector,
        category=fact.category,
        importance=fact.importance,
        confidence=fact.confidence,
        order=StatementOrder.of(
            said_at=fact.said_at, received_at=turn.received_at, offset=turn.offset, ordinal=index, run=window.run
        ),
        session=window.session,
        subject=fact.subject,
        attribute=fact.attribute,
        role=fact.role,
        valid_from=fact.valid_from,
        expires_at=fact.expires_at,
        retracts=fact.retracts,
        turn_id=turn.id,
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

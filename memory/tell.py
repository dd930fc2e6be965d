"""Tell: what an application does to an owner's memories at once, under the same version as the stream."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from memory.candidates import Candidate
from memory.decisions import Decided, Heard, decide_in_order
from memory.hearing import Hearing
from memory.ports import Arbitrator, Embedder, MemoryReader, OwnerStore
from processors.effects import Commit, Look, Probe, RequestId
from processors.errors import Contended, InvalidRequest
from processors.memories import Memory, StatementOrder
from processors.normalization import text_hash
from processors.records import Owner
from processors.router import Thresholds
from processors.statements import NewStatement
from processors.vectors import EmbeddingModel, Vector

ROUNDS: Final = 3
"""How often a tell decides again because others changed the owner meanwhile, before it takes the owner's lock."""


class Tell:
    """The tells of one query service."""

    def __init__(
        self,
        store: OwnerStore,
        memories: MemoryReader,
        embedder: Embedder,
        arbitrator: Arbitrator,
        *,
        new_id: Callable[[], UUID],
        arbitration_limit: timedelta = timedelta(seconds=10),
    ) -> None:
        self._store = store
        self._memories = memories
        self._embedder = embedder
        self._arbitrator = arbitrator
        self._new_id = new_id
        self._limit = arbitration_limit

    async def create(
        self, owner: Owner, statement: NewStatement, *, request: RequestId | None = None, exact: bool = False
    ) -> Memory:
        """Remember `statement`, and return the memory that it made or confirmed.

        It goes the way of a turn's candidates; where the arbitrator cannot be heard in time it is added beside what is
        known, marked. The same `request` again has no second effect and returns the memory as it was then. `exact`
        adds without comparing with what is known.

        Raises InvalidRequest for a request id that was used with other fields, ModelUnavailable, and StoreUnavailable.
        """
        [vector] = await self._embedder.embed([statement.content])
        telling = _Telling(
            statement=statement,
            vector=vector,
            model=self._embedder.model,
            request=request,
            exact=exact,
            cause_id=request.request_id if request is not None else str(self._new_id()),
            decision_id=self._new_id(),
            new_id=self._new_id(),
        )
        probes = [Probe(text_hash(statement.content), vector)]
        await self._settle(owner, probes, telling)
        if telling.answer is not None:
            return telling.answer
        memory = None if telling.memory_id is None else await self._memories.get(owner, telling.memory_id)
        if memory is None:
            raise Contended("the memory was forgotten the moment it was told")
        return memory

    async def _settle(self, owner: Owner, probes: Sequence[Probe], telling: "_Telling") -> None:
        model, request = telling.model, telling.request
        hearing = Hearing(self._arbitrator, self._embedder, telling.decided, limit=self._limit, waits=False)
        for _ in range(ROUNDS):
            look = await self._store.look(owner, probes, model=model, request=request)
            if look.answered is None:
                await hearing.complete(look)
            commit = telling.commit(look, hearing.heard)
            if commit is None or await self._store.commit(owner, look.version, commit):
                return
        await self._store.settle(
            owner, probes, lambda look: telling.commit(look, hearing.heard), model=model, request=request
        )


@dataclass(slots=True, kw_only=True)
class _Telling:
    """One statement on its way: decided as often as it takes, the last decision counts."""

    statement: NewStatement
    vector: Vector
    model: EmbeddingModel
    request: RequestId | None
    exact: bool
    cause_id: str
    decision_id: UUID
    new_id: UUID
    memory_id: UUID | None = None
    answer: Memory | None = None
    """Of the same request, before."""

    def decided(self, look: Look, heard: Heard) -> Decided:
        """What becomes of the statement, by what `look` saw and what was heard."""
        candidate = self._candidate(look)
        thresholds = Thresholds(self.model.auto_merge_threshold, self.model.arbitration_threshold)
        return decide_in_order([(0, candidate)], look, heard, thresholds, exact=self.exact)

    def commit(self, look: Look, heard: Heard) -> Commit | None:
        """What is to be written; None where the request was answered before."""
        if look.answered is not None:
            self.answer = _same_answer(self.request, look.answered.body_hash, look.answered.memory)
            return None
        effects = self.decided(look, heard).effects
        self.memory_id = effects[0].memory_id
        if self.memory_id is None:
            raise Contended("what was told changed nothing")
        return Commit(
            cause_kind="request",
            effects=effects,
            embedding_model=self.model,
            language=look.profile.language,
            request=self.request,
        )

    def _candidate(self, look: Look) -> Candidate:
        """The statement as a candidate, told now by Postgres's clock."""
        statement = self.statement
        return Candidate(
            decision_id=self.decision_id,
            new_id=self.new_id,
            cause_id=self.cause_id,
            content=statement.content,
            content_hash=text_hash(statement.content),
            vector=self.vector,
            category=statement.category,
            importance=statement.importance,
            confidence=statement.confidence,
            order=_order(look),
            record=_record(statement),
            data=statement.data,
            tags=statement.tags,
            type=statement.type,
            pinned=statement.pinned,
            valid_from=statement.valid_from,
            expires_at=statement.expires_at,
        )


def _same_answer(request: RequestId | None, body_hash: bytes, memory: Memory) -> Memory:
    if request is not None and request.body_hash != body_hash:
        raise InvalidRequest("requestId", "was used before with other fields")
    return memory


def _order(look: Look) -> StatementOrder:
    """What is told is told now, by Postgres's clock, and after all that it may concern, however clocks go elsewhere."""
    now = StatementOrder(look.now, look.now, 0, 0)
    last = max((neighbour.memory.last for neighbour in look.neighbours[0]), default=now)
    return now if now > last else last._replace(ordinal=last.ordinal + 1)


def _record(statement: NewStatement) -> Mapping[str, Any]:
    record: Mapping[str, Any] = msgspec.to_builtins(statement)
    return record

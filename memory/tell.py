"""Tell: what an application does to an owner's memories at once, under the same version as the stream."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from memory.decisions import Candidate, decide_in_order
from memory.ports import Embedder, MemoryReader, OwnerStore
from processors.effects import Commit, Look, Probe, RequestId
from processors.errors import Contended, InvalidRequest
from processors.memories import Memory, StatementOrder
from processors.normalization import text_hash
from processors.records import Owner
from processors.statements import NewStatement
from processors.vectors import Vector

ROUNDS: Final = 8
"""How often a tell decides again because others changed the owner meanwhile."""


class Tell:
    """The tells of one query service."""

    def __init__(
        self, store: OwnerStore, memories: MemoryReader, embedder: Embedder, *, new_id: Callable[[], UUID]
    ) -> None:
        self._store = store
        self._memories = memories
        self._embedder = embedder
        self._new_id = new_id

    async def create(
        self, owner: Owner, statement: NewStatement, *, request: RequestId | None = None, exact: bool = False
    ) -> Memory:
        """Remember `statement`, and return the memory that it made or confirmed.

        The same `request` again has no second effect and returns the memory as it was then. `exact` adds without
        comparing with what is known.  Raises InvalidRequest for a request id that was used with other fields,
        ModelUnavailable, StoreUnavailable, and Contended when others kept changing the owner.
        """
        [vector] = await self._embedder.embed([statement.content])
        probe = Probe(text_hash(statement.content), vector)
        cause_id = request.request_id if request is not None else str(self._new_id())
        for _ in range(ROUNDS):
            look = await self._store.look(owner, [probe], model=self._embedder.model, request=request)
            if look.answered is not None:
                return _same_answer(request, look.answered.body_hash, look.answered.memory)
            candidate = _candidate(statement, vector, look, cause_id)
            effects = decide_in_order([(candidate, look.neighbours[0])], new_id=self._new_id, exact=exact)
            commit = Commit(
                cause_kind="request",
                effects=effects,
                embedding_model=self._embedder.model,
                language=look.profile.language,
                request=request,
            )
            if await self._store.commit(owner, look.version, commit):
                memory = await self._memories.get(owner, effects[0].memory_id)
                if memory is not None:
                    return memory
        raise Contended(f"the owner changed in each of {ROUNDS} rounds of deciding")


def _same_answer(request: RequestId | None, body_hash: bytes, memory: Memory) -> Memory:
    if request is not None and request.body_hash != body_hash:
        raise InvalidRequest("requestId", "was used before with other fields")
    return memory


def _candidate(statement: NewStatement, vector: Vector, look: Look, cause_id: str) -> Candidate:
    """`statement` as a candidate, told now by Postgres's clock."""
    return Candidate(
        cause_id=cause_id,
        content=statement.content,
        content_hash=text_hash(statement.content),
        vector=vector,
        category=statement.category,
        importance=statement.importance,
        confidence=statement.confidence,
        order=StatementOrder(look.now, look.now, 0, 0),
        record=_record(statement),
        data=statement.data,
        tags=statement.tags,
        type=statement.type,
        pinned=statement.pinned,
        valid_from=statement.valid_from,
        expires_at=statement.expires_at,
    )


def _record(statement: NewStatement) -> Mapping[str, Any]:
    record: Mapping[str, Any] = msgspec.to_builtins(statement)
    return record

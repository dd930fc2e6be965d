"""What the contracts of an owner store are run on: the fake, and Postgres."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID

import asyncpg

from memory.ports import MemoryReader, OwnerStore
from processors.effects import Effect, Look, Probe
from processors.memories import Memory, State
from processors.records import Owner
from store.database import Database
from store.memories import MemoryRepository
from store.owners import OwnerRepository
from store.rows import memory_of
from tests.fakes.owner_store import FakeOwnerStore
from tests.fakes.values import MODEL, OWNER, commit_of, id_of


@dataclass(frozen=True)
class Subject:
    store: OwnerStore
    """As the stream has it."""
    tells: OwnerStore
    """As the query service has it."""
    reader: MemoryReader
    retire: Callable[[Owner, UUID, State], Awaitable[None]]
    """As timers do it."""
    forget: Callable[[Owner, UUID], Awaitable[None]]
    """On request, now."""
    changes: Callable[[Owner], Awaitable[list[tuple[int, str, Memory]]]]
    """seq, kind, and the memory after it, whole."""

    async def commit(self, turn_id: str, *effects: Effect) -> bool:
        """What becomes of one turn, as `OWNER` is now."""
        look = await self.store.look(OWNER, [], model=None)
        return await self.store.commit(OWNER, look.version, commit_of(turn_id, *effects))

    async def get(self, text: str) -> Memory:
        """The memory of `OWNER` that says `text`."""
        memory = await self.reader.get(OWNER, id_of(text))
        assert memory is not None
        return memory

    async def look(self, *probes: Probe) -> Look:
        """`OWNER` as it is now."""
        return await self.store.look(OWNER, probes, model=MODEL)

    async def history(self, owner: Owner) -> list[tuple[int, str, UUID, int, int]]:
        """seq, kind, and of the memory after it: id, version, confirmations."""
        return [(seq, kind, m.id, m.version, m.confirmations) for seq, kind, m in await self.changes(owner)]


def fake() -> Subject:
    """The fake."""
    store = FakeOwnerStore()

    async def retire(owner: Owner, memory_id: UUID, state: State) -> None:
        store.retire(owner, memory_id, state)

    async def forget(owner: Owner, memory_id: UUID) -> None:
        store.forget(owner, memory_id)

    async def changes(owner: Owner) -> list[tuple[int, str, Memory]]:
        return store.changes(owner)

    return Subject(store, store, store, retire, forget, changes)


_CHANGES: Final[LiteralString] = """
    SELECT c.seq, c.kind, c.memory_id AS id, c.session, c.content, c.data, c.tags, c.type, c.category, c.importance,
        c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to, c.recorded_at,
        c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates, c.access_count, c.accessed_at,
        c.confirmed_at, c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
        1.0::double precision AS strength
    FROM change AS c JOIN owner AS o USING (owner_key)
    WHERE o.app = $1 AND o.owner = $2
    ORDER BY c.seq
"""

_RETIRE: Final[LiteralString] = """
    WITH moved AS (UPDATE owner SET version = version + 1 WHERE app = $1 AND owner = $2)
    UPDATE memory SET state = $4, retired_at = coalesce(retired_at, now()), version = version + 1 WHERE id = $3
"""

_FORGET: Final[LiteralString] = """
    WITH buried AS (
        INSERT INTO tombstone (owner_key, id, app, received_before, text_hashes, slot_hashes, turn_ids)
        SELECT m.owner_key, m.id, m.app, clock_timestamp(), ARRAY[sha256(a.forget_key || m.content_hash)],
            CASE WHEN m.subject IS NULL OR m.attribute IS NULL THEN '{}' ELSE
                ARRAY[sha256(a.forget_key || convert_to(m.subject || chr(31) || m.attribute, 'UTF8'))] END,
            ARRAY(SELECT s.turn_id FROM memory_source AS s WHERE s.owner_key = m.owner_key AND s.memory_id = m.id)
        FROM memory AS m JOIN app AS a ON a.app = m.app
        WHERE m.id = $1
    ), unsaid AS (
        DELETE FROM memory_source WHERE memory_id = $1
    ), blinded AS (
        DELETE FROM memory_vector WHERE id = $1
    )
    UPDATE memory
    SET content = '', content_hash = '', text_search = '', data = NULL, tags = '{}', subject = NULL, attribute = NULL
    WHERE id = $1
"""


@asynccontextmanager
async def on_postgres(dsn: str) -> AsyncIterator[Subject]:
    """Postgres, through the roles that the stream and the query service have."""
    worker = await Database.open(dsn, role="mnemo_worker")
    query = await Database.open(dsn, role="mnemo_query")
    admin = await asyncpg.connect(dsn)

    async def retire(owner: Owner, memory_id: UUID, state: State) -> None:
        await admin.execute(_RETIRE, owner.app, owner.owner, memory_id, state)

    async def forget(owner: Owner, memory_id: UUID) -> None:
        await retire(owner, memory_id, State.FORGOTTEN)
        await admin.execute(_FORGET, memory_id)

    async def changes(owner: Owner) -> list[tuple[int, str, Memory]]:
        async with worker.app(owner.app) as connection:
            rows = await connection.fetch(_CHANGES, owner.app, owner.owner)
        return [(row["seq"], row["kind"], memory_of(row, owner)) for row in rows]

    try:
        yield Subject(OwnerRepository(worker), OwnerRepository(query), MemoryRepository(query), retire, forget, changes)
    finally:
        await admin.close()
        await worker.close()
        await query.close()

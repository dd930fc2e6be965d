"""Nothing crosses from one app to another: neither through the repositories nor by raw SQL in any role."""

from typing import Literal, LiteralString, TypeAlias

import asyncpg
import pytest

from processors.effects import Probe
from processors.normalization import text_hash
from processors.records import Owner
from processors.search import Filters, SearchQuery, TurnState
from store.database import Database
from store.memories import MemoryRepository
from store.owners import OwnerRepository
from store.search import SearchRepository
from store.turns import TurnRepository
from tests.fakes.values import MODEL, NOON, OWNER, accepted, addition, commit_of, new_memory, order_of, vector_of

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
THEIRS = Owner("zeta", OWNER.owner)
TEXT = "Lives in Lisbon."

_COUNTS: dict[str, LiteralString] = {
    "app": "SELECT count(*) FROM app",
    "owner": "SELECT count(*) FROM owner",
    "turn": "SELECT count(*) FROM turn",
    "ledger": "SELECT count(*) FROM ledger",
    "memory": "SELECT count(*) FROM memory",
    "memory_vector": "SELECT count(*) FROM memory_vector",
    "memory_source": "SELECT count(*) FROM memory_source",
    "decision": "SELECT count(*) FROM decision",
    "change": "SELECT count(*) FROM change",
    "outbox": "SELECT count(*) FROM outbox",
    "tombstone": "SELECT count(*) FROM tombstone",
}


@pytest.fixture
async def ours(worker: Database, admin: Admin) -> None:
    """One app has a turn, a memory and a tombstone."""
    await TurnRepository(worker).begin(OWNER, [accepted("t-1")])
    assert await OwnerRepository(worker).commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory(TEXT))))
    # Of the same words, to see whether another app's statements are held by it.
    await admin.execute(
        """
        INSERT INTO tombstone (owner_key, id, app, received_before, text_hashes, turn_ids)
        SELECT o.owner_key, gen_random_uuid(), o.app, 'infinity', '{}', '{t-1}' FROM owner AS o
        """
    )


@pytest.mark.usefixtures("ours")
async def test_another_app_finds_nothing_under_the_same_names(worker: Database, query: Database) -> None:
    memory_id = new_memory(TEXT).id
    memories, search, turns = MemoryRepository(query), SearchRepository(query), TurnRepository(query)
    assert await memories.get(THEIRS, memory_id) is None
    assert (await memories.list_page(THEIRS, Filters(include_retired=True), page_size=10)).total == 0
    assert await search.search(THEIRS, SearchQuery(text=TEXT), vector_of(TEXT), MODEL) == ()
    assert (await turns.report(THEIRS, "t-1")).state is TurnState.UNKNOWN
    look = await OwnerRepository(worker).look(
        THEIRS,
        [Probe(text_hash(TEXT), vector_of(TEXT), order=order_of(NOON), turn_id="t-1")],
        model=MODEL,
        turn_ids=["t-1"],
    )
    assert (look.version, look.settled, look.neighbours, look.forgotten) == (0, frozenset(), ((),), ())
    assert await memories.get(OWNER, memory_id) is not None


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize("role", ["mnemo_worker", "mnemo_query"])
async def test_a_role_sees_one_app_or_nothing(database_dsn: str, role: Literal["mnemo_worker", "mnemo_query"]) -> None:
    database = await Database.open(database_dsn, role=role)
    for table, count in _COUNTS.items():
        async with database.across() as connection:
            try:
                assert await connection.fetchval(count) == 0, table
            except asyncpg.InsufficientPrivilegeError:
                continue
        async with database.app("zeta") as connection:
            assert await connection.fetchval(count) == 0, table
        async with database.app("acme") as connection:
            assert await connection.fetchval(count) == 1, table
    await database.close()


@pytest.mark.usefixtures("ours")
async def test_an_operator_sees_all_apps(operator: Database) -> None:
    async with operator.across() as connection:
        for table, count in _COUNTS.items():
            assert await connection.fetchval(count) == 1, table


@pytest.mark.usefixtures("ours")
async def test_what_is_written_under_one_app_cannot_name_another(worker: Database) -> None:
    async with worker.app("zeta") as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("INSERT INTO owner (app, owner) VALUES ('acme', 'intruder')")
    async with worker.app("zeta") as connection:
        assert await connection.execute("UPDATE memory SET content = 'mine now'") == "UPDATE 0"


async def test_the_app_ends_with_its_transaction(worker: Database) -> None:
    seen = []
    async with worker.app("acme") as connection:
        seen.append(await connection.fetchval("SELECT current_setting('mnemo.app', true)"))
    async with worker.across() as connection:
        seen.append(await connection.fetchval("SELECT current_setting('mnemo.app', true)"))
    assert seen == ["acme", ""]


@pytest.mark.parametrize("name", ["", "Acme", "a'; DROP TABLE memory; --", "a" * 64, "a\n", "a\0", "-a"])
async def test_what_is_no_app_s_name_reaches_no_statement(worker: Database, name: str) -> None:
    with pytest.raises(ValueError, match="an app's name breaks its rule"):
        async with worker.app(name):
            pytest.fail("a transaction was begun")


async def test_the_stream_and_the_service_may_only_do_what_they_need(worker: Database, query: Database) -> None:
    forbidden: list[tuple[Database, LiteralString]] = [
        (worker, "SELECT count(*) FROM api_key"),
        (worker, "SELECT authenticate('x')"),
        (worker, "DELETE FROM memory"),
        (worker, "UPDATE change SET kind = 'added'"),
        (worker, "DELETE FROM tombstone"),
        (query, "DELETE FROM tombstone"),
        (query, "SELECT count(*) FROM api_key"),
        (query, "SELECT count(*) FROM parked"),
        (query, "DELETE FROM turn"),
        (query, "UPDATE ledger SET outcome = 'STORED'"),
    ]
    for database, statement in forbidden:
        async with database.across() as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)

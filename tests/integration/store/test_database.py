import asyncio
from collections.abc import AsyncIterator
from typing import Literal, LiteralString

import asyncpg
import pytest

from cli.embedded.postgres import PostgresServer
from processors.errors import StoreUnavailable
from processors.search import TurnState
from store.database import Database
from store.errors import translated
from store.migrate import migrate
from store.notices import TurnNotices, payload
from store.turns import TurnRepository
from tests import services
from tests.fakes.values import OWNER, accepted

Role = Literal["mnemo_worker", "mnemo_query", "mnemo_timer", "mnemo_operator"]


@pytest.fixture
async def narrow(database_dsn: str) -> AsyncIterator[Database]:
    """One connection."""
    database = await Database.open(database_dsn, role="mnemo_worker", pool_size=1)
    yield database
    await database.close()


async def _execute(database: Database, statement: LiteralString) -> None:
    async with database.app("acme") as connection:
        await connection.execute(statement)


@pytest.mark.parametrize("role", ["mnemo_worker", "mnemo_query", "mnemo_timer", "mnemo_operator"])
async def test_the_role_is_entered_on_connecting(database_dsn: str, role: Role) -> None:
    database = await Database.open(database_dsn, role=role)
    async with database.across() as connection:
        assert await connection.fetchval("SELECT current_user") == role
    async with database.direct() as direct:
        assert await direct.fetchval("SELECT current_user") == role
    await database.close()


async def test_a_transaction_is_kept_at_the_end_and_undone_on_an_error(worker: Database) -> None:
    await _execute(worker, "INSERT INTO app (app) VALUES ('acme')")

    async def fail() -> None:
        async with worker.app("acme") as connection:
            await connection.execute("UPDATE app SET time_zone = 'Mars/Olympus'")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with worker.app("acme") as connection:
        assert await connection.fetchval("SELECT time_zone FROM app") == "UTC"


async def test_a_fault_in_a_statement_passes_and_the_connection_goes_on(narrow: Database) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        await _execute(narrow, "SELECT 1 FROM no_such_table")
    async with narrow.app("acme") as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_call_cancelled_in_a_statement_leaves_a_sound_pool(narrow: Database) -> None:
    started = asyncio.Event()

    async def sleep_in_postgres() -> None:
        async with narrow.app("acme") as connection:
            await connection.execute("INSERT INTO app (app) VALUES ('acme')")
            started.set()
            await connection.execute("SELECT pg_sleep(60)")

    for _ in range(3):
        started.clear()
        task = asyncio.create_task(sleep_in_postgres())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with narrow.app("acme") as connection:
            assert await connection.fetchval("SELECT count(*) FROM app") == 0


async def test_waiting_for_a_connection_has_an_end(database_dsn: str) -> None:
    hasty = await Database.open(database_dsn, role="mnemo_worker", pool_size=1, acquire_seconds=0.05)
    async with hasty.across():
        with pytest.raises(StoreUnavailable):
            await _execute(hasty, "SELECT 'there is one connection only'")
    async with hasty.across() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await hasty.close()


async def test_a_statement_has_an_end(database_dsn: str) -> None:
    database = await Database.open(database_dsn, role="mnemo_worker", pool_size=1, statement_seconds=0.2)
    with pytest.raises(StoreUnavailable):
        await _execute(database, "SELECT pg_sleep(60)")
    async with database.app("acme") as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()


async def test_a_connection_that_postgres_ends_is_unavailable_once_and_then_replaced(
    narrow: Database, admin: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async with narrow.across() as connection:
        pid = await connection.fetchval("SELECT pg_backend_pid()")

    async def be_terminated() -> None:
        async with narrow.app("acme") as connection:
            assert await connection.fetchval("SELECT pg_backend_pid()") == pid
            await admin.execute("SELECT pg_terminate_backend($1)", pid)
            await connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(StoreUnavailable):
        await be_terminated()
    async with narrow.app("acme") as connection:
        assert await connection.fetchval("SELECT pg_backend_pid()") != pid


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        asyncpg.TooManyConnectionsError("x"),
        asyncpg.AdminShutdownError("x"),
        asyncpg.CrashShutdownError("x"),
        asyncpg.CannotConnectNowError("x"),
        asyncpg.DiskFullError("x"),
        asyncpg.OutOfMemoryError("x"),
        asyncpg.ConnectionDoesNotExistError("x"),
        asyncpg.ConnectionFailureError("x"),
        asyncpg.SerializationError("x"),
        asyncpg.DeadlockDetectedError("x"),
        asyncpg.ReadOnlySQLTransactionError("x"),
        asyncpg.InterfaceError("cannot perform operation: connection is closed"),
        asyncpg.InterfaceError("cannot call Connection.execute(): connection has been released back to the pool"),
        asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress"),
        asyncpg.InvalidPasswordError("x"),
        asyncpg.InvalidAuthorizationSpecificationError("x"),
        asyncpg.InvalidCatalogNameError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_means_that_postgres_is_away_is_unavailable(error: Exception) -> None:
    with pytest.raises(StoreUnavailable) as raised, translated():
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UndefinedTableError("x"),
        asyncpg.UniqueViolationError("x"),
        asyncpg.InsufficientPrivilegeError("x"),
        asyncpg.InterfaceError("cannot perform operation: another operation is in progress"),
        ValueError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_no_waiting_mends_passes(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translated():
        raise error
    assert raised.value is error


async def test_an_unreachable_server_is_unavailable_from_the_start() -> None:
    with pytest.raises(StoreUnavailable):
        await Database.open("postgresql://postgres@127.0.0.1:1/nowhere", role="mnemo_worker")


async def test_the_pool_and_the_notices_come_back_after_a_restart_of_postgres() -> None:
    with services.scratch_directory() as directory:
        server = PostgresServer(directory / "postgres", durable=False, shared_buffers="16MB")
        try:
            await asyncio.to_thread(server.start)
            dsn = await asyncio.to_thread(services.create_database, server.dsn("postgres"), "restarted")
            await migrate(dsn)
            database = await Database.open(dsn, role="mnemo_worker", pool_size=2)
            turns = TurnRepository(database)
            async with TurnNotices(database) as notices, notices.subscribe(OWNER, "t-1") as ended:
                await asyncio.wait_for(ended.wait(), 20)  # set when the connection stands
                ended.clear()
                await turns.begin(OWNER, [accepted("t-1")])

                await asyncio.to_thread(server.stop, 5)
                with pytest.raises(StoreUnavailable):
                    await turns.report(OWNER, "t-1")
                await asyncio.to_thread(server.start)

                assert (await turns.report(OWNER, "t-1")).state is TurnState.PENDING
                await asyncio.wait_for(ended.wait(), 20)  # word may have been missed
                ended.clear()
                async with database.app("acme", notice=payload(OWNER, ["t-1"])):
                    pass
                await asyncio.wait_for(ended.wait(), 20)
            await database.close()
        finally:
            await asyncio.to_thread(server.stop, 5)

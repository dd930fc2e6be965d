import asyncio
import dataclasses
import re
from collections.abc import Iterator
from typing import LiteralString

import asyncpg
import pytest

from cli.embedded.postgres import PostgresServer
from processors.errors import StoreUnavailable
from store.migrate import Migration, MigrationError, check, migrate, packaged, schema_version
from tests import services


async def _run(dsn: str, *statements: LiteralString) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_an_empty_database_is_brought_up_to_date_and_then_left_alone(empty_database_dsn: str) -> None:
    assert await schema_version(empty_database_dsn) == 0
    first = await migrate(empty_database_dsn)
    second = await migrate(empty_database_dsn)
    assert first.applied == packaged()
    assert first.version == second.version == packaged()[-1].version
    assert second.already_current
    assert await schema_version(empty_database_dsn) == first.version
    await check(empty_database_dsn)


async def test_migrations_at_once_apply_each_step_once(empty_database_dsn: str) -> None:
    reports = await asyncio.gather(*(migrate(empty_database_dsn) for _ in range(6)))
    assert sorted(step.version for report in reports for step in report.applied) == [m.version for m in packaged()]


async def test_a_schema_that_lacks_a_step_is_not_ready(empty_database_dsn: str) -> None:
    with pytest.raises(MigrationError, match="run `mnemo migrate`"):
        await check(empty_database_dsn)


async def test_a_changed_step_is_refused(database_dsn: str) -> None:
    first, *others = packaged()
    changed = (dataclasses.replace(first, sql=first.sql + "\n-- changed"), *others)
    with pytest.raises(MigrationError, match="was changed after it was applied"):
        await migrate(database_dsn, changed)


async def test_a_failing_step_leaves_nothing_behind(database_dsn: str) -> None:
    version = packaged()[-1].version
    broken = Migration(version + 1, "broken", "CREATE TABLE half_done (id bigint); SELECT 1 / 0")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(database_dsn, (*packaged(), broken))
    assert await schema_version(database_dsn) == version
    good = Migration(version + 1, "good", "CREATE TABLE half_done (id bigint)")
    assert (await migrate(database_dsn, (*packaged(), good))).applied == (good,)


async def test_older_code_runs_on_a_newer_schema_and_leaves_it_as_it_is(database_dsn: str) -> None:
    version = packaged()[-1].version
    newer = Migration(version + 1, "newer", "CREATE TABLE newer (id bigint)")
    await migrate(database_dsn, (*packaged(), newer))
    await check(database_dsn)
    report = await migrate(database_dsn)
    assert (report.applied, report.version, report.unknown) == ((), version + 1, (version + 1,))


async def test_a_step_missing_below_a_later_one_is_refused(database_dsn: str) -> None:
    version = packaged()[-1].version
    await migrate(database_dsn, (*packaged(), Migration(version + 2, "later", "SELECT 1")))
    with pytest.raises(MigrationError, match="is missing, though later ones are there"):
        await migrate(database_dsn, (*packaged(), Migration(version + 1, "forgotten", "SELECT 1")))


_WAITS: LiteralString = """
    SELECT EXISTS (
        SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'
    )
"""


async def _waits(connection: "asyncpg.Connection[asyncpg.Record]", for_query: str) -> None:
    async with asyncio.timeout(30):
        while True:
            if await connection.fetchval(_WAITS, for_query):
                return
            await asyncio.sleep(0.02)


async def test_a_step_that_has_to_wait_for_a_table_lets_others_pass(database_dsn: str) -> None:
    holder, reader = await asyncpg.connect(database_dsn), await asyncpg.connect(database_dsn)
    version = packaged()[-1].version
    step = Migration(version + 1, "slow", "ALTER TABLE ledger ADD COLUMN slow integer")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        async with holder.transaction():
            await holder.execute("LOCK TABLE ledger IN ACCESS SHARE MODE")
            migrating = group.create_task(migrate(database_dsn, (*packaged(), step)))
            await _waits(reader, "ADD COLUMN slow")
            await reader.execute("SELECT count(*) FROM ledger")
        assert (await migrating).applied == (step,)
    await holder.close()
    await reader.close()


async def test_indexes_are_built_beside_what_reads_and_writes(empty_database_dsn: str) -> None:
    await migrate(empty_database_dsn, packaged()[:4])
    holder, other = await asyncpg.connect(empty_database_dsn), await asyncpg.connect(empty_database_dsn)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        async with holder.transaction():
            await holder.execute("LOCK TABLE ledger IN ROW EXCLUSIVE MODE")
            migrating = [group.create_task(migrate(empty_database_dsn)) for _ in range(2)]
            await _waits(other, "CREATE INDEX CONCURRENTLY ledger_run")
            await other.execute("SELECT count(*) FROM ledger")
            await other.execute("UPDATE ledger SET outcome = 'STORED' WHERE outcome = 'PARKED'")
        applied = [step for each in migrating for step in (await each).applied]
    assert applied == list(packaged()[4:])
    assert await other.fetchval("SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'ledger'::regclass")
    await holder.close()
    await other.close()


async def test_a_step_outside_a_transaction_that_failed_half_way_is_done_again(database_dsn: str) -> None:
    version = packaged()[-1].version
    sql = (
        "-- outside a transaction\nDROP INDEX CONCURRENTLY IF EXISTS half;\n"
        "CREATE INDEX CONCURRENTLY half ON ledger (run);\n"
    )
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(database_dsn, (*packaged(), Migration(version + 1, "broken", sql + "SELECT 1 / 0;")))
    assert await schema_version(database_dsn) == version
    good = Migration(version + 1, "good", sql)
    assert (await migrate(database_dsn, (*packaged(), good))).applied == (good,)


async def test_an_unreachable_server_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await migrate("postgresql://postgres@127.0.0.1:1/nowhere")


async def test_the_roles_may_not_log_in_nor_pass_the_walls(database_dsn: str) -> None:
    connection = await asyncpg.connect(database_dsn)
    rows = await connection.fetch(
        "SELECT rolname, rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'mnemo!_%' ESCAPE '!'"
    )
    tables = await connection.fetch(
        """
        SELECT relname
        FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT relrowsecurity
        """
    )
    await connection.close()
    ours = {"mnemo_worker", "mnemo_query", "mnemo_timer", "mnemo_operator"}
    assert {tuple(row) for row in rows if row["rolname"] in ours} == {(name, False, False, False) for name in ours}
    assert {row["relname"] for row in tables} == {"embedding_model", "schema_migration"}


@pytest.fixture(scope="module")
def fresh_server() -> Iterator[PostgresServer]:
    """A cluster of its own, without our roles."""
    with services.scratch_directory() as directory:
        server = PostgresServer(directory / "postgres", durable=False, shared_buffers="16MB")
        try:
            server.start()
            yield server
        finally:
            server.stop(timeout_seconds=5)


async def test_an_owner_who_is_no_superuser_makes_the_roles_and_may_enter_them(fresh_server: PostgresServer) -> None:
    admin = fresh_server.dsn("postgres")
    await _run(
        admin,
        "CREATE ROLE app_admin LOGIN CREATEROLE",
        "CREATE ROLE app_other LOGIN CREATEROLE",
        "CREATE DATABASE theirs OWNER app_admin",
        "CREATE DATABASE others OWNER app_other",
        "CREATE DATABASE beside OWNER app_admin",
    )

    def dsn(database: str, user: str) -> str:
        return re.sub("//[^@]*@", f"//{user}@", services.with_database(admin, database))

    with pytest.raises(MigrationError, match="extension `vector`"):
        await migrate(dsn("theirs", "app_admin"))
    for database in ("theirs", "beside", "others"):
        await _run(services.with_database(admin, database), "CREATE EXTENSION vector")
    await migrate(dsn("theirs", "app_admin"))
    await _run(dsn("theirs", "app_admin"), "SET ROLE mnemo_worker", "SELECT count(*) FROM memory", "RESET ROLE")

    # The roles are there already, and theirs.
    assert (await migrate(dsn("beside", "app_admin"))).applied == packaged()

    # Somebody else made the roles: that is said, and what to do.
    with pytest.raises(MigrationError, match="membership in the mnemo_ roles"):
        await migrate(dsn("others", "app_other"))
    await _run(admin, "GRANT mnemo_worker, mnemo_query, mnemo_timer, mnemo_operator TO app_other")
    assert (await migrate(dsn("others", "app_other"))).applied == packaged()


async def test_databases_of_a_new_cluster_that_migrate_at_once_all_come_up() -> None:
    with services.scratch_directory() as directory:
        server = PostgresServer(directory / "postgres", durable=False, shared_buffers="16MB")
        try:
            await asyncio.to_thread(server.start)
            names = [f"d{n}" for n in range(4)]
            for name in names:
                await asyncio.to_thread(services.create_database, server.dsn("postgres"), name)
            reports = await asyncio.gather(*(migrate(server.dsn(name)) for name in names))
            assert all(len(report.applied) == len(packaged()) for report in reports)
        finally:
            await asyncio.to_thread(server.stop, 5)

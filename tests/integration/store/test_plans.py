"""The hot statements walk the index that they are meant to walk, whatever the statistics say."""

from itertools import pairwise
from typing import LiteralString, cast

import asyncpg
import pytest

from processors.vectors import EmbeddingModel
from store.database import FIRST_PLAN_SECONDS, LAST_PLAN_SECONDS, Database, Plans
from store.looks import FORGOTTEN, LINES, LOOK
from store.memories import LIST
from store.owners import OwnerRepository
from store.search import SEARCH
from store.turns import BEGIN
from tests.fakes.values import OWNER, addition, commit_of, new_memory, vector_of

_MODEL = EmbeddingModel("plans", 384)


@pytest.fixture
async def filled(worker: Database) -> None:
    """An owner with memories that no statistic knows of."""
    new = [new_memory(f"Fact {n}.", vector=vector_of(f"Fact {n}.", 384)) for n in range(100)]
    commit = commit_of("t-1", *(addition("t-1", each) for each in new))
    assert await OwnerRepository(worker).commit(OWNER, 0, commit)


async def _plan(database: Database, statement: LiteralString) -> str:
    """The plan for any values: what a prepared statement of this connection runs by."""
    async with database.app(OWNER.app) as connection:
        await connection.execute("PREPARE hot AS " + statement)
        count = await connection.fetchval(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'hot'"
        )
        rows = await connection.fetch(f"EXPLAIN EXECUTE hot ({', '.join(['NULL'] * count)})")
        await connection.execute("DEALLOCATE hot")
        return "\n".join(row[0] for row in rows)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("analyzed", [False, True])
async def test_neighbours_are_found_in_the_covering_index(
    worker: Database, admin: "asyncpg.Connection[asyncpg.Record]", analyzed: bool
) -> None:
    if analyzed:
        await admin.execute("VACUUM ANALYZE")
    plan = await _plan(worker, LOOK)
    assert "Index Only Scan using memory_vector_pkey on memory_vector" in plan
    assert "using ledger_pkey on ledger" in plan
    assert "Seq Scan" not in plan
    if analyzed:
        assert "using memory_same_text on memory" in plan
        assert "using memory_slot on memory" in plan


@pytest.mark.usefixtures("filled")
async def test_a_line_is_walked_by_its_links(worker: Database, admin: "asyncpg.Connection[asyncpg.Record]") -> None:
    await admin.execute("VACUUM ANALYZE")
    plan = await _plan(worker, LINES)
    for index in ("memory_pkey", "memory_supersedes", "memory_superseded_by"):
        assert f"using {index} on memory" in plan
    assert "Seq Scan" not in plan


@pytest.mark.usefixtures("filled")
async def test_what_was_forgotten_is_looked_up_among_the_owner_s_alone(worker: Database) -> None:
    plan = await _plan(worker, FORGOTTEN)
    assert "using tombstone_pkey on tombstone" in plan
    assert "Seq Scan" not in plan


@pytest.mark.usefixtures("filled")
async def test_a_search_reads_the_owner_s_rows_side_by_side(query: Database) -> None:
    plan = await _plan(query, SEARCH)
    assert "Index Only Scan using memory_vector_pkey on memory_vector" in plan
    assert "Index Scan using memory_pkey on memory" in plan
    assert "Seq Scan" not in plan


@pytest.mark.usefixtures("filled")
async def test_a_page_walks_the_owner_s_memories(query: Database) -> None:
    plan = await _plan(query, LIST)
    assert "Seq Scan" not in plan


async def test_the_context_of_a_session_is_found_by_its_index(worker: Database) -> None:
    plan = await _plan(worker, BEGIN)
    assert "using turn_session on turn" in plan
    assert "Seq Scan" not in plan


class _Connection:
    def __init__(self) -> None:
        self.executed: list[str] = []

    async def execute(self, statement: str) -> str:
        self.executed.append(statement)
        return statement


async def test_plans_are_renewed_often_at_first_and_then_now_and_then() -> None:
    now = 100.0
    plans = Plans(lambda: now)
    connection = _Connection()
    plans.begin(connection)
    renewed: list[float] = []
    for tenths in range(3000):  # five minutes
        now = 100 + tenths / 10
        await plans.renew(cast("asyncpg.Connection[asyncpg.Record]", connection))
        if len(connection.executed) > len(renewed):
            renewed.append(now - 100)
    assert set(connection.executed) == {"DISCARD PLANS"}
    assert renewed[0] == pytest.approx(FIRST_PLAN_SECONDS, abs=0.1)
    gaps = [later - earlier for earlier, later in pairwise(renewed)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(LAST_PLAN_SECONDS, abs=0.2)

"""A migrated database of the test's own, seen through each role."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from store.database import Database


@pytest.fixture
async def worker(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_worker")
    yield database
    await database.close()


@pytest.fixture
async def query(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_query")
    yield database
    await database.close()


@pytest.fixture
async def operator(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_operator", pool_size=2)
    yield database
    await database.close()


@pytest.fixture
async def admin(database_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """The owner of the schema, past all walls."""
    connection = await asyncpg.connect(database_dsn)
    yield connection
    await connection.close()

"""Postgres as an operator sees it, for one command."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from cli.context import dsn_of

if TYPE_CHECKING:
    from runtime.settings import Settings
    from store.database import Database

_Result = TypeVar("_Result")


@asynccontextmanager
async def operator_database(dsn: str) -> "AsyncIterator[Database]":
    """A connection in the operators' role. Raises StoreUnavailable, and MigrationError where the schema is too old."""
    from store.database import Database
    from store.migrate import check

    await check(dsn)
    database = await Database.open(dsn, role="mnemo_operator", pool_size=1)
    try:
        yield database
    finally:
        await database.close()


def with_database(settings: "Settings", use: "Callable[[Database], Awaitable[_Result]]") -> _Result:
    """What `use` gives, with a connection that lives as long."""

    async def run() -> _Result:
        async with operator_database(dsn_of(settings)) as database:
            return await use(database)

    return asyncio.run(run())

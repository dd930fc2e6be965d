"""The subjects of the contracts of an owner store."""

from collections.abc import AsyncIterator

import pytest

from tests.contracts.owner_stores import Subject, fake, on_postgres


@pytest.fixture(params=["fake", "postgres"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """The same store twice: in this process, and on a real Postgres."""
    if request.param == "fake":
        yield fake()
        return
    async with on_postgres(request.getfixturevalue("database_dsn")) as postgres:
        yield postgres

"""The service on a real Postgres, with a model in this process."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from mnemostream.ids import uuid7
from prometheus_client import CollectorRegistry

from query.metrics import QueryMetrics
from query.server import assembled
from runtime.settings import Settings
from store.database import Database
from store.keys import ApiKeyRepository
from store.notices import TurnNotices
from tests.fakes.arbitrator import FakeArbitrator
from tests.fakes.embedder import FakeEmbedder


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens, and what is behind it."""

    http_port: int
    grpc_port: int
    operator: Database
    embedder: FakeEmbedder

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"


async def make_key(operator: Database, app: str) -> str:
    """A new key of `app`."""
    key = f"mnk_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode()).digest()
    await ApiKeyRepository(operator).create(app=app, key_id=uuid7(), key_hash=digest, prefix=key[:8])
    return key


@pytest.fixture
async def served(database_dsn: str) -> AsyncIterator[Served]:
    operator = await Database.open(database_dsn, role="mnemo_operator", pool_size=2)
    database = await Database.open(database_dsn, role="mnemo_query", pool_size=4)
    embedder = FakeEmbedder()
    async with TurnNotices(database) as notices:
        metrics = QueryMetrics(CollectorRegistry())
        ports = assembled(Settings(drain_seconds=1), database, embedder, FakeArbitrator(), notices, metrics)
        where = await ports.start(http=("127.0.0.1", 0), grpc=("127.0.0.1", 0))
        try:
            yield Served(where.http_port, where.grpc_port, operator, embedder)
        finally:
            await ports.stop()
            await database.close()
            await operator.close()


@pytest.fixture
async def key(served: Served) -> str:
    """Of the app acme."""
    return await make_key(served.operator, "acme")


@pytest.fixture
async def other_key(served: Served) -> str:
    """Of the app other."""
    return await make_key(served.operator, "other")

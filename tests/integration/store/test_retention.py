"""The log of turns keeps its retention."""

from datetime import timedelta

import asyncpg

from store.database import Database
from store.owners import OwnerRepository
from store.retention import TurnRetention
from store.turns import TurnRepository
from tests.fakes.values import OWNER, accepted, commit_of


async def test_turns_past_their_retention_go_and_what_is_pending_stays(
    database_dsn: str, worker: Database, admin: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    await TurnRepository(worker).begin(OWNER, [accepted("t-old"), accepted("t-waits", offset=2)])
    look = await OwnerRepository(worker).look(OWNER, [], model=None)
    assert await OwnerRepository(worker).commit(OWNER, look.version, commit_of("t-old"))
    timer = await Database.open(database_dsn, role="mnemo_timer", pool_size=1)
    retention = TurnRetention(timer)
    assert await retention.purge(timedelta(days=365_000)) == 0
    assert await retention.purge(timedelta(days=1)) == 1
    await timer.close()
    assert [row["id"] for row in await admin.fetch("SELECT id FROM turn")] == ["t-waits"]
    assert await admin.fetchval("SELECT count(*) FROM ledger") == 1

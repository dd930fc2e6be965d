"""An application that follows: the change feed from its beginning, or an export and the feed from there."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mnemostream import (
    AsyncMnemo,
    Change,
    ChangeFeed,
    Decision,
    ExportEnd,
    ExportHeader,
    LiveSet,
    Memory,
    State,
)
from prometheus_client import CollectorRegistry

from store.database import Database
from store.outbox import OutboxRepository
from streams.metrics import RelayMetrics
from streams.outlet import Outlet
from streams.relay import Relay
from tests.integration.query.conftest import Served
from tests.integration.streams.worker_process import rows, until

APP = "acme"
OWNERS = ("ana", "ben", "user/3")
WAITING = "SELECT count(*) FROM outbox"
LIVE = """
    SELECT o.owner, m.id::text, m.content, m.version::text
    FROM memory AS m JOIN owner AS o USING (owner_key)
    WHERE m.state = 'LIVE' AND o.app = 'acme'
"""
AGAIN = "INSERT INTO outbox (owner_key, seq, app) SELECT owner_key, seq, app FROM change ON CONFLICT DO NOTHING"


class Publishing:
    """A relay that runs, and what it has to publish."""

    def __init__(self, dsn: str, operator: Database) -> None:
        self._dsn = dsn
        self._operator = operator

    async def done(self) -> None:
        """Everything is on the topic."""
        assert await until(self._dsn, WAITING, lambda waiting: waiting == 0) == 0

    async def again(self) -> None:
        """Everything is on the topic once more, as after a relay that died before it trimmed."""
        async with self._operator.across() as connection:
            await connection.execute(AGAIN)
        await self.done()


@pytest.fixture
async def publishing(
    served: Served, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> AsyncIterator[Publishing]:
    timer = await Database.open(database_dsn, role="mnemo_timer", pool_size=2)
    async with Outlet({"bootstrap_servers": kafka_bootstrap}, client_id="relay") as outlet:
        metrics = RelayMetrics(CollectorRegistry())
        async with Relay(OutboxRepository(timer), outlet, topic=f"{topic_prefix}changes.v1", observer=metrics):
            yield Publishing(database_dsn, served.operator)
    await timer.close()


@asynccontextmanager
async def following(kafka_bootstrap: str, topic_prefix: str, **options: Any) -> AsyncIterator[ChangeFeed]:
    feed = ChangeFeed(app=APP, bootstrap_servers=kafka_bootstrap, topic_prefix=topic_prefix, follow=False, **options)
    async with asyncio.timeout(60), feed:
        yield feed


async def tell(mnemo: AsyncMnemo, number: int) -> None:
    """Each owner says something new, says it again, and forgets what was said two numbers before."""
    for owner in OWNERS:
        told = await mnemo.create_memory(owner, f"Fact {number} of {owner}", tags=[f"n{number}"])
        assert (await mnemo.create_memory(owner, f"Fact {number} of {owner}")).id == told.id
        for old in (await mnemo.list_memories(owner, tags=[f"n{number - 2}"])).memories:
            await mnemo.delete(old.id, owner=owner)


def shown(live: LiveSet) -> set[tuple[str, str, str, str]]:
    return {
        (owner, memory.id, memory.content, memory.etag) for owner in live.known for memory in live.live(owner).values()
    }


async def test_the_feed_from_its_beginning_and_an_export_with_what_follows_give_the_live_set_of_the_store(
    served: Served,
    key: str,
    other_key: str,
    publishing: Publishing,
    kafka_bootstrap: str,
    topic_prefix: str,
    database_dsn: str,
) -> None:
    async with AsyncMnemo(url=served.url, api_key=key) as mnemo, AsyncMnemo(url=served.url, api_key=other_key) as other:
        await other.create_memory("ana", "Of another app")
        for number in range(3):
            await tell(mnemo, number)
        await publishing.done()
        exported = LiveSet()
        for owner in OWNERS:
            async for line in mnemo.export(owner):
                exported.load(line)
        at_export: Mapping[str, int] = dict(exported.known)
        await publishing.again()
        for number in range(3, 6):
            await tell(mnemo, number)
        await publishing.again()
    expected = set(await rows(database_dsn, LIVE))
    assert len(expected) == 2 * len(OWNERS)
    assert shown(exported) != expected

    from_the_beginning = LiveSet()
    changes: list[Change] = []
    async with following(kafka_bootstrap, topic_prefix) as feed:
        async for change in feed:
            assert from_the_beginning.apply(change)
            changes.append(change)
    assert shown(from_the_beginning) == expected
    assert {change.app for change in changes} == {APP}

    async with following(kafka_bootstrap, topic_prefix, known=at_export) as feed:
        followed = [change async for change in feed]
    assert all(exported.apply(change) for change in followed)
    assert shown(exported) == expected
    assert exported.known == from_the_beginning.known
    assert len(followed) == len(changes) - sum(at_export.values())


async def test_an_export_holds_all_of_an_owner_as_of_one_change(served: Served, key: str, other_key: str) -> None:
    async with AsyncMnemo(url=served.url, api_key=key) as mnemo, AsyncMnemo(url=served.url, api_key=other_key) as other:
        for number in range(3):
            await tell(mnemo, number)
        lines = [line async for line in mnemo.export("ana")]
        nobody = [line async for line in other.export("ana")]
        header = lines[0]
        assert isinstance(header, ExportHeader)
        changes = [line for line in lines if isinstance(line, Change)]
        memories = [line for line in lines if isinstance(line, Memory)]
        decisions = [line for line in lines if isinstance(line, Decision)]
        assert (header.app, header.owner, header.seq, header.schema) == (APP, "ana", 7, 1)
        assert [change.seq for change in changes] == list(range(1, 8))
        assert [memory.state for memory in memories] == [State.FORGOTTEN, State.LIVE, State.LIVE]
        assert memories[0].content == ""
        assert {change.memory.content for change in changes if change.memory} == {"", "Fact 1 of ana", "Fact 2 of ana"}
        assert len(decisions) == 6
        assert lines[-1] == ExportEnd(memories=3, changes=7, turns=0, decisions=6)
        assert memories[1] == await mnemo.get_memory("ana", memories[1].id) or memories[1].strength < 1
    assert [type(line) for line in nobody] == [ExportHeader, ExportEnd]

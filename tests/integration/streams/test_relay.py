"""The change feed on a real Kafka and a real Postgres: whole, in order, and true."""

import json
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from functools import partial
from operator import le
from typing import Any

import pytest
from mnemostream import LiveSet, changes
from mnemostream.turns import Message, Role
from prometheus_client import CollectorRegistry

from processors.records import Owner
from store.database import Database
from store.forgetting import ForgettingRepository
from store.outbox import OutboxRepository
from streams.metrics import RelayMetrics
from streams.outlet import Arrived, Outlet
from streams.relay import Relay
from tests.fakes.values import id_of
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import a_turn, all_records, publish, raw, rows, until

LEDGER = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
WAITING = "SELECT count(*) FROM outbox"
CHANGES = "SELECT app || '/' || owner, seq FROM owner WHERE seq > 0"
HISTORY = "SELECT o.app || '/' || o.owner, c.seq FROM change AS c JOIN owner AS o USING (owner_key)"
LIVE = """
    SELECT o.app || '/' || o.owner, m.id::text, m.content, m.version::text
    FROM memory AS m JOIN owner AS o USING (owner_key)
    WHERE m.state = 'LIVE'
"""


@pytest.fixture
async def timer(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_timer", pool_size=2)
    yield database
    await database.close()


class Feed:
    """What a consumer makes of `changes.v1`."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.values: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.live: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.partitions: dict[str, int] = {}
        self.duplicates = 0
        for record in sorted(records, key=lambda each: (each.partition, each.offset)):
            self._take(record)

    def _take(self, record: Any) -> None:
        key, change = record.key.decode(), json.loads(record.value)
        assert key == f"{change['app']}/{change['owner']}"
        assert record.headers == (("mnemo-schema", b"1"),)
        assert self.partitions.setdefault(key, record.partition) == record.partition
        seen, seq = self.values[key], change["seq"]
        if seq in seen:
            assert seen[seq] == record.value
            self.duplicates += 1
            return
        assert seq == len(seen) + 1, "a gap, or not in order"
        seen[seq] = record.value
        memory = change["memory"]
        if memory["state"] == "LIVE":
            self.live[key][memory["id"]] = memory
        else:
            self.live[key].pop(memory["id"], None)


async def assert_true(feed: Feed, dsn: str) -> None:
    """The feed says what the store holds: its history, which stays when what is published is trimmed."""
    published = {(owner, seq) for owner, seen in feed.values.items() for seq in seen}
    assert published == set(await rows(dsn, HISTORY))
    assert await rows(dsn, WAITING) == [(0,)]
    assert {owner: len(seen) for owner, seen in feed.values.items()} == dict(await rows(dsn, CHANGES))
    told = {
        (owner, memory["id"], memory["content"], memory["etag"])
        for owner, live in feed.live.items()
        for memory in live.values()
    }
    assert told == set(await rows(dsn, LIVE))
    assert told


async def read_feed(bootstrap: str, prefix: str) -> Feed:
    return Feed(await all_records(bootstrap, f"{prefix}changes.v1"))


async def followed(bootstrap: str, prefix: str) -> set[tuple[str, ...]]:
    """What an application makes of the feed with the client."""
    live = LiveSet()
    async for change in changes(app="acme", bootstrap_servers=bootstrap, topic_prefix=prefix, follow=False):
        assert live.apply(change)
    return {
        (f"acme/{owner}", memory.id, memory.content, memory.etag)
        for owner in live.known
        for memory in live.live(owner).values()
    }


def a_story(owners: int, turns: int) -> list[Any]:
    """Each owner moves, says it again, and says other things."""
    said = ("I live in Porto.", "I like green tea.", "I live in Porto.", "I moved to Lisbon.", "I work as a nurse.")
    return [
        raw(a_turn(number, f"user/{owner}", messages=(Message(Role.USER, said[number % len(said)]),)))
        for number in range(turns)
        for owner in range(owners)
    ]


async def test_the_feed_folds_to_the_live_set_of_every_owner(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", a_story(owners=20, turns=10))
    assert await until(database_dsn, LEDGER, lambda stored: stored >= 200) == 200
    assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    _, page = worker.page("/metrics")
    assert "mnemo_relay_shards 64.0" in page
    assert worker.terminate() == 0
    feed = await read_feed(kafka_bootstrap, topic_prefix)
    await assert_true(feed, database_dsn)
    assert feed.duplicates == 0
    turns = await all_records(kafka_bootstrap, f"{topic_prefix}turns.v1")
    assert feed.partitions == {turn.key.decode(): turn.partition for turn in turns}
    assert await followed(kafka_bootstrap, topic_prefix) == set(await rows(database_dsn, LIVE))
    assert f"mnemo_published_changes_total {sum(map(len, feed.values.values()))}.0" in page


async def test_records_keep_their_order_however_small_the_batches(kafka_bootstrap: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}changes.v1"
    records = [(f"acme/{n % 7}".encode(), f"{n}".encode() * (1 if n % 10 else 500)) for n in range(100)]
    async with Outlet({"bootstrap_servers": kafka_bootstrap, "max_batch_size": 300}, client_id="outlet") as outlet:
        arrived = await outlet.publish_in_order(topic, records, headers=[])
    assert arrived == Arrived(tuple(range(100)))
    log = await all_records(kafka_bootstrap, topic)
    for key in {key for key, _ in records}:
        mine = sorted((each.partition, each.offset, each.value) for each in log if each.key == key)
        assert len({partition for partition, *_ in mine}) == 1
        assert [value for *_, value in mine] == [value for other, value in records if other == key]


async def test_what_a_broker_that_is_away_did_not_take_is_told() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        options = {"bootstrap_servers": f"127.0.0.1:{nobody.getsockname()[1]}"}
        async with Outlet(options, client_id="outlet") as outlet:
            arrived = await outlet.publish_in_order("changes", [(b"acme/1", b"{}")], headers=[])
    assert arrived.indices == ()
    assert arrived.failure is not None


async def test_workers_that_are_killed_leave_no_gap_and_only_true_duplicates(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    workers = [start_worker(), start_worker()]
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", a_story(owners=30, turns=20))
    for enough in (100, 250):
        await until(database_dsn, LEDGER, partial(le, enough))
        workers.pop(0).kill()
        workers.append(start_worker("reconcile,extract"))
    assert await until(database_dsn, LEDGER, lambda stored: stored >= 600, 120) == 600
    assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    codes = [worker.terminate() for worker in workers]
    assert codes == [0, 0], [worker.lines[-20:] for worker in workers]
    await assert_true(await read_feed(kafka_bootstrap, topic_prefix), database_dsn)


async def test_what_waits_is_published_by_one_relay_while_another_waits_for_its_share(
    timer: Database, start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    """Also a trim that never came: the same is published again, the same."""
    worker = start_worker()
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", a_story(owners=10, turns=5))
    await until(database_dsn, LEDGER, lambda stored: stored >= 50)
    assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    assert worker.terminate() == 0
    async with timer.across() as connection:
        await connection.execute("INSERT INTO outbox (owner_key, seq, app) SELECT owner_key, seq, app FROM change")
    outlets = [Outlet({"bootstrap_servers": kafka_bootstrap}, client_id=f"relay-{n}") for n in range(2)]
    topic, outbox = f"{topic_prefix}changes.v1", OutboxRepository(timer)
    async with outlets[0], outlets[1]:
        relays = [
            Relay(outbox, each, topic=topic, observer=RelayMetrics(CollectorRegistry()), batch=7) for each in outlets
        ]
        async with relays[0], relays[1]:
            assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    feed = await read_feed(kafka_bootstrap, topic_prefix)
    await assert_true(feed, database_dsn)
    assert feed.duplicates == sum(map(len, feed.values.values()))


async def test_what_was_forgotten_before_it_was_published_goes_out_without_its_text(
    timer: Database, start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    await publish(
        kafka_bootstrap,
        f"{topic_prefix}turns.v1",
        [raw(a_turn(1, "user/1")), raw(a_turn(2, "user/2"))],
    )
    await until(database_dsn, LEDGER, lambda stored: stored >= 2)
    assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    assert worker.terminate() == 0
    [(memory_id,)] = await rows(
        database_dsn, "SELECT m.id FROM memory AS m JOIN owner AS o USING (owner_key) WHERE o.owner = 'user/1'"
    )
    query = await Database.open(database_dsn, role="mnemo_query", pool_size=1)
    assert await ForgettingRepository(query).forget(Owner("acme", "user/1"), memory_id, cause_id=id_of("request"))
    await query.close()
    async with Outlet({"bootstrap_servers": kafka_bootstrap}, client_id="relay") as outlet:
        metrics = RelayMetrics(CollectorRegistry())
        async with Relay(OutboxRepository(timer), outlet, topic=f"{topic_prefix}changes.v1", observer=metrics):
            assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    feed = await read_feed(kafka_bootstrap, topic_prefix)
    await assert_true(feed, database_dsn)
    last = json.loads(feed.values["acme/user/1"][2])
    assert (last["kind"], last["memory"]["state"], last["memory"]["content"]) == ("forgotten", "FORGOTTEN", "")
    assert "Town1" not in feed.values["acme/user/1"][2].decode()
    assert last["cause"] == {"kind": "request", "id": str(id_of("request"))}


async def test_a_relay_waits_out_postgres_ending_its_sessions(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    for first in (0, 10):
        turns = [raw(a_turn(number, "user/1")) for number in range(first, first + 10)]
        await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", turns)
        await until(database_dsn, LEDGER, partial(le, first + 10))
        await rows(
            database_dsn,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()",
        )
    assert await until(database_dsn, WAITING, lambda waiting: waiting == 0) == 0
    assert worker.terminate() == 0
    await assert_true(await read_feed(kafka_bootstrap, topic_prefix), database_dsn)

"""The client's change feed on a real Kafka."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from mnemostream import (
    AsyncMnemo,
    Change,
    ChangeFeed,
    FeedExpired,
    FeedGap,
    InvalidChange,
    Mnemo,
    TopicMissing,
    changes,
)
from mnemostream.errors import BrokerUnavailable

from tests.integration.streams.worker_process import publish

HEADERS = [("mnemo-schema", b"1")]


def change(owner: str, seq: int, app: str = "acme", **fields: Any) -> tuple[bytes, bytes, Sequence[tuple[str, bytes]]]:
    """A record of the feed: the owner is erased."""
    value = {
        "seq": seq,
        "app": app,
        "owner": owner,
        "kind": "owner_erased",
        "at": "2026-11-21T10:00:01.204Z",
        "memory": None,
        "cause": {"kind": "request", "id": "r"},
        "decision": None,
    }
    return f"{app}/{owner}".encode(), json.dumps(value | fields).encode(), HEADERS


class Topic:
    """The topic of changes of a test, and feeds on it."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        self._servers = bootstrap_servers
        self._prefix = prefix

    async def add(self, *records: tuple[bytes, bytes, Sequence[tuple[str, bytes]]]) -> None:
        await publish(self._servers, f"{self._prefix}changes.v1", records)

    def feed(self, **options: Any) -> ChangeFeed:
        return ChangeFeed(app="acme", bootstrap_servers=self._servers, topic_prefix=self._prefix, **options)

    async def age(self, partition: int, offset: int) -> None:
        """What lies before `offset` is past its retention."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
        await admin.start()
        which = TopicPartition(f"{self._prefix}changes.v1", partition)
        await admin.delete_records({which: RecordsToDelete(before_offset=offset)})
        await admin.close()

    async def all(self, **options: Any) -> dict[str, list[int]]:
        """What a feed gives up to its end, by owner."""
        async with asyncio.timeout(30), self.feed(follow=False, **options) as feed:
            return by_owner([each async for each in feed])


def by_owner(given: Sequence[Change]) -> dict[str, list[int]]:
    seqs: dict[str, list[int]] = {}
    for each in given:
        seqs.setdefault(each.owner, []).append(each.seq)
    return seqs


@pytest.fixture
def topic(kafka_bootstrap: str, topic_prefix: str) -> Topic:
    return Topic(kafka_bootstrap, topic_prefix)


async def test_without_a_group_all_that_is_there_comes_once_and_in_order(
    topic: Topic, kafka_bootstrap: str, topic_prefix: str
) -> None:
    assert await topic.all() == {}
    await topic.add(*(change(f"o{owner}", seq) for seq in (1, 2, 3) for owner in range(6)))
    await topic.add(change("o1", 2), change("o1", 1, app="acm"), change("o1", 1, app="other"), change("o1", 4))
    expected = {f"o{owner}": [1, 2, 3] for owner in range(6)} | {"o1": [1, 2, 3, 4]}
    assert await topic.all() == expected
    assert await topic.all(owners=["o2"], known={"o2": 2}) == {"o2": [3]}
    where: Any = {"app": "acme", "bootstrap_servers": kafka_bootstrap, "topic_prefix": topic_prefix}
    assert by_owner([each async for each in changes(follow=False, **where)]) == expected
    async with AsyncMnemo(api_key="mnk_unused", **where) as mnemo:
        assert by_owner([each async for each in mnemo.changes(follow=False)]) == expected
    assert by_owner(await asyncio.to_thread(_blocking, where)) == expected
    async with topic.feed(follow=False) as feed:
        first = await anext(feed)
        before = feed.positions
        await anext(feed)
        positions = feed.positions
    assert sum(positions.values()) > sum(before.values())
    rest = await topic.all(start=positions)
    assert sum(map(len, rest.values())) == sum(map(len, expected.values())) - 1
    assert rest[first.owner][0] == 2


def _blocking(where: Any) -> list[Change]:
    with Mnemo(api_key="mnk_unused", **where) as mnemo:
        return list(mnemo.changes(follow=False))


async def test_a_feed_from_the_end_gives_what_comes_after_it_was_entered(topic: Topic) -> None:
    await topic.add(change("o", 1), change("o", 2))
    async with asyncio.timeout(30), topic.feed(start="latest") as feed:
        await topic.add(change("o", 3), change("new", 1))
        assert by_owner([await anext(feed), await anext(feed)]) == {"o": [3], "new": [1]}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await anext(feed)
        await topic.add(change("o", 4))
        assert (await anext(feed)).seq == 4


async def test_a_group_begins_and_ends_where_the_topic_ended_when_it_was_entered(topic: Topic) -> None:
    await topic.add(change("o", 1), change("o", 2))
    async with asyncio.timeout(60), topic.feed(start="latest", group_id="late") as feed:
        await topic.add(change("o", 3), change("new", 1))
        assert by_owner([await anext(feed), await anext(feed)]) == {"o": [3], "new": [1]}
    async with asyncio.timeout(60), topic.feed(group_id="whole", follow=False) as feed:
        await topic.add(change("o", 4), change("new", 2))
        assert by_owner([each async for each in feed]) == {"o": [1, 2, 3], "new": [1]}


async def test_a_group_goes_on_after_what_was_finished(topic: Topic) -> None:
    await topic.add(*(change("o", seq) for seq in range(1, 7)))
    async with asyncio.timeout(60):
        async with topic.feed(group_id="mirror") as feed:
            assert [(await anext(feed)).seq for _ in range(3)] == [1, 2, 3]
        async with topic.feed(group_id="mirror") as feed:
            assert (await anext(feed)).seq == 3, "it was not finished"
            assert (await anext(feed)).seq == 4
            await feed.commit()
        assert await topic.all(group_id="mirror") == {"o": [5, 6]}
        # A duplicate of long ago, met first, makes no gap of what follows.
        await topic.add(change("o", 4), change("o", 7))
        assert await topic.all(group_id="mirror") == {"o": [4, 7]}
        assert await topic.all(group_id="mirror") == {}


async def test_the_processes_of_a_group_share_the_owners_and_see_no_gap_when_they_move(topic: Topic) -> None:
    owners = [f"o{n}" for n in range(12)]
    await topic.add(*(change(owner, 1) for owner in owners))
    seen: dict[str, list[Change]] = {"a": [], "b": []}
    arrived = asyncio.Event()

    async def follow(name: str, feed: ChangeFeed) -> None:
        async for each in feed:
            seen[name].append(each)
            arrived.set()

    async def everything(seq: int) -> None:
        while {each.owner for mine in seen.values() for each in mine if each.seq == seq} != set(owners):
            arrived.clear()
            await arrived.wait()

    async def one_more(seq: int) -> None:
        await topic.add(*(change(owner, seq) for owner in owners))
        await everything(seq)

    async with asyncio.timeout(90), topic.feed(group_id="shared") as one:
        first = asyncio.create_task(follow("a", one))
        await everything(1)
        async with topic.feed(group_id="shared") as two:
            second = asyncio.create_task(follow("b", two))
            seq = 1
            while not seen["b"]:  # until the second has its share
                seq += 1
                await one_more(seq)
            seq += 1
            await one_more(seq)
            assert {each.owner for each in seen["a"] if each.seq == seq} < set(owners)
        await second
        await one_more(seq + 1)
        await one.close()
        await first
    for owner in owners:
        mine = [each.seq for each in seen["a"] if each.owner == owner]
        assert mine == sorted(set(mine))
        assert set(range(1, seq + 2)) == {e.seq for both in seen.values() for e in both if e.owner == owner}


async def test_a_gap_names_its_owner_and_an_export_fills_it(topic: Topic) -> None:
    await topic.add(change("o", 1), change("o", 2), change("o", 5), change("o", 6))
    async with asyncio.timeout(30), topic.feed(follow=False) as feed:
        assert [(await anext(feed)).seq, (await anext(feed)).seq] == [1, 2]
        for _ in range(2):
            with pytest.raises(FeedGap) as raised:
                await anext(feed)
            assert (raised.value.owner, raised.value.expected, raised.value.got) == ("o", 3, 5)
        feed.know("o", 5)
        assert [each.seq async for each in feed] == [6]
    with pytest.raises(FeedGap):
        await topic.all(known={"o": 3})
    assert await topic.all(known={"o": 4}) == {"o": [5, 6]}


UNREADABLE = [
    (b'{"seq": 2, "content": "of somebody"}', HEADERS, "missing required field"),
    (b"of somebody", HEADERS, "is not JSON"),
    (b"", HEADERS, "value: is empty"),
    (change("o", 2)[1], [("mnemo-schema", b"2")], "header mnemo-schema"),
    (change("p", 2)[1], HEADERS, "key: must be"),
]


async def test_a_record_that_cannot_be_read_is_named_by_its_place(topic: Topic) -> None:
    bad = [(b"acme/o", value, headers) for value, headers, _ in UNREADABLE]
    await topic.add(change("o", 1), *bad, change("o", 2))
    async with asyncio.timeout(30), topic.feed(group_id="g") as feed:
        assert (await anext(feed)).seq == 1
        for _ in range(2):
            with pytest.raises(InvalidChange) as raised:
                await anext(feed)
            assert raised.value.offset == 1
    partition = raised.value.partition
    for offset, (_, _, words) in enumerate(UNREADABLE, 1):
        with pytest.raises(InvalidChange, match=words) as raised:
            await topic.all(start={partition: offset})
        assert f"{feed.topic}, partition {partition}, offset {offset}: " in str(raised.value)
        assert "somebody" not in str(raised.value)
    assert await topic.all(start={partition: 1 + len(UNREADABLE)}) == {"o": [2]}


async def test_what_the_topic_no_longer_has_does_not_go_unnoticed(topic: Topic) -> None:
    await topic.add(*(change("o", seq) for seq in range(1, 6)))
    async with asyncio.timeout(30), topic.feed(group_id="g") as feed, topic.feed() as alone:
        assert [(await anext(feed)).seq, (await anext(feed)).seq, (await anext(alone)).seq] == [1, 2, 1]
    [partition] = feed.positions
    await topic.age(partition, 3)
    with pytest.raises(FeedGap) as gap:
        await topic.all()
    assert (gap.value.expected, gap.value.got) == (1, 4)
    assert await topic.all(known={"o": 3}) == {"o": [4, 5]}
    assert await topic.all(start="latest") == {}
    for options in ({"group_id": "g"}, {"start": {partition: 1}}, {"start": {partition: 99}}):
        with pytest.raises(FeedExpired) as expired:
            await topic.all(**options)
        assert (expired.value.partition, expired.value.first, expired.value.end) == (partition, 3, 5)


async def test_closing_ends_an_iteration_that_waits(topic: Topic) -> None:
    for group in (None, "g"):
        feed = topic.feed(group_id=group)
        await feed.open()
        waiting = asyncio.create_task(anext(feed, None))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await feed.close()
            assert await waiting is None
            await feed.close()
            assert [each async for each in feed] == []


async def test_what_is_not_there_is_told(kafka_bootstrap: str, topic: Topic) -> None:
    with pytest.raises(TopicMissing, match=r"nothing\.changes\.v1"):
        await ChangeFeed(app="acme", bootstrap_servers=kafka_bootstrap, topic_prefix="nothing.").open()
    with pytest.raises(BrokerUnavailable):
        await ChangeFeed(app="acme", bootstrap_servers="127.0.0.1:1", timeout_seconds=0.5).open()
    with pytest.raises(RuntimeError, match="async with"):
        await anext(topic.feed())
    with pytest.raises(ValueError, match="start"):
        topic.feed(start="erliest")

"""The relay over fakes: order and wholeness whatever fails."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from processors.errors import BrokerUnavailable, StoreUnavailable
from processors.feed import Change
from processors.records import Owner
from store.outbox import Backlog, Waiting
from streams.delivery import Retry
from streams.outlet import Arrived
from streams.ports import Headers
from streams.relay import Relay

AT_ONCE = Retry(first_seconds=0.0)
PARTITIONS = 3


def change(owner: int, seq: int) -> Waiting:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    return Waiting(owner, Change(Owner("acme", str(owner)), seq, "added", at, None, "turn", "t", None))


class FakeShards:
    def __init__(self, outbox: "FakeOutbox") -> None:
        self._outbox = outbox

    @property
    def held(self) -> frozenset[int]:
        return self._outbox.free

    async def share(self) -> None:
        if self._outbox.lost:
            self._outbox.lost -= 1
            raise StoreUnavailable("the session has ended")

    async def word(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def wake(self) -> None:
        """Nobody sleeps."""


class FakeOutbox:
    """What waits, by owner and number; sessions that are lost; statements that fail."""

    def __init__(self, waiting: Sequence[Waiting]) -> None:
        self.waiting = {(each.owner_key, each.change.seq): each for each in waiting}
        self.free = frozenset(range(64))
        self.lost = 0
        self.trims_that_fail = 0
        self.empty = asyncio.Event()

    @asynccontextmanager
    async def shards(self) -> AsyncIterator[FakeShards]:
        yield FakeShards(self)

    async def read(self, shards: Collection[int], *, after: int, limit: int) -> list[Waiting]:
        assert shards
        return [self.waiting[key] for key in sorted(self.waiting) if key[0] > after][:limit]

    async def trim(self, published: Collection[Waiting]) -> None:
        if self.trims_that_fail:
            self.trims_that_fail -= 1
            raise StoreUnavailable("Postgres is away")
        for each in published:
            self.waiting.pop((each.owner_key, each.change.seq), None)
        if not self.waiting:
            self.empty.set()

    async def backlog(self, shards: Collection[int]) -> Backlog:
        return Backlog(len(self.waiting), 1.0)


class FakeTopic:
    """Takes the records of each partition up to the first that is refused."""

    def __init__(self, refuses: Callable[[], bool] = lambda: False) -> None:
        self._refuses = refuses
        self.log: list[tuple[str, int]] = []

    async def publish_in_order(
        self, topic: str, records: Sequence[tuple[bytes, bytes]], *, headers: Headers
    ) -> Arrived:
        assert (topic, list(headers)) == ("changes", [("mnemo-schema", b"1")])
        broken, arrived = set(), []
        for index, (key, value) in enumerate(records):
            partition = int(key.removeprefix(b"acme/")) % PARTITIONS
            if partition in broken or self._refuses():
                broken.add(partition)
                continue
            shown = json.loads(value)
            self.log.append((shown["owner"], shown["seq"]))
            arrived.append(index)
        return Arrived(tuple(arrived), BrokerUnavailable("refused") if broken else None)


class Counts:
    def __init__(self) -> None:
        self.changes = 0
        self.last = (0, 0, 0.0)

    def published(self, changes: int) -> None:
        self.changes += changes

    def waiting(self, shards: int, pointers: int, oldest_seconds: float) -> None:
        self.last = (shards, pointers, oldest_seconds)


async def relayed(outbox: FakeOutbox, topic: FakeTopic, batch: int = 5) -> Counts:
    """Run a relay until nothing waits."""
    counts = Counts()
    relay = Relay(outbox, topic, topic="changes", observer=counts, retry=AT_ONCE, batch=batch)
    async with asyncio.timeout(20), relay:
        await outbox.empty.wait()
    return counts


def first_appearances(log: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    seen: dict[str, list[int]] = defaultdict(list)
    for owner, seq in log:
        if seq not in seen[owner]:
            seen[owner].append(seq)
    return seen


async def test_everything_that_waits_goes_out_in_order_and_is_counted() -> None:
    outbox = FakeOutbox([change(owner, seq) for owner in (1, 2, 3) for seq in range(1, 8)])
    topic = FakeTopic()
    counts = await relayed(outbox, topic)
    assert first_appearances(topic.log) == {str(owner): list(range(1, 8)) for owner in (1, 2, 3)}
    assert (counts.changes, len(topic.log)) == (21, 21)
    assert counts.last == (64, 21, 1.0)


@pytest.mark.parametrize("seed", range(20))
async def test_where_one_is_refused_what_comes_after_it_waits(seed: int) -> None:
    outbox = FakeOutbox([change(owner, seq) for owner in range(1, 6) for seq in range(1, 9)])
    chance = random.Random(seed)
    topic = FakeTopic(lambda: chance.random() < 0.3)
    await relayed(outbox, topic)
    assert first_appearances(topic.log) == {str(owner): list(range(1, 9)) for owner in range(1, 6)}
    assert len(topic.log) == 40


async def test_what_could_not_be_trimmed_goes_out_again() -> None:
    outbox = FakeOutbox([change(1, seq) for seq in (1, 2, 3)])
    outbox.trims_that_fail = 2
    topic = FakeTopic()
    counts = await relayed(outbox, topic)
    assert topic.log == [("1", 1), ("1", 2), ("1", 3)] * 3
    assert counts.changes == 3


async def test_a_relay_that_lost_its_session_begins_anew() -> None:
    outbox = FakeOutbox([change(1, 1)])
    outbox.lost = 2
    topic = FakeTopic()
    await relayed(outbox, topic)
    assert topic.log == [("1", 1)]


async def test_an_owner_with_a_backlog_lets_the_others_pass() -> None:
    outbox = FakeOutbox([change(1, seq) for seq in range(1, 101)] + [change(2, 1), change(3, 1)])
    topic = FakeTopic()
    await relayed(outbox, topic)
    assert {topic.log.index(("2", 1)), topic.log.index(("3", 1))} == {5, 6}


async def test_a_relay_without_shards_reads_nothing() -> None:
    outbox = FakeOutbox([change(1, 1)])
    outbox.free = frozenset()
    topic, counts = FakeTopic(), Counts()
    async with Relay(outbox, topic, topic="changes", observer=counts, retry=AT_ONCE):
        await asyncio.sleep(0)
    assert topic.log == []
    assert outbox.waiting


async def test_a_relay_that_is_told_to_stop_publishes_what_is_there() -> None:
    outbox = FakeOutbox([change(1, seq) for seq in range(1, 21)])
    topic = FakeTopic()
    async with Relay(outbox, topic, topic="changes", observer=Counts(), retry=AT_ONCE, batch=5):
        pass
    assert outbox.waiting == {}


async def test_a_fault_of_ours_does_not_end_the_relay() -> None:
    outbox = FakeOutbox([change(1, 1)])
    faults = iter([ZeroDivisionError("a fault"), None])

    def refuses() -> bool:
        fault = next(faults)
        if fault is not None:
            raise fault
        return False

    topic = FakeTopic(refuses)
    await relayed(outbox, topic)
    assert topic.log == [("1", 1)]

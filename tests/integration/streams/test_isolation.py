"""Who does not wait for whom: owners of one partition, partitions of one stage, stages of one worker."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from itertools import count, islice

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.partitioner import murmur2
from mnemostream.decoding import partition_key
from mnemostream.turns import Message, Role, Turn

from cli.dev.model_server import ModelServer
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import Raw, WorkerProcess, a_turn, publish, raw, until
from tests.services import PARTITIONS

SLOW = "slowly"
"""A turn that says so is not answered until the model is told to."""


class FussyModel:
    """Answers as the scripted model does, except chats with `SLOW` in them, and, while it is away, any chat."""

    def __init__(self) -> None:
        self.url = ""
        self._script = ModelServer()
        self.released = asyncio.Event()
        self.away = False
        self._conversations: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._conversations[task] = writer
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                [length] = [line[15:] for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
                status, body = await self._answer(head, await reader.readexactly(int(length)))
                kind = "content-type: application/json"
                writer.write(f"HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)

    async def close(self) -> None:
        """End all connections."""
        self.released.set()
        for writer in self._conversations.values():
            writer.close()
        await asyncio.gather(*self._conversations)

    async def _answer(self, head: bytes, body: bytes) -> tuple[str, bytes]:
        if b"/embeddings" in head.partition(b"\r\n")[0]:
            return "200 OK", self._script.answer("embeddings", body, "answer")
        if self.away:
            return "503 Away", b'{"error": {"message": "scripted"}}'
        if SLOW.encode() in body:
            await self.released.wait()
        return "200 OK", self._script.answer("chat", body, "answer")


@pytest.fixture
async def model() -> AsyncIterator[FussyModel]:
    fussy = FussyModel()
    server = await asyncio.start_server(fussy.converse, "127.0.0.1", 0, limit=1 << 24)
    fussy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    yield fussy
    server.close()
    await fussy.close()


class System:
    """The topics, the store and the worker of a test; the worker asks `model`."""

    def __init__(self, bootstrap: str, prefix: str, dsn: str, start: WorkerStarter, model: FussyModel) -> None:
        self._bootstrap, self._prefix, self._dsn, self._start, self._model = bootstrap, prefix, dsn, start, model

    def worker(self, **settings: str) -> WorkerProcess:
        return self._start(
            MNEMO_MODEL_PROVIDER="openai",
            MNEMO_OPENAI_API_KEY="sk-nobody",
            MNEMO_OPENAI_BASE_URL=self._model.url,
            MNEMO_DRAIN_SECONDS="0",
            **settings,
        )

    async def publish(self, records: Sequence[Raw], topic: str = "turns.v1") -> None:
        await publish(self._bootstrap, f"{self._prefix}{topic}", records)

    async def stored(self, owners: Sequence[str], count: int, seconds: float = 120) -> int:
        """How many turns of these owners were stored, once it is `count`."""
        names = ", ".join(f"'{owner}'" for owner in owners)
        query = (
            "SELECT count(*) FROM ledger AS l JOIN owner AS o USING (owner_key) "
            f"WHERE l.outcome = 'STORED' AND o.owner IN ({names})"
        )
        return int(await until(self._dsn, query, lambda found: found >= count, seconds))

    async def put_windows(self, owners: Sequence[str]) -> None:
        """On the topic between the stages, by hand: a window of one fact for each."""
        await self.publish([_window(owner, f"{self._prefix}turns.v1") for owner in owners], "candidates.v1")

    async def lag(self, partition: int) -> int:
        """Turns of a partition that extract has not committed."""
        group = f"group-{self._prefix.rstrip('.')}-extract"
        async with AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, group_id=group, enable_auto_commit=False
        ) as consumer:
            place = TopicPartition(f"{self._prefix}turns.v1", partition)
            consumer.assign([place])
            ends = await consumer.end_offsets([place])
            return int(ends[place]) - int(await consumer.committed(place) or 0)


@pytest.fixture
def system(
    kafka_bootstrap: str, topic_prefix: str, database_dsn: str, start_worker: WorkerStarter, model: FussyModel
) -> System:
    return System(kafka_bootstrap, topic_prefix, database_dsn, start_worker, model)


def owners(tag: str, partition: int, number: int) -> list[str]:
    """So many owners whose turns are in `partition`."""
    names = (f"{tag}-{n}" for n in count())
    there = (name for name in names if murmur2(partition_key("acme", name)) % (1 << 31) % PARTITIONS == partition)
    return list(islice(there, number))


def said(owner: str, number: int, text: str = "I keep item {} here.") -> Turn:
    return a_turn(number, owner, messages=(Message(Role.USER, text.format(f"{number} of {owner}")),))


def slow(owner: str, number: int) -> Turn:
    return said(owner, number, f"I keep item {{}} {SLOW}.")


def padded(turn: Turn, size_bytes: int) -> Raw:
    """A record of that size, of a turn that is none the longer for it."""
    key, value, headers = raw(turn)
    assert value is not None
    return key, value.ljust(size_bytes), headers


def metric(worker: WorkerProcess, name: str) -> float:
    """Of the extract stage."""
    page = worker.page("/metrics")[1]
    [line] = [line for line in page.splitlines() if line.startswith(f'{name}{{stage="extract"}} ')]
    return float(line.rpartition(" ")[2])


async def taken_in(worker: WorkerProcess) -> float:
    """Records in hand, once it takes in no more: three looks a second and more apart saw as many."""
    looks: list[float] = []
    while len(looks) < 3 or len(set(looks[-3:])) > 1 or not looks[-1]:
        await asyncio.sleep(1.1)
        looks.append(metric(worker, "mnemo_pending_records"))
    return looks[-1]


def _window(owner: str, topic: str) -> Raw:
    now = datetime.now(UTC).isoformat()
    turn = {"id": "by-hand", "topic": topic, "partition": 0, "offset": 1, "received_at": now, "said_at": now}
    fact = {
        "turn": 0,
        "text": f"The user is {owner}.",
        "category": "fact",
        "importance": 5,
        "confidence": 0.95,
        "role": "user",
        "said_at": now,
    }
    window = {"app": "acme", "owner": owner, "session": "s-1", "turns": [turn], "facts": [fact]}
    return partition_key("acme", owner), json.dumps(window).encode(), []


async def test_who_hangs_with_three_thousand_turns_waiting_holds_up_nobody_else_and_reconcile_goes_on(
    system: System, model: FussyModel
) -> None:
    [hot], neighbours = owners("hot", 0, 1), owners("near", 0, 8)
    others = [owner for partition in (1, 2, 3) for owner in owners("far", partition, 4)]
    await system.publish([raw(slow(hot, number)) for number in range(3_000)])
    await system.publish([raw(said(owner, number)) for number in range(2) for owner in neighbours + others])
    worker = system.worker()
    assert await system.stored(others, 2 * len(others)) == 2 * len(others)
    assert await system.stored(neighbours, 2 * len(neighbours)) == 2 * len(neighbours)
    await system.put_windows(owners("read", 0, 4) + owners("read", 1, 4))
    assert await system.stored(owners("read", 0, 4) + owners("read", 1, 4), 8) == 8
    assert await system.stored([hot], 0) == 0
    assert await system.lag(0) >= 3_000  # what is after the head may be done: it is not committed
    assert worker.terminate() == 0


async def test_beyond_their_bytes_hot_owners_hold_up_their_partition_alone_and_it_shows_as_lag(
    system: System, model: FussyModel
) -> None:
    hot, [late] = owners("hot", 0, 5), owners("late", 0, 1)
    far = [owner for partition in (1, 2, 3) for owner in owners("far", partition, 2)]
    await system.publish([padded(slow(owner, number), 100_000) for number in range(18) for owner in hot])
    await system.publish([raw(said(late, 1))])
    # Five owners have more in hand than all partitions together may.
    worker = system.worker(MNEMO_MAX_OWNER_BYTES="850000", MNEMO_MAX_PENDING_BYTES="3250000")
    for _ in range(2):
        worker.event("assigned")
    in_hand = await taken_in(worker)
    await system.publish([padded(said(owner, 1), 90_000) for owner in far])
    assert await system.stored(far, len(far)) == len(far)
    assert await system.stored([late, *hot], 0) == 0
    assert await system.lag(0) == 91
    assert 8 <= in_hand < 91
    assert metric(worker, "mnemo_oldest_unfinished_age_seconds") > 0
    model.released.set()
    assert await system.stored([late, *hot], 91) == 91
    assert worker.terminate() == 0


async def test_a_backlog_of_many_owners_of_one_partition_does_not_make_the_others_wait_for_its_end(
    system: System,
) -> None:
    many, others = owners("many", 0, 40), [owner for partition in (1, 2, 3) for owner in owners("far", partition, 2)]
    await system.publish([raw(said(owner, number)) for number in range(50) for owner in many])
    await system.publish([raw(said(owner, 1)) for owner in others])
    worker = system.worker(MNEMO_MAX_WINDOW_TURNS="1", MNEMO_MAX_IN_FLIGHT="4")
    assert await system.stored(others, len(others)) == len(others)
    assert await system.stored(many, 0) < 1_000
    assert worker.terminate() == 0


async def test_reconcile_stores_what_was_read_while_extract_waits_for_its_model(
    system: System, model: FussyModel
) -> None:
    model.away = True
    worker = system.worker()
    waiting = owners("waits", 0, 20)
    await system.publish([raw(said(owner, 1)) for owner in waiting])
    read = owners("read", 0, 4)
    await system.put_windows(read)
    assert await system.stored(read, len(read)) == len(read)
    assert await system.stored(waiting, 0) == 0
    model.away = False
    assert await system.stored(waiting, len(waiting)) == len(waiting)
    assert worker.terminate() == 0

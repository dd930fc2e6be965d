"""What comes in, and when it was stored: backlogs that wait already, and owners who speak now and then."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import asyncpg
from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import murmur2
from mnemostream.decoding import encode_turn, partition_key
from mnemostream.turns import Message, Role, Turn
from typing_extensions import override

from tests.bench.pipeline import SAID
from tests.bench.processes import Machine

PARTITIONS: Final = 8
APP: Final = "bench"
_PADDING: Final = "The rest of what I said is only here to make this turn as long as turns are, and says nothing new"


@dataclass(frozen=True, slots=True)
class Waits:
    """Of records, from before they were sent to when they were stored, in milliseconds."""

    count: int
    p50: float
    p99: float
    worst: float

    @override
    def __str__(self) -> str:
        return f"p50 {self.p50:.0f} ms, p99 {self.p99:.0f} ms"


def waits(sent: Mapping[str, float], stored: Mapping[str, float]) -> Waits:
    """How long each turn of `sent` took; both by turn id, in seconds since the epoch."""
    taken = sorted(1000 * (stored[turn_id] - at) for turn_id, at in sent.items())
    return Waits(len(taken), taken[len(taken) // 2], taken[min(len(taken) - 1, int(len(taken) * 0.99))], taken[-1])


def partition_of(owner: str, partitions: int = PARTITIONS) -> int:
    """Where the turns of `owner` are, whoever produces them."""
    return int((murmur2(partition_key(APP, owner)) & 0x7FFFFFFF) % partitions)


def owners(tag: str, each: int, of: Iterable[int], partitions: int = PARTITIONS) -> list[str]:
    """`each` owners of every partition in `of`, the partitions in turn."""
    wanted = list(of)
    found: dict[int, list[str]] = {partition: [] for partition in wanted}
    for number in count():
        owner = f"{tag}-{number}"
        place = found.get(partition_of(owner, partitions))
        if place is not None and len(place) < each:
            place.append(owner)
        if all(len(place) == each for place in found.values()):
            return [found[partition][n] for n in range(each) for partition in wanted]
    raise AssertionError("unreachable")


def turn(owner: str, number: int, *, size_bytes: int = 0) -> Turn:
    """Turn `number` of `owner`: one statement that nobody made before; padded by talk to some `size_bytes`."""
    messages = [Message(Role.USER, f"I keep item {owner} {number} in drawer {number * 7 % 1000} of the cabinet.")]
    if size_bytes:
        messages.append(Message(Role.ASSISTANT, (_PADDING + ". ") * (size_bytes // len(_PADDING))))
    return Turn(
        id=f"{owner}-{number}",
        app=APP,
        owner=owner,
        session="s-1",
        said_at=SAID + timedelta(seconds=number),
        messages=tuple(messages),
    )


async def flood(made: Machine, prefix: str, batch: Iterable[Turn]) -> None:
    """All of `batch` onto the topic, without the checks of a publisher; returns when the broker has them."""
    producer = AIOKafkaProducer(
        bootstrap_servers=made.kafka.bootstrap_servers, acks="all", linger_ms=20, max_batch_size=1 << 18
    )
    await producer.start()
    try:
        sent = [
            await producer.send(f"{prefix}turns.v1", value=encode_turn(one), key=partition_key(one.app, one.owner))
            for one in batch
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def speak(made: Machine, prefix: str, talk: Sequence[Turn], *, per_second: float) -> dict[str, float]:
    """Send `talk` at an even rate; gives when each was sent. Returns when the broker has them all."""
    producer = AIOKafkaProducer(bootstrap_servers=made.kafka.bootstrap_servers, acks="all")
    await producer.start()
    try:
        sent: dict[str, float] = {}
        waiting = []
        start = time.monotonic()
        for number, one in enumerate(talk):
            await asyncio.sleep(max(0.0, start + number / per_second - time.monotonic()))
            sent[one.id] = time.time()
            waiting.append(
                await producer.send(f"{prefix}turns.v1", value=encode_turn(one), key=partition_key(one.app, one.owner))
            )
        await asyncio.gather(*waiting)
        return sent
    finally:
        await producer.stop()


async def stored_at(dsn: str, turn_ids: Iterable[str], seconds: float = 120) -> dict[str, float]:
    """When each of these turns was stored, in seconds since the epoch; waits until all are."""
    wanted = list(turn_ids)
    connection = await asyncpg.connect(dsn)
    deadline = time.monotonic() + seconds
    try:
        while True:
            rows = await connection.fetch(
                "SELECT turn_id, decided_at FROM ledger WHERE outcome = 'STORED' AND turn_id = ANY($1)", wanted
            )
            if len(rows) >= len(wanted):
                return {row["turn_id"]: _seconds(row["decided_at"]) for row in rows}
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(wanted) - len(rows)} of {len(wanted)} turns not stored after {seconds:.0f} s")
            await asyncio.sleep(0.25)
    finally:
        await connection.close()


def _seconds(at: datetime) -> float:
    return at.timestamp()

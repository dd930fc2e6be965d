"""Turns through the whole path: how many a second, at what cost of CPU, how soon."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

import asyncpg
from mnemostream.publisher import Publisher
from mnemostream.turns import Message, Role, Turn

from runtime.settings import Settings
from store.migrate import migrate
from streams.topics import ensure_topics
from tests.bench.processes import Machine, cpu_seconds, program

SAID = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Throughput:
    """CPU in milliseconds for each turn."""

    turns: int
    seconds: float
    worker: float
    postgres: float
    kafka: float
    model: float
    calls: float
    """Of a language model, a turn."""
    prompt_tokens: float
    """A turn, at four bytes of the request's body each, its schema included."""

    @property
    def per_second(self) -> float:
        """Turns a second."""
        return self.turns / self.seconds


def turns(count: int, owners: int, *, tag: str) -> list[Turn]:
    """`count` turns of `owners` owners in turn, each one statement that nobody made before."""
    return [
        Turn(
            id=f"{tag}-{n}",
            app="bench",
            owner=f"owner-{n % owners}",
            session=f"s-{n // (owners * 20)}",
            said_at=SAID + timedelta(seconds=n),
            messages=(
                Message(Role.USER, f"I keep item {tag} {n} in drawer {n * 7 % 1000} of the {n % 13}th cabinet."),
            ),
        )
        for n in range(count)
    ]


async def prepare(made: Machine, name: str, partitions: int = 8) -> tuple[str, str, dict[str, str]]:
    """A database and topics of their own: DSN, topic prefix, settings of the processes."""
    database = name.replace("-", "_")
    made.postgres.create_database(database)
    dsn = made.postgres.dsn(database)
    await migrate(dsn)
    prefix = f"{name}."
    await ensure_topics(
        Settings(kafka_bootstrap_servers=made.kafka.bootstrap_servers, topic_prefix=prefix, topic_partitions=partitions)
    )
    return dsn, prefix, made.environment(dsn, prefix)


async def publish(made: Machine, prefix: str, batch: Sequence[Turn]) -> None:
    """All of `batch`, each owner's in order, many at once; returns when the broker has them."""
    async with Publisher(bootstrap_servers=made.kafka.bootstrap_servers, topic_prefix=prefix) as publisher:
        for start in range(0, len(batch), 256):
            await asyncio.gather(*(publisher.publish(turn) for turn in batch[start : start + 256]))


async def settled(dsn: str, statement: str, wanted: int, seconds: float = 600) -> None:
    """Until `statement` counts `wanted` rows."""
    connection = await asyncpg.connect(dsn)
    try:
        deadline = time.monotonic() + seconds
        while await connection.fetchval(statement) < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not done after {seconds} s")
            await asyncio.sleep(0.05)
    finally:
        await connection.close()


STORED = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
WRITTEN = "SELECT count(*) FROM turn"


async def through_path(made: Machine, name: str, *, count: int, owners: int, latency_seconds: float) -> Throughput:
    """`count` turns that wait already when the clock starts; the worker is warm and runs both stages."""
    dsn, prefix, environment = await prepare(made, name)
    made.control(latency_seconds=latency_seconds)
    with program(made, name, ["worker"], environment) as worker:
        warm = turns(max(64, owners), owners, tag="warm")
        await publish(made, prefix, warm)
        await settled(dsn, STORED, len(warm))
        before, worker_before = made.cpu(), cpu_seconds(worker.process.pid)
        asked_before = made.model_stats()["endpoints"]["chat"]
        start = time.perf_counter()
        await publish(made, prefix, turns(count, owners, tag="turn"))
        await settled(dsn, STORED, len(warm) + count)
        seconds = time.perf_counter() - start
        after, worker_after = made.cpu(), cpu_seconds(worker.process.pid)
    asked = made.model_stats()["endpoints"]["chat"]
    made.control(reset=True)
    cost = {part: 1000 * (after[part] - before[part]) / count for part in after}
    return Throughput(
        count,
        seconds,
        1000 * (worker_after - worker_before) / count,
        calls=(asked["calls"] - asked_before["calls"]) / count,
        prompt_tokens=(asked["tokens_in"] - asked_before["tokens_in"]) / count,
        **cost,
    )


async def by_stage(made: Machine, name: str, *, count: int, owners: int) -> dict[str, tuple[float, float]]:
    """CPU ms a turn of (worker, Postgres) for each stage, run one after the other over the same turns."""
    dsn, prefix, environment = await prepare(made, name)
    warm, batch = turns(64, owners, tag="warm"), turns(count, owners, tag="turn")
    total = len(warm) + count
    costs = {}
    connection = await asyncpg.connect(dsn)
    for stage, done in (("extract", WRITTEN), ("reconcile", STORED)):
        with program(made, f"{name}-{stage}", ["worker", "--stages", stage], environment) as worker:
            if stage == "extract":
                await publish(made, prefix, warm)
                await settled(dsn, done, len(warm))
            before, worker_before = made.cpu()["postgres"], cpu_seconds(worker.process.pid)
            if stage == "extract":
                await publish(made, prefix, batch)
            await settled(dsn, done, total)
            await asyncio.sleep(1)  # what was written before the model was asked is still on its way to the next topic
            costs[stage] = (
                1000 * (cpu_seconds(worker.process.pid) - worker_before) / count,
                1000 * (made.cpu()["postgres"] - before) / count,
            )
    await connection.close()
    return costs


async def searchable_after(made: Machine, name: str, *, rounds: int) -> tuple[float, float]:
    """Milliseconds from publishing a lone turn until a search finds it, with an instant model: median and worst."""
    from mnemostream.client import AsyncMnemo

    from tests.bench.searching import make_key, query_service

    dsn, prefix, environment = await prepare(made, name)
    key = await make_key(dsn)
    taken = []
    with program(made, f"{name}-worker", ["worker"], environment), query_service(made, name, environment) as port:
        async with (
            Publisher(bootstrap_servers=made.kafka.bootstrap_servers, topic_prefix=prefix) as publisher,
            AsyncMnemo(url=f"http://127.0.0.1:{port}", api_key=key) as mnemo,
        ):
            for turn in turns(rounds + 5, 5, tag="lone"):
                start = time.perf_counter()
                await publisher.publish(turn)
                result = await mnemo.search(turn.owner, turn.messages[0].content, after_turn=turn.id, limit=1)
                taken.append(1000 * (time.perf_counter() - start))
                assert result.hits[0].memory.content == turn.messages[0].content
                await asyncio.sleep(0.1)
    measured = taken[5:]
    return median(measured), max(measured)

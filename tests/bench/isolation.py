"""Who waits for whom: quiet owners beside a hot one, reconcile beside a hanging extract, all beside a killed worker."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import msgspec
from aiokafka import AIOKafkaProducer
from mnemostream.decoding import SCHEMA_VERSION, partition_key
from mnemostream.turns import Role

from cli.dev.scripted_answers import scripted_vector
from processors.facts import Fact, Window, WindowTurn
from tests.bench import loads
from tests.bench.loads import PARTITIONS, Waits
from tests.bench.pipeline import prepare
from tests.bench.processes import Machine, Program, program

HOT_TURNS: Final = 5_000
QUIET_OWNERS: Final = 100
_QUIET_PER_SECOND: Final = 20.0
_HOT_PARTITION: Final = 0

HANGING: Final = 20_000
_WINDOWS: Final = 150
_WINDOWS_PER_SECOND: Final = 25.0
_DIMENSIONS: Final = 384

_STEADY_PER_SECOND: Final = 32.0
_STEADY_SECONDS: Final = 34.0
_KILL_AFTER_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class BesideHot:
    """Turns of the quiet owners, published to stored."""

    idle: Waits
    elsewhere: Waits
    """While the hot owner's turns wait: of the quiet owners of other partitions."""
    same_partition: Waits
    """Of those who share its partition: their first turns stand behind its backlog in the log."""


async def beside_hot(made: Machine, name: str, *, model_seconds: float) -> BesideHot:
    """A hot owner's turns come at once; then the quiet ones speak, at the rate at which they spoke before."""
    dsn, prefix, environment = await prepare(made, name)
    made.control(latency_seconds=model_seconds)
    [hot] = loads.owners("hot", 1, [_HOT_PARTITION])
    quiet = loads.owners("quiet", QUIET_OWNERS // PARTITIONS + 1, range(PARTITIONS))[:QUIET_OWNERS]
    with program(made, name, ["worker"], environment):
        warm = [loads.turn(owner, 0) for owner in quiet]
        await loads.flood(made, prefix, warm)
        await loads.stored_at(dsn, [turn.id for turn in warm])
        talk = [[loads.turn(owner, n) for n in (first, first + 1) for owner in quiet] for first in (1, 3)]
        before = await loads.speak(made, prefix, talk[0], per_second=_QUIET_PER_SECOND)
        idle = loads.waits(before, await loads.stored_at(dsn, before))
        await loads.flood(made, prefix, (loads.turn(hot, n) for n in range(HOT_TURNS)))
        beside = await loads.speak(made, prefix, talk[1], per_second=_QUIET_PER_SECOND)
        stored = await loads.stored_at(dsn, beside)
    made.control(reset=True)
    near = {turn_id: at for turn_id, at in beside.items() if _partition(turn_id) == _HOT_PARTITION}
    far = {turn_id: at for turn_id, at in beside.items() if turn_id not in near}
    return BesideHot(idle, loads.waits(far, stored), loads.waits(near, stored))


def _partition(turn_id: str) -> int:
    return loads.partition_of(turn_id.rpartition("-")[0])


@dataclass(frozen=True, slots=True)
class ReconcileWaits:
    """Of windows put on `candidates.v1` by hand, until they are stored."""

    idle: Waits
    extract_hangs: Waits
    """While `HANGING` turns wait for extract, whose model does not answer."""
    extract_joined: Waits
    """Beside that, while a worker joins that runs extract alone."""
    worker_joined: Waits
    """Beside that, while a worker joins that runs both: reconcile's own group rebalances too."""


async def reconcile_beside_extract(made: Machine, name: str) -> ReconcileWaits:
    """One worker; what happens to one of its stages, and how long the other takes meanwhile."""
    dsn, prefix, environment = await prepare(made, name)
    environment = environment | {"MNEMO_DRAIN_SECONDS": "1"}
    with program(made, name, ["worker"], environment):
        await _reconciled(made, dsn, prefix, "warm")
        idle = await _reconciled(made, dsn, prefix, "idle")
        made.control(mode="hang", endpoints=["chat"])
        speakers = loads.owners("waits", 50, range(PARTITIONS))
        each = HANGING // len(speakers)
        await loads.flood(made, prefix, (loads.turn(owner, n) for n in range(each) for owner in speakers))
        await asyncio.sleep(2)
        hangs = await _reconciled(made, dsn, prefix, "hangs")
        joined = []
        for tag, stages in (("extract", ["--stages", "extract"]), ("both", [])):
            with contextlib.ExitStack() as stack:
                joins = program(made, f"{name}-{tag}", ["worker", *stages], environment)
                entering = asyncio.to_thread(stack.enter_context, joins)
                waits, _ = await asyncio.gather(_reconciled(made, dsn, prefix, tag, windows=2 * _WINDOWS), entering)
                joined.append(waits)
    made.control(reset=True)
    return ReconcileWaits(idle, hangs, *joined)


async def _reconciled(made: Machine, dsn: str, prefix: str, tag: str, windows: int = _WINDOWS) -> Waits:
    """Windows of one fact each, of forty owners of all partitions, at an even rate."""
    speakers = loads.owners("read", 5, range(PARTITIONS))
    producer = AIOKafkaProducer(bootstrap_servers=made.kafka.bootstrap_servers, acks="all")
    await producer.start()
    sent: dict[str, float] = {}
    start = time.monotonic()
    try:
        for number in range(windows):
            await asyncio.sleep(max(0.0, start + number / _WINDOWS_PER_SECOND - time.monotonic()))
            owner = speakers[number % len(speakers)]
            window = _window(owner, f"{tag}-{number}", prefix)
            sent[window.turns[0].id] = time.time()
            await producer.send(
                f"{prefix}candidates.v1",
                value=msgspec.json.encode(window),
                key=partition_key(loads.APP, owner),
                headers=[("mnemo-schema", SCHEMA_VERSION.encode())],
            )
    finally:
        await producer.stop()
    return loads.waits(sent, await loads.stored_at(dsn, sent))


def _window(owner: str, turn_id: str, prefix: str) -> Window:
    """As extract would have made it, of a turn that never stood on the topic of turns."""
    text, now = f"The user keeps {turn_id} in a drawer.", datetime.now(UTC)
    turn = WindowTurn(
        id=turn_id,
        topic=f"{prefix}turns.v1",
        partition=loads.partition_of(owner),
        offset=time.time_ns() // 1000,
        received_at=now,
        said_at=now,
    )
    fact = Fact(
        turn=0,
        text=text,
        category="fact",
        importance=5,
        confidence=0.95,
        role=Role.USER,
        said_at=now,
        embedding=scripted_vector(text, _DIMENSIONS),
    )
    return Window(
        app=loads.APP,
        owner=owner,
        session="s-1",
        turns=(turn,),
        facts=(fact,),
        embedding_model=f"text-embedding-3-small@{_DIMENSIONS}",
    )


@dataclass(frozen=True, slots=True)
class Recovery:
    """After one of two workers was killed: the longest time in seconds in which nothing of a partition was stored."""

    its_partitions: float
    others: float | None
    """Of those that it had of neither stage; None where there was none."""


async def after_a_kill(made: Machine, name: str) -> Recovery:
    """Five owners of each partition speak in turn, so that a partition is heard of four times a second."""
    dsn, prefix, environment = await prepare(made, name)
    environment = environment | {"MNEMO_LOG_LEVEL": "INFO"}
    speakers = loads.owners("speaks", 5, range(PARTITIONS))
    rounds = int(_STEADY_PER_SECOND * _STEADY_SECONDS) // len(speakers)
    talk = [loads.turn(owner, n) for n in range(rounds) for owner in speakers]
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(program(made, f"{name}-{n}", ["worker"], environment)) for n in (1, 2)]
        speaking = asyncio.ensure_future(loads.speak(made, prefix, talk, per_second=_STEADY_PER_SECOND))
        await asyncio.sleep(_KILL_AFTER_SECONDS)
        killed_at, its = time.time(), _partitions(workers[1])
        workers[1].kill()
        sent = await speaking
        stored = await loads.stored_at(dsn, sent)
    silences = _silences(stored, since=killed_at)
    others = [seconds for partition, seconds in silences.items() if partition not in its]
    return Recovery(max(silences[partition] for partition in its), max(others, default=None))


def _partitions(worker: Program) -> set[int]:
    """That a worker has now, of either stage."""
    latest = {line["stage"]: line["partitions"] for line in worker.events("assigned")}
    return {partition for partitions in latest.values() for partition in partitions}


def _silences(stored: Mapping[str, float], *, since: float) -> dict[int, float]:
    """By partition, the longest time between two turns stored that ended after `since`."""
    times: dict[int, list[float]] = defaultdict(list)
    for turn_id, at in stored.items():
        times[_partition(turn_id)].append(at)
    return {
        partition: max(after - before for before, after in pairwise(sorted(each)) if after > since)
        for partition, each in times.items()
    }

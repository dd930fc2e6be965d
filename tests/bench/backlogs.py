"""What a backlog costs: how fast it is worked off, by how many workers, in how much memory."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import asyncpg

from streams.delivery import Limits
from tests.bench import loads
from tests.bench.pipeline import STORED, WRITTEN, prepare, settled
from tests.bench.processes import Machine, Program, cpu_seconds, program, resident_megabytes

OWNERS: Final = 40
EACH: Final = 50
TURNS: Final = OWNERS * EACH

_SCALING_PARTITIONS: Final = 12
SCALING_IN_FLIGHT: Final = 8
MODEL_SECONDS: Final = 0.5
_SCALING_SECONDS: Final = 12.0
_SETTLING_SECONDS: Final = 3.0

WAITING: Final = 100_000
_TURN_BYTES: Final = 1_000
_MEMORY_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """How a worker that was started after them worked off `TURNS`."""

    seconds: float
    """From its first assignment to the last turn stored."""
    worker: float
    """Its CPU in milliseconds a turn, from when it was ready."""
    postgres: float
    calls: float
    """Of a language model, for 1,000 turns."""
    prompt_tokens: float
    """For a turn."""

    @property
    def per_second(self) -> float:
        """Turns a second."""
        return TURNS / self.seconds


async def _wait_already(made: Machine, name: str) -> tuple[str, dict[str, str]]:
    """A system of its own, in which the turns wait; nobody works yet. Its DSN, and the settings of its processes."""
    dsn, prefix, environment = await prepare(made, name)
    waiting = loads.owners("waits", OWNERS // loads.PARTITIONS, range(loads.PARTITIONS))
    await loads.flood(made, prefix, (loads.turn(owner, n) for n in range(EACH) for owner in waiting))
    return dsn, environment


def assigned_at(worker: Program, stage: str) -> float:
    """When the group first gave it its partitions, in seconds since the epoch."""
    first = next(line for line in worker.events("assigned") if line["stage"] == stage)
    return datetime.fromisoformat(first["at"]).timestamp()


async def worked_off(made: Machine, name: str) -> Backlog:
    """The whole path, an instant model; one worker that nobody warmed."""
    dsn, environment = await _wait_already(made, name)
    made.control(reset=True)
    with program(made, name, ["worker"], environment | {"MNEMO_LOG_LEVEL": "INFO"}) as worker:
        pid = worker.process.pid
        worker_before, postgres_before = cpu_seconds(pid), made.cpu()["postgres"]
        await settled(dsn, STORED, TURNS)
        worker_cpu, postgres_cpu = cpu_seconds(pid) - worker_before, made.cpu()["postgres"] - postgres_before
        began = assigned_at(worker, "extract")
    last = await _number(dsn, "SELECT extract(epoch FROM max(decided_at))::float8 FROM ledger")
    asked = made.model_stats()["endpoints"]["chat"]
    return Backlog(
        last - began,
        1000 * worker_cpu / TURNS,
        1000 * postgres_cpu / TURNS,
        1000 * asked["calls"] / TURNS,
        asked["tokens_in"] / TURNS,
    )


async def by_stage(made: Machine, name: str) -> dict[str, tuple[float, float]]:
    """CPU ms a turn of (worker, Postgres) for each stage, run one after the other over the same backlog."""
    dsn, environment = await _wait_already(made, name)
    costs = {}
    for stage, done in (("extract", WRITTEN), ("reconcile", STORED)):
        with program(made, f"{name}-{stage}", ["worker", "--stages", stage], environment) as worker:
            pid = worker.process.pid
            worker_before, postgres_before = cpu_seconds(pid), made.cpu()["postgres"]
            await settled(dsn, done, TURNS)
            await asyncio.sleep(1)  # what was written before the model was asked is still on its way to the next topic
            costs[stage] = (
                1000 * (cpu_seconds(pid) - worker_before) / TURNS,
                1000 * (made.cpu()["postgres"] - postgres_before) / TURNS,
            )
    return costs


async def scaling(made: Machine, name: str, workers: int) -> list[float]:
    """Turns a second of 1, 2, … `workers` workers that wait for a slow model, each turn a call of its own.

    One backlog; a worker joins after the other. Counted while all of them work.
    """
    dsn, prefix, environment = await prepare(made, name, _SCALING_PARTITIONS)
    every = range(_SCALING_PARTITIONS)
    speakers = loads.owners("many", 6, every, _SCALING_PARTITIONS)
    await loads.flood(made, prefix, (loads.turn(owner, n) for n in range(60) for owner in speakers))
    made.control(latency_seconds=MODEL_SECONDS)
    limits = {"MNEMO_MAX_WINDOW_TURNS": "1", "MNEMO_MAX_IN_FLIGHT": str(SCALING_IN_FLIGHT)}
    rates = []
    with contextlib.ExitStack() as stack:
        for number in range(1, workers + 1):
            stack.enter_context(program(made, f"{name}-{number}", ["worker"], environment | limits))
            await asyncio.sleep(_SETTLING_SECONDS)
            before = await _number(dsn, STORED)
            start = time.monotonic()
            await asyncio.sleep(_SCALING_SECONDS)
            rates.append((await _number(dsn, STORED) - before) / (time.monotonic() - start))
    made.control(reset=True)
    return rates


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident megabytes of a worker."""

    idle: float
    peak: float
    """While `WAITING` turns wait and it works on them."""
    stored: int
    """Turns that it worked off meanwhile."""

    @property
    def limit(self) -> float:
        """What it may take: a fifth more than idle, and the declared buffers of its two stages."""
        limits = Limits()
        return 1.2 * self.idle + 2 * (limits.max_pending_bytes + limits.max_backlog_bytes) / (1 << 20)


async def memory(made: Machine, name: str) -> Memory:
    """With a slow model; what waits is of 400 owners."""
    dsn, prefix, environment = await prepare(made, name)
    made.control(latency_seconds=MODEL_SECONDS)
    speakers = loads.owners("waits", 50, range(loads.PARTITIONS))
    each = WAITING // len(speakers)
    with program(made, name, ["worker"], environment) as worker:
        warm = [loads.turn(owner, 0, size_bytes=_TURN_BYTES) for owner in speakers]
        await loads.flood(made, prefix, warm)
        await settled(dsn, STORED, len(warm))
        await asyncio.sleep(1)
        idle = resident_megabytes(worker.process.pid)

        async def work() -> None:
            talk = (loads.turn(owner, n, size_bytes=_TURN_BYTES) for n in range(1, each + 1) for owner in speakers)
            await loads.flood(made, prefix, talk)
            await asyncio.sleep(_MEMORY_SECONDS)

        peak = await _highest(worker.process.pid, work())
        stored = await _number(dsn, STORED) - len(warm)
    made.control(reset=True)
    return Memory(idle, peak, int(stored))


async def _highest(pid: int, during: Coroutine[Any, Any, None]) -> float:
    """Resident megabytes at most, looked at five times a second."""
    running = asyncio.ensure_future(during)
    highest = 0.0
    while not running.done():
        highest = max(highest, resident_megabytes(pid))
        await asyncio.wait({running}, timeout=0.2)
    await running
    return highest


async def _number(dsn: str, statement: str) -> float:
    connection = await asyncpg.connect(dsn)
    try:
        return float(await connection.fetchval(statement))
    finally:
        await connection.close()

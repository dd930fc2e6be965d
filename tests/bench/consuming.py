"""What it costs to be handed a record: Faust with its consumer, dispatch and lanes, before a handler that does nothing.

The same stage as in the worker, on the same records, in a process of its own: `python -m tests.bench.consuming` reads
one JSON object from standard input and prints one number. Beside it the lanes alone, fed from a list.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import uvloop
from mnemostream.decoding import encode_turn, partition_key
from mnemostream.turns import Reason

from runtime.logs import configure_logging
from runtime.settings import Settings
from streams.delivery import Assignment, Lanes, Limits, Record, Retry
from streams.faust_stage import Stage, make_app
from streams.topics import TURNS, topic_name
from streams.windows import SessionWindows
from streams.worker import _FLOWS
from tests.bench import loads
from tests.bench.pipeline import prepare
from tests.bench.processes import Machine

RECORDS: Final = 20_000
_WARM: Final = 2_000


@dataclass(frozen=True, slots=True)
class Consuming:
    """CPU in milliseconds a record."""

    all: float
    """From the broker to the handler, and its ack."""
    lanes: float
    """Of that the lanes and their windows, measured by themselves."""

    @property
    def faust(self) -> float:
        """What remains: Faust, its consumer and the dispatch."""
        return self.all - self.lanes


async def measure(made: Machine, name: str) -> Consuming:
    """A backlog of turns of 40 owners."""
    _, prefix, _ = await prepare(made, name)
    speakers = loads.owners("waits", 5, range(loads.PARTITIONS))
    each = (RECORDS + _WARM) // len(speakers)
    await loads.flood(made, prefix, (loads.turn(owner, n) for n in range(each) for owner in speakers))
    job = {"bootstrap": made.kafka.bootstrap_servers, "prefix": prefix, "group": f"{name}-nothing"}
    return Consuming(*(_in_process(job | {"what": what}) for what in ("stage", "lanes")))


def _in_process(job: dict[str, Any]) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.consuming"],
        input=json.dumps(job).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(json.loads(done.stdout))


class _Nothing:
    """A handler that only counts: CPU from the `_WARM`-th record to the last."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self._handled = 0
        self._began = (0, 0.0)

    async def __call__(self, records: Sequence[Record]) -> None:
        self._handled += len(records)
        if self._handled >= _WARM and not self._began[0]:
            self._began = (self._handled, _cpu_seconds())
        if self._handled >= RECORDS + _WARM:
            self.done.set()

    def milliseconds(self) -> float:
        """A record."""
        counted, cpu = self._began
        return 1000 * (_cpu_seconds() - cpu) / (self._handled - counted)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _never(_record: Record, _reason: Reason, _detail: str, _attempts: int) -> NoReturn:
    raise AssertionError("nothing is parked")


def _lanes(handle: _Nothing, stage: Stage | None = None) -> Lanes:
    return Lanes(handle, _never, limits=Limits(), retry=Retry(), window=SessionWindows(), valve=stage)


class _Unheard:
    """The `StageObserver` that counts nothing."""

    def assigned(self, partitions: int) -> None:
        """Nothing."""

    def revoked(self) -> None:
        """Nothing."""

    def coordination_error(self) -> None:
        """Nothing."""


async def _by_stage(job: dict[str, Any]) -> float:
    settings = Settings(
        kafka_bootstrap_servers=job["bootstrap"], topic_prefix=job["prefix"], consumer_group=job["group"]
    )
    handle = _Nothing()
    stage = Stage("extract", topic_name(settings, TURNS), _Unheard())
    stage.lanes = _lanes(handle, stage)
    app = make_app(stage, settings, _FLOWS["extract"], rebalance_seconds=30)
    await app.start()
    await handle.done.wait()
    taken = handle.milliseconds()
    await stage.drain(1)
    await app.stop()
    return taken


async def _by_lanes(_job: dict[str, Any]) -> float:
    speakers = loads.owners("waits", 5, range(loads.PARTITIONS))
    now = datetime.now(UTC)
    records: list[Record] = []
    for n in range((RECORDS + _WARM) // len(speakers)):
        for owner in speakers:
            turn = loads.turn(owner, n)
            place = loads.partition_of(owner)
            records.append(
                Record("turns.v1", place, len(records), now, partition_key(turn.app, turn.owner), encode_turn(turn))
            )
    handle = _Nothing()
    lanes, assignment = _lanes(handle), Assignment()
    for number, record in enumerate(records):
        await lanes.submit(record, assignment, _acked)
        if number % 48 == 0:  # as many as a fetch brings
            await asyncio.sleep(0)
    await handle.done.wait()
    taken = handle.milliseconds()
    await lanes.close()
    return taken


def _acked() -> None:
    """Nothing."""


if __name__ == "__main__":
    configure_logging("WARNING", stream=sys.stderr)
    asked = json.load(sys.stdin)
    print(json.dumps(uvloop.run((_by_stage if asked["what"] == "stage" else _by_lanes)(asked))))

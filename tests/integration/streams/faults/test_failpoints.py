"""Every place between taking a record and acking it is died at, the first and the n-th time that it is reached."""

import asyncio
import signal
import time
from itertools import cycle
from typing import Final

import pytest

from runtime.failpoints import VARIABLE, Failpoint
from tests.integration.streams.faults.nursery import Worker
from tests.integration.streams.faults.system import Scene

OWNERS: Final = [f"user/{number}" for number in range(6)]
LATER: Final = 3
"""The hit that is not the first."""
SECONDS: Final = 90


async def until_it_dies(scene: Scene, worker: Worker, failpoint: Failpoint) -> None:
    """Turns flow, and poison where that is the way to the place, until the process is dead."""
    owners = cycle(OWNERS)
    deadline = time.monotonic() + SECONDS
    while worker.code is None:
        assert time.monotonic() < deadline, f"{failpoint} was not reached\n{scene.tails()}"
        await scene.say(OWNERS)
        if failpoint.startswith("parking."):
            await scene.poison_turn(next(owners))
            await scene.poison_window(next(owners))
        await asyncio.sleep(0.2)  # a stream, not a heap: places that are reached by batches come again and again
    assert worker.code == -signal.SIGKILL, f"{failpoint}: {worker.code}\n{worker.log[-3000:]}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hit", [1, LATER])
async def test_a_worker_that_dies_at_any_step_costs_nothing(scene: Scene, hit: int) -> None:
    """One worker after the other, each with a step to die at, the next one at once."""
    for failpoint in Failpoint:
        worker = scene.start(**{VARIABLE: f"{failpoint}=kill@{hit}"})
        await until_it_dies(scene, worker, failpoint)
        await scene.evict()
    last = scene.start()
    await scene.holds()
    assert await last.terminate() == 0

"""What is published, what is chosen, and that a run ends whatever dies in it."""

import asyncio
import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from typing_extensions import override

from tests.chaos.__main__ import arguments, size_of, until_report
from tests.chaos.faults import KINDS, NEED_DISK, some_worker
from tests.chaos.machine import Disk, Machine
from tests.chaos.outside import System
from tests.chaos.verifier import Task, Verifier, settle
from tests.chaos.workload import Kind, Sending, Workload, planned

_ROOT = Path(__file__).parents[3]


class _NoJournal(Verifier):
    """Its disk is full."""

    @override
    async def _send(self, sending: Sending) -> None:
        raise OSError("no space left")


@pytest.mark.parametrize("turns", [3, 0], ids=["while it publishes", "while it probes"])
async def test_a_verifier_whose_publishing_dies_ends_instead_of_waiting_for_the_driver(
    tmp_path: Path, turns: int
) -> None:
    system = System("nowhere:1", "postgresql:///nothing", "t.", 2, [], "http://nowhere", "key")
    verifier = _NoJournal(Task(7, turns, 2, 1000.0, tmp_path / "journal", 5.0, system))
    commands = asyncio.StreamReader()
    commands.feed_data(b'{"do": "fault", "kind": "worker_kill", "detail": "", "began_at": 1, "ended_at": 2}\n')
    commands.feed_data(b'{"do": "probe"}\n')
    async with asyncio.timeout(10):
        with pytest.raises(ExceptionGroup) as died:
            await verifier.run(commands)
    assert died.group_contains(OSError, match="no space left")


async def test_settling_ends_when_what_is_missing_goes_up_and_down_for_ever() -> None:
    states = itertools.cycle([(1, 0, 0), (2, 0, 0)])

    async def missing() -> tuple[int, int, int]:
        return next(states)

    async with asyncio.timeout(10):
        await settle(missing, 0.02, 0.001)


def test_a_verifier_that_says_nothing_any_more_ends_the_run() -> None:
    heard: list[object] = []
    events = iter([{"event": "settling"}, None, {"event": "report", "ok": True}])
    assert until_report(lambda: next(events), heard.append, 5.0)["ok"]
    assert heard == [{"event": "settling"}]
    with pytest.raises(RuntimeError, match="said nothing"):
        until_report(lambda: None, heard.append, 0.0)


def test_the_seed_decides_which_worker_is_hit_whoever_runs_at_that_moment() -> None:
    def hit(away: int | None) -> list[int]:
        workers = [SimpleNamespace(runs=place != away, place=place) for place in range(3)]

        def pause(seconds: float, *, unless: Callable[[], bool]) -> bool:
            while not unless():
                workers[workers.index(next(each for each in workers if not each.runs))].runs = True
            return True

        machine = cast("Machine", SimpleNamespace(workers=workers, pause=pause))
        random = Random(5)
        return [cast("SimpleNamespace", some_worker(machine, random)).place for _ in range(12)]

    assert hit(None) == hit(0) == hit(1) == hit(2)
    assert set(hit(None)) == {0, 1, 2}


def test_an_outage_of_a_run_as_it_is_by_default_lasts_up_to_a_minute() -> None:
    given = arguments([])
    assert size_of(given).longest_seconds == 60
    assert given.kinds == list(KINDS)
    assert set(KINDS) > NEED_DISK


def test_a_disk_is_full_until_it_is_freed(tmp_path: Path) -> None:
    disk = Disk.mounted(tmp_path / "disk")
    if disk is None:
        pytest.skip("a file system of its own needs root that may mount")
    try:
        (disk.place / "data").write_bytes(bytes(100_000))
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (disk.place / "more").write_bytes(bytes(100_000))
        disk.free()
        (disk.place / "more").write_bytes(bytes(100_000))
        assert shutil.disk_usage(disk.place).used > 200_000
    finally:
        disk.unmount()


def test_a_seed_gives_the_same_turns_again_and_all_kinds_of_them() -> None:
    def plan(seed: int) -> list[tuple[bytes, int]]:
        workload = Workload(datetime(2026, 3, 1, tzinfo=UTC))
        return [(each.value, each.producer) for each in planned(workload, Random(seed), turns=2000, owners=40)]

    workload = Workload(datetime(2026, 3, 1, tzinfo=UTC))
    order = planned(workload, Random(7), turns=2000, owners=40)
    assert plan(7) == plan(7) != plan(8)
    assert {sending.turn.kind for sending in order} == set(Kind)
    assert {sending.producer for sending in order} == {0, 1, 2}
    assert len({sending.turn.owner for sending in order}) == 40
    texts = [sending.turn.text for sending in {each.turn.id: each for each in order}.values() if sending.turn.text]
    assert len(set(texts)) == len(texts)


def test_the_verifier_shares_no_code_with_the_pipeline() -> None:
    ours = ("cli", "memory", "mnemostream", "processors", "providers", "query", "runtime", "store", "streams")
    program = f"""
import sys, tests.chaos.verifier
print([name for name in sys.modules if name.split(".")[0] in {ours}])
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"

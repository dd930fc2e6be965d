"""Kafka and Postgres die, freeze, go away and come back, on servers of this module's own. One worker lives through it.

Postgres has a small disk, so that it can be full.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest

from cli.embedded.kafka import KafkaServer
from cli.embedded.postgres import PostgresServer
from streams.stopping import CLOSE_SECONDS
from tests import services
from tests.integration.streams.faults.conftest import fresh
from tests.integration.streams.faults.nursery import Nursery, Worker
from tests.integration.streams.faults.system import Scene, ScriptedModel, eventually

OWNERS: Final = [f"user/{number}" for number in range(8)]
DRAIN_SECONDS: Final = 2
SLACK_SECONDS: Final = 4
"""Of a machine that has other things to do."""
_DISK: Final = "300m"


@dataclass(frozen=True)
class Servers:
    """This module's own."""

    kafka: KafkaServer
    postgres: PostgresServer
    disk: Path | None
    """The file system that Postgres has for itself. None: it cannot be made here."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Both, running."""
    with services.scratch_directory() as directory, _disk(directory / "disk") as disk:
        kafka = KafkaServer(directory / "kafka", port=0)
        postgres = PostgresServer((disk or directory) / "postgres", durable=False, shared_buffers="64MB")
        try:
            kafka.start()
            postgres.start()
            yield Servers(kafka, postgres, disk)
        finally:
            kafka.stop(timeout_seconds=5)
            postgres.stop(timeout_seconds=5)


@contextlib.contextmanager
def _disk(place: Path) -> Iterator[Path | None]:
    """A file system of its own, in memory, where this user may mount one."""
    place.mkdir(mode=0o711)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=0711", "tmpfs", str(place)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def scene(servers: Servers, model: ScriptedModel, workers: Nursery) -> Iterator[Scene]:
    """Topics and a database on them, and a worker that lives through all tests."""
    with fresh(servers.kafka.bootstrap_servers, servers.postgres.dsn("postgres"), model, workers) as made:
        made.start()
        yield made


@pytest.fixture(autouse=True)
def unharmed(servers: Servers, scene: Scene) -> Iterator[None]:
    """After each test all is up again, and the worker is still the same one."""
    yield
    for server in (servers.postgres, servers.kafka):
        if not server.is_running:
            server.start()
    assert scene.workers[0].code is None, scene.workers[0].log[-3000:]


@contextlib.asynccontextmanager
async def talking(scene: Scene, model: ScriptedModel, seconds: float = 0.3) -> AsyncIterator[None]:
    """Turns are in every stage of their way when the body begins."""
    model.control(latency_seconds=seconds)
    await scene.say(OWNERS, 4)
    await eventually(lambda: model.server.stats.in_flight > 0, "turns are read")
    yield
    model.control(latency_seconds=0)


_TERMINATE: Final = """
    SELECT pg_terminate_backend(pid)
    FROM pg_stat_activity
    WHERE usename IS NOT NULL AND pid <> pg_backend_pid()
"""


async def execute(servers: Servers, statement: str) -> None:
    connection = await asyncpg.connect(servers.postgres.dsn("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_postgres_that_crashes_and_recovers_loses_nothing(
    scene: Scene, servers: Servers, model: ScriptedModel
) -> None:
    async with talking(scene, model):
        servers.postgres.crash()
        servers.postgres.start()
    await scene.holds()


async def test_connections_that_are_terminated_are_made_again(
    scene: Scene, servers: Servers, model: ScriptedModel
) -> None:
    async with talking(scene, model):
        for _ in range(5):
            await execute(servers, _TERMINATE)
            await asyncio.sleep(0.2)  # what is tested: again and again, at any step
    await scene.holds()


async def test_a_postgres_that_is_away_for_a_while_is_waited_for(
    scene: Scene, servers: Servers, model: ScriptedModel, minute: float
) -> None:
    async with talking(scene, model):
        servers.postgres.stop()
        await scene.say(OWNERS, 2)
        await asyncio.sleep(minute)  # what is tested: an outage that lasts
        servers.postgres.start()
    await scene.holds()


async def test_a_database_that_lets_nobody_in_for_a_while_is_waited_for(
    scene: Scene, servers: Servers, model: ScriptedModel, minute: float
) -> None:
    name = urlsplit(scene.dsn).path.removeprefix("/")
    async with talking(scene, model):
        await execute(servers, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        await execute(servers, _TERMINATE)
        await scene.say(OWNERS, 2)
        await asyncio.sleep(minute / 2)  # what is tested: an outage that lasts
        await execute(servers, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    await scene.holds()


async def test_a_full_disk_is_waited_out(scene: Scene, servers: Servers, model: ScriptedModel) -> None:
    if servers.disk is None:
        pytest.skip("a file system of its own for Postgres needs root that may mount")
    ballast = servers.disk / "ballast"
    async with talking(scene, model):
        _fill(ballast)
        async with asyncio.timeout(30):
            while "No space left" not in servers.postgres.log.read_text():
                await scene.say(OWNERS, 2, words=200)  # more than the pages in hand have room for
                await asyncio.sleep(0.5)
        await asyncio.sleep(2)  # what is tested: it lasts
        ballast.unlink()
        if not servers.postgres.is_running:
            servers.postgres.start()
    await scene.holds()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))


async def test_a_broker_that_is_killed_and_comes_back_loses_nothing(
    scene: Scene, servers: Servers, model: ScriptedModel
) -> None:
    async with talking(scene, model):
        servers.kafka.kill()
        servers.kafka.start()
    await scene.say(OWNERS, 2)
    await scene.holds()


async def test_a_broker_that_is_away_for_a_while_is_waited_for_also_at_the_start(
    scene: Scene, servers: Servers, model: ScriptedModel, minute: float
) -> None:
    async with talking(scene, model):
        servers.kafka.kill()
        late = scene.start()
        waiting = await late.event("waiting")
        assert waiting["waiting_for"] == "Kafka"
        await asyncio.sleep(minute)  # what is tested: an outage that lasts
        servers.kafka.start()
        await late.ready()
    await scene.say(OWNERS, 2)
    await scene.holds()
    assert await late.terminate() == 0


async def test_a_broker_that_is_lost_while_a_worker_joins_is_waited_for(scene: Scene, servers: Servers) -> None:
    late = scene.start()
    await eventually(lambda: "Starting..." in late.log, "it joins")
    servers.kafka.kill()
    await asyncio.sleep(3)  # what is tested: it is not there when it is looked for
    servers.kafka.start()
    await late.ready()
    await scene.say(OWNERS, 2)
    await scene.holds()
    assert await late.terminate() == 0


@contextlib.asynccontextmanager
async def frozen(*processes: int) -> AsyncIterator[None]:
    """Processes with their children that answer nobody: worse than being gone."""
    family = [
        each for pid in processes for each in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
    ]
    for each in family:
        each.suspend()
    try:
        yield
    finally:
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.resume()


async def stops_in_time(worker: Worker) -> None:
    """Told to stop, it is gone by its deadline, whatever hangs."""
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    await worker.ended(DRAIN_SECONDS + CLOSE_SECONDS + SLACK_SECONDS)
    assert time.monotonic() - began < DRAIN_SECONDS + CLOSE_SECONDS + SLACK_SECONDS


@pytest.mark.parametrize("which", ["kafka", "postgres"])
async def test_a_worker_stops_in_time_though_what_it_needs_hangs(
    scene: Scene, servers: Servers, model: ScriptedModel, which: str
) -> None:
    other = scene.start(MNEMO_DRAIN_SECONDS=str(DRAIN_SECONDS))
    await other.ready()
    pid = servers.kafka.pid if which == "kafka" else servers.postgres.pid
    assert pid is not None
    async with talking(scene, model, seconds=1), frozen(pid):
        await stops_in_time(other)
    await scene.holds()


async def test_a_worker_stops_in_time_though_kafka_and_postgres_are_gone(
    scene: Scene, servers: Servers, model: ScriptedModel
) -> None:
    other = scene.start(MNEMO_DRAIN_SECONDS=str(DRAIN_SECONDS))
    await other.ready()
    async with talking(scene, model, seconds=1):
        servers.kafka.kill()
        servers.postgres.crash()
        await stops_in_time(other)
        servers.postgres.start()
        servers.kafka.start()
    await scene.holds()

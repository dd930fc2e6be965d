"""The system under test: Kafka, a durable Postgres, the scripted model, workers and a query service; the verifier."""

import asyncio
import contextlib
import json
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mnemostream.ids import uuid7

from cli.embedded.kafka import KafkaServer
from cli.embedded.postgres import PostgresServer
from cli.embedded.processes import choose_ports, spawn, wait_until
from processors.keys import RANDOM_BYTES, key_hash, key_prefix, new_key
from runtime.failpoints import VARIABLE
from runtime.settings import Settings
from store.database import Database
from store.keys import ApiKeyRepository
from store.migrate import migrate
from streams.topics import ensure_topics

ROOT: Final = Path(__file__).parents[2]
DATABASE: Final = "chaos"
DRAIN_SECONDS: Final = 8.0
_MODEL_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 4.0
"""What a worker has after its drain."""
_SLACK_SECONDS: Final = 4.0
"""For a machine that is busy."""
_READY_SECONDS: Final = 90.0
_DISK_BYTES: Final = 4 << 30
"""Only what is used of it takes memory: the data, and up to a gigabyte of WAL."""
_FILL_SECONDS: Final = 10.0


@dataclass
class Worker:
    """One worker process, or the place where one was."""

    name: str
    process: "subprocess.Popen[bytes]"
    ops_port: int
    log: Path
    armed: str = ""
    away_seconds: float = 1.0
    """Between its end and the start of the next one in its place."""
    ended_at: float | None = None
    expected: bool = False
    """Its end was our doing."""

    @property
    def runs(self) -> bool:
        """Stopped by a signal counts."""
        return self.process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Frozen by SIGSTOP."""
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
            return stat[stat.rindex(")") + 2] == "T"
        return False

    def send(self, number: signal.Signals) -> None:
        """Harmless when it has ended."""
        if self.runs:
            self.process.send_signal(number)

    def is_ready(self) -> bool:
        """By its own word."""
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops_port}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        return False


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system in memory that Postgres has for itself, so that it can be full."""

    place: Path

    @classmethod
    def mounted(cls, place: Path) -> "Disk | None":
        """None where this user may not mount one."""
        place.mkdir(mode=0o711, parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=0711", "tmpfs", str(place)]
        if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            return None
        return cls(place)

    def fill(self) -> None:
        """It shrinks to what is on it. The kernel refuses where something was written meanwhile: once more."""
        if not wait_until(lambda: self._resize(shutil.disk_usage(self.place).used), _FILL_SECONDS):
            raise RuntimeError(f"{self.place} could not be filled")

    def free(self) -> None:
        """As it was made."""
        if not self._resize(_DISK_BYTES):
            raise RuntimeError(f"{self.place} could not be made larger")

    def _resize(self, size: int) -> bool:
        resize = ["mount", "-o", f"remount,size={size}", str(self.place)]
        return subprocess.run(resize, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        """Whatever is on it is gone."""
        subprocess.run(["umount", "-l", str(self.place)], check=True)


@dataclass(frozen=True, slots=True)
class Size:
    """Of a run."""

    turns: int
    owners: int
    workers: int
    partitions: int
    rate: float
    longest_seconds: float
    """Of an outage."""
    settle_seconds: float


class Machine:
    """Everything in one directory. What is started ends with this process, however it ends.

    own_disk: Postgres has a file system for itself, where one can be mounted.
    """

    def __init__(self, directory: Path, size: Size, *, own_disk: bool) -> None:
        self.directory = directory
        self.size = size
        self.kafka = KafkaServer(directory / "kafka", port=0)
        self.disk = Disk.mounted(directory / "disk") if own_disk else None
        self.postgres = PostgresServer(
            (self.disk.place if self.disk else directory) / "postgres",
            shared_buffers="128MB",
            log=directory / "postgres.log",
        )
        self.workers: list[Worker] = []
        self.incidents: list[str] = []
        self.restarts: list[str] = []
        self._model: subprocess.Popen[bytes] | None = None
        self._query: subprocess.Popen[bytes] | None = None
        self._started = 0
        self.environment: dict[str, str] = {}
        self.model_port = self.query_port = 0
        self.key = ""

    @property
    def groups(self) -> list[str]:
        """Consumer groups of the stages."""
        return [f"{DATABASE}-extract", f"{DATABASE}-reconcile"]

    def start(self) -> None:
        """All of it; returns when the workers are ready."""
        self.kafka.prepare()
        self.postgres.prepare()
        self.kafka.launch()
        self.postgres.launch()
        [self.model_port] = choose_ports(0)
        self.start_model()
        self.postgres.wait_ready()
        self.postgres.create_database(DATABASE)
        self.kafka.wait_ready()
        asyncio.run(self._prepare())
        self._start_query()
        self.workers = [self.start_worker() for _ in range(self.size.workers)]
        for worker in self.workers:
            self.wait_ready(worker)

    async def _prepare(self) -> None:
        dsn = self.postgres.dsn(DATABASE)
        await migrate(dsn)
        prefix = f"{DATABASE}."
        settings = Settings(
            kafka_bootstrap_servers=self.kafka.bootstrap_servers,
            topic_prefix=prefix,
            topic_partitions=self.size.partitions,
        )
        assert (await ensure_topics(settings)).ok
        self.key = await _make_key(dsn)
        self.environment = {
            "MNEMO_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "MNEMO_POSTGRES_DSN": dsn,
            "MNEMO_TOPIC_PREFIX": prefix,
            "MNEMO_CONSUMER_GROUP": DATABASE,
            "MNEMO_MODEL_PROVIDER": "openai",
            "MNEMO_OPENAI_BASE_URL": f"http://127.0.0.1:{self.model_port}/v1",
            "MNEMO_OPENAI_API_KEY": "scripted",
            "MNEMO_EMBEDDING_DIMENSIONS": "64",
            "MNEMO_MAX_LIVE_MEMORIES": "1000000",
            "MNEMO_EXTRACTION_TIMEOUT_SECONDS": str(_MODEL_SECONDS),
            "MNEMO_ARBITRATION_TIMEOUT_SECONDS": str(_MODEL_SECONDS),
            "MNEMO_EMBEDDING_TIMEOUT_SECONDS": str(_MODEL_SECONDS),
            "MNEMO_DRAIN_SECONDS": str(DRAIN_SECONDS),
        }

    def _spawn(self, name: str, arguments: list[str], settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MNEMO_", "OPENAI_"))}
        return spawn(
            [sys.executable, "-m", *arguments],
            environment={**clean, **settings},
            log=self.directory / f"{name}.log",
            directory=ROOT,
            death_signal=signal.SIGKILL,
        )

    def _start_query(self) -> None:
        self.query_port, grpc_port, ops_port = choose_ports(0, 0, 0)
        ports = {"MNEMO_QUERY_PORT": self.query_port, "MNEMO_GRPC_PORT": grpc_port, "MNEMO_OPS_PORT": ops_port}
        settings = self.environment | {name: str(port) for name, port in ports.items()}
        self._query = self._spawn("query", ["cli.main", "query"], settings)

    def start_model(self) -> None:
        """On the port where it always is."""
        self._model = self._spawn("model", ["cli.dev.model_server", "--port", str(self.model_port)], {})

    def kill_model(self) -> None:
        """SIGKILL: whoever asks it is refused."""
        assert self._model is not None
        self._model.kill()
        self._model.wait()

    def start_worker(self, armed: str = "") -> Worker:
        """armed: failpoints. It is not ready yet, and nobody's: put it among the workers."""
        self._started += 1
        name = f"worker-{self._started}"
        [port] = choose_ports(0)
        settings = self.environment | {"MNEMO_OPS_PORT": str(port)} | ({VARIABLE: armed} if armed else {})
        process = self._spawn(name, ["cli.main", "worker"], settings)
        return Worker(name, process, port, self.directory / f"{name}.log", armed)

    def wait_ready(self, worker: Worker) -> None:
        """Or until it has ended, for a reason that its log tells, or a failpoint has frozen it."""
        deadline = time.monotonic() + _READY_SECONDS
        while worker.runs and not worker.is_stopped and not worker.is_ready():
            if time.monotonic() > deadline:
                self.incidents.append(f"{worker.name} was not ready after {_READY_SECONDS:g} s")
                return
            time.sleep(0.1)

    def supervise(self) -> None:
        """As an orchestrator: a worker that has ended is started again a moment later. Call it often."""
        for place, worker in enumerate(self.workers):
            if worker.runs:
                continue
            if worker.ended_at is None:
                worker.ended_at = time.monotonic()
            elif time.monotonic() - worker.ended_at > worker.away_seconds:
                if not worker.expected:
                    self.restarts.append(f"{worker.name} ended with {worker.process.poll()} by itself")
                self.workers[place] = self.start_worker()

    def pause(self, seconds: float, *, unless: Callable[[], bool] = lambda: False) -> bool:
        """Let the time pass, workers looked after. True when `unless` came true before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if unless():
                return True
            self.supervise()
            time.sleep(0.05)
        return unless()

    def terminate(self, worker: Worker) -> float:
        """SIGTERM; gives the seconds it took. One that does not end in time by itself is an incident."""
        allowed = DRAIN_SECONDS + _CLOSE_SECONDS + _SLACK_SECONDS
        began = time.monotonic()
        worker.expected = True
        worker.send(signal.SIGTERM)
        try:
            worker.process.wait(allowed)
        except subprocess.TimeoutExpired:
            self.incidents.append(f"{worker.name} had not ended {allowed:g} s after SIGTERM")
            worker.process.kill()
            worker.process.wait()
        return time.monotonic() - began

    def control(self, **behaviour: Any) -> None:
        """Tell the scripted model how to behave."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.model_port}/control", data=json.dumps(behaviour).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=5):
            pass

    def stop(self, *, keep: bool) -> None:
        """All of it, at once: what had to be seen was seen. keep: Postgres's data too, where its disk is taken away."""
        for process in [*(worker.process for worker in self.workers), self._model, self._query]:
            if process is not None:
                process.kill()
                process.wait()
        self.kafka.kill()
        self.kafka.stop()
        self.postgres.crash()
        self.postgres.stop()
        if self.disk is not None:
            if keep:
                subprocess.run(["cp", "-a", self.disk.place / "postgres", self.directory], check=True)
            self.disk.unmount()


async def _make_key(dsn: str) -> str:
    key = new_key(secrets.token_bytes(RANDOM_BYTES))
    database = await Database.open(dsn, role="mnemo_operator", pool_size=1)
    try:
        await ApiKeyRepository(database).create(
            app="chaos", key_id=uuid7(), key_hash=key_hash(key), prefix=key_prefix(key), name="verifier"
        )
    finally:
        await database.close()
    return key


@dataclass
class VerifierLink:
    """The verifier's process, and what it says."""

    process: "subprocess.Popen[str]"
    events: "queue.Queue[dict[str, Any] | None]" = field(default_factory=queue.Queue)

    @classmethod
    def start(cls, machine: Machine, seed: int) -> "VerifierLink":
        """It publishes from now on."""
        size = machine.size
        task = {
            "seed": seed,
            "turns": size.turns,
            "owners": size.owners,
            "rate": size.rate,
            "journal": str(machine.directory / "journal.jsonl"),
            "settle_seconds": size.settle_seconds,
            "system": {
                "bootstrap": machine.kafka.bootstrap_servers,
                "dsn": machine.postgres.dsn(DATABASE),
                "prefix": f"{DATABASE}.",
                "partitions": size.partitions,
                "groups": machine.groups,
                "url": f"http://127.0.0.1:{machine.query_port}",
                "key": machine.key,
            },
        }
        log = (machine.directory / "verifier.log").open("ab")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.verifier", json.dumps(task)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        link = cls(process)
        threading.Thread(target=link._read, daemon=True).start()
        return link

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def tell(self, do: str, **fields: Any) -> None:
        """A command. Raises RuntimeError when the verifier is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(f"the verifier ended with {self.process.wait()}: see verifier.log") from None

    def close(self) -> None:
        """It ends, whatever it was doing."""
        self.process.kill()
        self.process.wait()

    def next_event(self, seconds: float) -> dict[str, Any] | None:
        """None when there is none in time. Raises RuntimeError when the verifier is gone."""
        try:
            event = self.events.get(timeout=seconds)
        except queue.Empty:
            return None
        if event is None:
            raise RuntimeError(f"the verifier ended with {self.process.wait()}: see verifier.log")
        return event

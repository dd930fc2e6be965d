"""The processes of a benchmark, and the CPU that each has used."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from cli.embedded.kafka import KafkaServer
from cli.embedded.postgres import PostgresServer
from cli.embedded.processes import choose_ports

_READY_SECONDS = 60


class Program:
    """A program started by the benchmark, with its log."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                env={**_clean_environment(), **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of its log with that event, so far; needs `MNEMO_LOG_LEVEL=INFO`."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("event") == name]

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_ready(self, ops_port: int) -> None:
        """Until `/readyz` answers 200."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with {self.process.returncode}:\n{self._log.read_text()[-2000:]}")
            with contextlib.suppress(OSError, urllib.error.HTTPError):
                with urllib.request.urlopen(f"http://127.0.0.1:{ops_port}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            time.sleep(0.05)
        raise RuntimeError(f"not ready after {_READY_SECONDS} s:\n{self._log.read_text()[-2000:]}")


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("MNEMO_", "OPENAI_"))}


def cpu_seconds(pid: int) -> float:
    """Of a process and of all its children, those that ended included."""
    process = psutil.Process(pid)
    total = sum(process.cpu_times()[:4])
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return float(total)


def resident_megabytes(pid: int) -> float:
    """Of one process."""
    return float(psutil.Process(pid).memory_info().rss) / (1 << 20)


class Machine:
    """One Kafka, one durable Postgres and one scripted model for the whole run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kafka = KafkaServer(directory / "kafka", port=0)
        self.postgres = PostgresServer(directory / "postgres")
        self._model: Program | None = None
        self.model_url = ""
        self.model_port = 0

    def start(self) -> None:
        """All three; returns when they answer."""
        self.kafka.start()
        self.postgres.start()
        [self.model_port] = choose_ports(0)
        self._model = Program(
            ["-m", "cli.dev.model_server", "--port", str(self.model_port)], {}, self.directory / "model.log"
        )
        self.model_url = f"http://127.0.0.1:{self.model_port}/v1"
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.control(reset=True)
                return
            time.sleep(0.05)
        raise RuntimeError("the scripted model did not start")

    def stop(self) -> None:
        """In the order of dependence."""
        if self._model is not None:
            self._model.stop()
        self.kafka.stop()
        self.postgres.stop()

    def control(self, **behaviour: Any) -> None:
        """Tell the scripted model how to behave."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.model_port}/control", data=json.dumps(behaviour).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=5):
            pass

    def model_stats(self) -> dict[str, Any]:
        """What the scripted model saw since it was reset."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.model_port}/stats", timeout=5) as answer:
            stats: dict[str, Any] = json.loads(answer.read())
        return stats

    def environment(self, dsn: str, prefix: str) -> dict[str, str]:
        """The settings of a worker or query service that uses this machine."""
        return {
            "MNEMO_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "MNEMO_POSTGRES_DSN": dsn,
            "MNEMO_TOPIC_PREFIX": prefix,
            "MNEMO_CONSUMER_GROUP": prefix.rstrip("."),
            "MNEMO_MODEL_PROVIDER": "openai",
            "MNEMO_OPENAI_BASE_URL": self.model_url,
            "MNEMO_OPENAI_API_KEY": "scripted",
            "MNEMO_EMBEDDING_DIMENSIONS": "384",
            "MNEMO_LOG_LEVEL": "WARNING",
        }

    def cpu(self) -> dict[str, float]:
        """CPU seconds of Kafka, Postgres and the model so far."""
        assert self.kafka.pid is not None
        assert self.postgres.pid is not None
        assert self._model is not None
        return {
            "kafka": cpu_seconds(self.kafka.pid),
            "postgres": cpu_seconds(self.postgres.pid),
            "model": cpu_seconds(self._model.process.pid),
        }


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """A machine in a temporary directory, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="mnemo-bench-") as name:
        directory = Path(name)
        directory.chmod(0o711)
        made = Machine(directory)
        made.start()
        try:
            yield made
        finally:
            made.stop()


@contextlib.contextmanager
def program(made: Machine, name: str, arguments: list[str], environment: Mapping[str, str]) -> Iterator[Program]:
    """`mnemo` with `arguments`, ready, and stopped at the end."""
    [ops_port] = choose_ports(0)
    started = Program(
        ["-m", "cli.main", *arguments],
        {**environment, "MNEMO_OPS_PORT": str(ops_port)},
        made.directory / f"{name}.log",
    )
    try:
        started.wait_ready(ops_port)
        yield started
    finally:
        started.stop()

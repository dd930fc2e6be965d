"""The worker as its own process, and turns to feed it."""

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from mnemostream.decoding import encode_turn, partition_key
from mnemostream.turns import Message, Role, Turn

ROOT = Path(__file__).parents[3]
_RUN = """
import sys
from runtime.logs import configure_logging
from runtime.settings import load_settings
from streams.worker import run_worker
configure_logging("INFO")
sys.exit(run_worker(load_settings(), sys.argv[1].split(",")))
"""


class WorkerProcess:
    """`streams.worker.run_worker` in a process of its own, with its log lines."""

    def __init__(self, settings: Mapping[str, str], stages: str = "extract,reconcile") -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RUN, stages],
            env=environment | {"MNEMO_OPS_PORT": "0"} | settings,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(pipe,), daemon=True)
            for pipe in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: Any) -> None:
        with pipe:
            for line in pipe:
                self.lines.append(line.rstrip())
                self._new.put(line.rstrip())

    def event(self, name: str, seconds: float = 30) -> dict[str, Any]:
        """The next log line of that event."""
        until = time.monotonic() + seconds
        while True:
            line = self._new.get(timeout=max(0.0, until - time.monotonic()))
            if line.startswith("{") and (entry := json.loads(line)).get("event") == name:
                return dict(entry)

    def page(self, path: str) -> tuple[int, str]:
        """A page of the operations endpoint."""
        if not hasattr(self, "_port"):
            line = next(line for line in self.lines if "operations_endpoint" in line)
            self._port = json.loads(line)["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def terminate(self, seconds: float = 30) -> int:
        """SIGTERM; gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 30) -> int:
        code = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(5)
        return code

    def kill(self) -> None:
        """SIGKILL."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


def a_turn(number: int, owner: str, **changes: Any) -> Turn:
    """Turn `number` of `owner`: the local reader makes one memory of it."""
    fields: dict[str, Any] = {
        "id": f"t{number}",
        "app": "acme",
        "owner": owner,
        "session": "s-1",
        "said_at": datetime(2026, 11, 1, tzinfo=UTC) + timedelta(minutes=number),
        "messages": (Message(Role.USER, f"I live in Town{number}."),),
    }
    return Turn(**fields | changes)


Raw = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]


def raw(turn: Turn) -> Raw:
    return partition_key(turn.app, turn.owner), encode_turn(turn), []


async def publish(bootstrap: str, topic: str, records: Sequence[Raw], **options: Any) -> list[tuple[int, int]]:
    """Send records; gives partition and offset of each."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_request_size=9 << 20, **options)
    await producer.start()
    try:
        sent = []
        for key, value, headers in records:
            if key is None and value is None:
                batch = producer.create_batch()
                batch.append(key=None, value=None, timestamp=None, headers=list(headers))
                sent.append(await producer.send_batch(batch, topic, partition=0))
            else:
                sent.append(await producer.send(topic, value=value, key=key, headers=list(headers)))
        return [(meta.partition, meta.offset) for meta in await asyncio.gather(*sent)]
    finally:
        await producer.stop()


async def all_records(bootstrap: str, topic: str) -> list[Any]:
    """What stands on a topic now."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        ends = await consumer.end_offsets(consumer.assignment())
        found: list[Any] = []
        while sum(ends.values()) > len(found):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                found += batch
        return found
    finally:
        await consumer.stop()


async def until(dsn: str, query: str, reached: Callable[[Any], bool], seconds: float = 60) -> Any:
    """The value of `query` once it is what is waited for; what it was last, when that does not come."""
    connection = await asyncpg.connect(dsn)
    deadline = time.monotonic() + seconds
    try:
        while True:
            value = await connection.fetchval(query)
            if reached(value) or time.monotonic() > deadline:
                return value
            await asyncio.sleep(0.05)
    finally:
        await connection.close()


async def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()

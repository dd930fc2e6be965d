"""The verifier: a process that publishes, keeps a journal of what was acknowledged, and looks from outside.

It imports nothing of the project, so that no error of ours can hide in both. The driver tells it by lines of JSON on
stdin what it does to the system (`fault`), and asks it to measure (`probe`) and to judge (`finish`); it answers by
lines of JSON on stdout. Exit code: 0, or 1 when something was lost, doubled, reordered or otherwise wrong.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.partitioner import DefaultPartitioner

from tests.chaos.checks import Acknowledged, check
from tests.chaos.outside import Rows, System, lag, observe
from tests.chaos.report import Recovery, Report, report
from tests.chaos.workload import APP, SKEWS, Place, Sending, Turn, Workload, planned, probes

_AWAY: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""What it means that Postgres does not answer now."""
_PROBE_LOOK_SECONDS: Final = 0.1
_SETTLE_LOOK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 0.2
_REQUEST_MS: Final = 8_000
_STOP_SECONDS: Final = 5.0
_SEND_SECONDS: Final = 60.0
"""What one attempt may take, whatever the client waits for."""
_LAST_SENDS_SECONDS: Final = 600.0
"""What the last turns may wait for the broker: longer than any outage and start."""
_LOOK_SECONDS: Final = 60.0
_GARBAGE: Final = "model_garbage"
_GARBAGE_IN_FLIGHT_SECONDS: Final = 5.0
"""Between the model's last answer of that kind and the parking of the turn that it belongs to."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the driver wants."""

    seed: int
    turns: int
    owners: int
    rate: float
    journal: Path
    settle_seconds: float
    system: System


class Journal:
    """A file that only grows. What was noted is on disk: one fsync for all that came meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._lines: list[bytes] = []
        self._writing = asyncio.Lock()
        self.entries: list[Acknowledged] = []

    async def note(self, ack: Acknowledged) -> None:
        """Returns when it is on disk."""
        entry = {"p": ack.place.partition, "o": ack.place.offset, "owner": ack.owner, "id": ack.turn_id, "at": ack.at}
        self._lines.append(json.dumps(entry).encode() + b"\n")
        self.entries.append(ack)
        async with self._writing:
            lines, self._lines = self._lines, []
            if lines:
                await asyncio.to_thread(self._write, lines)

    def close(self) -> None:
        """Nothing is noted from now on."""
        self._file.close()

    def _write(self, lines: Sequence[bytes]) -> None:
        self._file.write(b"".join(lines))
        self._file.flush()
        os.fsync(self._file.fileno())


class Producer:
    """One producer with a clock of its own. It sends until the broker has acknowledged, so it may send twice.

    A client whose send failed is replaced: what expired has left a hole in its numbers, so all that follows is refused.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._client: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self.retries = 0

    async def send(self, sending: Sending) -> Place:
        """Where it stands now."""
        while True:
            client = None
            try:
                client = await self._open()
                async with asyncio.timeout(_SEND_SECONDS):
                    meta = await client.send_and_wait(self._topic, sending.value, sending.turn.key)
            except (KafkaError, OSError, TimeoutError):
                self.retries += 1
                if client is not None and client is self._client:
                    self._client = None
                    self._discard(client)
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return Place(meta.partition, meta.offset)

    async def _open(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._client is None:
                client = AIOKafkaProducer(
                    bootstrap_servers=self._bootstrap,
                    acks="all",
                    enable_idempotence=True,
                    request_timeout_ms=_REQUEST_MS,
                )
                try:
                    await client.start()
                except BaseException:
                    self._discard(client)
                    raise
                self._client = client
            return self._client

    def _discard(self, client: AIOKafkaProducer) -> None:
        task = asyncio.create_task(_stopped(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if self._client is not None:
            self._discard(self._client)
        await asyncio.gather(*self._closing)


async def _stopped(client: AIOKafkaProducer) -> None:
    """Whatever still waits in it fails, and is sent again by another."""
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await client.stop()
    except (KafkaError, TimeoutError) as error:
        print(f"a producer was left behind ({type(error).__name__})", file=sys.stderr)


class Verifier:
    """One run, from the first turn to the verdict."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._system = task.system
        self._workload = Workload(datetime.now(UTC))
        topic = task.system.prefix + "turns.v1"
        self._producers = [Producer(task.system.bootstrap, topic) for _ in SKEWS]
        self._journal = Journal(task.journal)
        self._rows = Rows(task.system.dsn)
        self._sent: dict[Place, Turn] = {}
        self._recoveries: list[Recovery] = []
        self._incidents: list[str] = []
        self._redelivered = 0
        self._began = time.time()
        self._probing: set[asyncio.Task[None]] = set()

    async def run(self, commands: asyncio.StreamReader) -> int:
        """Until the driver has said `finish`, or is gone. An error of what runs beside it is an error of this."""
        order = planned(self._workload, Random(self._task.seed), turns=self._task.turns, owners=self._task.owners)
        with contextlib.closing(self._journal):
            async with asyncio.TaskGroup() as beside:
                publishing = beside.create_task(self._publish(order))
                tell({"event": "ready"})
                code = await self._obey(commands, beside, publishing)
                for task in (publishing, *self._probing):
                    task.cancel()
        return code

    async def _obey(
        self, commands: asyncio.StreamReader, beside: asyncio.TaskGroup, publishing: "asyncio.Task[None]"
    ) -> int:
        while line := await commands.readline():
            command = json.loads(line)
            match command.pop("do"):
                case "fault":
                    self._recoveries.append(Recovery(**command))
                    self._redelivered += command.get("redelivered", 0)
                case "probe":
                    probe = beside.create_task(self._probe(self._recoveries[-1]))
                    self._probing.add(probe)
                    probe.add_done_callback(self._probing.discard)
                case "incident":
                    self._incidents.append(command["what"])
                case "finish":
                    await publishing
                    return await self._finish()
                case unknown:
                    raise ValueError(f"unknown command {unknown!r}")
        return 3

    async def _publish(self, order: Sequence[Sending]) -> None:
        """At a steady rate, whoever is away. Raises TimeoutError when the last ones wait too long."""
        began = asyncio.get_running_loop().time()
        planned_seconds = len(order) / self._task.rate
        async with asyncio.timeout(planned_seconds + _LAST_SENDS_SECONDS), asyncio.TaskGroup() as sends:
            for number, sending in enumerate(order):
                await asyncio.sleep(began + number / self._task.rate - asyncio.get_running_loop().time())
                sends.create_task(self._send(sending))
                if number % 100 == 0:
                    tell({"event": "progress", "sent": number, "acknowledged": len(self._journal.entries)})
        tell({"event": "published", "acknowledged": len(self._journal.entries)})

    async def _send(self, sending: Sending) -> None:
        place = await self._producers[sending.producer].send(sending)
        turn = sending.turn
        self._sent[place] = turn
        await self._journal.note(Acknowledged(place, turn.owner, turn.id, time.time()))

    async def _probe(self, recovery: Recovery) -> None:
        """A turn for each partition; the fault is over when all of them took effect."""
        sendings = list(probes(self._workload, self._probe_owners()))
        await asyncio.gather(*(self._send(sending) for sending in sendings))
        names = [(each.turn.owner, each.turn.id) for each in sendings]
        while True:
            try:
                at = await self._rows.all_took_effect(names)
            except _AWAY:
                at = None
            if at is not None:
                break
            await asyncio.sleep(_PROBE_LOOK_SECONDS)
        recovery.seconds = max(0.0, at - recovery.ended_at)
        tell({"event": "recovered", "fault": self._recoveries.index(recovery), "seconds": recovery.seconds})

    def _probe_owners(self) -> list[str]:
        """One for each partition."""
        partitions = list(range(self._system.partitions))
        choose = DefaultPartitioner()
        found: dict[int, str] = {}
        number = 0
        while len(found) < len(partitions):
            owner = f"probe-{number}"
            found.setdefault(choose(f"{APP}/{owner}".encode(), partitions, partitions), owner)
            number += 1
        return [found[partition] for partition in partitions]

    async def _finish(self) -> int:
        if self._probing:
            await asyncio.wait(self._probing, timeout=self._task.settle_seconds)
        for probe in list(self._probing):
            probe.cancel()
            self._incidents.append("the system did not recover: a probe had no effect")
        await asyncio.gather(*list(self._probing), return_exceptions=True)
        settled = await settle(self._missing, self._task.settle_seconds, _SETTLE_LOOK_SECONDS)
        for producer in self._producers:
            await producer.close()
        seen = await observe(self._system, self._workload.by_value, self._rows)
        seen.acknowledged = self._journal.entries
        seen.garbage = [
            (each.began_at, each.ended_at + _GARBAGE_IN_FLIGHT_SECONDS)
            for each in self._recoveries
            if each.kind == _GARBAGE
        ]
        await self._rows.close()
        made = Report(
            seed=self._task.seed,
            seen=seen,
            findings=check(seen),
            incidents=self._incidents,
            recoveries=self._recoveries,
            redelivered=self._redelivered,
            retries=sum(producer.retries for producer in self._producers),
            began=self._began,
            settled_seconds=settled,
        )
        verdict = report(made)
        tell({"event": "report", **verdict})
        return 0 if verdict["ok"] else 1

    async def _missing(self) -> tuple[int, int, int]:
        """Acknowledged turns that have not ended, changes that wait, records that are not committed."""
        effects, parked = await self._rows.settled()
        unsettled = 0
        for place, turn in self._sent.items():
            effect = effects.get((turn.owner, turn.id))
            ended = effect is not None if turn.kind.is_turn else effect == place
            unsettled += not (ended or place in parked)
        _, _, outbox = await self._rows.counts()
        return unsettled, outbox, 0 if unsettled else await lag(self._system)


async def settle(missing: Callable[[], Awaitable[tuple[int, int, int]]], seconds: float, pause: float) -> float:
    """Until nothing is missing, or no less than before for so many seconds. Gives the seconds it took.

    Only less is progress: what goes up and down for ever ends too. pause: between two looks.
    """
    began = moved = time.monotonic()
    least: tuple[int, int, int] | None = None
    while time.monotonic() - moved < seconds:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                state = await missing()
        except (*_AWAY, KafkaError):
            state = None
        if state == (0, 0, 0):
            break
        if state is not None and (least is None or state < least):
            least, moved = state, time.monotonic()
            tell({"event": "settling", "unsettled": state[0], "outbox": state[1], "lag": state[2]})
        await asyncio.sleep(pause)
    return time.monotonic() - began


def tell(event: dict[str, Any]) -> None:
    """To the driver."""
    print(json.dumps(event), flush=True)


async def _main(task: Task) -> int:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return await Verifier(task).run(reader)


def main() -> None:
    """`python -m tests.chaos.verifier TASK`, the task as JSON."""
    given = json.loads(sys.argv[1])
    system = System(**given.pop("system"))
    journal = Path(given.pop("journal"))
    sys.exit(asyncio.run(_main(Task(journal=journal, system=system, **given))))


if __name__ == "__main__":
    main()

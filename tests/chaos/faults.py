"""What is done to the system. Each kind does its damage, and what it takes back; the driver measures what follows."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from cli.embedded.errors import EmbeddedError
from cli.embedded.kafka import answers
from cli.embedded.processes import wait_until
from runtime.failpoints import Failpoint
from tests.chaos.machine import DATABASE, Machine, Worker

SESSION_SECONDS: Final = 10.0
"""What the group waits for a member that is silent."""
_LONGEST_REACH_SECONDS: Final = 25.0
_EMPTY_SECONDS: Final = 30.0
_LONGEST_AWAY_SECONDS: Final = 10.0
_NOTICED_SECONDS: Final = 30.0
_RECOVERY_SECONDS: Final = 60.0
_NO_SPACE: Final = "No space left"
_BROKER_SECONDS: Final = 300.0


def _nothing() -> None:
    """Nothing is left to be done."""


@dataclass(frozen=True, slots=True)
class Injected:
    """What was done. `mend` comes after the system has recovered."""

    detail: str
    redelivered: int = 0
    mend: Callable[[], None] = _nothing


Inject = Callable[[Machine, Random], Injected]


def some_worker(machine: Machine, random: Random) -> Worker:
    """By its place, so that the seed decides: who runs at this moment does not. One that is away is waited for."""
    place = random.randrange(len(machine.workers))
    machine.pause(_LONGEST_AWAY_SECONDS, unless=lambda: machine.workers[place].runs)
    return machine.workers[place]


def _outage(machine: Machine, random: Random) -> float:
    """Seconds of one."""
    longest = machine.size.longest_seconds
    return random.uniform(longest / 3, longest)


def worker_kill(machine: Machine, random: Random) -> Injected:
    worker = some_worker(machine, random)
    worker.expected = True
    worker.away_seconds = random.uniform(0, 5)
    worker.send(signal.SIGKILL)
    return Injected(f"{worker.name}, back after {worker.away_seconds:.1f} s")


def worker_term(machine: Machine, random: Random) -> Injected:
    worker = some_worker(machine, random)
    worker.away_seconds = random.uniform(0, 5)
    took = machine.terminate(worker)
    return Injected(f"{worker.name} ended in {took:.1f} s, back after {worker.away_seconds:.1f} s")


def workers_kill(machine: Machine, random: Random) -> Injected:
    for worker in machine.workers:
        worker.expected = True
        worker.away_seconds = 0.0
        worker.send(signal.SIGKILL)
    return Injected("all at once, back at once")


def worker_join(machine: Machine, random: Random) -> Injected:
    joined = machine.start_worker()
    machine.workers.append(joined)
    machine.wait_ready(joined)

    def leave() -> None:
        machine.terminate(machine.workers.pop())  # it, or the one in its place

    return Injected(f"{joined.name}, which leaves again", mend=leave)


def worker_freeze(machine: Machine, random: Random) -> Injected:
    worker = some_worker(machine, random)
    worker.send(signal.SIGSTOP)
    seconds = SESSION_SECONDS + random.uniform(2, 6)
    machine.pause(seconds)
    worker.send(signal.SIGCONT)
    return Injected(f"{worker.name} for {seconds:.1f} s")


def failpoint(machine: Machine, random: Random) -> Injected:
    """A worker that ends, freezes or fails at one step; it takes the place of one that left."""
    point = random.choice(list(Failpoint))
    action = random.choice(("kill", "kill", "stop", "fail"))
    armed = f"{point}={action}@{1 if point.startswith('parking') else random.choice((1, 2, 5))}"
    place = random.randrange(len(machine.workers))
    machine.terminate(machine.workers[place])
    worker = machine.workers[place] = machine.start_worker(armed)
    worker.expected = True
    machine.wait_ready(worker)
    patience = min(_LONGEST_REACH_SECONDS, 3 * machine.size.longest_seconds)
    if action == "fail":
        machine.pause(patience / 3)
        return Injected(f"{worker.name} {armed}", mend=lambda: _disarm(machine, worker))
    reached = machine.pause(patience, unless=lambda: worker.is_stopped or not worker.runs)
    if action == "stop" and reached:
        machine.pause(SESSION_SECONDS + 3)
        worker.send(signal.SIGCONT)
    said = "" if reached else ", not reached"
    return Injected(f"{worker.name} {armed}{said}", mend=lambda: _disarm(machine, worker))


def _disarm(machine: Machine, worker: Worker) -> None:
    """It leaves, and one without failpoints comes."""
    if worker in machine.workers and worker.runs:
        worker.send(signal.SIGCONT)
        machine.terminate(worker)
        worker.away_seconds = 0.0


def broker_kill(machine: Machine, random: Random) -> Injected:
    machine.kafka.kill()
    _launch_kafka(machine)
    return Injected("SIGKILL, started at once")


def broker_away(machine: Machine, random: Random) -> Injected:
    machine.kafka.stop()
    seconds = _outage(machine, random)
    machine.pause(seconds)
    _start_kafka(machine)
    return Injected(f"for {seconds:.1f} s")


def _start_kafka(machine: Machine) -> None:
    machine.kafka.prepare()
    _launch_kafka(machine)


def _launch_kafka(machine: Machine) -> None:
    """Not by `wait_ready`, which gives up where a broker with a session of 2 s answers, and then does not."""
    machine.kafka.launch()
    if not wait_until(lambda: answers(machine.kafka.port), _BROKER_SECONDS):
        raise RuntimeError(f"Kafka did not come back: {machine.kafka.log}")


def _start_postgres(machine: Machine) -> None:
    machine.postgres.prepare()
    machine.postgres.launch()
    machine.postgres.wait_ready()


def postgres_crash(machine: Machine, random: Random) -> Injected:
    machine.postgres.crash()
    machine.postgres.launch()
    machine.postgres.wait_ready()
    return Injected("immediate, started at once")


def postgres_away(machine: Machine, random: Random) -> Injected:
    machine.postgres.stop()
    seconds = _outage(machine, random)
    machine.pause(seconds)
    _start_postgres(machine)
    return Injected(f"for {seconds:.1f} s")


_TERMINATE: Final = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{DATABASE}'"


def postgres_terminate(machine: Machine, random: Random) -> Injected:
    count = machine.postgres.psql(_TERMINATE)
    return Injected(f"{count} connections")


def postgres_refuse(machine: Machine, random: Random) -> Injected:
    machine.postgres.psql(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
    machine.postgres.psql(_TERMINATE)
    seconds = _outage(machine, random)
    machine.pause(seconds)
    machine.postgres.psql(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true")
    return Injected(f"connections, for {seconds:.1f} s")


def _lets_in(machine: Machine) -> bool:
    with contextlib.suppress(EmbeddedError):
        machine.postgres.psql("SELECT 1")
        return True
    return False


def postgres_full(machine: Machine, random: Random) -> Injected:
    """No byte is free on its disk. It may end of that, and is started again when there is room."""
    assert machine.disk is not None
    log = machine.postgres.log
    before = log.stat().st_size
    seconds = _outage(machine, random)

    def refused() -> int:
        with log.open("rb") as lines:
            lines.seek(before)
            return lines.read().count(_NO_SPACE.encode())

    machine.disk.fill()
    machine.pause(_NOTICED_SECONDS, unless=lambda: refused() > 0)
    machine.pause(seconds)
    machine.disk.free()
    wait_until(lambda: not machine.postgres.is_running or _lets_in(machine), _RECOVERY_SECONDS)
    ended = not machine.postgres.is_running
    if ended:
        _start_postgres(machine)
    return Injected(f"for {seconds:.1f} s, {refused()} times in its log{', which ended it' if ended else ''}")


def _model(behaviour: Mapping[str, object]) -> Inject:
    def inject(machine: Machine, random: Random) -> Injected:
        machine.control(**behaviour)
        seconds = _outage(machine, random)
        machine.pause(seconds)
        machine.control(reset=True)
        return Injected(f"for {seconds:.1f} s")

    return inject


def model_down(machine: Machine, random: Random) -> Injected:
    machine.kill_model()
    seconds = _outage(machine, random)
    machine.pause(seconds)
    machine.start_model()
    return Injected(f"for {seconds:.1f} s")


def term_without_broker(machine: Machine, random: Random) -> Injected:
    """A worker told to stop while the broker is away: it has to end by itself."""
    machine.kafka.stop()
    worker = some_worker(machine, random)
    took = machine.terminate(worker)
    _start_kafka(machine)
    return Injected(f"{worker.name} ended in {took:.1f} s")


def term_without_postgres(machine: Machine, random: Random) -> Injected:
    machine.postgres.stop()
    worker = some_worker(machine, random)
    took = machine.terminate(worker)
    _start_postgres(machine)
    return Injected(f"{worker.name} ended in {took:.1f} s")


def offset_reset(machine: Machine, random: Random) -> Injected:
    """All workers leave, groups begin anew, the workers come back: everything is delivered again."""
    stages = random.choice((("extract",), ("reconcile",), ("extract", "reconcile")))
    for worker in machine.workers:
        worker.expected = True
        worker.send(signal.SIGTERM)
    for worker in machine.workers:
        machine.terminate(worker)
        worker.away_seconds = 0.0
    count = asyncio.run(_reset(machine, stages))
    machine.supervise()
    machine.pause(0.2)
    return Injected(f"of {' and '.join(stages)}, {count} records", redelivered=count)


async def _reset(machine: Machine, stages: tuple[str, ...]) -> int:
    """Records that stand before the old offsets: all that there are."""
    topics = {"extract": "turns.v1", "reconcile": "candidates.v1"}
    count = 0
    for stage in stages:
        topic = f"{DATABASE}.{topics[stage]}"
        consumer = AIOKafkaConsumer(
            bootstrap_servers=machine.kafka.bootstrap_servers, group_id=f"{DATABASE}-{stage}", enable_auto_commit=False
        )
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, number) for number in range(machine.size.partitions)]
            consumer.assign(partitions)
            count += sum((await consumer.end_offsets(partitions)).values())
            await _commit_beginning(consumer, partitions)
        finally:
            await consumer.stop()
    return count


async def _commit_beginning(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> None:
    """Once the group is empty: a member that left without a word stays until its session ends."""
    deadline = time.monotonic() + _EMPTY_SECONDS
    while True:
        try:
            await consumer.commit(dict.fromkeys(partitions, 0))
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)
        else:
            return


KINDS: Final[Mapping[str, Inject]] = {
    "worker_kill": worker_kill,
    "workers_kill": workers_kill,
    "worker_term": worker_term,
    "worker_join": worker_join,
    "worker_freeze": worker_freeze,
    "failpoint": failpoint,
    "broker_kill": broker_kill,
    "broker_away": broker_away,
    "postgres_crash": postgres_crash,
    "postgres_away": postgres_away,
    "postgres_terminate": postgres_terminate,
    "postgres_refuse": postgres_refuse,
    "postgres_full": postgres_full,
    "model_down": model_down,
    "model_hang": _model({"mode": "hang"}),
    "model_429": _model({"mode": "error", "status": 429, "retry_after": "1"}),
    "model_500": _model({"mode": "error", "status": 500}),
    "model_garbage": _model({"mode": "garbage"}),
    "term_without_broker": term_without_broker,
    "term_without_postgres": term_without_postgres,
    "offset_reset": offset_reset,
}
NEED_DISK: Final = frozenset({"postgres_full"})
"""Kinds for which Postgres needs a file system of its own."""

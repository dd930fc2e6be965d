"""The worker process: its composition root."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final, TypeVar

import structlog
import uvloop
from mnemostream.ids import uuid7
from mode import Worker
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from typing_extensions import override

from memory.reconcile import Reconciler
from processors.errors import MnemoError, Unavailable
from processors.extraction import MAX_ANSWERS
from providers.assembly import open_arbitrator, open_embedder, open_reader
from runtime import failpoints
from runtime.ops import Check, Heartbeat, OpsServer, Readiness
from runtime.settings import InvalidSettings, Settings
from store.database import Database
from store.migrate import check as check_schema
from store.models import ModelKeys
from store.outbox import OutboxRepository
from store.owners import OwnerRepository
from store.parking import ParkingRepository
from store.retention import BITE, TurnRetention
from store.turns import TurnRepository
from streams.delivery import Handle, Lanes, Limits, Retry, windows_of_one
from streams.faust_stage import Flow, Stage, StageApp, make_app
from streams.handlers import Extract, Reconcile
from streams.kafka import client_options
from streams.metrics import DecisionMetrics, RelayMetrics, StageMetrics, WorkerMetrics
from streams.outlet import Outlet
from streams.parking import Parker
from streams.ports import Embedder
from streams.relay import Relay
from streams.stopping import Stopping
from streams.topics import CANDIDATES, CHANGES, PARKED, TURNS, missing_topics, topic_name
from streams.windows import SessionWindows

_log = structlog.get_logger(__name__)

_SLACK_SECONDS: Final = 10.0
"""Of an attempt, beside what its models may take: for the store and the broker."""
_CRASH_SECONDS: Final = 1.0
"""Of a drain when a stage broke: what is not done by then is delivered again, to a process that is whole."""
_LOOK_SECONDS: Final = 1.0
_LOOKS_A_PROBE: Final = 5
_PURGE_SECONDS: Final = 900.0
_PROBE_SECONDS: Final = 3.0
_FLOWS: Final = {"extract": Flow(poll_records=48, buffer=256), "reconcile": Flow(poll_records=48, buffer=256)}
_SOURCES: Final = {"extract": TURNS, "reconcile": CANDIDATES}
_NEEDS: Final = {"extract": (TURNS, CANDIDATES, PARKED), "reconcile": (CANDIDATES, PARKED)}

_RELAY_BATCH_BYTES: Final = 256 * 1024

_Result = TypeVar("_Result")


class TopicsMissing(MnemoError):
    """Topics that the worker needs do not exist."""


class WorkerCrashed(MnemoError):
    """A stage broke in a way that only a new process heals."""


def run_worker(settings: Settings, stages: Sequence[str]) -> int:
    """Run `stages` (of extract, reconcile) until SIGTERM or SIGINT; gives the exit code.

    Waits for Kafka and Postgres as long as they are away. From the signal on the process has a deadline, also after
    this has returned: a client's thread may hang on. Raises InvalidSettings, TopicsMissing, WorkerCrashed, and
    MigrationError where `mnemo migrate` has to run first.
    """
    failpoints.arm()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_WorkerProcess(settings, tuple(stages)).run())


class _WorkerProcess:
    def __init__(self, settings: Settings, names: tuple[str, ...]) -> None:
        self._settings = settings
        self._names = names
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._metrics = WorkerMetrics(self._registry)
        self._stopping = Stopping(settings.drain_seconds)
        self._stack = AsyncExitStack()
        self._stages: list[tuple[Stage, StageMetrics]] = []
        self._started = False
        self._postgres = False

    async def run(self) -> int:
        """The life of the process."""
        self._stopping.listen()
        heartbeat = Heartbeat()
        settings = self._settings
        ops = OpsServer(
            settings.ops_host,
            settings.ops_port,
            registry=self._registry,
            health=heartbeat.health,
            ready=self._readiness,
        )
        heartbeat.start()
        _log.info("operations_endpoint", host=settings.ops_host, port=ops.start())
        try:
            async with self._stack:
                apps = await self._stopping.unless_asked(self._assemble())
                if apps is not None:
                    await self._serve(apps)
        finally:
            await heartbeat.stop()
            ops.stop()
        self._stopping.over()
        _log.info("stopped")
        return 0

    def _readiness(self) -> Readiness:
        checks = [Check("started", self._started), Check("postgres", self._postgres)]
        checks += [
            Check(f"{stage.name}_assigned", stage.assigned, f"{stage.partitions} partitions")
            for stage, _ in self._stages
        ]
        return Readiness(tuple(checks))

    async def _assemble(self) -> list[StageApp]:
        """Everything that the stages need, open and checked; the stack closes it."""
        settings = self._settings
        database = await self._open_store()
        await self._check_topics()
        embedder = await self._stack.enter_async_context(open_embedder(settings, on_circuit=self._metrics.circuit))
        await self._once_there("Postgres", lambda: ModelKeys(database).key(embedder.model))
        outlet = await self._stack.enter_async_context(Outlet(client_options(settings), client_id="mnemo-worker"))
        apps = []
        for name in self._names:
            if name == "extract":
                handle: Handle = await self._extract(database, embedder, outlet)
            else:
                handle = await self._reconcile(database, embedder)
            apps.append(self._stage(name, handle, database, outlet))
        looking = asyncio.get_running_loop().create_task(self._look(database))
        self._stack.callback(looking.cancel)
        await self._let_go_of_turns()
        await self._relay_changes()
        return apps

    async def _relay_changes(self) -> None:
        """Beside the stages, whichever they are: every worker takes its share of the outbox."""
        settings = self._settings
        if settings.postgres_dsn is None:
            return
        dsn = settings.postgres_dsn.get_secret_value()
        timer = await self._once_there("Postgres", lambda: Database.open(dsn, role="mnemo_timer", pool_size=1))
        self._stack.push_async_callback(timer.close)
        options = client_options(settings) | {"max_batch_size": _RELAY_BATCH_BYTES}
        outlet = await self._stack.enter_async_context(Outlet(options, client_id="mnemo-relay"))
        topic = topic_name(settings, CHANGES)
        relay = Relay(OutboxRepository(timer), outlet, topic=topic, observer=RelayMetrics(self._registry))
        await self._stack.enter_async_context(relay)

    async def _let_go_of_turns(self) -> None:
        """Now and then the log of turns loses what is past its retention."""
        retention = timedelta(days=self._settings.turn_retention_days)
        if retention and self._settings.postgres_dsn is not None and "extract" in self._names:
            dsn = self._settings.postgres_dsn.get_secret_value()
            timer = await self._once_there("Postgres", lambda: Database.open(dsn, role="mnemo_timer", pool_size=1))
            self._stack.push_async_callback(timer.close)
            task = asyncio.get_running_loop().create_task(_purge_turns(TurnRetention(timer), retention))
            self._stack.callback(task.cancel)

    async def _open_store(self) -> Database:
        settings = self._settings
        if settings.postgres_dsn is None:
            raise InvalidSettings("MNEMO_POSTGRES_DSN: needed by the worker")
        dsn = settings.postgres_dsn.get_secret_value()

        async def open_and_check() -> Database:
            await check_schema(dsn)
            return await Database.open(dsn, role="mnemo_worker", pool_size=settings.postgres_pool_size)

        database = await self._once_there("Postgres", open_and_check)
        self._stack.push_async_callback(database.close)
        self._postgres = True
        return database

    async def _check_topics(self) -> None:
        settings = self._settings
        needed = sorted({topic for name in self._names for topic in _NEEDS[name]} | {CHANGES})
        missing = await self._once_there("Kafka", lambda: missing_topics(settings, needed))
        if missing:
            raise TopicsMissing(f"these topics do not exist: {', '.join(missing)}; `mnemo topics` creates them")

    async def _once_there(self, what: str, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of `attempt`, tried until it is no longer away. Says once what is waited for."""
        retry = Retry(cap_seconds=5.0)
        for number in count(1):
            try:
                result = await attempt()
            except Unavailable as unavailable:
                if number == 1:
                    _log.warning("waiting", waiting_for=what, error=str(unavailable))
                await asyncio.sleep(retry.delay(number))
            else:
                if number > 1:
                    _log.info("reached", waiting_for=what, attempts=number)
                return result
        raise AssertionError("unreachable")

    async def _extract(self, database: Database, embedder: Embedder, outlet: Outlet) -> Extract:
        settings, metrics = self._settings, self._metrics
        reader = await self._stack.enter_async_context(
            open_reader(settings, on_dropped=metrics.dropped, on_circuit=metrics.circuit)
        )
        return Extract(
            TurnRepository(database),
            reader,
            embedder,
            outlet,
            topic=topic_name(settings, CANDIDATES),
            max_facts_per_turn=settings.max_facts_per_turn,
            observer=metrics,
        )

    async def _reconcile(self, database: Database, embedder: Embedder) -> Reconcile:
        settings = self._settings
        arbitrator = await self._stack.enter_async_context(open_arbitrator(settings, on_circuit=self._metrics.circuit))
        return Reconcile(
            Reconciler(
                OwnerRepository(database),
                embedder,
                arbitrator,
                new_id=uuid7,
                arbitration_limit=timedelta(seconds=settings.arbitration_timeout_seconds),
                observer=DecisionMetrics(self._metrics),
            )
        )

    def _stage(self, name: str, handle: Handle, database: Database, outlet: Outlet) -> StageApp:
        settings = self._settings
        metrics = StageMetrics(self._metrics, name)
        attempt_seconds = _attempt_seconds(settings, name)
        parker = Parker(
            outlet,
            ParkingRepository(database),
            stage=name,
            topic=topic_name(settings, PARKED),
            holds_windows=name == "reconcile",
        )
        stage = Stage(name, topic_name(settings, _SOURCES[name]), metrics)
        stage.lanes = Lanes(
            handle,
            parker,
            limits=_limits(settings),
            retry=Retry(attempt_seconds=attempt_seconds),
            window=SessionWindows(max_turns=settings.max_window_turns) if name == "extract" else windows_of_one,
            valve=stage,
            observer=metrics,
            on_crash=stage.crash,
        )
        self._stages.append((stage, metrics))
        return make_app(stage, settings, _FLOWS[name], rebalance_seconds=attempt_seconds + 5)

    async def _serve(self, apps: Sequence[StageApp]) -> None:
        """Run the apps until it is time to stop, or one breaks; then drain, leave, and close."""
        # What is loaded by now stays: a full collection walked it each time, some 60 ms in which no turn goes on.
        gc.collect()
        gc.freeze()
        worker = _Apps(*apps, override_logging=False, redirect_stdouts=False, quiet=True)
        running = asyncio.ensure_future(worker.start())
        asked = asyncio.ensure_future(self._stopping.wait())
        self._started = True
        drain_seconds = self._settings.drain_seconds
        try:
            await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
            told = self._stopping.asked
            if not told:
                drain_seconds = min(drain_seconds, _CRASH_SECONDS)
                self._stopping.ask("crash", drain_seconds=drain_seconds)
        finally:
            self._started = False
            asked.cancel()
        await asyncio.gather(*(stage.drain(drain_seconds) for stage, _ in self._stages))
        await worker.stop()
        [ended] = await asyncio.gather(running, return_exceptions=True)
        crash = ended if isinstance(ended, Exception) else worker.crash_reason
        if crash is not None and told:
            # A client that breaks while it leaves its group takes nothing with it: what is not acked comes again.
            _log.error("broke_while_stopping", error=type(crash).__name__, exc_info=crash)
        elif crash is not None:
            raise WorkerCrashed(f"a stage crashed ({type(crash).__name__})") from crash

    async def _look(self, database: Database) -> None:
        """Once a second what is in hand, and now and then whether Postgres answers."""
        for number in count():
            now = datetime.now(UTC)
            for stage, metrics in self._stages:
                oldest = stage.lanes.oldest_unfinished()
                age = max(0.0, (now - oldest).total_seconds()) if oldest is not None else 0.0
                metrics.look(stage.lanes.running, stage.lanes.pending, age)
            if number % _LOOKS_A_PROBE == 0:
                self._postgres = await _answers(database)
            await asyncio.sleep(_LOOK_SECONDS)


def _limits(settings: Settings) -> Limits:
    return Limits(
        max_in_flight=settings.max_in_flight,
        max_pending=settings.max_pending_records,
        max_pending_bytes=settings.max_pending_bytes,
        max_lane=max(1, settings.max_pending_records // 2),
        max_lane_bytes=settings.max_owner_bytes,
    )


def _attempt_seconds(settings: Settings, stage: str) -> float:
    """What one attempt at a window may take: all that its models may, so that poison is told from an outage."""
    models = {
        "extract": MAX_ANSWERS * settings.extraction_timeout_seconds,
        # What is merged is embedded too.
        "reconcile": settings.arbitration_timeout_seconds + settings.embedding_timeout_seconds,
    }
    return models[stage] + settings.embedding_timeout_seconds + _SLACK_SECONDS


async def _purge_turns(turns: TurnRetention, retention: timedelta) -> None:
    """Forever: bite by bite, then a pause."""
    while True:
        try:
            full = await turns.purge(retention) == BITE
        except Unavailable as unavailable:
            full = False
            _log.warning("turns_not_purged", error=str(unavailable))
        await asyncio.sleep(0.1 if full else _PURGE_SECONDS)


class _Apps(Worker):
    """Starts and stops the apps together. The signals are ours."""

    logger = logging.getLogger("mode.worker")

    @override
    def install_signal_handlers(self) -> None:
        """None."""


async def _answers(database: Database) -> bool:
    try:
        async with asyncio.timeout(_PROBE_SECONDS), database.across() as connection:
            await connection.fetchval("SELECT 1")
    except (TimeoutError, Unavailable):
        return False
    return True

"""The composition root of `mnemo query`: settings in, a serving process out."""

import asyncio
import random
import signal
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final, LiteralString, TypeVar

import structlog
import uvloop
from mnemostream.ids import uuid7
from mnemostream.redaction import sanitize_lines
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from memory.forget import Forget
from memory.ports import Arbitrator, Embedder
from memory.recall import Recall, TurnWatch
from memory.tell import Tell
from processors.errors import StoreUnavailable
from providers.assembly import open_arbitrator, open_embedder
from query.asgi import application
from query.auth import Authenticator
from query.exporting import Exporter
from query.gate import Gate
from query.grpc_port import GrpcPort
from query.metrics import QueryMetrics
from query.ports import Ports
from query.service import MemoryService, methods
from runtime.ops import Check, Heartbeat, OpsServer, Readiness
from runtime.settings import InvalidSettings, Settings
from store.database import Database
from store.decisions import DecisionRepository
from store.exports import ExportRepository
from store.forgetting import ForgettingRepository
from store.keys import ApiKeyRepository
from store.memories import MemoryRepository
from store.migrate import MigrationError
from store.migrate import check as check_schema
from store.models import ModelKeys
from store.notices import TurnNotices
from store.owners import OwnerRepository
from store.search import SearchRepository
from store.turns import TurnRepository

_FIRST_BACKOFF_SECONDS: Final = 0.2
_LAST_BACKOFF_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0
_TELL_SECONDS: Final = 10.0
"""For the arbitrator, of a tell: who calls waits for it."""
"""How often readiness looks at Postgres."""
_ALIVE: Final[LiteralString] = "SELECT 1"

T = TypeVar("T")

_log = structlog.get_logger(__name__)


def run_query(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Waits for Postgres as long as it takes."""
    try:
        return uvloop.run(_serve(settings))
    except (MigrationError, InvalidSettings, OSError) as error:
        _log.error("query_cannot_start", reason=str(error))
        return 1


class _PostgresCheck:
    """Whether Postgres answers, looked at now and then so that `/readyz` need not wait."""

    def __init__(self) -> None:
        self._check = Check("postgres", ok=False, detail="waiting for it")

    def readiness(self) -> Readiness:
        """What the last look saw."""
        return Readiness((self._check,))

    async def watch(self, database: Database) -> None:
        """Look again and again."""
        while True:
            try:
                async with database.across() as connection:
                    await connection.execute(_ALIVE, timeout=_LOOK_SECONDS)
                self._check = Check("postgres", ok=True)
            except Exception as error:  # noqa: BLE001 (whatever it is, calls would fail of it too)
                self._check = Check("postgres", ok=False, detail=type(error).__name__)
            await asyncio.sleep(_LOOK_SECONDS)

    def stopping(self) -> None:
        """No more calls should come."""
        self._check = Check("stopping", ok=False)


async def _serve(settings: Settings) -> int:
    stop = _stop_on_signals()
    registry = _registry()
    metrics = QueryMetrics(registry)
    postgres = _PostgresCheck()
    async with AsyncExitStack() as stack:
        ops_port = await _operations(stack, settings, registry, postgres)
        database = await _until(stop, _open_store(settings))
        if database is None:
            return 0
        stack.push_async_callback(database.close)
        embedder = await stack.enter_async_context(open_embedder(settings, on_circuit=metrics.circuit))
        arbitrator = await stack.enter_async_context(open_arbitrator(settings, on_circuit=metrics.circuit))
        await ModelKeys(database).key(embedder.model)
        notices = await stack.enter_async_context(TurnNotices(database))
        watch = asyncio.create_task(postgres.watch(database), name="postgres-check")
        stack.callback(watch.cancel)
        ports = assembled(settings, database, embedder, arbitrator, notices, metrics)
        listening = await ports.start(
            http=(settings.query_host, settings.query_port), grpc=(settings.grpc_host, settings.grpc_port)
        )
        _log.info(
            "query_serving",
            http=f"{settings.query_host}:{listening.http_port}",
            grpc=f"{settings.grpc_host}:{listening.grpc_port}",
            ops=f"{settings.ops_host}:{ops_port}",
        )
        broken = await _until(stop, ports.broken())
        postgres.stopping()
        _log.info("query_stopping", drain_seconds=settings.drain_seconds)
        await ports.stop()
    _log.info("query_stopped")
    return 1 if broken else 0


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


async def _operations(
    stack: AsyncExitStack, settings: Settings, registry: CollectorRegistry, postgres: _PostgresCheck
) -> int:
    """The operations endpoint, before all else, so that a process that waits can be seen."""
    heartbeat = Heartbeat()
    heartbeat.start()
    stack.push_async_callback(heartbeat.stop)
    ops = OpsServer(
        settings.ops_host, settings.ops_port, registry=registry, health=heartbeat.health, ready=postgres.readiness
    )
    stack.callback(ops.stop)
    return ops.start()


async def _open_store(settings: Settings) -> Database:
    """The store, once it answers. Raises MigrationError where its schema is older than this code."""
    if settings.postgres_dsn is None:
        raise InvalidSettings("MNEMO_POSTGRES_DSN: needed by the query service")
    dsn = settings.postgres_dsn.get_secret_value()
    backoff = _FIRST_BACKOFF_SECONDS
    waiting = False
    while True:
        try:
            await check_schema(dsn)
            return await Database.open(dsn, role="mnemo_query", pool_size=settings.postgres_pool_size)
        except StoreUnavailable as error:
            if not waiting:
                _log.warning("waiting_for_postgres", reason=str(error))
                waiting = True
        await asyncio.sleep(random.uniform(backoff / 2, backoff))
        backoff = min(2 * backoff, _LAST_BACKOFF_SECONDS)


def assembled(
    settings: Settings,
    database: Database,
    embedder: Embedder,
    arbitrator: Arbitrator,
    notices: TurnNotices,
    metrics: QueryMetrics,
) -> Ports:
    """The service on its store and its models, behind both ports."""
    memories = MemoryRepository(database)
    service = MemoryService(
        recall=Recall(SearchRepository(database), embedder),
        turns=TurnWatch(TurnRepository(database), notices),
        tell=Tell(
            OwnerRepository(database),
            memories,
            embedder,
            arbitrator,
            new_id=uuid7,
            arbitration_limit=timedelta(seconds=min(settings.arbitration_timeout_seconds, _TELL_SECONDS)),
        ),
        memories=memories,
        decisions=DecisionRepository(database),
        forget=Forget(ForgettingRepository(database), new_id=uuid7),
        redact=sanitize_lines,
        metrics=metrics,
    )
    served = methods(service, Exporter(ExportRepository(database)))
    gate = Gate(Authenticator(ApiKeyRepository(database)), served, metrics)
    return Ports(application(gate, served), GrpcPort(gate, served), drain_seconds=settings.drain_seconds)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None, and `work` cancelled, where `stop` comes first."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        return await task
    task.cancel()
    await asyncio.wait([task])
    return None

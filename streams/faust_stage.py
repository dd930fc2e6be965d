"""A stage as a Faust app: one topic, one consumer group, one agent that hands raw records to the lanes.

Faust joins the group, fetches and commits. It decodes nothing, acks nothing by itself, and its agent cannot fail.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import faust
import structlog
from faust.app.base import BootStrategy
from faust.types import TP, ChannelT, EventT, Message, StreamT
from faust.types.transports import TransportT
from typing_extensions import override

from runtime.failpoints import Failpoint, reach
from runtime.settings import Settings
from streams.delivery import Assignment, Lanes, Record
from streams.faust_consumer import CoordinationDead, StageConsumer, StageTransport
from streams.kafka import bootstrap_servers, tls_context

_log = structlog.get_logger(__name__)

REVOKE_SECONDS: Final = 5.0
"""What a rebalance waits for windows that run; the rest goes on un-acked."""
SESSION_SECONDS: Final = 10.0
_COMMIT_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 1.0
_CALM_SECONDS: Final = 3.0
_DEAF_SECONDS: Final = 30.0
"""When the consumer's thread has not answered for so long, it is dead."""
_METADATA_MILLISECONDS: Final = 5_000
_NEVER_SECONDS: Final = 30 * 24 * 60 * 60.0
"""`broker_max_poll_interval`: a stage that waits out an outage stays in its group. Its thread sends the heartbeats."""


_ACKED: Final = {"extract": Failpoint.EXTRACT_ACKED, "reconcile": Failpoint.RECONCILE_ACKED}
_COMMITTED: Final = {"extract": Failpoint.EXTRACT_COMMITTED, "reconcile": Failpoint.RECONCILE_COMMITTED}


@dataclass(frozen=True, slots=True)
class Flow:
    """How much a stage fetches ahead: at most 20 % of the buffer at once (trap 10)."""

    poll_records: int
    buffer: int


class StageBroken(Exception):
    """The delivery of a stage failed in a way that only a new process heals. Tells the error's type."""


class StageObserver(Protocol):
    """Hears of a stage's membership in its group, for metrics. Called on the event loop."""

    def assigned(self, partitions: int) -> None:
        """A rebalance gave it so many partitions."""
        ...

    def revoked(self) -> None:
        """A rebalance began."""
        ...

    def coordination_error(self) -> None:
        """The watchdog set coordination going again."""
        ...


class Stage:
    """Where a Faust app and the lanes meet: the current assignment, its acks, its end.

    All methods belong to the event loop that the app runs on.
    """

    lanes: Lanes
    """Set once, before the app starts: the lanes need the stage, as their valve, too."""

    def __init__(self, name: str, topic: str, observer: StageObserver) -> None:
        self.name = name
        self.topic = topic
        self.app: StageApp | None = None
        self.observer = observer
        self._assignment: Assignment | None = None
        self._partitions: frozenset[TP] | None = None
        self._calm = asyncio.Event()
        self._stopping = False
        self._acked = _ACKED.get(name)

    @property
    def _rebalancing(self) -> bool:
        return self.app is not None and bool(self.app.rebalancing) and not self._calm.is_set()

    @property
    def assigned(self) -> bool:
        """Whether the group gave it its share, were it none because there are more workers than partitions."""
        return self._partitions is not None and not self._stopping

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self._partitions or ())

    def begin(self) -> None:
        """A rebalance gave partitions: what comes now is new."""
        if not self._stopping:
            self._assignment = Assignment()

    def settled(self, partitions: frozenset[TP]) -> None:
        """The rebalance is over."""
        self._partitions = partitions
        self._calm.set()
        self.observer.assigned(len(partitions))
        _log.info("assigned", stage=self.name, partitions=sorted(tp.partition for tp in partitions))

    async def revoke(self) -> None:
        """A rebalance takes the partitions: finish what runs within a few seconds, leave the rest un-acked."""
        self.observer.revoked()
        self._calm.clear()
        self._partitions = None
        assignment, self._assignment = self._assignment, None
        if assignment is not None:
            self.lanes.suspend(assignment)
            await self.lanes.drain(REVOKE_SECONDS)
            await self._commit()
            assignment.close()

    async def drain(self, seconds: float) -> None:
        """Take nothing more, finish what runs within `seconds`, cancel the rest. Before the app is stopped."""
        self._stopping = True
        assignment, self._assignment = self._assignment, None
        if assignment is not None:
            self.lanes.suspend(assignment)
            if not await self.lanes.drain(seconds):
                _log.warning("drain_incomplete", stage=self.name, running=self.lanes.running)
            await self._commit()
            assignment.close()
        await self.lanes.close()
        if self._rebalancing:
            # Who stops in the middle of a rebalance leaves the group without a word: its partitions wait for the
            # session's end. So see it through, if it is over soon.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._calm.wait(), _CALM_SECONDS)

    async def dispatch(self, event: EventT[Any]) -> None:
        """Hand the record of `event` to the lanes. Waits while they are full: Faust stops fetching."""
        app, message = self.app, event.message
        assignment = self._assignment
        assert app is not None
        if assignment is None or message.generation_id != app.consumer_generation_id:
            return
        record = record_of(message)
        message.key = message.value = message.headers = None  # the record has them; the message waits for its ack
        await self.lanes.submit(record, assignment, partial(self._ack, app, message))

    def _ack(self, app: "StageApp", message: Message) -> None:
        app.stage_consumer.finish(message)
        if self._acked is not None:
            reach(self._acked)

    def hold(self, topic: str, partition: int) -> None:
        """Fetch no more of it for now."""
        if self.app is not None:
            self.app.stage_consumer.hold(TP(topic, partition))

    def release(self, topic: str, partition: int) -> None:
        """Fetch it again."""
        if self.app is not None:
            self.app.stage_consumer.release(TP(topic, partition))

    def committed(self) -> None:
        """An offset was committed."""
        failpoint = _COMMITTED.get(self.name)
        if failpoint is not None:
            reach(failpoint)

    def crash(self, error: BaseException) -> None:
        """Something in the delivery itself is broken: end the process rather than go on half."""
        app = self.app
        _log.critical("delivery_crashed", stage=self.name, exc_info=error)
        if app is not None:
            # Under a name that quotes nothing: Faust and mode write the error itself into their logs.
            self._crashing = app.add_future(app.crash(StageBroken(type(error).__name__)))

    async def _commit(self) -> None:
        """Commit what is acked; a broker that is away does not hold up a rebalance or a stop."""
        app = self.app
        if app is None:
            return
        try:
            async with asyncio.timeout(REVOKE_SECONDS):
                await app.stage_consumer.commit()
        except TimeoutError:
            _log.warning("commit_not_acknowledged", stage=self.name)


class _Boot(BootStrategy):
    """No web server, and no producer of Faust's: records are sent by an `Outlet`."""

    enable_web = False
    enable_kafka_producer = False


class StageApp(faust.App):
    """The app of one stage."""

    BootStrategy: ClassVar[type[BootStrategy]] = _Boot
    logger = logging.getLogger("faust.app")

    def __init__(self, stage: Stage, **options: Any) -> None:
        self.stage = stage
        super().__init__(**options)
        stage.app = self

    @property
    def stage_consumer(self) -> StageConsumer:
        """The consumer, by its own type."""
        consumer = self.consumer
        assert isinstance(consumer, StageConsumer)
        return consumer

    @override
    def _new_transport(self) -> TransportT:
        return StageTransport(self.conf.broker_consumer, self)

    @override
    def _create_directories(self) -> None:
        """None: there are no tables."""

    @override
    async def on_start(self) -> None:
        await super().on_start()
        consumer = self.stage_consumer
        consumer.revoking, consumer.assigning = self.stage.revoke, self.stage.begin
        consumer.committed = self.stage.committed
        self._watching = self.add_future(self._watch())

    @override
    async def _on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        await super()._on_partitions_assigned(assigned, generation_id)
        self.stage.settled(frozenset(assigned))

    async def _watch(self) -> None:
        """The coordination watchdog (trap 8): a worker that hears nothing any more must not look alive."""
        while not self.should_stop:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                async with asyncio.timeout(_DEAF_SECONDS):
                    error = await self.stage_consumer.check_coordination()
            except (CoordinationDead, TimeoutError) as dead:
                if not self.should_stop:
                    _log.critical("coordination_dead", stage=self.stage.name)
                    await self.crash(dead)
                return
            if error is not None:
                self.stage.observer.coordination_error()
                _log.warning("coordination_resumed", stage=self.stage.name, error=error)


def make_app(stage: Stage, settings: Settings, flow: Flow, *, rebalance_seconds: float) -> StageApp:
    """The Faust app that feeds `stage`.

    rebalance_seconds: how long the group waits for a member at a rebalance; above the time limit of one attempt.
    """
    app = StageApp(
        stage,
        id=f"{settings.consumer_group}-{stage.name}",
        env={},  # Faust would let the environment (BROKER_URL, STREAM_WAIT_EMPTY, …) overrule what is said here
        broker=[f"kafka://{server}" for server in bootstrap_servers(settings)],
        broker_credentials=_credentials(settings),
        broker_client_id=f"mnemo-{stage.name}",
        broker_commit_interval=_COMMIT_SECONDS,
        broker_session_timeout=SESSION_SECONDS,
        broker_heartbeat_interval=SESSION_SECONDS / 4,
        broker_rebalance_timeout=rebalance_seconds,
        broker_request_timeout=rebalance_seconds + 30,
        broker_max_poll_interval=_NEVER_SECONDS,
        broker_max_poll_records=flow.poll_records,
        consumer_max_fetch_size=65536,
        # A broker that comes back may not know the topics yet: a group that shares them out then gets nothing, and
        # would notice at the next look only (seen: five minutes without a partition).
        consumer_metadata_max_age_ms=_METADATA_MILLISECONDS,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=flow.buffer,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        key_serializer="raw",
        value_serializer="raw",
        autodiscover=False,
    )
    topic = app.topic(stage.topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def dispatch(stream: StreamT[bytes]) -> None:
        assert isinstance(stream, faust.Stream)
        assert isinstance(stream.channel, ChannelT)
        queue = stream.channel.queue
        app.stage_consumer.room = lambda: not queue.full()
        async for event in stream.noack().events():
            await _guarded(stage.dispatch, event, stage.crash)
            # Faust gives one event a turn of the event loop: what came with it is taken from its queue at once.
            for _ in range(queue.qsize()):
                try:
                    event = queue.get_nowait()
                except asyncio.QueueEmpty:  # a rebalance cleared it meanwhile
                    break
                except StopAsyncIteration:  # so Faust ends an agent
                    return
                await _guarded(stage.dispatch, event, stage.crash)

    app.agent(topic, name=stage.name)(dispatch)
    return app


async def _guarded(
    dispatch: Callable[[EventT[Any]], Any], event: EventT[Any], crash: Callable[[BaseException], None]
) -> None:
    """Nothing may be raised into an agent: it would ack the event and go on with the next (trap 4)."""
    try:
        await dispatch(event)
    except Exception as error:  # noqa: BLE001 (see above)
        crash(error)
        await asyncio.Event().wait()  # until the process ends


def record_of(message: Message) -> Record:
    """The record in a message of Faust's."""
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        received_at=_instant(message.timestamp),
        key=message.key,
        value=message.value,
        headers=_headers(message.headers),
    )


def _headers(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(headers.items() if isinstance(headers, dict) else headers or ())


def _instant(timestamp: float | None) -> datetime:
    """When the broker took it. Where the topic lets producers set the time, it may be anything: then it is now."""
    try:
        return datetime.fromtimestamp(timestamp if timestamp is not None and timestamp > 0 else time.time(), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.now(UTC)


def _credentials(settings: Settings) -> faust.auth.Credentials | None:
    context = tls_context(settings)
    if settings.kafka_security_protocol.startswith("SASL"):
        password = settings.kafka_sasl_password
        return faust.SASLCredentials(
            username=settings.kafka_sasl_username,
            password=None if password is None else password.get_secret_value(),
            mechanism=settings.kafka_sasl_mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)

"""Faust's consumer, made safe. Everything that reaches into Faust's and aiokafka's private parts is here.

Both are pinned exactly. What each override is for is said beside it, with what Faust does without it.
"""

# ruff: noqa: SLF001 (what has to be reached has no public name)

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import ConsumerStoppedError, KafkaConnectionError, KafkaError
from faust.transport.consumer import RecordMap
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP, Message
from mode.types import ServiceT
from typing_extensions import override

from streams import lenient_headers

_log = structlog.get_logger(__name__)

_RECONNECT_SECONDS: Final = 1.0

lenient_headers.install()

Revoking = Callable[[], Awaitable[None]]
Assigning = Callable[[], None]
Committed = Callable[[], None]
Room = Callable[[], bool]
"""Whether the agent's queue takes another record without waiting."""


class CoordinationDead(Exception):
    """The consumer's membership in its group ended and does not come back by itself."""


class StageConsumerThread(AIOKafkaConsumerThread):
    """The consumer's thread."""

    logger = logging.getLogger("faust.consumer")

    @override
    async def on_start(self) -> None:
        """Wait for a broker that is lost just now: Faust lets the whole worker crash (trap 22)."""
        while True:
            try:
                await super().on_start()
            except KafkaConnectionError as error:
                _log.warning("waiting", waiting_for="Kafka", error=type(error).__name__)
                if self._consumer is not None:
                    await self._consumer.stop()
                await self.sleep(_RECONNECT_SECONDS)
                if self.should_stop:
                    raise
            else:
                return

    async def check_coordination(self) -> str | None:
        """Let coordination go on after an unexpected error of the coordinator, and tell which it was (trap 8).

        aiokafka parks coordination until somebody asks for errors, which Faust never does: the worker would stay up and
        hear nothing any more. To be called in this thread. Raises CoordinationDead.
        """
        coordinator = None if self._consumer is None else self._consumer._coordinator
        if coordinator is None:
            return None  # still connecting
        if coordinator._coordination_task.done():
            raise CoordinationDead
        try:
            coordinator.check_errors()
        except KafkaError as error:
            return type(error).__name__
        return None

    @override
    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> RecordMap:
        """Take a few records of each partition in turn (trap 26): aiokafka empties one partition's chunk first.

        What some leave of the whole goes to the others, again a few in turn.
        """
        if not self.consumer.flow_active:
            return {}
        fetcher = consumer._fetcher
        if consumer._closed or fetcher._closed:
            raise ConsumerStoppedError
        most = max_records or 1
        share = max(1, most // max(1, len(active_partitions)))
        with fetcher._subscriptions.fetch_context():
            records: dict[TP, list[Any]] = dict(
                await fetcher.fetched_records(active_partitions, timeout=timeout, max_records=share)
            )
            taken = sum(map(len, records.values()))
            turns = deque(tp for tp in fetcher._records if tp in active_partitions)
            turns.rotate(-1 if turns and turns[0] in records else 0)
            while turns and taken < most and not fetcher._subscriptions.reassignment_in_progress:
                partition = turns.popleft()
                more = await fetcher.fetched_records({partition}, timeout=0, max_records=min(share, most - taken))
                if found := more.get(partition):
                    records.setdefault(partition, []).extend(found)
                    taken += len(found)
                    turns.append(partition)
            for partition in records:
                if partition in fetcher._records:
                    fetcher._records.move_to_end(partition)
        return records


class StageConsumer(Consumer):
    """The consumer on the main thread."""

    logger = logging.getLogger("faust.consumer")

    revoking: Revoking | None = None
    assigning: Assigning | None = None
    committed: Committed | None = None
    room: Room | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: set[TP] = set()
        self._acking = False

    @override
    def _new_consumer_thread(self) -> StageConsumerThread:
        return StageConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @override
    async def _drain_messages(self, fetcher: ServiceT) -> None:
        """Pass on what is fetched, until `fetcher` stops.

        Faust's own loop makes two tasks for each record, and waits for a turn of the event loop: behind busy handlers
        a backlog came in record by record, and nothing was left to be read together. Here what came together goes on
        together, as long as there is room.
        """
        try:
            while not (self.should_stop or fetcher.should_stop):
                await asyncio.sleep(0)
                async for partition, message in self.getmany(timeout=1.0):
                    await self._pass_on(partition, message)
        except (asyncio.CancelledError, ConsumerStoppedError):
            if not self.app.should_stop:
                raise

    async def _pass_on(self, partition: TP, message: Message) -> None:
        read = self._read_offset[partition]
        if read is not None and message.offset < read:
            return
        if read and message.offset - read > 1 and self.app.topics.acks_enabled_for(message.topic):
            await self._add_gap(partition, read + 1, message.offset)
        passing = self.callback(message)
        flows = not self.suspend_flow.is_set() and self.app.flow_control.is_active()
        if flows and self.room is not None and self.room():
            await passing  # nothing in it waits
        else:
            await self.wait_first(passing, self.suspend_flow.wait())
        self._read_offset[partition] = message.offset

    async def check_coordination(self) -> str | None:
        """`StageConsumerThread.check_coordination`, in its thread."""
        thread = self._thread
        assert isinstance(thread, StageConsumerThread)
        # Not by the queue of methods: a commit that waits for the broker may be holding it up.
        check = asyncio.run_coroutine_threadsafe(thread.check_coordination(), thread.thread_loop)
        return await asyncio.wrap_future(check)

    def finish(self, message: Message) -> None:
        """The one way to ack: in offset order, by the lanes."""
        self._acking = True
        try:
            message.ack(self)
        finally:
            self._acking = False

    @override
    def ack(self, message: Message) -> bool:
        """Faust acks by itself what it skips as stale, on one of its two code paths (trap 20): not here."""
        return super().ack(message) if self._acking else False

    def hold(self, partition: TP) -> None:
        """Fetch no more of `partition`. What is fetched already comes; pausing would drop it (trap 29)."""
        self._held.add(partition)
        self.on_buffer_full(partition)

    def release(self, partition: TP) -> None:
        """Fetch `partition` again."""
        self._held.discard(partition)
        self.on_buffer_drop(partition)

    @override
    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        done = await super()._commit_offsets(offsets, start_new_transaction)
        if done and self.committed is not None:
            self.committed()
        return done

    @override
    def on_buffer_drop(self, tp: TP) -> None:
        if tp not in self._held:
            super().on_buffer_drop(tp)

    @override
    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let the lanes finish and commit what they did before Faust forgets which acks it has (trap 9)."""
        if self.revoking is not None:
            await self.revoking()
        self._held.clear()
        self._buffered_partitions.clear()
        await super().on_partitions_revoked(revoked)

    @override
    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        if self.assigning is not None:
            self.assigning()
        await super().on_partitions_assigned(assigned, generation_id)


class StageTransport(Transport):
    """Faust's transport with that consumer."""

    Consumer: ClassVar[type[StageConsumer]] = StageConsumer

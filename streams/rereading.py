"""Turns read again: out of the log of turns, onto `turns.v1`, as a run with a number of its own.

Each goes with the place where it stood first and the time when it was taken then, so that what it says keeps its order
among the owner's statements. Turns that come in meanwhile are not starved: only so many wait for extract at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from mnemostream.decoding import SCHEMA_VERSION, encode_turn, partition_key
from mnemostream.errors import InvalidTurn

from processors.errors import BrokerUnavailable, Rejected
from runtime.settings import Settings
from store.runs import LoggedTurn, Run
from streams.kafka import client_options
from streams.ports import Headers, Publisher
from streams.records import RUN_HEADER, SCHEMA_HEADER, origin_headers
from streams.topics import TURNS, topic_name

AHEAD: Final = 500
"""Turns that wait for extract when no more are put there: a few seconds of work for one worker, so that what an owner
says now waits no longer than that."""
_LOOK_SECONDS: Final = 0.5
_LOOKS: Final = 60
"""Looks before Kafka counts as away: a new cluster takes seconds until it knows of groups, a broker to come back."""
_REQUEST_MS: Final = 20_000


class TurnsToRead(Protocol):
    """What a run has to read."""

    def turns(self, run: Run) -> AbstractAsyncContextManager[AsyncIterator[list[LoggedTurn]]]:
        """The turns of `run` that have not taken effect in it, a few at a time. Raises StoreUnavailable."""
        ...

    async def note_published(self, run: Run) -> None:
        """All of them are on the topic. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the publishing is. `skipped`: turns that no reader, or not the topic, would take today."""

    published: int
    skipped: int = 0
    waits: bool = False
    """Enough turns wait for extract: no more are put there for now."""


Waiting = Callable[[], Awaitable[int]]
"""How many turns wait for extract."""


class Rereading:
    """Publishes the turns of a run. Again, or twice at once, it is the same run: the ledger knows who took effect."""

    def __init__(
        self,
        runs: TurnsToRead,
        publisher: Publisher,
        waiting: Waiting,
        *,
        topic: str,
        ahead: int = AHEAD,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """ahead: how many turns may wait for extract at once; 0: as many as there are."""
        self._runs = runs
        self._publisher = publisher
        self._waiting = waiting
        self._topic = topic
        self._ahead = ahead
        self._look_seconds = look_seconds

    async def publish(self, run: Run, tell: Callable[[Progress], None] = lambda _: None) -> Progress:
        """Put what is left of `run` on the topic, in the order in which it was received.

        Raises StoreUnavailable and BrokerUnavailable; called again it goes on.
        """
        progress = Progress(0)
        async with self._runs.turns(run) as pages:
            async for page in pages:
                await self._until_there_is_room(progress, tell)
                progress = await self._put(page, run, progress)
                tell(progress)
        await self._runs.note_published(run)
        return progress

    async def _until_there_is_room(self, progress: Progress, tell: Callable[[Progress], None]) -> None:
        while self._ahead and await self._waiting() >= self._ahead:
            tell(Progress(progress.published, progress.skipped, waits=True))
            await asyncio.sleep(self._look_seconds)

    async def _put(self, page: Sequence[LoggedTurn], run: Run, progress: Progress) -> Progress:
        sending = []
        for logged in page:
            try:
                value = encode_turn(logged.turn)
            except InvalidTurn:  # the rules have changed since it was accepted
                continue
            key = partition_key(logged.turn.app, logged.turn.owner)
            headers = _headers(logged, run)
            sending.append(self._publisher.publish(self._topic, key=key, value=value, headers=headers))
        published = len(sending)
        # All of them are waited for: none may still be on its way when the run goes on.
        for result in await asyncio.gather(*sending, return_exceptions=True):
            if isinstance(result, Rejected):  # larger than the topic takes today
                published -= 1
            elif isinstance(result, BaseException):
                raise result
        return Progress(progress.published + published, progress.skipped + len(page) - published)


class StageLag:
    """How many turns wait for extract: what stands on the topic behind the offsets of its group."""

    def __init__(self, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, *, topic: str, group: str) -> None:
        self._admin = admin
        self._consumer = consumer
        self._topic = topic
        self._group = group
        self._partitions: list[TopicPartition] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> "AsyncIterator[StageLag]":
        """Connected to the settings' Kafka. Raises BrokerUnavailable."""
        options = client_options(settings) | {"client_id": "mnemo-replay", "request_timeout_ms": _REQUEST_MS}
        admin, consumer = AIOKafkaAdminClient(**options), AIOKafkaConsumer(**options)
        try:
            with_kafka = cls(
                admin, consumer, topic=topic_name(settings, TURNS), group=f"{settings.consumer_group}-extract"
            )
            try:
                await admin.start()
                await consumer.start()
            except (KafkaError, OSError) as error:
                raise _away(error) from error
            yield with_kafka
        finally:
            await consumer.stop()
            await admin.close()

    async def __call__(self) -> int:
        """As the broker has it now: a group commits every few seconds. Raises BrokerUnavailable."""
        for _ in range(_LOOKS):
            try:
                return await self._look()
            except (KafkaError, OSError) as error:
                if not getattr(error, "retriable", False):
                    raise _away(error) from error
                failed = error
            await asyncio.sleep(_LOOK_SECONDS)
        raise _away(failed) from failed

    async def _look(self) -> int:
        committed = await self._admin.list_consumer_group_offsets(self._group)
        if not self._partitions:
            self._partitions = await self._find_partitions()
        partitions = self._partitions
        ends = await self._consumer.end_offsets(partitions)
        starts = await self._consumer.beginning_offsets(partitions)
        done = {partition: offset.offset for partition, offset in committed.items()}
        return sum(max(0, ends[partition] - max(starts[partition], done.get(partition, 0))) for partition in partitions)

    async def _find_partitions(self) -> list[TopicPartition]:
        """All topics are asked for: to ask for one by name may create it."""
        topics: list[dict[str, Any]] = await self._admin.describe_topics()
        found = (topic["partitions"] for topic in topics if topic["topic"] == self._topic)
        return [TopicPartition(self._topic, each["partition"]) for partitions in found for each in partitions]


def _away(error: Exception) -> BrokerUnavailable:
    return BrokerUnavailable(f"Kafka is away ({type(error).__name__})")


def _headers(logged: LoggedTurn, run: Run) -> Headers:
    return [
        (SCHEMA_HEADER, SCHEMA_VERSION.encode()),
        (RUN_HEADER, str(run.run).encode()),
        *origin_headers(logged.place),
    ]

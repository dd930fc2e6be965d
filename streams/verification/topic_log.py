"""Reading a topic from one place to another, beside the groups that work on it: nothing is joined or committed."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaError,
    NotCoordinatorForGroupError,
)
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import OffsetAndMetadata

from processors.errors import BrokerUnavailable
from runtime.settings import Settings
from streams import lenient_headers
from streams.delivery import Record
from streams.kafka import client_options

_AT_ONCE: Final = 500
"""Records that are handled together."""
_FETCH_BYTES: Final = 8 * 1024 * 1024
"""Of all partitions together; one record may be larger, and comes alone then."""
_SILENT_SECONDS: Final = 30.0
"""Without a record or a step ahead: then Kafka counts as away."""
_REQUEST_MS: Final = 20_000
_FINDING_COORDINATOR: Final = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)


@dataclass(frozen=True, slots=True)
class Span:
    """From which offset a partition is kept, and where it ends; `end` is the offset of the next record."""

    begin: int
    end: int


class TopicLog:
    """The topics as they are. Every method raises BrokerUnavailable."""

    def __init__(self, consumer: AIOKafkaConsumer, admin: AIOKafkaAdminClient) -> None:
        self._consumer = consumer
        self._admin = admin

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """How far a group is on each partition that it ever committed an offset of."""
        found = await self._offsets(group)
        return {at.partition: meta.offset for at, meta in found.items() if at.topic == topic and meta.offset >= 0}

    async def _offsets(self, group: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Asked again while the group's coordinator is being found: in a young cluster that takes a moment."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                found: dict[TopicPartition, OffsetAndMetadata] = await self._admin.list_consumer_group_offsets(group)
            except _FINDING_COORDINATOR:
                if loop.time() > began + _SILENT_SECONDS:
                    raise
                await asyncio.sleep(0.2)
            else:
                return found

    async def spans(self, topic: str) -> dict[int, Span]:
        """Each partition, from where it is kept to its end now."""
        described: list[dict[str, Any]] = await self._admin.describe_topics([topic])
        partitions = [TopicPartition(topic, each["partition"]) for each in described[0]["partitions"]]
        begins = await self._consumer.beginning_offsets(partitions)
        ends = await self._consumer.end_offsets(partitions)
        return {at.partition: Span(begins[at], ends[at]) for at in partitions}

    async def read(self, topic: str, spans: Mapping[int, Span]) -> AsyncIterator[list[Record]]:
        """The records in `spans`, some at a time; those of a partition in their order."""
        left = {TopicPartition(topic, number): span for number, span in spans.items() if span.begin < span.end}
        if not left:
            return
        self._consumer.assign(list(left))
        for at, span in left.items():
            self._consumer.seek(at, span.begin)
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        while left:
            fetched = await self._consumer.getmany(*left, timeout_ms=500, max_records=_AT_ONCE)
            records = [_record(each) for at, batch in fetched.items() for each in batch if each.offset < left[at].end]
            if records:
                yield records
            done = [at for at, span in left.items() if await self._consumer.position(at) >= span.end]
            for at in done:
                del left[at]
            if fetched or done:
                heard_at = loop.time()
                # What is through is not fetched further.
                self._consumer.pause(*done)
            elif loop.time() > heard_at + _SILENT_SECONDS:
                raise BrokerUnavailable(f"Kafka gave no record of {topic} for {_SILENT_SECONDS:g} s")


@asynccontextmanager
async def open_log(settings: Settings) -> AsyncIterator[TopicLog]:
    """Beside all groups. Raises BrokerUnavailable, also for what fails meanwhile."""
    lenient_headers.install()
    options = client_options(settings) | {"client_id": "mnemo-verify", "request_timeout_ms": _REQUEST_MS}
    consumer = AIOKafkaConsumer(
        **options,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_bytes=_FETCH_BYTES,
        max_partition_fetch_bytes=_FETCH_BYTES // 8,
    )
    admin = AIOKafkaAdminClient(**options)
    try:
        await consumer.start()
        await admin.start()
        yield TopicLog(consumer, admin)
    except (KafkaError, OSError) as error:
        raise BrokerUnavailable(
            f"Kafka at {settings.kafka_bootstrap_servers} is away ({type(error).__name__})"
        ) from error
    finally:
        await admin.close()
        await consumer.stop()


def partition_of(key: bytes, partitions: Sequence[int]) -> int:
    """Where every producer puts what has this key."""
    ordered = sorted(partitions)
    chosen: int = DefaultPartitioner()(key, ordered, ordered)
    return chosen


def _record(message: Any) -> Record:
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        received_at=datetime.fromtimestamp(max(0, message.timestamp) / 1000, UTC),
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
    )

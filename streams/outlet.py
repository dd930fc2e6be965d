"""Records onto topics: acknowledged by all in-sync replicas before `publish` returns."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import RecordMetadata
from mnemostream.turns import Reason

from processors.errors import BrokerUnavailable, Rejected
from processors.records import Landed
from streams.ports import Headers

_log = structlog.get_logger(__name__)

MAX_RECORD_BYTES: Final = 9 * 1024 * 1024
"""`max.message.bytes` of the topic of parked records, the most of all: a turn of 8 MiB and what is told about it."""
_FRAME_BYTES: Final = 1024
"""Room for what a batch adds to its one record."""
_TOO_LARGE: Final = "record: is larger than the topic takes (length {})"
_REQUEST_SECONDS: Final = 20.0
_BATCH_SECONDS: Final = 2 * _REQUEST_SECONDS
"""Of a batch on its way: a producer that was replaced under it may never tell."""
_STOP_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """Which records the broker has, by their places in what was given; and why not all, where some are missing."""

    indices: tuple[int, ...]
    failure: BrokerUnavailable | None = None


class Outgoing(NamedTuple):
    """A record on its way to a topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    not_before: datetime | None = None
    """Its timestamp is now, or this where that is later."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What became of records that were to be put back, by their places in what was given."""

    arrived: tuple[int, ...]
    refused: tuple[int, ...] = ()
    """Larger than the topic takes."""
    failure: BrokerUnavailable | None = None
    """Why not all of the others arrived."""


class Outlet:
    """One idempotent producer, replaced when it is beyond help.

    `publish` may be called many times at once; records of one partition keep the order of their calls.
    """

    def __init__(self, options: dict[str, Any], *, client_id: str) -> None:
        self._options = options | {"client_id": client_id}
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            self._discard(producer)
        if self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> Landed | None:
        """Send a record, and wait until all in-sync replicas have it. Gives its place, where the broker tells.

        Raises BrokerUnavailable (sent again it may be there twice), and Rejected where it is larger than the topic
        takes.
        """
        size = _size(key, value, headers)
        if size > MAX_RECORD_BYTES - _FRAME_BYTES:
            raise Rejected(Reason.TOO_LARGE, _TOO_LARGE.format(size))
        producer = await self._open()
        with self._told(producer, size):
            told = await (await _sent(producer, topic, key, value, headers))
        # A batch that the broker had taken before, and knows no more of, has no place: -1.
        return Landed(told.partition, told.offset) if told.offset >= 0 else None

    async def partitions(self, topic: str) -> frozenset[int]:
        """The partitions of a topic that exists. Raises BrokerUnavailable."""
        producer = await self._open()
        with self._told(producer):
            return frozenset(await producer.partitions_for(topic))

    async def put_back(self, topic: str, partition: int, records: Sequence[Outgoing]) -> Returned:
        """Send records onto one partition, which exists, in order, and wait for all in-sync replicas. Raises nothing.

        What is larger than the topic takes is passed over; what comes after a failure is not sent.
        """
        arrived: list[int] = []
        refused: list[int] = []
        done = 0
        while done < len(records):
            try:
                producer = await self._open()
                size = await self._send_batch(producer, topic, partition, records[done:])
            except Rejected:
                refused.append(done)
                done += 1
            except BrokerUnavailable as failure:
                return Returned(tuple(arrived), tuple(refused), failure)
            else:
                arrived += range(done, done + size)
                done += size
        return Returned(tuple(arrived), tuple(refused))

    async def publish_in_order(
        self, topic: str, records: Sequence[tuple[bytes, bytes]], *, headers: Headers
    ) -> Arrived:
        """Send keys and values, and wait for all in-sync replicas. Raises nothing that retrying helps.

        Each partition's go out batch by batch, a batch whole or not at all, and the next one only once it is there:
        what comes after one that failed is not sent. A batch is as large as the producer's `max_batch_size`.
        """
        try:
            producer = await self._open()
            with self._told(producer):
                ways = await _by_partition(producer, topic, [key for key, _ in records])
        except BrokerUnavailable as failure:
            return Arrived((), failure)
        results = await asyncio.gather(
            *(self._in_order(producer, topic, way, indices, records, headers) for way, indices in ways.items())
        )
        failures = [each.failure for each in results if each.failure is not None]
        arrived = tuple(sorted(index for each in results for index in each.indices))
        return Arrived(arrived, failures[0] if failures else None)

    async def _in_order(
        self,
        producer: AIOKafkaProducer,
        topic: str,
        partition: int,
        indices: Sequence[int],
        records: Sequence[tuple[bytes, bytes]],
        headers: Headers,
    ) -> Arrived:
        """The records at `indices` onto one partition, as far as it goes."""
        done = 0
        try:
            while done < len(indices):
                rest = [Outgoing(*records[index], headers) for index in indices[done:]]
                done += await self._send_batch(producer, topic, partition, rest)
        except BrokerUnavailable as failure:
            return Arrived(tuple(indices[:done]), failure)
        except Rejected as rejected:
            # To leave it out would be a gap: the rest waits until the topic takes it.
            return Arrived(tuple(indices[:done]), BrokerUnavailable(rejected.detail))
        return Arrived(tuple(indices))

    async def _send_batch(
        self, producer: AIOKafkaProducer, topic: str, partition: int, records: Sequence[Outgoing]
    ) -> int:
        """As many of `records` as a batch takes, at least one; gives how many, once they are there."""
        batch, size, now = producer.create_batch(), 0, time.time()
        for key, value, headers, not_before in records:
            milliseconds = int(1000 * max(now, 0 if not_before is None else not_before.timestamp()))
            if batch.append(timestamp=milliseconds, key=key, value=value, headers=list(headers)) is None:
                break
            size += 1
        batch.close()
        with self._told(producer, batch.size()):
            async with asyncio.timeout(_BATCH_SECONDS):
                await (await producer.send_batch(batch, topic, partition=partition))
        return size

    @contextmanager
    def _told(self, producer: AIOKafkaProducer, size: int = 0) -> Iterator[None]:
        """What Kafka says, as BrokerUnavailable or Rejected; a producer that is beyond help is replaced."""
        try:
            yield
        except TimeoutError:
            self._replace(producer)
            raise BrokerUnavailable("Kafka did not acknowledge in time") from None
        except (KafkaTimeoutError, KafkaConnectionError) as error:
            raise BrokerUnavailable(f"Kafka did not acknowledge ({type(error).__name__})") from error
        except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
            self._replace(producer)
            raise Rejected(Reason.TOO_LARGE, _TOO_LARGE.format(size)) from error
        except KafkaError as error:
            self._replace(producer)
            raise BrokerUnavailable(f"Kafka refused a record ({type(error).__name__})") from error

    async def _open(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._options,
                    acks="all",
                    enable_idempotence=True,
                    linger_ms=0,
                    max_request_size=MAX_RECORD_BYTES,
                    request_timeout_ms=int(_REQUEST_SECONDS * 1000),
                )
                try:
                    await producer.start()
                except BaseException as error:
                    self._discard(producer)
                    if isinstance(error, KafkaError):
                        raise BrokerUnavailable(f"Kafka is away ({type(error).__name__})") from error
                    raise
                self._producer = producer
            return self._producer

    def _replace(self, producer: AIOKafkaProducer) -> None:
        """An idempotent producer whose batch was refused for good has a hole in its sequence: a new one has not."""
        if self._producer is producer:
            _log.warning("producer_replaced")
            self._producer = None
            self._discard(producer)

    def _discard(self, producer: AIOKafkaProducer) -> None:
        task = asyncio.get_running_loop().create_task(_stop(producer))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _by_partition(producer: AIOKafkaProducer, topic: str, keys: Sequence[bytes]) -> dict[int, list[int]]:
    """Where each key belongs: as every producer has it. The places of the keys in order, by partition."""
    partitions = sorted(await producer.partitions_for(topic))
    choose = DefaultPartitioner()
    known: dict[bytes, int] = {}
    ways: dict[int, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if key not in known:
            known[key] = choose(key, partitions, partitions)
        ways[known[key]].append(index)
    return ways


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    return len(key or b"") + len(value or b"") + sum(len(n.encode()) + len(v or b"") + 10 for n, v in headers)


async def _sent(
    producer: AIOKafkaProducer, topic: str, key: bytes | None, value: bytes | None, headers: Headers
) -> Awaitable[RecordMetadata]:
    """A record on its way; await it to know that it arrived."""
    sent: Awaitable[RecordMetadata]
    if key is None and value is None:
        # `send` takes no record without both, a batch does; and such a record has to be parked like any other.
        batch = producer.create_batch()
        batch.append(key=None, value=None, timestamp=None, headers=list(headers))
        sent = await producer.send_batch(batch, topic, partition=min(await producer.partitions_for(topic)))
    else:
        sent = await producer.send(topic, value=value, key=key, headers=list(headers))
    return sent


async def _stop(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await producer.stop()
    except (TimeoutError, KafkaError) as error:
        _log.debug("producer_not_stopped", error=type(error).__name__)

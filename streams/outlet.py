"""Records onto topics: acknowledged by all in-sync replicas before `publish` returns."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, MessageSizeTooLargeError
from aiokafka.partitioner import DefaultPartitioner

from processors.errors import BrokerUnavailable
from streams.ports import Headers

_log = structlog.get_logger(__name__)

MAX_RECORD_BYTES: Final = 9 * 1024 * 1024
"""`max.message.bytes` of the topic of parked records: a turn of 8 MiB and what is told about it."""
_FRAME_BYTES: Final = 1024
"""Room for what a batch adds to its one record."""
_REQUEST_SECONDS: Final = 20.0
_BATCH_SECONDS: Final = 2 * _REQUEST_SECONDS
"""Of a batch on its way: a producer that was replaced under it may never tell."""
_STOP_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """Which records the broker has, by their places in what was given; and why not all, where some are missing."""

    indices: tuple[int, ...]
    failure: BrokerUnavailable | None = None


class Outlet:
    """One idempotent producer, replaced when it is beyond help. A record too big to park is parked without its value.

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

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Send a record, and wait until all in-sync replicas have it. Raises BrokerUnavailable; sent again it may be
        there twice."""
        size = len(key or b"") + len(value or b"") + sum(len(n) + len(v or b"") + 10 for n, v in headers)
        if value is not None and size > MAX_RECORD_BYTES - _FRAME_BYTES:
            headers = [*headers, ("mnemo-parked-without-value", str(len(value)).encode())]
            value = None
        producer = await self._open()
        with self._told(producer):
            await (await _sent(producer, topic, key, value, headers))

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
                batch, size = producer.create_batch(), 0
                for index in indices[done:]:
                    key, value = records[index]
                    if batch.append(timestamp=None, key=key, value=value, headers=list(headers)) is None:
                        break
                    size += 1
                batch.close()
                with self._told(producer):
                    async with asyncio.timeout(_BATCH_SECONDS):
                        await (await producer.send_batch(batch, topic, partition=partition))
                done += size
        except BrokerUnavailable as failure:
            return Arrived(tuple(indices[:done]), failure)
        return Arrived(tuple(indices))

    @contextmanager
    def _told(self, producer: AIOKafkaProducer) -> Iterator[None]:
        """What Kafka says, as BrokerUnavailable; a producer that is beyond help is replaced."""
        try:
            yield
        except TimeoutError:
            self._replace(producer)
            raise BrokerUnavailable("Kafka did not acknowledge in time") from None
        except (KafkaTimeoutError, KafkaConnectionError) as error:
            raise BrokerUnavailable(f"Kafka did not acknowledge ({type(error).__name__})") from error
        except KafkaError as error:
            if not isinstance(error, MessageSizeTooLargeError):
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


async def _sent(
    producer: AIOKafkaProducer, topic: str, key: bytes | None, value: bytes | None, headers: Headers
) -> Awaitable[object]:
    """A record on its way; await it to know that it arrived."""
    sent: Awaitable[object]
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

"""Records read back from the topic of parked records, each by its place there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from types import TracebackType
from typing import Any, Final, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from processors.errors import BrokerUnavailable, MnemoError
from processors.records import Landed
from store.parked import ParkedPlace
from streams.parking import REPLAY_HEADER, TOLD, WITHOUT_HEADERS, WITHOUT_VALUE
from streams.ports import Headers
from streams.records import ORIGIN_HEADER, RECEIVED_HEADER

_READ_SECONDS: Final = 20.0
_AT_ONCE: Final = 100
_AHEAD_BYTES: Final = 16 * 1024 * 1024
_OURS: Final = frozenset({ORIGIN_HEADER, RECEIVED_HEADER, REPLAY_HEADER})


class NotThere(MnemoError):
    """The record cannot be read back from the topic of parked records; the message says why, and names no place."""


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """A record as it first stood on its topic. `headers` are its own, `told` those that tell why it is parked."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    told: Headers

    @property
    def lost(self) -> str | None:
        """What of it was too large to be kept, as the message of an error; None where it is whole."""
        told = dict(self.told)
        if self.value is None and WITHOUT_VALUE in told:
            size = (told[WITHOUT_VALUE] or b"").decode("ascii", "replace")
            return f"its value ({size} bytes) was too large to be parked with it"
        if WITHOUT_HEADERS in told:
            return "its headers were too large to be parked with it"
        return None


class ParkedTopic:
    """A reader without a group: what is read stays, and nobody else notices.

    It holds the records of the last fetch of each partition, some megabytes in all: places that ascend are read fast.
    Not for several tasks at once.
    """

    def __init__(self, options: dict[str, Any], topic: str) -> None:
        self._topic = topic
        self._options = options
        self._consumer: AIOKafkaConsumer | None = None
        self._partitions: frozenset[int] = frozenset()
        self._bounds: dict[int, tuple[int, int]] = {}
        self._current: int | None = None
        self._next = -1
        self._ahead: dict[int, dict[int, Any]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._consumer is not None:
            await self._consumer.stop()

    async def read(self, place: ParkedPlace, landed: Landed | None) -> ParkedRecord:
        """The record that stood at `place` and was parked at `landed`. Raises NotThere, and BrokerUnavailable."""
        if landed is None:
            raise NotThere(
                "where it lies on the topic of parked records is not known: it was parked before that was kept"
            )
        with _told():
            record = await self._at(landed)
        told = [(name, value) for name, value in record.headers if name.startswith(TOLD)]
        if _place(told) != place:
            raise NotThere(
                f"another record lies at {self._topic}/{landed.partition}/{landed.offset}: was it made anew?"
            )
        own = [(name, value) for name, value in record.headers if not name.startswith(TOLD) and name not in _OURS]
        return ParkedRecord(record.key, record.value, own, told)

    async def _at(self, landed: Landed) -> Any:
        consumer = await self._open()
        partition, offset = landed
        where = f"{self._topic}/{partition}/{offset}"
        if partition not in self._partitions:
            raise NotThere(f"there is no {self._topic}/{partition}")
        first, end = await self._bounds_of(consumer, landed)
        if offset < first:
            raise NotThere(f"it is gone from the topic: {where} is past its retention (the oldest is {first})")
        if offset >= end:
            raise NotThere(f"there is no {where}: the topic ends at {end}; was it made anew?")
        if offset not in self._ahead.get(partition, {}):
            await self._fetch(consumer, partition, offset)
        ahead = self._ahead[partition]
        record = ahead.get(offset)
        if record is None:
            raise NotThere(f"it is gone from the topic: nothing lies at {where} any more")
        for earlier in list(takewhile(lambda each: each < offset, ahead)):
            del ahead[earlier]
        return record

    async def _fetch(self, consumer: AIOKafkaConsumer, partition: int, offset: int) -> None:
        """Hold the records from `offset` on, as far as one fetch goes."""
        at = TopicPartition(self._topic, partition)
        if self._current != partition:
            consumer.assign([at])
            self._current, self._next = partition, -1
        if self._next != offset:
            consumer.seek(at, offset)
        self._ahead[partition], self._next = {}, -1
        try:
            batches = await consumer.getmany(at, timeout_ms=int(1000 * _READ_SECONDS), max_records=_AT_ONCE)
        except OffsetOutOfRangeError:
            return
        records = batches.get(at, [])
        if not records:
            raise BrokerUnavailable("Kafka did not give a parked record in time")
        self._ahead[partition] = {record.offset: record for record in records}
        self._next = records[-1].offset + 1
        if sum(len(each.value or b"") for ahead in self._ahead.values() for each in ahead.values()) > _AHEAD_BYTES:
            self._ahead = {partition: self._ahead[partition]}

    async def _bounds_of(self, consumer: AIOKafkaConsumer, landed: Landed) -> tuple[int, int]:
        known = self._bounds.get(landed.partition)
        if known is None or landed.offset >= known[1]:
            at = TopicPartition(self._topic, landed.partition)
            first, end = await consumer.beginning_offsets([at]), await consumer.end_offsets([at])
            known = self._bounds[landed.partition] = (first[at], end[at])
        return known

    async def _open(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._options, client_id="mnemo-parked", enable_auto_commit=False, auto_offset_reset="none"
            )
            try:
                await consumer.start()
                if self._topic in await consumer.topics():
                    # To ask for its offsets makes its partitions known; to ask for those of a topic that is not there
                    # may create it.
                    await consumer.beginning_offsets([TopicPartition(self._topic, 0)])
            except BaseException:
                await consumer.stop()
                raise
            self._partitions = frozenset(consumer.partitions_for_topic(self._topic) or ())
            self._consumer = consumer
        return self._consumer


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise BrokerUnavailable(f"Kafka is away ({type(error).__name__})") from error


def _place(told: Headers) -> ParkedPlace | None:
    """The place that the record says it stood at first."""
    values = {name.removeprefix(TOLD): value or b"" for name, value in told}
    try:
        topic = values["topic"].decode()
        return ParkedPlace(topic, int(values["partition"]), int(values["offset"]))
    except (KeyError, ValueError):
        return None

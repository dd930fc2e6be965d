"""The topic of changes, read from Kafka: the only module here that knows the consumer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    AuthenticationFailedError,
    BrokerResponseError,
    CommitFailedError,
    ConsumerStoppedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.helpers import create_ssl_context
from mnemostream.change_records import SCHEMA_HEADER
from mnemostream.errors import BrokerRefused, BrokerUnavailable, FeedExpired, TopicMissing
from mnemostream.publisher import KafkaSecurity
from mnemostream.trails import Begun, Progress

Start: TypeAlias = Literal["beginning", "latest"] | Mapping[int, int]

_ANSWER_SECONDS: Final = 10.0
_REVOKE_SECONDS: Final = 3.0
_STOP_SECONDS: Final = 1.5
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
_UNPLACED_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Record:
    """One record, and its place."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    schema: bytes | None


class FeedLog:
    """One consumer at a time, of a group or alone with all partitions; replaced where it is beyond help."""

    def __init__(
        self,
        *,
        bootstrap_servers: str,
        topic: str,
        group_id: str | None,
        start: Start,
        follow: bool,
        security: KafkaSecurity,
        timeout_seconds: float,
        client_id: str,
    ) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._group_id = group_id
        self._start = start
        self._follow = follow
        self._security = security
        self._timeout_seconds = timeout_seconds
        self._client_id = client_id
        self._consumer: Any = None
        self._progress: Progress | None = None
        self._unplaced: set[TopicPartition] | None = None
        """Given, and not read yet; None before anything was given."""
        self._next: dict[int, int] = {}
        """The offset after what was read, of the partitions that are read now."""
        self._left: dict[int, int] = {}
        """The same, of those that a consumer before this one read."""
        self._ends: dict[int, int] | None = None
        """Where the topic ended when it was first opened, of all its partitions."""
        self._waiting: asyncio.Timeout | None = None

    async def open(self, progress: Progress) -> None:
        """Connect, trying again until the time-out. Raises BrokerUnavailable, BrokerRefused, TopicMissing."""
        self._progress = progress
        deadline = time.monotonic() + self._timeout_seconds
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), _FIRST_PAUSE_SECONDS)):
                    await self._connect()
            except (KafkaError, OSError) as error:  # TimeoutError is an OSError
                await self.close()
                if _is_final(error):
                    raise BrokerRefused(f"Kafka refused: {type(error).__name__}") from error
                if time.monotonic() + pause_seconds >= deadline:
                    raise self._unavailable(error) from error
            except BaseException:
                await self.close()
                raise
            else:
                return
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def read(self, seconds: float) -> Record | None:
        """The next record of any partition; None where there is none in that time.

        Raises BrokerUnavailable where the consumer is beyond help and `open` may mend it, BrokerRefused, FeedExpired.
        """
        consumer = self._connected()
        try:
            if self._unplaced:
                await self._place(consumer)
            if self._unplaced is None:
                await _assignment(consumer)
                return None
            async with asyncio.timeout(seconds + _ANSWER_SECONDS):
                batches = await consumer.getmany(timeout_ms=int(seconds * 1000), max_records=1)
        except (NoOffsetForPartitionError, IllegalStateError):  # the group moved under us: it is placed the next time
            await asyncio.sleep(_UNPLACED_SECONDS)
            return None
        except ConsumerStoppedError:
            return None
        except OffsetOutOfRangeError as error:
            # Kafka says so too while a partition moves: where the place is there after all, it is taken again.
            self._unplaced = (self._unplaced or set()) | set(error.args[0])
            return None
        except (KafkaError, OSError) as error:
            self._explain(error)
        for records in batches.values():
            for record in records:
                return self._taken(record)
        return None

    async def at_end(self) -> bool:
        """Whether everything was read that was there at first, in the partitions that are read now."""
        if self._unplaced is None or self._unplaced:
            return False
        for partition, place in self._next.items():
            end = self._end(partition)
            if place < end:
                # The last ones may be none of the application's records, but markers of Kafka's own.
                try:
                    async with self._answer():
                        position = await self._connected().position(TopicPartition(self._topic, partition))
                except (KafkaError, OSError) as error:
                    self._explain(error)
                if position < end:
                    return False
        return True

    async def commit(self, offsets: Mapping[int, int], seconds: float) -> None:
        """Let the group go on at `offsets` the next time. Raises BrokerUnavailable, BrokerRefused."""
        mine = {
            TopicPartition(self._topic, partition): offset
            for partition, offset in offsets.items()
            if partition in self._next
        }
        if not mine:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._connected().commit(mine)
        except (CommitFailedError, IllegalStateError) as error:
            raise BrokerUnavailable("the group's partitions move: what was not committed comes again") from error
        except (KafkaError, OSError) as error:
            self._explain(error)

    async def close(self) -> None:
        """Disconnect, even where the broker is gone and cannot be told."""
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(0)  # the consumer itself would go on asking
        consumer, self._consumer = self._consumer, None
        self._left |= self._next
        self._next, self._unplaced = {}, None
        if consumer is not None:
            await _stopped(consumer)

    async def _connect(self) -> None:
        consumer = self._consumer = AIOKafkaConsumer(**self._options())
        await consumer.start()
        if self._topic not in await consumer.topics():
            raise TopicMissing(f"topic {self._topic} does not exist: `mnemo topics` creates it")
        in_group = self._group_id is not None
        consumer.subscribe([self._topic], listener=_Listener(self._given, self._revoked) if in_group else None)
        if self._ends is None:  # now, since a group gives out partitions later, and others again when it moves
            self._ends = await _ends(consumer, self._topic)
        if in_group:
            return
        while not consumer.assignment():  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(_UNPLACED_SECONDS)
        self._given(set(consumer.assignment()))
        await self._place(consumer)

    def _given(self, partitions: set[TopicPartition]) -> None:
        self._unplaced = set(partitions)

    async def _revoked(self) -> None:
        """The group moves. What is done with is committed, so that whoever comes next begins after it."""
        progress = self._progress
        if progress is None or not self._next:
            return
        try:
            await self.commit(progress.finished, _REVOKE_SECONDS)
        except (BrokerUnavailable, BrokerRefused):  # it comes again
            pass
        finally:
            self._left |= self._next
            self._next, self._unplaced = {}, None
            progress.lost()

    async def _place(self, consumer: Any) -> None:
        """Begin to read what was given, each partition where it is to begin."""
        assert self._unplaced is not None
        partitions = sorted(self._unplaced)
        async with self._answer():
            firsts = await consumer.beginning_offsets(partitions)
            ends = await consumer.end_offsets(partitions)
            places = [(each, *await self._begin(consumer, each, firsts[each])) for each in partitions]
        if not (self._unplaced or set()).issuperset(partitions):
            return  # they moved meanwhile
        for each, place, begun in places:
            if not firsts[each] <= place <= ends[each]:
                raise FeedExpired(each.partition, place, firsts[each], ends[each])
            consumer.seek(each, place)
            self._next[each.partition] = place
            assert self._progress is not None
            self._progress.given(each.partition, place, begun)
        self._unplaced.difference_update(partitions)

    async def _begin(self, consumer: Any, which: TopicPartition, first: int) -> tuple[int, Begun]:
        """Where to begin with a partition."""
        partition = which.partition
        place = self._next.get(partition, self._left.get(partition))
        if self._group_id is not None and partition not in self._next:
            place = await consumer.committed(which)
        if place is None and not isinstance(self._start, str):
            place = self._start.get(partition)
        if place is not None:
            return place, Begun.AT_THE_BEGINNING if place == first == 0 else Begun.IN_THE_MIDDLE
        if self._start == "latest":
            return self._end(partition), Begun.AT_THE_END
        return first, Begun.AT_THE_BEGINNING

    def _end(self, partition: int) -> int:
        """Where `partition` ended at first: one that was not there had nothing."""
        return (self._ends or {}).get(partition, 0)

    @asynccontextmanager
    async def _answer(self) -> AsyncIterator[None]:
        """What asks the broker in it raises TimeoutError after a while, and when the log is closed."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS) as self._waiting:
                yield
        finally:
            self._waiting = None

    def _connected(self) -> Any:
        if self._consumer is None:
            raise BrokerUnavailable("there is no connection to Kafka")
        return self._consumer

    def _taken(self, record: Any) -> Record | None:
        """What was read; None for what the group moved away, is read again from another place, or came too late."""
        if self._next.get(record.partition, record.offset + 1) > record.offset:
            return None
        if not self._follow and record.offset >= self._end(record.partition):
            return None
        self._next[record.partition] = record.offset + 1
        schema = next((value for name, value in record.headers if name == SCHEMA_HEADER), None)
        return Record(record.partition, record.offset, record.key, record.value, schema)

    def _explain(self, error: Exception) -> NoReturn:
        if _is_final(error):
            raise BrokerRefused(f"Kafka refused: {type(error).__name__}") from error
        raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> BrokerUnavailable:
        return BrokerUnavailable(f"Kafka at {self._servers} did not answer in time ({type(error).__name__})")

    def _options(self) -> dict[str, Any]:
        security = self._security
        ssl_context = None
        if security.protocol.endswith("SSL"):
            ssl_context = create_ssl_context(
                cafile=security.ssl_cafile, certfile=security.ssl_certfile, keyfile=security.ssl_keyfile
            )
        return {
            "bootstrap_servers": self._servers,
            "client_id": self._client_id,
            "group_id": self._group_id,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",  # what is gone must not go unnoticed
            "security_protocol": security.protocol,
            "ssl_context": ssl_context,
            "sasl_mechanism": security.sasl_mechanism,
            "sasl_plain_username": security.sasl_username,
            "sasl_plain_password": security.sasl_password,
        }


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka is not typed
    def __init__(self, given: Callable[[set[TopicPartition]], None], revoked: Callable[[], Any]) -> None:
        self._given = given
        self._revoked = revoked

    async def on_partitions_revoked(self, _: Any) -> None:
        """All of them: they are given out anew."""
        await self._revoked()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Which ones it is now."""
        self._given(set(assigned))


async def _ends(consumer: Any, topic: str) -> dict[int, int]:
    """Where `topic` ends, by partition."""
    while not consumer.partitions_for_topic(topic):  # noqa: ASYNC110 (there is no event for it)
        await asyncio.sleep(_UNPLACED_SECONDS)
    partitions = [TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic)]
    return {which.partition: end for which, end in (await consumer.end_offsets(partitions)).items()}


async def _assignment(consumer: Any) -> None:
    """Wait a moment for the group to give out partitions. `getmany`, which tells what goes wrong, would wait longer."""
    consumer._coordinator.check_errors()  # noqa: SLF001
    await asyncio.sleep(_UNPLACED_SECONDS)


async def _stopped(consumer: Any) -> None:
    """Stop `consumer`. Where the broker is away that takes long, or ends half-way as if it had been cancelled."""
    for part in (consumer, consumer._fetcher, consumer._client):  # noqa: SLF001 (what is left of it)
        if part is None:
            continue
        stopping = asyncio.ensure_future(part.stop() if part is consumer else part.close())
        await asyncio.wait({stopping}, timeout=_STOP_SECONDS)
        if stopping.done() and not stopping.cancelled() and stopping.exception() is None:
            return
        stopping.cancel()


def _is_final(error: Exception) -> bool:
    """Whether trying again would be no use: Kafka answered, and marks the answer as one that stays."""
    return isinstance(error, BrokerResponseError | AuthenticationFailedError) and not error.retriable

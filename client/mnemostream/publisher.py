"""Turns into Kafka.

    async with Publisher(bootstrap_servers="localhost:9092") as publisher:
        moved = turn(app="acme", owner="user/42", messages=[("user", "I moved to Lisbon.")])
        turn_id = await publisher.publish(moved)

A turn is checked and redacted before it is sent, and its id is returned once all in-sync replicas have it. Many
`publish` calls may run at once; they share requests.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, NoReturn, Protocol, Self

from mnemostream.decoding import MAX_VALUE_BYTES, SCHEMA_VERSION, encode_turn, partition_key, validate_turn
from mnemostream.errors import BrokerRefused, BrokerUnavailable, TopicMissing, TurnTooLarge
from mnemostream.ids import new_turn_id
from mnemostream.redaction import redact_turn
from mnemostream.turns import Message, Role, Turn

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
_REQUEST_SHARE: Final = 0.8
"""aiokafka gives up before we do, because it knows the reason, such as a topic that does not exist."""
_STOP_SECONDS: Final = 5.0
"""Every publish has had its answer by the time a publisher is closed, so there is nothing to wait for."""


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """How to reach a cluster that asks who one is. `protocol`: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None


class Producer(Protocol):
    """What a publisher needs of a Kafka producer."""

    async def start(self) -> None:
        """Connect."""

    async def stop(self) -> None:
        """Send what is queued, and disconnect."""

    async def send_and_wait(self, topic: str, value: bytes, key: bytes, *, headers: list[tuple[str, bytes]]) -> object:
        """Send a record, and wait for the broker's acknowledgement."""


def turn(
    *,
    app: str,
    owner: str,
    messages: Iterable[Message | tuple[str, str]],
    said_at: datetime | None = None,
    id: str | None = None,  # noqa: A002 - the field's name
    session: str | None = None,
    recalled: Iterable[str] = (),
    time_zone: str | None = None,
    off_record: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Turn:
    """A turn, said now and with a new id unless told otherwise. A pair stands for a message: role and content.

    Keep the turn if it may have to be published again: its id is what makes that safe. Raises ValueError for a role
    that does not exist; the other rules are checked by `publish`.
    """
    return Turn(
        id=new_turn_id() if id is None else id,
        app=app,
        owner=owner,
        said_at=datetime.now(UTC) if said_at is None else said_at,
        messages=tuple(
            message if isinstance(message, Message) else Message(Role(message[0]), message[1]) for message in messages
        ),
        session=session,
        recalled=tuple(recalled),
        time_zone=time_zone,
        off_record=off_record,
        metadata={} if metadata is None else dict(metadata),
    )


class Publisher:
    """Publishes turns to one cluster. Use it as an async context manager, one for the life of a process.

    timeout_seconds bounds the connecting and each publish. `redact=False` sends turns as they are; the worker redacts
    what it stores all the same, but then the log holds the secrets until its retention ends.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str = "localhost:9092",
        topic_prefix: str = "mnemo.",
        security: KafkaSecurity | None = None,
        timeout_seconds: float = 30.0,
        redact: bool = True,
        client_id: str = "mnemostream",
        connect: Callable[[], Producer] | None = None,
    ) -> None:
        self._topic = f"{topic_prefix}turns.v1"
        self._servers = bootstrap_servers
        self._security = security or KafkaSecurity()
        self._timeout_seconds = timeout_seconds
        self._redact = redact
        self._client_id = client_id
        self._connect = connect or self._kafka_producer
        self._producer: Producer | None = None

    @property
    def topic(self) -> str:
        """Where the turns go."""
        return self._topic

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect, trying again until the time-out. Raises BrokerUnavailable, BrokerRefused."""
        if self._producer is not None:
            return
        from aiokafka import errors  # 190 ms, which only those who publish should pay

        deadline = time.monotonic() + self._timeout_seconds
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            producer = self._connect()
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), _FIRST_PAUSE_SECONDS)):
                    await producer.start()
            except (errors.KafkaError, OSError) as error:  # TimeoutError is an OSError
                await _closed(producer)
                if _is_final(error):
                    raise BrokerRefused(f"Kafka refused the connection: {type(error).__name__}") from error
                if time.monotonic() + pause_seconds >= deadline:
                    raise self._unavailable("did not answer", error) from error
            except BaseException:
                await _closed(producer)
                raise
            else:
                self._producer = producer
                return
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def stop(self) -> None:
        """Disconnect. What is still being published may or may not arrive."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _closed(producer)

    async def publish(self, turn: Turn, *, traceparent: str | None = None) -> str:
        """The turn's id, once the broker has the turn. Publishing the same turn again is safe: no second effect.

        traceparent: a W3C trace context to go on with in the worker. Raises InvalidTurn, BrokerUnavailable (the turn
        may have arrived all the same: publish it again), BrokerRefused, TopicMissing.
        """
        if self._producer is None:
            raise RuntimeError("the publisher is not started: use `async with Publisher(...)`")
        safe = redact_turn(validate_turn(turn))[0] if self._redact else turn
        value = encode_turn(safe)
        headers = [("mnemo-schema", SCHEMA_VERSION.encode())]
        if traceparent is not None:
            if _TRACEPARENT.fullmatch(traceparent) is None:
                raise ValueError("traceparent must be a W3C trace context, version 00")
            headers.append(("traceparent", traceparent.encode()))
        await self._send(self._producer, value, partition_key(safe.app, safe.owner), headers)
        return safe.id

    async def _send(self, producer: Producer, value: bytes, key: bytes, headers: list[tuple[str, bytes]]) -> None:
        from aiokafka import errors

        try:
            async with asyncio.timeout(self._timeout_seconds):
                await producer.send_and_wait(self._topic, value, key, headers=headers)
        except (errors.KafkaError, OSError) as error:
            self._explain(error, len(value))

    def _explain(self, error: Exception, size: int) -> NoReturn:
        from aiokafka import errors

        match error:
            case errors.MessageSizeTooLargeError() | errors.RecordListTooLargeError() | errors.RecordTooLargeError():
                raise TurnTooLarge(f"value: {size} bytes are more than the broker takes") from error
            case errors.UnknownTopicOrPartitionError():
                raise TopicMissing(f"topic {self._topic} does not exist: `mnemo topics` creates it") from error
            case _ if _is_final(error):
                raise BrokerRefused(f"Kafka refused the turn: {type(error).__name__}") from error
            case _:
                raise self._unavailable("did not acknowledge", error) from error

    def _unavailable(self, what: str, error: Exception) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"Kafka at {self._servers} {what} within {self._timeout_seconds:g} s ({type(error).__name__})"
        )

    def _kafka_producer(self) -> Producer:
        from aiokafka import AIOKafkaProducer
        from aiokafka.helpers import create_ssl_context

        security = self._security
        ssl_context = None
        if security.protocol.endswith("SSL"):
            ssl_context = create_ssl_context(
                cafile=security.ssl_cafile, certfile=security.ssl_certfile, keyfile=security.ssl_keyfile
            )
        # The default partitioner is murmur2 as in the Java client: an owner's turns meet in one partition, whoever
        # writes them. Idempotence keeps their order through the producer's own retries.
        producer: Producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            client_id=self._client_id,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_request_size=MAX_VALUE_BYTES,
            request_timeout_ms=max(int(self._timeout_seconds * _REQUEST_SHARE * 1000), 1),
            security_protocol=security.protocol,
            ssl_context=ssl_context,
            sasl_mechanism=security.sasl_mechanism,
            sasl_plain_username=security.sasl_username,
            sasl_plain_password=security.sasl_password,
        )
        return producer


def _is_final(error: Exception) -> bool:
    """Whether trying again would be no use: Kafka answered, and marks the answer as one that stays."""
    from aiokafka import errors

    return isinstance(error, errors.BrokerResponseError | errors.AuthenticationFailedError) and not error.retriable


async def _closed(producer: Producer) -> None:
    """`producer`, disconnected, even where the broker is gone and cannot be told."""
    from aiokafka.errors import KafkaError

    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await producer.stop()
    except (TimeoutError, OSError, KafkaError):
        return

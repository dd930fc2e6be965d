import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from aiokafka import errors as kafka_errors
from aiokafka.partitioner import DefaultPartitioner, murmur2
from mnemostream.decoding import decode_turn
from mnemostream.errors import BrokerRefused, BrokerUnavailable, InvalidTurn, TopicMissing, TurnTooLarge
from mnemostream.publisher import KafkaSecurity, Publisher, turn
from mnemostream.turns import Message, Reason, Role, Turn

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class FakeKafka:
    """A producer that fails on demand and otherwise keeps what it was given."""

    refuse_start: list[Exception] = field(default_factory=list)
    refuse_send: Exception | None = None
    hang: bool = False
    sent: list[tuple[str, bytes, bytes, list[tuple[str, bytes]]]] = field(default_factory=list)
    connected: int = 0
    stopped: int = 0

    async def start(self) -> None:
        self.connected += 1
        if self.hang:
            await asyncio.Event().wait()
        if self.refuse_start:
            raise self.refuse_start.pop(0)

    async def stop(self) -> None:
        self.stopped += 1

    async def send_and_wait(self, topic: str, value: bytes, key: bytes, *, headers: list[tuple[str, bytes]]) -> object:
        if self.hang:
            await asyncio.Event().wait()
        if self.refuse_send is not None:
            raise self.refuse_send
        self.sent.append((topic, value, key, headers))
        return None


def publisher(kafka: FakeKafka, *, timeout_seconds: float = 5.0, redact: bool = True) -> Publisher:
    return Publisher(connect=lambda: kafka, timeout_seconds=timeout_seconds, redact=redact, topic_prefix="test.")


def moved(content: str = "I moved to Lisbon.") -> Turn:
    return turn(app="acme", owner="user/42", messages=[("user", content)])


async def test_a_published_turn_carries_its_key_and_its_schema_version_and_its_id_comes_back() -> None:
    kafka = FakeKafka()
    said = moved()
    async with publisher(kafka) as publishing:
        assert await publishing.publish(said) == said.id
    [(topic, value, key, headers)] = kafka.sent
    assert (topic, key, headers) == ("test.turns.v1", b"acme/user/42", [("mnemo-schema", b"1")])
    assert decode_turn(value, key=key) == said
    assert kafka.stopped == 1


async def test_a_trace_goes_on_in_the_header_and_a_broken_one_is_refused() -> None:
    kafka = FakeKafka()
    async with publisher(kafka) as publishing:
        await publishing.publish(moved(), traceparent=TRACEPARENT)
        with pytest.raises(ValueError, match="traceparent"):
            await publishing.publish(moved(), traceparent="00-zz")
    assert [headers for *_, headers in kafka.sent] == [[("mnemo-schema", b"1"), ("traceparent", TRACEPARENT.encode())]]


@pytest.mark.parametrize(("redact", "content"), [(True, "hi\n[REDACTED]"), (False, "hi\nmy password is hunter2")])
async def test_secrets_stay_here_unless_redaction_is_turned_off(redact: bool, content: str) -> None:
    kafka = FakeKafka()
    async with publisher(kafka, redact=redact) as publishing:
        await publishing.publish(moved("hi\nmy password is hunter2"))
    assert json.loads(kafka.sent[0][1])["messages"] == [{"role": "user", "content": content}]


async def test_a_turn_that_breaks_a_rule_is_never_sent() -> None:
    kafka = FakeKafka()
    async with publisher(kafka) as publishing:
        with pytest.raises(InvalidTurn) as refused:
            await publishing.publish(turn(app="acme", owner="", messages=[("user", "hi")]))
        assert refused.value.reason is Reason.INVALID_FIELD
        with pytest.raises(TurnTooLarge):
            await publishing.publish(moved("x" * (1024 * 1024 + 1)))
    assert kafka.sent == []


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (kafka_errors.KafkaConnectionError("away"), BrokerUnavailable),
        (kafka_errors.KafkaTimeoutError(), BrokerUnavailable),
        (kafka_errors.NotEnoughReplicasError(), BrokerUnavailable),
        (ConnectionResetError(), BrokerUnavailable),
        (kafka_errors.MessageSizeTooLargeError(), TurnTooLarge),
        (kafka_errors.UnknownTopicOrPartitionError(), TopicMissing),
        (kafka_errors.TopicAuthorizationFailedError("test.turns.v1"), BrokerRefused),
    ],
)
async def test_what_kafka_answers_becomes_an_error_of_the_tree_without_the_turns_text(
    refusal: Exception, error: type[Exception]
) -> None:
    async with publisher(FakeKafka(refuse_send=refusal)) as publishing:
        with pytest.raises(error) as refused:
            await publishing.publish(moved())
    assert "Lisbon" not in str(refused.value)
    assert "user/42" not in str(refused.value)


async def test_a_broker_that_never_acknowledges_is_unavailable_after_the_time_out() -> None:
    kafka = FakeKafka()
    async with publisher(kafka, timeout_seconds=0.01) as publishing:
        kafka.hang = True
        with pytest.raises(BrokerUnavailable, match=r"did not acknowledge within 0\.01 s"):
            await publishing.publish(moved())


async def test_connecting_is_tried_again_until_kafka_is_there() -> None:
    kafka = FakeKafka(refuse_start=[kafka_errors.KafkaConnectionError("away")])
    async with publisher(kafka) as publishing:
        await publishing.publish(moved())
    assert (kafka.connected, kafka.stopped, len(kafka.sent)) == (2, 2, 1)


@pytest.mark.parametrize(
    ("kafka", "error", "words"),
    [
        (lambda: FakeKafka(hang=True), BrokerUnavailable, "did not answer within"),
        (
            lambda: FakeKafka(refuse_start=[kafka_errors.KafkaConnectionError("away")] * 9),
            BrokerUnavailable,
            "did not answer within",
        ),
        (
            lambda: FakeKafka(refuse_start=[kafka_errors.AuthenticationFailedError("no")]),
            BrokerRefused,
            "AuthenticationFailedError",
        ),
    ],
)
async def test_a_kafka_that_cannot_be_reached_is_said_so_and_left_closed(
    kafka: Callable[[], FakeKafka], error: type[Exception], words: str
) -> None:
    away = kafka()
    with pytest.raises(error, match=words):
        await publisher(away, timeout_seconds=0.05).start()
    assert away.connected == away.stopped >= 1


async def test_a_publisher_that_was_not_started_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await publisher(FakeKafka()).publish(moved())


def test_a_turn_is_said_now_with_a_new_id_unless_told_otherwise() -> None:
    before = datetime.now(UTC)
    first, second = moved(), moved()
    assert first.id != second.id
    assert before <= first.said_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert first.messages == (Message(Role.USER, "I moved to Lisbon."),)
    told = turn(app="a", owner="o", messages=[Message(Role.TOOL, "ok")], id="t-1", said_at=before)
    assert (told.id, told.said_at, told.messages[0].role) == ("t-1", before, Role.TOOL)
    with pytest.raises(ValueError):
        turn(app="a", owner="o", messages=[("robot", "hi")])


def test_a_password_for_kafka_is_not_shown() -> None:
    assert "hunter2" not in repr(KafkaSecurity(sasl_username="u", sasl_password="hunter2"))


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From org.apache.kafka.common.utils.UtilsTest.testMurmur2, as unsigned.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_partitioner_hashes_as_the_java_client_does(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32
    partitions = list(range(7))
    assert DefaultPartitioner()(key, partitions, partitions) == (hashed & 0x7FFFFFFF) % 7


async def test_a_turn_is_checked_before_it_is_redacted() -> None:
    kafka, nothing = FakeKafka(), json.loads("null")
    async with publisher(kafka) as publishing:
        with pytest.raises(InvalidTurn, match=r"messages\[0\].content: is missing"):
            await publishing.publish(turn(app="a", owner="o", messages=[Message(Role.USER, nothing)]))
    assert kafka.sent == []

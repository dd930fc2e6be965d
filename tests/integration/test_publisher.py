"""The publisher against a real Kafka."""

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from mnemostream.decoding import decode_turn, partition_key
from mnemostream.errors import BrokerUnavailable, TopicMissing
from mnemostream.publisher import Publisher, turn
from mnemostream.turns import Turn


@pytest.fixture
async def publisher(kafka_bootstrap: str, topic_prefix: str) -> AsyncIterator[Publisher]:
    async with Publisher(bootstrap_servers=kafka_bootstrap, topic_prefix=topic_prefix) as publisher:
        yield publisher


async def records(kafka_bootstrap: str, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    """Everything that stands on `topic` now."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka_bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        ends = await consumer.end_offsets(consumer.assignment())
        found: list[ConsumerRecord[bytes, bytes]] = []
        for partition, end in ends.items():
            while await consumer.position(partition) < end:
                found.extend((await consumer.getmany(partition, timeout_ms=1000)).get(partition, []))
        return found
    finally:
        await consumer.stop()


def of_owner(owner: str, content: str = "I moved to Lisbon.") -> Turn:
    return turn(app="acme", owner=owner, messages=[("user", content)])


async def test_a_turn_is_on_the_topic_once_its_id_came_back(
    publisher: Publisher, kafka_bootstrap: str, topic_prefix: str
) -> None:
    said = of_owner("user/42")
    assert await publisher.publish(said) == said.id
    [record] = await records(kafka_bootstrap, f"{topic_prefix}turns.v1")
    assert record.key == b"acme/user/42"
    assert record.headers == (("mnemo-schema", b"1"),)
    assert record.value is not None
    assert decode_turn(record.value, key=record.key) == said


async def test_turns_of_an_owner_keep_the_order_in_which_they_were_published(
    publisher: Publisher, kafka_bootstrap: str, topic_prefix: str
) -> None:
    said = [of_owner(f"user/{number % 3}", str(number)) for number in range(60)]
    ids = await asyncio.gather(*map(publisher.publish, said))
    assert ids == [one.id for one in said]
    found = [decode_turn(record.value, key=record.key) for record in await records(kafka_bootstrap, publisher.topic)]
    for owner in ("user/0", "user/1", "user/2"):
        assert [one for one in found if one.owner == owner] == [one for one in said if one.owner == owner]


async def test_the_largest_turn_that_the_rules_allow_fits_through(
    publisher: Publisher, kafka_bootstrap: str, topic_prefix: str
) -> None:
    said = of_owner("user/42", "\x01" * (1024 * 1024))  # six bytes each, escaped
    await publisher.publish(said)
    [record] = await records(kafka_bootstrap, publisher.topic)
    assert record.value is not None
    assert len(record.value) > 6 * 1024 * 1024
    assert decode_turn(record.value, key=record.key) == said


async def test_an_owner_meets_in_one_partition_whichever_client_writes(
    publisher: Publisher, kafka_bootstrap: str, topic_prefix: str
) -> None:
    owners = [f"user/{number}/{uuid.uuid4()}" for number in range(99)] + ["é/日本"]
    await asyncio.gather(*(publisher.publish(of_owner(owner)) for owner in owners))
    ours = {record.key: record.partition for record in await records(kafka_bootstrap, publisher.topic)}

    theirs: dict[bytes | None, int | None] = {}
    other = confluent_kafka.Producer({"bootstrap.servers": kafka_bootstrap, "partitioner": "murmur2_random"})
    for owner in owners:
        other.produce(
            publisher.topic,
            key=partition_key("acme", owner),
            value=b"{}",
            on_delivery=lambda _, message: theirs.update({message.key(): message.partition()}),
        )
    assert await asyncio.to_thread(other.flush, 30) == 0
    assert ours == theirs
    assert len(set(ours.values())) > 1


async def test_a_topic_that_does_not_exist_is_named(kafka_bootstrap: str) -> None:
    nowhere = Publisher(bootstrap_servers=kafka_bootstrap, topic_prefix=f"nowhere-{uuid.uuid4()}.", timeout_seconds=2)
    async with nowhere:
        with pytest.raises(TopicMissing, match=r"nowhere-.*turns\.v1"):
            await nowhere.publish(of_owner("user/42"))


async def test_a_kafka_that_is_not_there_is_unavailable_after_the_time_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        away = Publisher(bootstrap_servers=f"127.0.0.1:{taken.getsockname()[1]}", timeout_seconds=0.5)
        with pytest.raises(BrokerUnavailable, match="did not answer within"):
            await away.start()

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from processors.errors import BrokerUnavailable
from runtime.settings import Settings
from streams.topics import TopicState, ensure_topics, missing_topics, topic_specs
from tests import services

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def settings(kafka_bootstrap: str) -> Iterator[Settings]:
    prefix = services.unique_prefix()
    yield Settings(kafka_bootstrap_servers=kafka_bootstrap, topic_prefix=prefix, topic_partitions=3)
    services.delete_topics(kafka_bootstrap, prefix)


async def config_of(settings: Settings, topic: str) -> dict[str, str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap_servers)
    await admin.start()
    try:
        name = settings.topic_prefix + topic
        [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        return {entry[0]: entry[1] for entry in response.resources[0][4]}
    finally:
        await admin.close()


async def set_config(settings: Settings, topic: str, config: dict[str, str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap_servers)
    await admin.start()
    try:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, settings.topic_prefix + topic, config)])
    finally:
        await admin.close()
    await settled(settings, topic, config)


async def settled(settings: Settings, topic: str, config: dict[str, str]) -> None:
    """A change of settings takes a moment to show."""
    async with asyncio.timeout(10):
        while not config.items() <= (await config_of(settings, topic)).items():
            pass


async def test_topics_are_created_as_the_contract_says_also_twice_at_once(settings: Settings) -> None:
    reports = await asyncio.gather(ensure_topics(settings), ensure_topics(settings))
    assert all(report.ok and len(report.topics) == 5 for report in reports)
    again = await ensure_topics(settings)
    assert {topic.state for topic in again.topics} == {TopicState.UNCHANGED}
    assert {topic.partitions for topic in again.topics} == {3}
    turns, parked = await config_of(settings, "turns.v1"), await config_of(settings, "parked.v1")
    assert (turns["message.timestamp.type"], turns["max.message.bytes"]) == ("LogAppendTime", str(8 << 20))
    assert (turns["retention.ms"], turns["cleanup.policy"]) == (str(7 * DAY_MS), "delete")
    assert (parked["retention.ms"], parked["max.message.bytes"]) == (str(30 * DAY_MS), str(9 << 20))
    assert await missing_topics(settings, ["turns.v1", "other"]) == [f"{settings.topic_prefix}other"]


async def test_settings_that_drifted_are_corrected_and_told_and_others_on_the_topic_stay(settings: Settings) -> None:
    await ensure_topics(settings)
    await set_config(
        settings,
        "turns.v1",
        {"message.timestamp.type": "CreateTime", "retention.ms": str(DAY_MS), "segment.ms": "3600000"},
    )
    report = {topic.name.removeprefix(settings.topic_prefix): topic for topic in (await ensure_topics(settings)).topics}
    turns = report["turns.v1"]
    assert turns.state is TopicState.CORRECTED
    assert f"retention.ms was {DAY_MS}, is {7 * DAY_MS} now" in turns.notes
    expected = {"message.timestamp.type": "LogAppendTime", "segment.ms": "3600000", "max.message.bytes": str(8 << 20)}
    await settled(settings, "turns.v1", expected)
    assert report["parked.v1"].state is TopicState.UNCHANGED


async def test_a_retention_is_not_shortened(settings: Settings) -> None:
    await ensure_topics(settings)
    shorter = await ensure_topics(settings.model_copy(update={"topic_retention_days": 1.0}))
    assert shorter.ok
    assert any("deletes records" in note for note in shorter.topics[0].notes)
    assert (await config_of(settings, "turns.v1"))["retention.ms"] == str(7 * DAY_MS)


async def test_another_number_of_partitions_is_refused_with_the_reason(settings: Settings) -> None:
    await ensure_topics(settings)
    report = await ensure_topics(settings.model_copy(update={"topic_partitions": 6}))
    assert not report.ok
    assert {topic.state for topic in report.topics} == {TopicState.REFUSED}
    assert "has 3 partitions, the settings say 6" in report.topics[0].notes[0]


async def test_what_the_broker_refuses_is_told(settings: Settings) -> None:
    report = await ensure_topics(settings.model_copy(update={"topic_replication": 9}))
    assert not report.ok
    assert all(topic.partitions == 0 and "was not created" in topic.notes[0] for topic in report.topics)


async def test_a_broker_that_is_away_is_named() -> None:
    settings = Settings(kafka_bootstrap_servers="127.0.0.1:1")
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:1"):
        await ensure_topics(settings)


def test_every_topic_has_a_finite_retention() -> None:
    assert all(int(spec.config["retention.ms"]) > 0 for spec in topic_specs(Settings()))

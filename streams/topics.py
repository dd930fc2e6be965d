"""The topics: created or checked, with their partitions, their finite retention and their limits."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from processors.errors import BrokerUnavailable
from runtime.settings import Settings
from streams.kafka import client_options

TURNS: Final = "turns.v1"
CANDIDATES: Final = "candidates.v1"
CHANGES: Final = "changes.v1"
DECAY: Final = "decay.v1"
PARKED: Final = "parked.v1"

_VISIBLE_SECONDS: Final = 10.0
_VISIBLE_LOOKS: Final = 50
_MIB: Final = 1024 * 1024
_DAY_MS: Final = 24 * 60 * 60 * 1000
_SET_ON_TOPIC: Final = 1
"""Where a topic's setting comes from: set on the topic itself, not a default."""
_REFUSAL: Final = (
    "has {there} partitions, the settings say {wanted}: changing it would move owners to other partitions and lose"
    " their order; take a new MNEMO_TOPIC_PREFIX with the new number, drain the old one, then switch"
)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it has to be."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


class TopicState(StrEnum):
    """What was found, and done."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    CORRECTED = "corrected"
    REFUSED = "refused"
    """It differs in what is not changed here."""


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic after `ensure_topics`. `notes` are sentences for people."""

    name: str
    partitions: int
    state: TopicState
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicsReport:
    """All topics after `ensure_topics`."""

    topics: tuple[TopicReport, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing was refused."""
        return all(topic.state is not TopicState.REFUSED for topic in self.topics)


def topic_name(settings: Settings, topic: str) -> str:
    """The full name of one of the five topics."""
    return settings.topic_prefix + topic


def topic_specs(settings: Settings) -> tuple[TopicSpec, ...]:
    """The five topics as the settings want them."""
    short, long = (int(d * _DAY_MS) for d in (settings.topic_retention_days, settings.topic_long_retention_days))

    def spec(topic: str, retention_ms: int, max_mib: int = 8, **more: str) -> TopicSpec:
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(max_mib * _MIB),
        } | {name.replace("_", "."): value for name, value in more.items()}
        name = topic_name(settings, topic)
        return TopicSpec(name, settings.topic_partitions, settings.topic_replication, config)

    return (
        spec(TURNS, short, message_timestamp_type="LogAppendTime"),
        spec(CANDIDATES, short),
        spec(CHANGES, long),
        spec(DECAY, short),
        spec(PARKED, long, 9),
    )


async def ensure_topics(settings: Settings) -> TopicsReport:
    """Create the topics that are missing, correct what can be corrected without loss, and report the rest.

    Again, or twice at once, changes nothing more. Raises BrokerUnavailable.
    """
    specs = topic_specs(settings)
    reports: dict[str, TopicReport] = {}
    async with _admin(settings) as admin:
        there = await _partitions(admin)
        created, refused = await _create(admin, [spec for spec in specs if spec.name not in there])
        there = await _seen(admin, [spec.name for spec in specs if spec.name not in refused])
        found = [spec for spec in specs if spec.name in there and spec.name not in created]
        configs = await _configs(admin, [spec.name for spec in found])
        for spec in found:
            reports[spec.name] = await _check(admin, spec, there[spec.name], configs.get(spec.name, {}))
    for spec in specs:
        if spec.name in created:
            reports[spec.name] = TopicReport(spec.name, spec.partitions, TopicState.CREATED)
        elif spec.name not in reports:
            reason = refused.get(spec.name, "was created by somebody else and is not there yet: run this again")
            reports[spec.name] = TopicReport(spec.name, 0, TopicState.REFUSED, (reason,))
    return TopicsReport(tuple(reports[spec.name] for spec in specs))


async def missing_topics(settings: Settings, topics: Iterable[str]) -> list[str]:
    """Those of `topics` (their names without the prefix) that do not exist. Raises BrokerUnavailable."""
    async with _admin(settings) as admin:
        there = await _partitions(admin)
    return [name for topic in topics if (name := topic_name(settings, topic)) not in there]


@asynccontextmanager
async def _admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**client_options(settings), client_id="mnemo-topics", request_timeout_ms=20_000)
    try:
        await admin.start()
        yield admin
    except (KafkaError, OSError) as error:
        raise BrokerUnavailable(
            f"Kafka at {settings.kafka_bootstrap_servers} is away ({type(error).__name__})"
        ) from error
    finally:
        await admin.close()


async def _partitions(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """The number of partitions of each topic. All are asked for: to ask for one by name may create it."""
    topics: list[dict[str, Any]] = await admin.describe_topics()
    return {topic["topic"]: len(topic["partitions"]) for topic in topics}


async def _seen(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    """The partitions of each topic, once all of `names` are known: a creation takes a moment to show."""
    for _ in range(_VISIBLE_LOOKS):
        there = await _partitions(admin)
        if all(name in there for name in names):
            break
        await asyncio.sleep(_VISIBLE_SECONDS / _VISIBLE_LOOKS)
    return there


async def _create(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> tuple[set[str], dict[str, str]]:
    """Create topics, unless somebody else just did; gives those it made, and why others were refused."""
    if not specs:
        return set(), {}
    response = await admin.create_topics(
        [NewTopic(s.name, s.partitions, s.replication, topic_configs=dict(s.config)) for s in specs]
    )
    created = {topic for topic, code, _ in response.topic_errors if not code}
    refused = {
        topic: f"was not created: {message or code}"
        for topic, code, message in response.topic_errors
        if code not in (0, TopicAlreadyExistsError.errno)
    }
    return created, refused


async def _configs(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, tuple[str, bool]]]:
    """Each topic's settings: the value, and whether it is set on the topic itself."""
    if not names:
        return {}
    responses = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    configs: dict[str, dict[str, tuple[str, bool]]] = {}
    for response in responses:
        for code, _message, _kind, name, entries in response.resources:
            if code and code != UnknownTopicOrPartitionError.errno:
                raise BrokerUnavailable(f"the settings of {name} cannot be read (error {code})")
            configs[name] = {entry[0]: (entry[1], entry[3] == _SET_ON_TOPIC) for entry in entries}
    return configs


async def _check(
    admin: AIOKafkaAdminClient, spec: TopicSpec, partitions: int, config: Mapping[str, tuple[str, bool]]
) -> TopicReport:
    notes: list[str] = []
    if partitions != spec.partitions:
        notes.append(_REFUSAL.format(there=partitions, wanted=spec.partitions))
    changes = {name: wanted for name, wanted in spec.config.items() if config.get(name, ("", False))[0] != wanted}
    kept = _kept(changes, config)
    notes += [f"{name} is {config[name][0]}, the settings say {changes.pop(name)}: {why}" for name, why in kept.items()]
    if changes:
        # A topic's settings are replaced as a whole: what else is set on it has to be said again.
        own = {name: value for name, (value, is_own) in config.items() if is_own}
        await _alter(admin, spec.name, own | changes)
        notes += [
            f"{name} was {config.get(name, ('unset', False))[0]}, is {value} now" for name, value in changes.items()
        ]
    refused = partitions != spec.partitions
    state = TopicState.REFUSED if refused else TopicState.CORRECTED if changes else TopicState.UNCHANGED
    return TopicReport(spec.name, partitions, state, tuple(notes))


def _kept(changes: Mapping[str, str], config: Mapping[str, tuple[str, bool]]) -> dict[str, str]:
    """The changes that are not made, and why: a shorter retention deletes records that nobody may have read yet."""
    wanted, there = changes.get("retention.ms"), config.get("retention.ms", ("", False))[0]
    if wanted is None or not there or 0 <= int(there) < int(wanted):
        return {}
    return {"retention.ms": "left as it is, because a shorter one deletes records; set it with Kafka's own tools"}


async def _alter(admin: AIOKafkaAdminClient, name: str, config: Mapping[str, str]) -> None:
    for response in await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, dict(config))]):
        for code, message, *_ in response.resources:
            if code:
                raise BrokerUnavailable(f"the settings of {name} cannot be changed: {message or code}")

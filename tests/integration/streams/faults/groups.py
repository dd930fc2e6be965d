"""What an operator, or a broker, does to consumer groups: done at once, so that no test waits for a time-out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import AIOKafkaConsumer
from aiokafka.protocol.admin import DescribeGroupsRequest_v2
from aiokafka.protocol.group import LeaveGroupRequest

_STAGES = ("extract", "reconcile")


class _Describe:
    """Asks for a group in version 2: aiokafka's own request asks in version 3, and reads the answer as version 2."""

    def __init__(self, group: str) -> None:
        self._group = group

    def prepare(self, _versions: object) -> Any:
        """The request on the wire, whatever the broker knows."""
        return DescribeGroupsRequest_v2([self._group])


@asynccontextmanager
async def _client(bootstrap: str) -> AsyncIterator[AIOKafkaClient]:
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        yield client
    finally:
        await client.close()


async def members_of(bootstrap: str, group: str, stage: str) -> list[str]:
    """The ids of the members of a stage's group."""
    async with _client(bootstrap) as client:
        answer = await client.send(client.get_random_node(), _Describe(f"{group}-{stage}"))
    return [member[0] for _, _, _, _, _, members in answer.groups for member in members]


async def evict(bootstrap: str, group: str) -> None:
    """Take all members out of both groups, as the broker does when a session ends."""
    for stage in _STAGES:
        members = await members_of(bootstrap, group, stage)
        async with _client(bootstrap) as client:
            for member in members:
                await client.send(client.get_random_node(), LeaveGroupRequest(f"{group}-{stage}", member))


async def committed(bootstrap: str, group: str) -> dict[str, int]:
    """How far each stage's group is: the sum of its offsets."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return {
            stage: sum(
                max(0, each.offset) for each in (await admin.list_consumer_group_offsets(f"{group}-{stage}")).values()
            )
            for stage in _STAGES
        }
    finally:
        await admin.close()


async def rewind(bootstrap: str, group: str, prefix: str) -> None:
    """Both groups to the beginning of their topics. Nobody may be in them."""
    for stage, topic in zip(_STAGES, ("turns.v1", "candidates.v1"), strict=True):
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=f"{group}-{stage}", enable_auto_commit=False)
        await consumer.start()
        try:
            partitions = [TopicPartition(f"{prefix}{topic}", number) for number in range(4)]
            consumer.assign(partitions)
            await consumer.commit(dict.fromkeys(partitions, 0))
        finally:
            await consumer.stop()

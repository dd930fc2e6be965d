"""Records in hand that their lane has no room for yet: in order within a partition, fairly among partitions."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from streams.delivery._assignment import Delivery

_Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the work in hand. A single record is let in whatever its size, or it could never be handled."""

    max_in_flight: int = 32
    """Windows being handled at the same time."""
    max_pending: int = 16_384
    """Records in lanes, those being handled included."""
    max_pending_bytes: int = 32 * 1024 * 1024
    max_lane: int = 8_192
    """Records of one key in its lane, so that a hot owner cannot fill all of them."""
    max_lane_bytes: int = 8 * 1024 * 1024
    max_unacked: int = 10_000
    """Records of a partition from its first unfinished one on: what a crash would deliver again."""
    max_backlog: int = 256
    """Records that found no room in their lanes; beyond it `submit` waits."""
    max_backlog_bytes: int = 16 * 1024 * 1024
    hold_at: int = 64
    """Records of one partition without room, from which on it is not fetched; half of it lets it go on."""
    hold_at_bytes: int = 4 * 1024 * 1024


class Valve(Protocol):
    """Stops and resumes the fetching of one partition. What is fetched already still comes."""

    def hold(self, topic: str, partition: int) -> None:
        """Fetch no more of it for now."""
        ...

    def release(self, topic: str, partition: int) -> None:
        """Go on."""
        ...


class Open:
    """A valve that is always open: only `submit` holds back."""

    def hold(self, topic: str, partition: int) -> None:
        """Nothing."""

    def release(self, topic: str, partition: int) -> None:
        """Nothing."""


@dataclass(slots=True)
class _Queue:
    deliveries: deque[Delivery] = field(default_factory=deque)
    size_bytes: int = 0
    held: bool = False


class Intakes:
    """One queue a partition before the lanes. `admit` takes a delivery into its lane, or says that there is no room."""

    def __init__(self, limits: Limits, admit: Callable[[Delivery], bool], valve: Valve) -> None:
        self._limits = limits
        self._admit = admit
        self._valve = valve
        self._queues: OrderedDict[_Partition, _Queue] = OrderedDict()
        self._count = 0
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._flowing = False

    @property
    def count(self) -> int:
        """Records without room in their lanes."""
        return self._count

    async def put(self, delivery: Delivery) -> None:
        """Pass `delivery` on, behind what waits of its partition. Waits while too much waits in all."""
        partition = (delivery.record.topic, delivery.record.partition)
        queue = self._queues.get(partition)
        if queue is None and self._admit(delivery):
            return
        if queue is None:
            queue = self._queues[partition] = _Queue()
        queue.deliveries.append(delivery)
        self._add(queue, 1, delivery.record.size_bytes)
        if not queue.held and self._fill(queue) >= 1:
            queue.held = True
            self._valve.hold(*partition)
        await self._room.wait()

    def flow(self) -> None:
        """Let in what has room now, one record of each partition in turn."""
        if self._flowing:
            return  # called by what an admission set off: the turn that goes on sees what became free
        self._flowing = True
        try:
            moved = True
            while moved:
                moved = False
                for partition in list(self._queues):
                    moved = self._let_in(partition) or moved
        finally:
            self._flowing = False

    def drop(self, unwanted: Callable[[Delivery], bool]) -> int:
        """Let go of what is `unwanted`, and tell how much it was."""
        dropped = 0
        for partition, queue in list(self._queues.items()):
            gone = [delivery for delivery in queue.deliveries if unwanted(delivery)]
            queue.deliveries = deque(delivery for delivery in queue.deliveries if not unwanted(delivery))
            self._add(queue, -len(gone), -sum(delivery.record.size_bytes for delivery in gone))
            self._shortened(partition, queue)
            dropped += len(gone)
        return dropped

    def _let_in(self, partition: _Partition) -> bool:
        queue = self._queues[partition]
        if not self._admit(queue.deliveries[0]):
            return False
        self._add(queue, -1, -queue.deliveries.popleft().record.size_bytes)
        self._shortened(partition, queue)
        return True

    def _fill(self, queue: _Queue) -> float:
        """How full a partition's queue is: from 1 on it is not fetched."""
        return max(len(queue.deliveries) / self._limits.hold_at, queue.size_bytes / self._limits.hold_at_bytes)

    def _shortened(self, partition: _Partition, queue: _Queue) -> None:
        if queue.held and self._fill(queue) <= 0.5:
            queue.held = False
            self._valve.release(*partition)
        if queue.deliveries:
            self._queues.move_to_end(partition)
        else:
            del self._queues[partition]

    def _add(self, queue: _Queue, records: int, size_bytes: int) -> None:
        queue.size_bytes += size_bytes
        self._count += records
        self._bytes += size_bytes
        full = self._count >= self._limits.max_backlog or self._bytes >= self._limits.max_backlog_bytes
        if full:
            self._room.clear()
        else:
            self._room.set()

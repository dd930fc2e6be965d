"""Records in hand that their lane has no room for yet: in order within a partition, fairly among partitions."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streams.delivery._assignment import Delivery

_Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the work in hand. A single record is let in whatever its size, or it could never be handled."""

    max_in_flight: int = 32
    """Windows being handled at the same time."""
    max_pending: int = 32_768
    """Records in lanes, those being handled included."""
    max_pending_bytes: int = 32 * 1024 * 1024
    max_lane: int = 16_384
    """Records of one key in its lane, so that a hot owner cannot fill all of them."""
    max_lane_bytes: int = 8 * 1024 * 1024
    max_unacked: int = 20_000
    """Records of a partition from its first unfinished one on: what a crash would deliver again."""
    max_unacked_in_all: int = 131_072
    """The same over all partitions, an equal share each: a little of what is finished stays in memory until its ack."""
    max_backlog: int = 256
    """Records that found no room in their lanes, of partitions that are fetched; beyond it `submit` waits."""
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
        self._count += 1
        queue.size_bytes += delivery.record.size_bytes
        if not queue.held and self._fill(queue) >= 1:
            queue.held = True
            self._valve.hold(*partition)
        self._look_for_room()
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
            self._shortened(partition, queue, gone)
            dropped += len(gone)
        return dropped

    def _let_in(self, partition: _Partition) -> bool:
        queue = self._queues[partition]
        if not self._admit(queue.deliveries[0]):
            return False
        self._shortened(partition, queue, [queue.deliveries.popleft()])
        return True

    def _fill(self, queue: _Queue) -> float:
        """How full a partition's queue is: from 1 on it is not fetched."""
        return max(len(queue.deliveries) / self._limits.hold_at, queue.size_bytes / self._limits.hold_at_bytes)

    def _shortened(self, partition: _Partition, queue: _Queue, gone: Sequence[Delivery]) -> None:
        self._count -= len(gone)
        queue.size_bytes -= sum(delivery.record.size_bytes for delivery in gone)
        if queue.held and self._fill(queue) <= 0.5:
            queue.held = False
            self._valve.release(*partition)
        if queue.deliveries:
            self._queues.move_to_end(partition)
        else:
            del self._queues[partition]
        self._look_for_room()

    def _look_for_room(self) -> None:
        """Whether more is taken in. What a held partition may have waiting does not count: it stops by itself."""
        limits = self._limits
        count = size_bytes = 0
        for queue in self._queues.values():
            count += max(0, len(queue.deliveries) - queue.held * limits.hold_at)
            size_bytes += max(0, queue.size_bytes - queue.held * limits.hold_at_bytes)
        if count >= limits.max_backlog or size_bytes >= limits.max_backlog_bytes:
            self._room.clear()
        else:
            self._room.set()

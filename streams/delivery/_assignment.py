"""What a worker holds between two rebalances, and how far each of its partitions is finished."""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from streams.delivery._record import Record

Ack = Callable[[], object]
"""Lets the record's offset be committed. Called once, in strictly increasing offset order within a partition."""


@dataclass(eq=False, slots=True)
class _Step:
    """One offset on the way to its commit. It outlives the record, whose bytes may be many."""

    offset: int
    received_at: datetime
    ack: Ack
    finished: bool = False


@dataclass(eq=False, slots=True)
class Delivery:
    """One delivery of a record: the same record may be delivered again, under another assignment."""

    record: Record
    assignment: "Assignment"
    step: _Step

    @property
    def stale(self) -> bool:
        """Whether it must not be begun: who delivers next will deliver it again."""
        return self.assignment.stale

    def finish(self) -> None:
        """It is done for good."""
        self.assignment.finish(self)


@dataclass(slots=True)
class _Progress:
    steps: deque[_Step] = field(default_factory=deque)
    """By offset, from the first unfinished one on."""
    in_hand: set[int] = field(default_factory=set)
    """Offsets that are unfinished, or finished and not yet acked."""
    acked: int = -1

    def add(self, step: _Step) -> None:
        """Begin to follow `step`. What is behind an ack already needs none of its own."""
        self.in_hand.add(step.offset)
        if step.offset <= self.acked:
            return
        if not self.steps or self.steps[-1].offset < step.offset:
            self.steps.append(step)
        else:
            self.steps.insert(bisect_left(self.steps, step.offset, key=lambda other: other.offset), step)

    def finish(self, step: _Step) -> None:
        """`step` is done: ack the finished prefix."""
        step.finished = True
        if step.offset <= self.acked:
            self.in_hand.discard(step.offset)
        while self.steps and self.steps[0].finished:
            first = self.steps.popleft()
            self.in_hand.discard(first.offset)
            self.acked = first.offset
            first.ack()


class Assignment:
    """The partitions that one rebalance gave to this worker: open, then suspended, then closed.

    Suspended: nothing of it is begun any more, what runs may finish and is acked. Closed: no acks either.
    A record is dropped un-acked only once its assignment is suspended, so a hole never stays in an open one.
    """

    def __init__(self) -> None:
        self._suspended = asyncio.Event()
        self._partitions: dict[tuple[str, int], _Progress] = {}

    @property
    def stale(self) -> bool:
        """Whether it is suspended or closed."""
        return self._suspended.is_set()

    def suspend(self) -> None:
        """Begin nothing more of it. Call it by `Lanes.suspend`, which also lets go of what waits."""
        self._suspended.set()

    def close(self) -> None:
        """Ack nothing more of it."""
        self._suspended.set()
        self._partitions.clear()

    async def wait_stale(self) -> None:
        """Until it is suspended."""
        await self._suspended.wait()

    def track(self, record: Record, ack: Ack) -> Delivery | None:
        """Begin to follow `record`; None where it is in hand already, or the assignment is stale.

        A consumer that goes back brings records again that are done: they are handled again, which has no effect, and
        not acked again. To pass them over would trust that nothing before them was skipped.
        """
        if self.stale:
            return None
        progress = self._partitions.setdefault((record.topic, record.partition), _Progress())
        if record.offset in progress.in_hand:
            return None
        step = _Step(record.offset, record.received_at, ack)
        progress.add(step)
        return Delivery(record, self, step)

    def finish(self, delivery: Delivery) -> None:
        """`delivery` is done for good. Acks what is now a finished prefix, unless the assignment is closed."""
        progress = self._partitions.get((delivery.record.topic, delivery.record.partition))
        if progress is not None:
            progress.finish(delivery.step)

    @property
    def partitions(self) -> int:
        """How many partitions it has brought records of."""
        return len(self._partitions)

    def lead(self, record: Record) -> int:
        """How far `record` is ahead of the first unfinished one of its partition, in offsets."""
        progress = self._partitions.get((record.topic, record.partition))
        return record.offset - progress.steps[0].offset if progress is not None and progress.steps else 0

    def oldest_unfinished(self) -> datetime | None:
        """When the broker took the oldest record in hand; None when nothing is in hand."""
        return min((p.steps[0].received_at for p in self._partitions.values() if p.steps), default=None)

"""Delivery against a fake broker, with every interleaving that Hypothesis finds.

The broker redelivers from the committed offset after each rebalance. Laws: nothing is committed past a record that is
not done; a key's records are done in order and never two at a time; what is in hand is bounded; in the end all is done.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from mnemostream.turns import Reason

from processors.errors import Rejected, StoreUnavailable
from streams.delivery import Assignment, Lanes, Limits, Record, Retry
from tests.streams.delivery_fakes import Naps, record, settle

PARTITIONS = 2
KEYS = ("a", "b", "c", None)
LIMITS = Limits(max_in_flight=2, max_pending=5, max_lane=3, max_lane_bytes=60, max_backlog=3, max_unacked=8, hold_at=2)
ENDS = ("done", "done", "away", "rejected", "bug", "cancelled")
Place = tuple[int, int]


class DeliveryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.naps = Naps()
        self.logs: dict[int, list[Record]] = defaultdict(list)
        self.committed: dict[int, int] = defaultdict(int)
        self.position: dict[int, int] = defaultdict(int)
        self.acked: dict[int, int] = {}
        """The last ack of this assignment."""
        self.running: dict[Place, asyncio.Future[None]] = {}
        self.busy: dict[object, int] = defaultdict(int)
        self.done: set[Place] = set()
        self.first_done: dict[object, list[Place]] = defaultdict(list)
        self.faults: list[str] = []
        self.held: set[int] = set()
        """Partitions that are not fetched."""
        self.window = 1
        self.lanes = self.run(self._make())
        self.assignment = Assignment()
        self.submitting: asyncio.Task[None] | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _make(self) -> Lanes:
        return Lanes(
            self._handle,
            self._park,
            limits=LIMITS,
            retry=Retry(failures=2),
            window=lambda records: self.window,
            sleep=self.naps,
            valve=self,
            on_crash=lambda error: self.faults.append(repr(error)),
        )

    def hold(self, topic: str, partition: int) -> None:
        if partition in self.held:
            self.faults.append("held twice")
        self.held.add(partition)

    def release(self, topic: str, partition: int) -> None:
        if partition not in self.held:
            self.faults.append("released without being held")
        self.held.discard(partition)

    async def _handle(self, records: Sequence[Record]) -> None:
        lane = records[0].key or records[0].partition
        self.busy[lane] += 1
        if self.busy[lane] > 1:
            self.faults.append(f"two windows of {lane!r} at once")
        future: asyncio.Future[None] = self.loop.create_future()
        places = [(r.partition, r.offset) for r in records]
        self.running[places[0]] = future
        try:
            await future
            self._finished(records)
        finally:
            self.busy[lane] -= 1
            self.running.pop(places[0], None)

    async def _park(self, parked: Record, reason: Reason, detail: str, attempts: int) -> None:
        self._finished([parked])

    def _finished(self, records: Sequence[Record]) -> None:
        for each in records:
            place = (each.partition, each.offset)
            if place not in self.done:
                self.done.add(place)
                self.first_done[each.key, each.partition].append(place)

    def _ack(self, acked: Record, assignment: Assignment) -> None:
        if assignment is not self.assignment:
            self.faults.append("an ack of an assignment that is over")
        if acked.offset <= self.acked.get(acked.partition, -1):
            self.faults.append("an ack out of order")
        self.acked[acked.partition] = acked.offset
        unfinished = [o for o in range(acked.offset + 1) if (acked.partition, o) not in self.done]
        if unfinished:
            self.faults.append(f"{acked.offset} acked before {unfinished}")
        # As a consumer does that goes back behind what is committed.
        self.committed[acked.partition] = max(self.committed[acked.partition], acked.offset + 1)

    @rule(partition=st.integers(0, PARTITIONS - 1), key=st.sampled_from(KEYS), size=st.sampled_from([0, 10, 100]))
    def publish(self, partition: int, key: str | None, size: int) -> None:
        log = self.logs[partition]
        # A key lives in one partition, as with a partitioner.
        named = None if key is None else f"{key}{partition}"
        log.append(record(len(log), named, partition=partition, size=size))

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 4), turns=st.integers(0, 12))
    def deliver(self, partition: int, count: int, turns: int) -> None:
        for _ in range(count):
            if self.submitting is not None and not self.submitting.done():
                return  # back-pressure: the one consumer waits
            if partition in self.held:
                return
            position = self.position[partition]
            if position >= len(self.logs[partition]):
                return
            self.position[partition] += 1
            given, assignment = self.logs[partition][position], self.assignment
            self.submitting = self.loop.create_task(
                self.lanes.submit(given, assignment, partial(self._ack, given, assignment))
            )
            self.run(settle(turns))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from(ENDS), turns=st.integers(0, 12))
    def end_one(self, data: st.DataObject, end: str, turns: int) -> None:
        future = self.running[data.draw(st.sampled_from(sorted(self.running)))]
        if future.done():
            return
        match end:
            case "done":
                future.set_result(None)
            case "away":
                future.set_exception(StoreUnavailable("away"))
            case "rejected":
                future.set_exception(Rejected(Reason.INVALID_FIELD, "field"))
            case "bug":
                future.set_exception(ValueError("text"))
            case _:
                future.cancel()
        self.run(settle(turns))

    @rule(turns=st.integers(0, 12))
    def wake(self, turns: int) -> None:
        self.naps.wake()
        self.run(settle(turns))

    @rule(window=st.integers(1, 3))
    def let_windows_be(self, window: int) -> None:
        self.window = window

    @rule(committed=st.booleans(), while_suspended=st.integers(0, 2), turns=st.integers(0, 12))
    def rebalance(self, committed: bool, while_suspended: int, turns: int) -> None:
        self.lanes.suspend(self.assignment)
        self.run(settle(turns))
        for place in sorted(self.running)[:while_suspended]:
            if not self.running[place].done():
                self.running[place].set_result(None)
        self.run(settle())
        self.assignment.close()
        self.assignment = Assignment()
        self.acked.clear()
        for partition in range(PARTITIONS):
            # What was acked last may not have been committed any more.
            self.position[partition] = self.committed[partition] if committed else self.committed[partition] // 2
            self.committed[partition] = self.position[partition]

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def go_back(self, partition: int) -> None:
        self.position[partition] = max(0, self.position[partition] - 2)

    @invariant()
    def no_fault(self) -> None:
        assert self.faults == []

    @invariant()
    def bounded(self) -> None:
        assert len(self.running) <= LIMITS.max_in_flight
        # What held partitions have waiting comes on top; and of each partition one record may always be in its lane.
        waiting = LIMITS.max_backlog + PARTITIONS * LIMITS.hold_at
        assert self.lanes.pending <= LIMITS.max_pending + PARTITIONS + waiting

    @invariant()
    def keys_in_order(self) -> None:
        for (key, _), places in self.first_done.items():
            assert places == sorted(places), key

    def teardown(self) -> None:
        try:
            self._deliver_everything()
            assert self.faults == []
            assert self.done == {(p, r.offset) for p, log in self.logs.items() for r in log}
            assert all(self.committed[p] == len(log) for p, log in self.logs.items())
            assert self.lanes.pending == 0
        finally:
            self.run(self.lanes.close())
            self.loop.close()

    def _deliver_everything(self) -> None:
        """With everything there again, everything gets done."""
        for _ in range(20 + 10 * sum(map(len, self.logs.values()))):
            if not self.lanes.pending and all(self.committed[p] == len(log) for p, log in self.logs.items()):
                break
            for partition in range(PARTITIONS):
                self.deliver(partition, 4, 12)
            self.naps.wake()
            for future in list(self.running.values()):
                if not future.done():
                    future.set_result(None)
            self.run(settle())


TestDeliveryMachine = DeliveryMachine.TestCase
TestDeliveryMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

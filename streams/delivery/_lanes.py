"""One FIFO lane per key, a window at a time in each, many lanes at once."""

import asyncio
import random
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final

import structlog
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, Rejected, Unavailable
from streams.delivery._assignment import Ack, Assignment, Delivery
from streams.delivery._intake import Intakes, Limits, Open, Valve
from streams.delivery._lane import InLanes, Lane, Verdict, place_of, type_and_place
from streams.delivery._observer import Observer, Outcome, Silent
from streams.delivery._record import Record
from streams.delivery._retry import Retry

_log = structlog.get_logger(__name__)

_LONGEST_WINDOW: Final = 256
"""Records that a window policy is shown."""

Handle = Callable[[Sequence[Record]], Awaitable[None]]
"""Handles a window of one lane, in order. Raises Unavailable, Rejected, or what nobody foresaw."""
Park = Callable[[Record, Reason, str, int], Awaitable[None]]
"""Sets a record aside, with its reason, detail and number of attempts. Done when it returns."""
LaneOf = Callable[[Record], Hashable]
WindowPolicy = Callable[[Sequence[Record]], int]
"""How many records from the head of a lane are handled together; at least one."""


def key_lane(record: Record) -> Hashable:
    """A lane for each key; a record without one shares that of its partition."""
    return record.key or (record.topic, record.partition)


def windows_of_one(records: Sequence[Record]) -> int:
    """Each record by itself."""
    return min(1, len(records))


class Lanes:
    """Takes records, gives each key's to `handle` in order and one window at a time, and acks what is finished.

    It outlives assignments: a record that is delivered again queues behind its own first copy. All methods belong to
    one event loop.
    """

    def __init__(
        self,
        handle: Handle,
        park: Park,
        *,
        limits: Limits,
        retry: Retry,
        lane_of: LaneOf = key_lane,
        window: WindowPolicy = windows_of_one,
        valve: Valve | None = None,
        observer: Observer | None = None,
        on_crash: Callable[[BaseException], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._handle, self._park = handle, park
        self._limits, self._retry = limits, retry
        self._lane_of, self._window = lane_of, window
        self._observer: Observer = observer or Silent()
        self._on_crash = on_crash or _raise_in_loop
        self._clock, self._sleep, self._uniform = clock, sleep, uniform
        self._intakes = Intakes(limits, self._admit, valve or Open())
        self._lanes: dict[Hashable, Lane] = {}
        self._ready: deque[Lane] = deque()
        self._running: set[asyncio.Task[float]] = set()
        self._pausing: set[asyncio.Task[None]] = set()
        self._assignments: set[Assignment] = set()
        self._in_lanes: defaultdict[tuple[str, int], InLanes] = defaultdict(InLanes)
        self._pending = 0
        self._pending_bytes = 0
        self._pump_is_due = False
        self._closed = False

    @property
    def running(self) -> int:
        """Windows being handled."""
        return len(self._running)

    @property
    def pending(self) -> int:
        """Records in hand that are not done: being handled, in lanes, and before them."""
        return self._pending + self._intakes.count

    def oldest_unfinished(self) -> datetime | None:
        """When the broker took the oldest record in hand; None when nothing is."""
        ages = [age for a in self._assignments if (age := a.oldest_unfinished()) is not None]
        return min(ages, default=None)

    async def submit(self, record: Record, assignment: Assignment, ack: Ack) -> None:
        """Take `record`. Waits while too much is in hand; what is stale, or was taken before, is passed over.

        `ack` is called once, when `record` and all that this assignment brought before it of its partition are done.
        """
        delivery = None if self._closed else assignment.track(record, ack)
        if delivery is not None:
            self._assignments.add(assignment)
            await self._intakes.put(delivery)

    def suspend(self, assignment: Assignment) -> None:
        """Begin nothing more of `assignment`: what waits is let go un-acked, what runs goes on and may be acked."""
        assignment.suspend()
        self._assignments.discard(assignment)
        dropped = self._intakes.drop(lambda delivery: delivery.stale)
        for lane in list(self._lanes.values()):
            waiting = list(lane.deliveries)[lane.running :]
            stale = {id(delivery) for delivery in waiting if delivery.stale}
            if stale:
                self._forget(lane, [delivery for delivery in waiting if id(delivery) in stale])
                lane.deliveries = deque(delivery for delivery in lane.deliveries if id(delivery) not in stale)
                dropped += len(stale)
                if not lane.running:
                    lane.begin_anew()
                    lane.singles = 0
        if dropped:
            self._observer.skipped(Outcome.STALE, dropped)
        self._pump()

    async def drain(self, seconds: float) -> bool:
        """Wait until what runs now has ended, at most so long. True when it has."""
        running = set(self._running)
        if running and seconds > 0:
            await asyncio.wait(running, timeout=seconds)
        return all(task.done() for task in running)

    async def close(self) -> None:
        """Cancel what runs and take nothing more. What is not done stays un-acked."""
        self._closed = True
        tasks = [*self._running, *self._pausing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _admit(self, delivery: Delivery) -> bool:
        """Take `delivery` into its lane, if there is room for it."""
        record, limits = delivery.record, self._limits
        assignment = delivery.assignment
        share = limits.max_unacked_in_all // max(1, assignment.partitions)
        if assignment.lead(record) >= max(1, min(limits.max_unacked, share)):
            return False
        size = record.size_bytes
        held = self._in_lanes[record.topic, record.partition]
        # A partition gets no more than what is left free for others: one takes half of it all, two a third each
        # (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
        if held.records and (
            held.records >= limits.max_pending - self._pending
            or held.size_bytes + size > limits.max_pending_bytes - self._pending_bytes
        ):
            return False
        key = self._lane_of(record)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key)
            self._ready.append(lane)
        elif lane.deliveries and (
            len(lane.deliveries) >= limits.max_lane or lane.size_bytes + size > limits.max_lane_bytes
        ):
            return False
        lane.deliveries.append(delivery)
        lane.size_bytes += size
        self._pending += 1
        self._pending_bytes += size
        held.records += 1
        held.size_bytes += size
        self._pump_soon()
        return True

    def _pump_soon(self) -> None:
        """Begin windows once all that came together is in its lanes."""
        if not self._pump_is_due:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump_now)

    def _pump_now(self) -> None:
        try:
            self._pump()
        except Exception as error:  # noqa: BLE001 (the loop would only log it)
            self._on_crash(error)

    def _pump(self) -> None:
        """Give free slots to the lanes that wait for one, in turn."""
        self._pump_is_due = False
        shed = 0
        while self._ready and len(self._running) < self._limits.max_in_flight and not self._closed:
            lane = self._ready.popleft()
            shed += self._shed(lane)
            if not lane.deliveries:
                del self._lanes[lane.key]
                continue
            # Taken here, not when the task begins: in between the lane may be emptied.
            task = asyncio.get_running_loop().create_task(self._attempt(lane, self._take(lane)))
            self._running.add(task)
            task.add_done_callback(partial(self._attempted, lane))
        if shed:
            self._intakes.flow()

    def _shed(self, lane: Lane) -> int:
        """Let go of what stands at the head and is not to be handled: stale, or done already. Tells how much."""
        shed = 0
        while lane.deliveries:
            head = lane.deliveries[0]
            if head.stale:
                self._observer.skipped(Outcome.STALE, 1)
            elif place_of(head) in lane.done:
                lane.done.discard(place_of(head))
                head.finish()
                self._observer.skipped(Outcome.REPEATED, 1)
            else:
                break
            self._forget(lane, [lane.deliveries.popleft()])
            lane.begin_anew()
            lane.singles = max(0, lane.singles - 1)
            shed += 1
        return shed

    async def _attempt(self, lane: Lane, window: Sequence[Delivery]) -> float:
        """Try `window`, the head of `lane`, once. Gives the seconds to wait before the next attempt of the lane."""
        if window[0].stale:
            return 0.0
        started = self._clock()
        lane.attempts += 1
        outcome, delay = await self._try(lane, window)
        self._observer.attempted(outcome, len(window), self._clock() - started)
        if outcome in {Outcome.DONE, Outcome.PARKED}:
            self._settle(lane, window)
        return delay

    def _take(self, lane: Lane) -> list[Delivery]:
        """The window to try: as the policy says, or one record after a refusal."""
        waiting: list[Delivery] = []
        for delivery in islice(lane.deliveries, _LONGEST_WINDOW):
            if delivery.stale:
                break
            waiting.append(delivery)
        alone = lane.singles > 0 or lane.verdict is not None
        count = 1 if alone else max(1, self._window([delivery.record for delivery in waiting]))
        count = count if lane.most is None else min(count, lane.most)
        lane.running = min(count, len(waiting))
        return waiting[: lane.running]

    async def _try(self, lane: Lane, window: Sequence[Delivery]) -> tuple[Outcome, float]:
        verdict = lane.verdict
        seconds = self._retry.attempt_seconds if verdict is None else self._retry.park_seconds
        try:
            async with asyncio.timeout(seconds) as deadline:
                if verdict is None:
                    await self._handle([delivery.record for delivery in window])
                    return Outcome.DONE, 0.0
                await self._park(window[0].record, *verdict)
                return Outcome.PARKED, 0.0
        except Rejected as rejected:
            if verdict is None:
                self._refuse(lane, window, rejected.reason, rejected.detail)
                return Outcome.REJECTED, 0.0
            return self._failed(lane, window, rejected)
        except Unavailable as unavailable:
            lane.waits += 1
            if isinstance(unavailable, ModelTimeout):
                lane.most = max(1, len(window) // 2)
            _log.debug("unavailable", error=type(unavailable).__name__, attempt=lane.attempts)
            return Outcome.UNAVAILABLE, self._delay(lane, unavailable)
        except TimeoutError as error:
            if not deadline.expired():
                return self._failed(lane, window, error)
            lane.waits += 1
            lane.most = max(1, len(window) // 2)
            return Outcome.UNAVAILABLE, self._delay(lane)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._closed or (task is not None and task.cancelling()):
                raise
            return self._failed(lane, window, error)  # somebody else's cancellation that leaked into the handler
        except Exception as error:  # noqa: BLE001 (whatever a handler raises must not end its lane: see _failed)
            return self._failed(lane, window, error)

    def _failed(self, lane: Lane, window: Sequence[Delivery], error: BaseException) -> tuple[Outcome, float]:
        """An error nobody foresaw: try again a few times, then park. Only its type and place are told."""
        lane.waits += 1
        lane.failures += 1
        record, detail = window[0].record, type_and_place(error)
        _log.error(
            "attempt_failed",
            error=detail,
            attempt=lane.attempts,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
        )
        if lane.verdict is None and lane.failures >= self._retry.failures:
            self._refuse(lane, window, Reason.INTERNAL_ERROR, detail)
            return Outcome.FAILED, 0.0
        return Outcome.FAILED, self._delay(lane)

    def _refuse(self, lane: Lane, window: Sequence[Delivery], reason: Reason, detail: str) -> None:
        """A window that is refused is tried record by record; a record that is refused is parked next."""
        if len(window) > 1:
            lane.begin_anew()
            lane.singles = len(window)
        else:
            lane.verdict = Verdict(reason, detail, lane.attempts)
            lane.waits = 0

    def _delay(self, lane: Lane, unavailable: Unavailable | None = None) -> float:
        retry_after = unavailable.retry_after if unavailable is not None else None
        return self._retry.delay(lane.waits, retry_after=retry_after, uniform=self._uniform)

    def _settle(self, lane: Lane, window: Sequence[Delivery]) -> None:
        """`window` is done for good: out of the lane, and acked as far as its partition goes."""
        if lane.most is not None:
            lane.most = None if len(window) < lane.most else 2 * lane.most
        lane.running = 0
        lane.singles = max(0, lane.singles - len(window))
        lane.begin_anew()
        self._forget(lane, [lane.deliveries.popleft() for _ in window])
        for delivery in window:
            if delivery.stale:
                lane.done.add(place_of(delivery))
            delivery.finish()

    def _attempted(self, lane: Lane, task: asyncio.Task[float]) -> None:
        """The slot is free again; the lane goes on, at once or after its delay."""
        self._running.discard(task)
        lane.running = 0
        delay = 0.0
        if not task.cancelled():
            error = task.exception()
            if error is not None:
                self._on_crash(error)
                return
            delay = task.result()
        if self._closed:
            return
        if delay > 0 and lane.deliveries and not lane.deliveries[0].stale:
            pause = asyncio.get_running_loop().create_task(self._pause(lane.deliveries[0].assignment, delay))
            self._pausing.add(pause)
            pause.add_done_callback(partial(self._paused, lane))
        else:
            self._ready.append(lane)
        self._intakes.flow()
        self._pump()

    async def _pause(self, assignment: Assignment, seconds: float) -> None:
        """Wait before the next attempt, but not past the end of the assignment."""
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(assignment.wait_stale())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _paused(self, lane: Lane, pause: asyncio.Task[None]) -> None:
        self._pausing.discard(pause)
        if not self._closed:
            self._ready.append(lane)
            self._pump()

    def _forget(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        """`deliveries` are in the lane no more: their room is free."""
        size = sum(delivery.record.size_bytes for delivery in deliveries)
        lane.size_bytes -= size
        self._pending_bytes -= size
        self._pending -= len(deliveries)
        for delivery in deliveries:
            held = self._in_lanes[delivery.record.topic, delivery.record.partition]
            held.records -= 1
            held.size_bytes -= delivery.record.size_bytes


def _raise_in_loop(error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": "delivery crashed", "exception": error})

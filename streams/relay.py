"""The relay: from the outbox to `changes.v1`, in order per owner."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

import structlog
from mnemostream.decoding import SCHEMA_VERSION, partition_key

from processors.errors import Unavailable
from processors.feed import change_value
from runtime.failpoints import Failpoint, reach
from store.outbox import Backlog, Waiting
from streams.delivery import Retry
from streams.outlet import Arrived
from streams.ports import Headers
from streams.records import SCHEMA_HEADER

_log = structlog.get_logger(__name__)

BATCH: Final = 200
_HEADERS: Final = ((SCHEMA_HEADER, SCHEMA_VERSION.encode()),)
_SHARE_SECONDS: Final = 2.0
"""How often shards that fell free are looked for."""
_COUNT_SECONDS: Final = 5.0
_FIRST_PAUSE_SECONDS: Final = 0.1
"""After something was published: what comes meanwhile goes out together."""
_LAST_PAUSE_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 1.0


class Held(Protocol):
    """The shards that this relay works on."""

    @property
    def held(self) -> frozenset[int]:
        """Those that it holds now."""
        ...

    async def share(self) -> None:
        """Take what is free, leave what is above a fair share. Raises StoreUnavailable where all are lost."""
        ...

    async def word(self, seconds: float) -> None:
        """Until there may be something new, at most so long."""
        ...

    def wake(self) -> None:
        """End that wait."""
        ...


class Outbox(Protocol):
    """What waits to be published. Every method raises StoreUnavailable."""

    def shards(self) -> AbstractAsyncContextManager[Held]:
        """A session that can hold shards."""
        ...

    async def read(self, shards: Collection[int], *, after: int, limit: int) -> list[Waiting]:
        """The oldest changes of `shards` that wait, by owner key above `after` and `seq`."""
        ...

    async def trim(self, published: Collection[Waiting]) -> None:
        """Forget what is out."""
        ...

    async def backlog(self, shards: Collection[int]) -> Backlog:
        """How much waits."""
        ...


class InOrder(Protocol):
    """Records on a topic, in order per key."""

    async def publish_in_order(
        self, topic: str, records: Sequence[tuple[bytes, bytes]], *, headers: Headers
    ) -> Arrived:
        """Send keys and values; what comes after one that failed, on its partition, is not sent."""
        ...


class Observer(Protocol):
    """What is told of the relay."""

    def published(self, changes: int) -> None:
        """Changes are out."""
        ...

    def waiting(self, shards: int, pointers: int, oldest_seconds: float) -> None:
        """What waits in the shards that are held."""
        ...


@dataclass(frozen=True, slots=True)
class _Round:
    """One batch: where the next begins, and whether this was all there is."""

    after: int
    changes: int
    is_all: bool


class Relay:
    """Publishes what waits in the shards that it can get, for as long as it is entered.

    An outage of Postgres or Kafka is waited out. An owner's changes go out in order: where one does not arrive, what
    comes after it stays in the outbox. At least once: a crash before the outbox is trimmed publishes again.
    """

    def __init__(
        self,
        outbox: Outbox,
        publisher: InOrder,
        *,
        topic: str,
        observer: Observer,
        retry: Retry | None = None,
        batch: int = BATCH,
    ) -> None:
        self._outbox = outbox
        self._publisher = publisher
        self._topic = topic
        self._observer = observer
        self._retry = retry or Retry(cap_seconds=5.0)
        self._batch = batch
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._shards: Held | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(), name="relay")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publish what is there, for a second at most, then let go of the shards."""
        self._stopping = True
        if self._shards is not None:
            self._shards.wake()
        if self._task is not None:
            if not self._failures:
                await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def run(self) -> None:
        """Until it is stopped and nothing is left, or cancelled."""
        while True:
            try:
                async with self._outbox.shards() as shards:
                    self._shards = shards
                    await self._work(shards)
                    return
            except Unavailable as unavailable:
                await self._wait_out(str(unavailable))
            except Exception as error:  # noqa: BLE001 (a fault of ours must not end the relay: it is told each time)
                _log.error("relay_failed", exc_info=error)
                await self._wait_out(type(error).__name__)

    async def _work(self, shards: Held) -> None:
        """Round after round, while the session lasts."""
        now = asyncio.get_running_loop().time
        share_at = count_at = now()
        after, pause = 0, _FIRST_PAUSE_SECONDS
        while True:
            if now() >= share_at:
                await shards.share()
                share_at = now() + _SHARE_SECONDS
            if now() >= count_at:
                await self._count(shards.held)
                count_at = now() + _COUNT_SECONDS
            done = await self._round(shards.held, after)
            after = done.after
            if done.is_all:
                if self._stopping:
                    return
                pause = _FIRST_PAUSE_SECONDS if done.changes else min(2 * pause, _LAST_PAUSE_SECONDS)
                await self._pause(shards, pause)

    async def _pause(self, shards: Held, seconds: float) -> None:
        """A moment for others to come, then until there is word of them."""
        await asyncio.sleep(_FIRST_PAUSE_SECONDS)
        if seconds > _FIRST_PAUSE_SECONDS:
            await shards.word(seconds - _FIRST_PAUSE_SECONDS)

    async def _round(self, held: frozenset[int], after: int) -> _Round:
        """One batch out. An owner who fills it lets the next ones pass before it goes on."""
        waiting = await self._outbox.read(held, after=after, limit=self._batch) if held else []
        if waiting:
            await self._publish(waiting)
        else:
            self._failures = 0
        if len(waiting) == self._batch:
            return _Round(waiting[-1].owner_key, len(waiting), is_all=False)
        return _Round(0, len(waiting), is_all=after == 0)

    async def _publish(self, waiting: Sequence[Waiting]) -> None:
        records = [(partition_key(*each.change.owner), change_value(each.change)) for each in waiting]
        reach(Failpoint.RELAY_READ)
        arrived = await self._publisher.publish_in_order(self._topic, records, headers=_HEADERS)
        if arrived.indices:
            reach(Failpoint.RELAY_PUBLISHED)
            await self._outbox.trim([waiting[index] for index in arrived.indices])
            reach(Failpoint.RELAY_TRIMMED)
            self._observer.published(len(arrived.indices))
        if arrived.failure is not None:
            await self._wait_out(str(arrived.failure))
        else:
            self._failures = 0

    async def _count(self, held: frozenset[int]) -> None:
        backlog = await self._outbox.backlog(held) if held else Backlog(0, 0.0)
        self._observer.waiting(len(held), backlog.pointers, backlog.oldest_seconds)

    async def _wait_out(self, why: str) -> None:
        self._failures += 1
        if self._failures == 1:
            _log.warning("relay_waits", error=why)
        await asyncio.sleep(self._retry.delay(self._failures))

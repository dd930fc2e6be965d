"""The change feed: what happens to an application's memories, as it happens.

    async with ChangeFeed(bootstrap_servers="localhost:9092", app="acme", group_id="mirror") as feed:
        async for change in feed:
            await mirror(change)

Every change of the app's owners comes once and in order per owner, as far as one process sees: duplicates on the topic
are passed over by `seq`, a gap is an error. `changes(...)` is the same as a plain iterator.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypedDict, Unpack

from mnemostream.errors import BrokerUnavailable, InvalidChange
from mnemostream.publisher import KafkaSecurity
from mnemostream.trails import Progress
from mnemostream.types import Change

_READ_SECONDS: Final = 0.5
_COMMIT_EVERY_SECONDS: Final = 1.0
_COMMIT_SECONDS: Final = 2.0
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0


class _Record(Protocol):
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def schema(self) -> bytes | None: ...


class Log(Protocol):
    """What a feed needs of Kafka: mnemostream.feed_log.FeedLog."""

    async def open(self, progress: Progress) -> None:
        """Connect, or connect anew. Raises BrokerUnavailable, BrokerRefused, TopicMissing."""

    async def read(self, seconds: float) -> _Record | None:
        """The next record; None where there is none in that time. Raises BrokerUnavailable where `open` may help."""

    async def at_end(self) -> bool:
        """Whether everything was read that was there at first."""

    async def commit(self, offsets: Mapping[int, int], seconds: float) -> None:
        """Let the group go on from there the next time. Raises BrokerUnavailable, BrokerRefused."""

    async def close(self) -> None:
        """Disconnect."""


class ChangeFeed:
    """The changes of one app. Use it as an async context manager, and iterate over it in one task.

    group_id: None reads all partitions alone, and leaves nothing behind in Kafka. With a name, the processes of that
    group share the partitions, so each owner is with one of them at a time, and the next start goes on where the group
    stopped: a change counts as finished once the one after it is asked for, or `commit` is called. So each comes at
    least once; what was not committed when a process ends, or when partitions move, comes again.

    start: where partitions begin of which the group has committed nothing: `beginning`, `latest` (what comes after this
    feed is entered), or offsets by partition as `positions` gives them. known: by owner, the last `seq` that the
    application has: what it has is passed over. owners: only these. follow: False ends the iteration at the last change
    that was there when the feed was entered.

    Raises FeedGap where changes of an owner are missing, FeedExpired where the place to go on from is gone, and
    InvalidChange for a record that cannot be read; iterating again raises the same again. After a FeedGap, take an
    export of its owner, tell the feed by `know`, and go on iterating; `skip` passes over what raised InvalidChange. An
    outage of Kafka is waited out once the feed is entered; timeout_seconds bounds the entering and `commit`.

    Memory: the last `seq` of each owner that was met, some 150 bytes, and what Kafka's consumer fetches ahead.
    """

    def __init__(
        self,
        *,
        app: str,
        bootstrap_servers: str = "localhost:9092",
        topic_prefix: str = "mnemo.",
        group_id: str | None = None,
        start: Literal["beginning", "latest"] | Mapping[int, int] = "beginning",
        known: Mapping[str, int] | None = None,
        owners: Collection[str] | None = None,
        follow: bool = True,
        security: KafkaSecurity | None = None,
        timeout_seconds: float = 30.0,
        client_id: str = "mnemostream",
        log: Log | None = None,
    ) -> None:
        if isinstance(start, str) and start not in ("beginning", "latest"):
            raise ValueError("start: must be beginning, latest, or offsets by partition")
        self._topic = f"{topic_prefix}changes.v1"
        self._mine = f"{app}/".encode()
        self._owners = None if owners is None else frozenset(owners)
        self._follow = follow
        self._in_group = group_id is not None
        self._timeout_seconds = timeout_seconds
        self._log = log
        self._options: dict[str, Any] = {
            "bootstrap_servers": bootstrap_servers,
            "topic": self._topic,
            "group_id": group_id,
            "start": start,
            "follow": follow,
            "security": security or KafkaSecurity(),
            "timeout_seconds": timeout_seconds,
            "client_id": client_id,
        }
        self._progress = Progress(known or {})
        self._committed: dict[int, int] = {}
        self._commit_at = 0.0
        self._given: _Record | None = None
        self._pending: _Record | None = None
        self._unreadable: _Record | None = None
        self._closing = asyncio.Event()
        self._state: Literal["new", "open", "closed"] = "new"

    @property
    def topic(self) -> str:
        """Where the changes come from."""
        return self._topic

    @property
    def positions(self) -> Mapping[int, int]:
        """By partition, the offset after what is finished: a later feed may `start` there."""
        return self._progress.finished

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises BrokerUnavailable, BrokerRefused, TopicMissing."""
        if self._log is None:
            from mnemostream.feed_log import FeedLog  # 190 ms, which only those who follow should pay

            self._log = FeedLog(**self._options)
        await self._log.open(self._progress)
        self._state = "open"

    async def close(self) -> None:
        """Commit what is finished, and disconnect. An iteration that waits ends. Again does nothing."""
        if self._state != "open" or self._log is None:
            return
        self._state = "closed"
        self._closing.set()
        try:
            await self._commit_what_is_new()
        finally:
            await self._log.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        if self._state == "new" or self._log is None:
            raise RuntimeError("the feed is not open: use `async with ChangeFeed(...)`")
        self._finish()
        self._unreadable = None
        while True:
            await self._commit_now_and_then()
            if self._pending is None or not self._progress.reads(self._pending.partition):
                self._pending = await self._next(self._log)
            record = self._pending
            if record is None:
                raise StopAsyncIteration
            change = self._change(record)
            self._pending = None
            if change is not None:
                self._given = record
                return change
            self._progress.finish(record.partition, record.offset)

    async def commit(self) -> None:
        """Commit every change that was given, the last one too. Nothing without a group.

        Raises BrokerUnavailable where Kafka does not answer or the partitions move, and BrokerRefused.
        """
        self._finish()
        if self._in_group and self._log is not None:
            finished = self._progress.finished
            await self._log.commit(finished, self._timeout_seconds)
            self._committed |= finished

    def know(self, owner: str, seq: int) -> None:
        """The application has everything of `owner` up to `seq`, from an export: it is passed over."""
        self._progress.know(owner, seq)

    def skip(self) -> None:
        """Pass over the record that raised InvalidChange, for the whole group: what it held is lost to the application.

        Where it held a change, the next one of its owner raises FeedGap. Raises RuntimeError where the last thing that
        the iteration did was not to raise InvalidChange.
        """
        record = self._unreadable
        if record is None:
            raise RuntimeError("there is nothing to skip: the iteration has not just raised InvalidChange")
        self._unreadable = self._pending = None
        if self._progress.reads(record.partition):  # else whoever has it now decides
            self._progress.finish(record.partition, record.offset)

    async def _next(self, log: Log) -> _Record | None:
        """The next record, whatever it is; None at the end. An outage is waited out."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        while self._state == "open":
            try:
                if not self._follow and await log.at_end():
                    return None
                record = await log.read(_READ_SECONDS)
            except BrokerUnavailable:
                await self._unless_closed(self._open_again(log, random.uniform(pause_seconds / 2, pause_seconds)))
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
                continue
            if record is not None:
                return record
            await self._commit_now_and_then()
        return None

    async def _unless_closed(self, work: Coroutine[Any, Any, None]) -> None:
        """`work`, broken off when the feed is closed."""
        tasks = [asyncio.ensure_future(work), asyncio.ensure_future(self._closing.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if tasks[0].done() and not tasks[0].cancelled():
            tasks[0].result()

    async def _open_again(self, log: Log, pause_seconds: float) -> None:
        await log.close()
        await asyncio.sleep(pause_seconds)
        try:
            await log.open(self._progress)
        except BrokerUnavailable:  # still away: reading says so again
            return

    def _change(self, record: _Record) -> Change | None:
        """The change in `record`; None where it is another app's or owner's, or a duplicate. Raises FeedGap,
        InvalidChange."""
        from mnemostream.change_records import UnreadableChange, change_of

        if self._progress.is_finished(record.partition, record.offset):
            return None
        if record.key is not None and not record.key.startswith(self._mine):
            return None
        try:
            change = change_of(record.key, record.value, record.schema)
        except UnreadableChange as unreadable:
            self._unreadable = record
            raise InvalidChange(self._topic, record.partition, record.offset, str(unreadable)) from None
        if self._owners is not None and change.owner not in self._owners:
            return None
        return change if self._progress.take(record.partition, change.owner, change.seq) else None

    def _finish(self) -> None:
        """The change that was given last is done with."""
        if self._given is not None:
            self._progress.finish(self._given.partition, self._given.offset)
            self._given = None

    async def _commit_now_and_then(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._in_group and now >= self._commit_at:
            self._commit_at = now + _COMMIT_EVERY_SECONDS
            await self._commit_what_is_new()

    async def _commit_what_is_new(self) -> None:
        """Where that fails it is tried again later: what is not committed comes again."""
        finished = self._progress.finished
        if self._in_group and self._log is not None and finished != self._committed:
            try:
                await self._log.commit(finished, _COMMIT_SECONDS)
            except BrokerUnavailable:
                return
            self._committed = finished


class ChangesOptions(TypedDict, total=False):
    """What `AsyncMnemo.changes` takes: the options of ChangeFeed that the client does not know itself."""

    group_id: str | None
    start: Literal["beginning", "latest"] | Mapping[int, int]
    known: Mapping[str, int] | None
    owners: Collection[str] | None
    follow: bool
    timeout_seconds: float
    client_id: str


class Options(ChangesOptions, total=False):
    """What a ChangeFeed is made with, by name, but `app`."""

    bootstrap_servers: str
    topic_prefix: str
    security: KafkaSecurity | None


async def changes(*, app: str, **options: Unpack[Options]) -> AsyncGenerator[Change, None]:
    """The changes of `app`, as ChangeFeed gives them and with its options; closed with the iteration.

    Who breaks off early wraps it in `contextlib.aclosing`, or uses ChangeFeed.
    """
    async with ChangeFeed(app=app, **options) as feed:
        async for change in feed:
            yield change

"""The client without `await`: `AsyncMnemo` on an event loop of its own."""

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Required, Self, TypedDict, TypeVar, Unpack

from mnemostream.client import AsyncMnemo
from mnemostream.turns import Message, Turn
from mnemostream.types import Change, ExportLine

if TYPE_CHECKING:
    from mnemostream.feed import ChangesOptions
    from mnemostream.publisher import KafkaSecurity

P = ParamSpec("P")
T = TypeVar("T")


class Options(TypedDict, total=False):
    """What an `AsyncMnemo` is made with, by name."""

    url: str
    api_key: Required[str]
    bootstrap_servers: str | None
    app: str | None
    topic_prefix: str
    kafka_security: "KafkaSecurity | None"
    timeout_seconds: float
    redact: bool


class _Closed(RuntimeError):
    def __init__(self) -> None:
        super().__init__("the client is closed")


def _blocking(
    method: Callable[Concatenate[AsyncMnemo, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Mnemo", P], T]:
    """`method` for callers that wait in a thread."""

    @functools.wraps(method)
    def wait(self: "Mnemo", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.client, *args, **kwargs))

    return wait


class Mnemo:
    """`AsyncMnemo` without `await`: an event loop of its own in a thread of its own. Use it as a context manager.

    Threads may share one. A running event loop would be blocked by it: use `AsyncMnemo` there. Once it is closed, what
    other threads wait for and what is asked of it raises RuntimeError; an iteration over changes that was begun ends.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self.client = AsyncMnemo(**options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self._is_closed = False
        # Of the loop's own thread:
        self._running: set[asyncio.Task[Any]] = set()
        self._iterated: set[AsyncGenerator[Any, None]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def turn(self, owner: str, messages: Iterable[Message | tuple[str, str]], **fields: Any) -> Turn:
        """As `AsyncMnemo.turn`."""
        return self.client.turn(owner, messages, **fields)

    publish = _blocking(AsyncMnemo.publish)
    search = _blocking(AsyncMnemo.search)
    get_memory = _blocking(AsyncMnemo.get_memory)
    list_memories = _blocking(AsyncMnemo.list_memories)
    get_turn = _blocking(AsyncMnemo.get_turn)
    create_memory = _blocking(AsyncMnemo.create_memory)
    explain = _blocking(AsyncMnemo.explain)
    delete = _blocking(AsyncMnemo.delete)

    def export(self, owner: str, *, timeout_seconds: float | None = None) -> Generator[ExportLine, None, None]:
        """As `AsyncMnemo.export`."""
        return self._each(self.client.export(owner, timeout_seconds=timeout_seconds))

    def changes(self, **options: Unpack["ChangesOptions"]) -> Generator[Change, None, None]:
        """As `AsyncMnemo.changes`."""
        return self._each(self.client.changes(**options), until_closed=True)

    def close(self) -> None:
        """Break off what other threads wait for, disconnect, and end the thread. Again does nothing."""
        with self._starting:
            self._is_closed = True
            loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)

    def _each(self, items: AsyncGenerator[T, None], *, until_closed: bool = False) -> Generator[T, None, None]:
        """What `items` yields, one after the other. until_closed: closing the client ends it, where it was begun."""
        one_at_a_time = asyncio.Lock()  # what was interrupted ends before the end
        has_begun = False

        async def following() -> T | None:
            nonlocal has_begun
            has_begun = True
            self._iterated.add(items)
            async with one_at_a_time:
                return await anext(items, None)

        async def end() -> None:
            async with one_at_a_time:
                await items.aclose()
            self._iterated.discard(items)

        try:
            while (item := self.run(following())) is not None:
                yield item
        except _Closed:
            if not (until_closed and has_begun):
                raise
        finally:
            with suppress(_Closed):  # then that has ended it
                self.run(end())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, run on the loop of this client. Raises RuntimeError where the client is closed."""
        with self._starting:
            if self._is_closed:
                work.close()
                raise _Closed
            if self._loop is None:
                self._loop = _loop_in_a_thread()
            future = asyncio.run_coroutine_threadsafe(self._kept(work), self._loop)
        try:
            return future.result()
        except CancelledError:
            if self._is_closed:
                raise _Closed from None
            raise
        except BaseException:
            future.cancel()
            raise

    async def _kept(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, unless the client is closed meanwhile."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            return await work
        finally:
            self._running.discard(task)

    async def _end(self) -> None:
        """Whatever runs is broken off before its connections go."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        async with AsyncExitStack() as ends:
            ends.push_async_callback(self.client.close)
            for items in self._iterated:
                ends.push_async_callback(items.aclose)


def _loop_in_a_thread() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    threading.Thread(target=run, name="mnemostream", daemon=True).start()
    return loop

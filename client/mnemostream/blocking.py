"""The client without `await`: `AsyncMnemo` on an event loop of its own."""

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
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

    Threads may share one. A running event loop would be blocked by it: use `AsyncMnemo` there.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self.client = AsyncMnemo(**options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

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
        return self._each(self.client.changes(**options))

    def close(self) -> None:
        """Disconnect, and end the thread. Again does nothing; a call after it starts a new one."""
        if self._loop is None:
            return
        try:
            self.run(self.client.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _each(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """What `items` yields, one after the other."""
        one_at_a_time = asyncio.Lock()  # what was interrupted ends before the end

        async def following() -> T | None:
            async with one_at_a_time:
                return await anext(items, None)

        async def end() -> None:
            async with one_at_a_time:
                await items.aclose()

        try:
            while (item := self.run(following())) is not None:
                yield item
        finally:
            self.run(end())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, run on the loop of this client."""
        with self._starting:
            if self._loop is None:
                self._loop = _loop_in_a_thread()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _loop_in_a_thread() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    threading.Thread(target=run, name="mnemostream", daemon=True).start()
    return loop

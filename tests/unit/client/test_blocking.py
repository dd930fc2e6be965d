"""The client without `await`: what becomes of other threads when it is closed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mnemostream import Mnemo


class Endless(Mnemo):
    """Both iterations give one item and wait for ever."""

    def __init__(self) -> None:
        super().__init__(api_key="mnk_unused")
        self.waits = threading.Event()
        self.ended = 0
        self.client.export = self._items  # type: ignore[method-assign] # in the place of the service
        self.client.changes = self._items  # type: ignore[method-assign] # in the place of Kafka

    async def _items(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        try:
            yield 1
            await self.wait()
        finally:
            await asyncio.sleep(0)
            self.ended += 1

    async def wait(self) -> None:
        self.waits.set()
        await asyncio.Event().wait()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "mnemostream"]


@pytest.mark.parametrize("kind", ["changes", "export", "a call"])
def test_closing_ends_what_other_threads_wait_for(kind: str) -> None:
    mnemo = Endless()
    work = {
        "changes": lambda: list(mnemo.changes()),
        "export": lambda: list(mnemo.export("user/42")),
        "a call": lambda: mnemo.run(mnemo.wait()),
    }
    with ThreadPoolExecutor(1) as pool:
        waiting: Any = pool.submit(work[kind])
        assert mnemo.waits.wait(10)
        mnemo.close()
        if kind == "changes":
            assert waiting.result(10) == [1]
        else:
            with pytest.raises(RuntimeError, match="the client is closed"):
                waiting.result(10)
    assert mnemo.ended == (kind != "a call")


def test_after_closing_nothing_begins_anew() -> None:
    mnemo = Endless()
    begun: list[Generator[Any, None, None]] = [mnemo.changes(), mnemo.export("user/42")]
    new = mnemo.changes()
    assert [next(each) for each in begun] == [1, 1]
    [loop] = [thread for thread in threading.enumerate() if thread.name == "mnemostream"]
    mnemo.close()
    assert mnemo.ended == 2
    loop.join(10)
    begun[0].close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        next(begun[1])
    for call in (lambda: next(new), lambda: mnemo.search("user/42", "tea")):
        with pytest.raises(RuntimeError, match="the client is closed"):
            call()
    mnemo.close()
    assert threads() == []

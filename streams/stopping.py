"""Being told to stop, and stopping in time whatever hangs."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

_log = structlog.get_logger(__name__)

CLOSE_SECONDS: Final = 4.0
"""After the drain: to leave the groups and close connections. The orchestrator's grace has to be longer than both."""

_Result = TypeVar("_Result")


class Stopping:
    """SIGTERM and SIGINT set it; from then on the process has a deadline by which it exits, be it by force.

    A broker or a Postgres that is away can hold up an orderly stop for ever: what is not acked is safe to abandon.
    """

    def __init__(self, drain_seconds: float, *, leave: Callable[[int], object] = os._exit) -> None:
        self._seconds = drain_seconds + CLOSE_SECONDS
        self._leave = leave
        self._asked = asyncio.Event()
        self._timer: threading.Timer | None = None
        self._code = 1

    def listen(self) -> None:
        """Take the signals, on the running loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask, signal.Signals(number).name)

    def ask(self, why: str, *, drain_seconds: float | None = None) -> None:
        """Begin to stop. Again does nothing. drain_seconds: where it is another time than is usual."""
        if self._timer is None:
            _log.info("stopping", why=why)
            if drain_seconds is not None:
                self._seconds = min(self._seconds, drain_seconds + CLOSE_SECONDS)
            self._timer = threading.Timer(self._seconds, self._force)
            self._timer.daemon = True
            self._timer.start()
        self._asked.set()

    def over(self) -> None:
        """Everything is closed in order. The deadline stays: a thread that hangs on would keep the process alive."""
        self._code = 0

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked.is_set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Until it is asked, at most so long. True when it is."""
        try:
            await asyncio.wait_for(self._asked.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def unless_asked(self, work: Coroutine[Any, Any, _Result]) -> _Result | None:
        """The result of `work`, or None when it was cancelled because it is time to stop."""
        working = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            return None
        finally:
            asked.cancel()
            working.cancel()

    def _force(self) -> None:
        if self._code:
            _log.critical("deadline_passed", seconds=self._seconds)
        self._leave(self._code)

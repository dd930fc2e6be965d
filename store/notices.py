"""Word of turns that ended, by LISTEN and NOTIFY."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Self

import asyncpg
import structlog

from processors.errors import StoreUnavailable
from processors.records import Owner
from store.database import NOTICE_CHANNEL, Database

_MAX_DIGESTS: Final = 450
"""A notice carries less than 8,000 bytes."""
_EVERYBODY: Final = "0"
_ALIVE_SECONDS: Final = 30.0
_PROBE_SECONDS: Final = 5.0
_FIRST_BACKOFF_SECONDS: Final = 0.1
_LAST_BACKOFF_SECONDS: Final = 5.0

_log = structlog.get_logger()


def payload(owner: Owner, turn_ids: Sequence[str]) -> str:
    """The notice that `turn_ids` ended: a digest each, so that it stays small and says nothing to others.

    A list that does not fit is a notice to everybody.
    """
    if len(turn_ids) > _MAX_DIGESTS:
        return _EVERYBODY
    return ",".join(_digest(owner, turn_id) for turn_id in turn_ids)


class TurnNotices:
    """Who waits for which turn, in one process: the port `TurnNotices` on a connection of its own.

    Use as an async context manager. While the connection is away nobody is told anything; once it is back everybody is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen(), name="turn-notices")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @asynccontextmanager
    async def subscribe(self, owner: Owner, turn_id: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the turn ended, or when word of it may have been missed."""
        digest = _digest(owner, turn_id)
        event = asyncio.Event()
        self._waiting.setdefault(digest, set()).add(event)
        try:
            yield event
        finally:
            events = self._waiting[digest]
            events.discard(event)
            if not events:
                del self._waiting[digest]

    async def _listen(self) -> None:
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await self._listen_once()
            except (StoreUnavailable, asyncpg.PostgresError) as error:
                _log.warning("not listening for turns", error=type(error).__name__, retry_seconds=backoff)
            if asyncio.get_running_loop().time() - started > _LAST_BACKOFF_SECONDS:
                backoff = _FIRST_BACKOFF_SECONDS
            await asyncio.sleep(random.uniform(backoff / 2, backoff))
            backoff = min(backoff * 2, _LAST_BACKOFF_SECONDS)

    async def _listen_once(self) -> None:
        """Listen until the connection ends. One that died in silence is found out by asking now and then."""
        closed = asyncio.Event()

        def ended(_: object) -> None:
            closed.set()

        async with self._database.direct() as connection:
            connection.add_termination_listener(ended)
            await connection.add_listener(NOTICE_CHANNEL, self._notified)
            self._tell_everybody()
            while not closed.is_set():
                try:
                    async with asyncio.timeout(_ALIVE_SECONDS):
                        await closed.wait()
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=_PROBE_SECONDS)

    def _notified(self, _connection: object, _pid: int, _channel: str, notice: object) -> None:
        if notice == _EVERYBODY:
            self._tell_everybody()
            return
        for digest in str(notice).split(","):
            for event in self._waiting.get(digest, ()):
                event.set()

    def _tell_everybody(self) -> None:
        for events in self._waiting.values():
            for event in events:
                event.set()


def _digest(owner: Owner, turn_id: str) -> str:
    """64 bits: two turns with the same only wake each other."""
    named = f"{owner.app}/{owner.owner}\0{turn_id}".encode()
    return hashlib.sha256(named).hexdigest()[:16]

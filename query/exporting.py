"""Exports: one snapshot of an owner, streamed at the reader's pace, but not for ever."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from mnemostream.v1 import memory_service_pb as pb

from processors.exports import Line
from processors.records import Owner
from query import records, wire
from query.auth import Caller
from query.errors import ExportTooSlow, TooManyExports

AT_ONCE: Final = 4
"""Per process. Each has a connection of its own beside the pool."""
AT_ONCE_PER_APP: Final = 2
"""So that an app that reads slowly does not keep the others from theirs."""
READER_SECONDS: Final = 30.0
"""How long the next lines may wait for their reader."""
WHOLE_SECONDS: Final = 900.0
"""A snapshot holds up vacuuming for as long as it is open."""
_AHEAD: Final = 2
"""Batches that are read before they are asked for."""


class Exporting(Protocol):
    """store.exports.ExportRepository."""

    def export(self, owner: Owner) -> AsyncGenerator[Sequence[Line], None]:
        """The lines of an export, a few at a time."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an export waits for its reader, and how long it may take in all."""

    reader_seconds: float = READER_SECONDS
    whole_seconds: float = WHOLE_SECONDS


class Exporter:
    """The handler of `ExportOwner`.

    What reads the store is a task of its own with a time limit, so that neither a slow reader nor one that is gone
    without a word keeps a snapshot open.
    """

    def __init__(self, exports: Exporting, *, at_once: int = AT_ONCE, patience: Patience | None = None) -> None:
        self._exports = exports
        self._at_once = at_once
        self._at_once_per_app = max(1, min(AT_ONCE_PER_APP, at_once - 1))
        self._running: Counter[str] = Counter()
        """By app."""
        self._patience = patience or Patience()

    async def export_owner(
        self, request: pb.ExportOwnerRequest, caller: Caller
    ) -> AsyncGenerator[pb.ExportOwnerResponse, None]:
        """Everything of an owner, line by line. Raises TooManyExports, ExportTooSlow, StoreUnavailable."""
        owner = wire.owner(caller.app, request.owner)
        if self._running[owner.app] >= self._at_once_per_app:
            raise TooManyExports("too many exports of this app run at once")
        if self._running.total() >= self._at_once:
            raise TooManyExports("too many exports run at once")
        self._running[owner.app] += 1
        ready = _Ahead()
        reading = asyncio.create_task(self._read(owner, ready), name="export")
        reading.add_done_callback(lambda _: self._over(owner.app))  # also of one that is cancelled before it begins
        counts: Counter[str] = Counter()
        try:
            while (batch := await ready.take()) is not None:
                for value in batch:
                    message = records.line(value)
                    if message.line is not None:
                        counts[message.line.field] += 1
                    yield message
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        yield records.end(counts)

    async def _read(self, owner: Owner, ready: "_Ahead") -> None:
        """Batches into `ready`, and that there are no more, whatever the reason."""
        try:
            async with asyncio.timeout(self._patience.whole_seconds), aclosing(self._exports.export(owner)) as lines:
                async for batch in lines:
                    async with asyncio.timeout(self._patience.reader_seconds):
                        await ready.put(batch)
        except TimeoutError:
            raise ExportTooSlow("the export was not read in its time") from None
        finally:
            ready.end()

    def _over(self, app: str) -> None:
        self._running[app] -= 1
        if not self._running[app]:
            del self._running[app]


class _Ahead:
    """Batches that wait for the reader, a few at most."""

    def __init__(self) -> None:
        self._batches: asyncio.Queue[Sequence[Line] | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_AHEAD)

    async def put(self, batch: Sequence[Line]) -> None:
        """Once there is room."""
        await self._room.acquire()
        self._batches.put_nowait(batch)

    async def take(self) -> Sequence[Line] | None:
        """The next one; None after the last."""
        batch = await self._batches.get()
        self._room.release()
        return batch

    def end(self) -> None:
        """No more come."""
        self._batches.put_nowait(None)

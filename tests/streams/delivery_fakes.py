"""A handler whose attempts end when a test says so, and records to give it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mnemostream.turns import Reason

from streams.delivery import Assignment, Lanes, Limits, Outcome, Record, Retry

EPOCH = datetime(2026, 11, 21, 10, tzinfo=UTC)


def record(offset: int, key: str | None = "a", *, partition: int = 0, size: int = 0, topic: str = "t") -> Record:
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        received_at=EPOCH + timedelta(seconds=offset),
        key=key.encode() if key is not None else None,
        value=b"x" * size,
    )


@dataclass
class Scripted:
    """Each attempt waits for `end`; `running` holds the attempts in the order in which they began."""

    running: dict[tuple[int, int], asyncio.Future[None]] = field(default_factory=dict)
    began: list[list[tuple[int, int]]] = field(default_factory=list)
    at_once: dict[tuple[int, int], list[BaseException]] = field(default_factory=dict)
    automatic: bool = False

    async def __call__(self, records: Sequence[Record]) -> None:
        places = [(r.partition, r.offset) for r in records]
        self.began.append(places)
        errors = self.at_once.get(places[0])
        if errors:
            raise errors.pop(0)
        if self.automatic:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for place in places:
            assert place not in self.running
            self.running[place] = future
        try:
            await future
        finally:
            for place in places:
                del self.running[place]

    def end(self, offset: int, partition: int = 0, error: BaseException | None = None) -> None:
        future = self.running[partition, offset]
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    @property
    def offsets_begun(self) -> list[int]:
        return [offset for places in self.began for _, offset in places]


@dataclass
class Lot:
    """Where parked records go."""

    parked: list[tuple[int, Reason, str, int]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)

    async def __call__(self, parked: Record, reason: Reason, detail: str, attempts: int) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.parked.append((parked.offset, reason, detail, attempts))


@dataclass
class Naps:
    """Sleeps that end when a test says so."""

    asked: list[float] = field(default_factory=list)
    sleeping: list[asyncio.Future[None]] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.began.set()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sleeping.append(future)
        await future

    def wake(self) -> None:
        sleeping, self.sleeping = self.sleeping, []
        for future in sleeping:
            if not future.done():
                future.set_result(None)


@dataclass
class Ear:
    """What the lanes told of themselves."""

    heard: list[Outcome] = field(default_factory=list)

    def attempted(self, outcome: Outcome, records: int, seconds: float) -> None:
        self.heard.extend([outcome] * records)

    def skipped(self, outcome: Outcome, records: int) -> None:
        self.heard.extend([outcome] * records)


class Desk:
    """Lanes with everything around them scripted."""

    def __init__(self, *, limits: Limits | None = None, retry: Retry | None = None, **kwargs: Any) -> None:
        self.handler, self.lot, self.naps, self.ear = Scripted(), Lot(), Naps(), Ear()
        self.crashes: list[BaseException] = []
        self.acked: list[tuple[int, int]] = []
        self.lanes = Lanes(
            self.handler,
            self.lot,
            limits=limits or Limits(),
            retry=retry or Retry(),
            sleep=self.naps,
            observer=self.ear,
            uniform=lambda: 1.0,
            on_crash=self.crashes.append,
            **kwargs,
        )
        self.assignment = Assignment()

    async def give(self, *records: Record, to: Assignment | None = None) -> None:
        for given in records:
            await self.lanes.submit(
                given, to or self.assignment, lambda r=given: self.acked.append((r.partition, r.offset))
            )
        await settle()

    @property
    def acked_offsets(self) -> list[int]:
        return [offset for _, offset in self.acked]


async def settle(turns: int = 12) -> None:
    """Let everything run that can run without time passing, or only a few turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)

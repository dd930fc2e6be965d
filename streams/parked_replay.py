"""Putting parked records back on their topics, in their original order, with their original place and time."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from processors.errors import BrokerUnavailable
from processors.records import Landed, Place
from store.parked import ParkedEntry, ParkedPlace
from streams.outlet import Outgoing, Returned
from streams.parked_topic import NotThere, ParkedRecord
from streams.parking import REPLAY_HEADER
from streams.records import origin_headers

_AT_ONCE: Final = 200
_AT_ONCE_BYTES: Final = 8 * 1024 * 1024
"""Of records that are in hand before they are sent; one more may be larger."""


class ReadsParked(Protocol):
    """The topic of parked records."""

    async def read(self, place: ParkedPlace, landed: Landed | None) -> ParkedRecord:
        """The record that stood at `place`. Raises NotThere, BrokerUnavailable."""
        ...


class PutsBack(Protocol):
    """Records on a partition of a topic."""

    async def partitions(self, topic: str) -> frozenset[int]:
        """Those that there are. Raises BrokerUnavailable."""
        ...

    async def put_back(self, topic: str, partition: int, records: Sequence[Outgoing]) -> Returned:
        """In order, as far as it goes."""
        ...


class NotesReplays(Protocol):
    """The ledger of what was set aside."""

    async def replayed(self, entries: Sequence[ParkedEntry]) -> None:
        """They were put back. Again changes nothing. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one record; `problem` is None where it is back on its topic, and noted."""

    place: ParkedPlace
    problem: str | None = None


@dataclass(slots=True)
class _Chunk:
    """Records of one partition that are sent together."""

    entries: list[ParkedEntry] = field(default_factory=list)
    records: list[Outgoing] = field(default_factory=list)
    size_bytes: int = 0


class Replay:
    """Puts records back: first the broker has them, then it is noted.

    A crash in between puts them back twice, which has one effect: a turn is known by its id.
    """

    def __init__(
        self, ledger: NotesReplays, parked: ReadsParked, topics: PutsBack, *, replayable: Sequence[str]
    ) -> None:
        """replayable: the full names of the topics that records are put back on."""
        self._ledger = ledger
        self._parked = parked
        self._topics = topics
        self._replayable = frozenset(replayable)
        self._partitions: dict[str, frozenset[int]] = {}

    async def run(self, entries: Sequence[ParkedEntry]) -> AsyncIterator[Replayed]:
        """Put `entries` back, each partition's in the order of their offsets; tells of each, in no order.

        In hand are a few megabytes at a time. Raises BrokerUnavailable and StoreUnavailable, once it is told and noted
        what was done before.
        """
        ways: dict[tuple[str, int], list[ParkedEntry]] = defaultdict(list)
        for entry in sorted(entries, key=lambda entry: entry.place):
            ways[entry.place.topic, entry.place.partition].append(entry)
        for way in ways.values():
            chunk = _Chunk()
            for entry in way:
                try:
                    outgoing = await self._outgoing(entry)
                except NotThere as problem:
                    yield Replayed(entry.place, str(problem))
                    continue
                except BrokerUnavailable:
                    async for replayed in self._send(chunk):
                        yield replayed
                    raise
                chunk.entries.append(entry)
                chunk.records.append(outgoing)
                chunk.size_bytes += len(outgoing.key or b"") + len(outgoing.value or b"")
                if len(chunk.entries) >= _AT_ONCE or chunk.size_bytes >= _AT_ONCE_BYTES:
                    async for replayed in self._send(chunk):
                        yield replayed
                    chunk = _Chunk()
            async for replayed in self._send(chunk):
                yield replayed

    async def _outgoing(self, entry: ParkedEntry) -> Outgoing:
        """`entry` as it goes back: as it came, with the place and the time that count for it. Raises NotThere."""
        topic, partition, offset = entry.place
        if topic not in self._replayable:
            known = " and ".join(sorted(self._replayable))
            raise NotThere(f"records go back on {known} only: set MNEMO_TOPIC_PREFIX to the one that it came from")
        if topic not in self._partitions:
            self._partitions[topic] = await self._topics.partitions(topic)
        if partition not in self._partitions[topic]:
            raise NotThere(f"{topic} has no partition {partition} any more")
        record = await self._parked.read(entry.place, entry.landed)
        if record.lost is not None:
            raise NotThere(f"it cannot be put back: {record.lost}; it has to be published again by who has it")
        received_at = entry.received_at or _received_at(record)
        if received_at is None:
            raise NotThere("it cannot be put back: when it was received is not known")
        origin = origin_headers(Place(topic, partition, offset, received_at))
        replay = (REPLAY_HEADER, str(entry.replays + 1).encode())
        return Outgoing(record.key, record.value, [*record.headers, *origin, replay], received_at)

    async def _send(self, chunk: _Chunk) -> AsyncIterator[Replayed]:
        """Onto their partition, and into the ledger; raises what kept the rest from it after that."""
        if not chunk.entries:
            return
        topic, partition, _ = chunk.entries[0].place
        returned = await self._topics.put_back(topic, partition, chunk.records)
        arrived = [chunk.entries[index] for index in returned.arrived]
        if arrived:
            await self._ledger.replayed(arrived)
        for entry in arrived:
            yield Replayed(entry.place)
        for index in returned.refused:
            yield Replayed(chunk.entries[index].place, f"it is larger than {topic} takes now")
        if returned.failure is not None:
            raise returned.failure


def _received_at(record: ParkedRecord) -> datetime | None:
    """As the record itself tells, for what was parked before the ledger kept it."""
    told = dict(record.told).get("mnemo-parked-received-at")
    try:
        return None if told is None else datetime.fromisoformat(told.decode("ascii")).astimezone(UTC)
    except ValueError:
        return None

"""Setting a record aside: on `parked.v1` as it came, then in the ledger."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mnemostream.turns import Reason

from processors.errors import Rejected
from processors.records import Landed, Parking, Place
from runtime.failpoints import Failpoint, reach
from streams.delivery import Record
from streams.ports import Headers, ParkingLedger, Publisher
from streams.records import owner_of, place_of, read_window, run_of

MAX_DETAIL: Final = 500
TOLD: Final = "mnemo-parked-"
"""What the names of the headers begin with that tell why a record is parked."""
WITHOUT_VALUE: Final = TOLD + "without-value"
"""It was too large to be kept: so many bytes are gone."""
WITHOUT_HEADERS: Final = TOLD + "without-headers"
"""So many headers of its own are gone."""
REPLAY_HEADER: Final = "mnemo-replay"
"""On a record that is put back on its topic: how often it was, this time counted, in decimal."""

_MAX_REPLAYS: Final = 2**31 - 1
_REMEMBERED: Final = 1_000
"""Copies that were sent and are not noted yet: of what is older, some were lost with their partition."""


class _Copy(NamedTuple):
    """One sending: this record, refused for this reason. A copy that was put back, or a run, is another record."""

    topic: str
    partition: int
    offset: int
    place: Place
    reason: Reason
    run: int
    replay: int


class Parker:
    """Parks the records of one stage. Key, value and headers stay untouched; more headers tell why.

    A record too large for the topic of parked records is parked without its value.
    """

    def __init__(
        self,
        publisher: Publisher,
        ledger: ParkingLedger,
        *,
        stage: str,
        topic: str,
        holds_windows: bool,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._publisher = publisher
        self._ledger = ledger
        self._stage = stage
        self._topic = topic
        self._holds_windows = holds_windows
        self._now = now
        self._sent: dict[_Copy, Landed | None] = {}

    async def __call__(self, record: Record, reason: Reason, detail: str, attempts: int) -> None:
        """Send `record` to the topic of parked records, then note it. Raises Unavailable: call it again.

        A crash in between may park it twice: its identity is (topic, partition, offset) of where it stood first.
        """
        place = place_of(record)
        run, replay = self._run(record), replay_of(record)
        copy = _Copy(record.topic, record.partition, record.offset, place, reason, run, replay)
        if copy in self._sent:
            landed = self._sent[copy]
        else:
            landed = await self._send(record, self._told(place, reason, detail[:MAX_DETAIL], attempts))
            self._remember(copy, landed)
            reach(Failpoint.PARKING_SENT)
        owner, turn_ids = owner_of(record, is_window=self._holds_windows)
        await self._ledger.park(
            Parking(
                place=place,
                stage=self._stage,
                reason=reason,
                detail=detail[:MAX_DETAIL],
                attempts=attempts,
                owner=owner,
                turn_ids=turn_ids,
                run=run,
                replay=replay,
                landed=landed,
            )
        )
        self._sent.pop(copy, None)
        reach(Failpoint.PARKING_NOTED)

    def _remember(self, copy: _Copy, landed: Landed | None) -> None:
        """What is forgotten is sent twice, if it is called for again."""
        while len(self._sent) >= _REMEMBERED:
            del self._sent[next(iter(self._sent))]
        self._sent[copy] = landed

    async def _send(self, record: Record, told: Headers) -> Landed | None:
        """Whole; else without its value, and at last without its headers too: whatever it holds, it is parked."""
        value, headers = record.value, [*record.headers, *told]
        try:
            return await self._publisher.publish(self._topic, key=record.key, value=value, headers=headers)
        except Rejected:
            gone = [] if value is None else [(WITHOUT_VALUE, str(len(value)).encode())]
        try:
            return await self._publisher.publish(self._topic, key=record.key, value=None, headers=[*headers, *gone])
        except Rejected:
            gone.append((WITHOUT_HEADERS, str(len(record.headers)).encode()))
        return await self._publisher.publish(self._topic, key=record.key, value=None, headers=[*told, *gone])

    def _run(self, record: Record) -> int:
        try:
            return read_window(record).run if self._holds_windows else run_of(record)
        except Rejected:
            return 0

    def _told(self, place: Place, reason: Reason, detail: str, attempts: int) -> list[tuple[str, bytes]]:
        told = {
            "reason": reason.value,
            "detail": detail,
            "stage": self._stage,
            "topic": place.topic,
            "partition": str(place.partition),
            "offset": str(place.offset),
            "at": self._now().isoformat(),
            "attempts": str(attempts),
            "received-at": place.received_at.isoformat(),
        }
        return [(TOLD + name, value.encode("utf-8", "replace")) for name, value in told.items()]


def replay_of(record: Record) -> int:
    """How often `record` had been put back when this copy of it was; 0 where it is the first."""
    header = record.header(REPLAY_HEADER) or b""
    return min(int(header), _MAX_REPLAYS) if header.isdigit() and len(header) <= 10 else 0

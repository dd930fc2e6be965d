"""Setting a record aside: on `parked.v1` as it came, then in the ledger."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from mnemostream.turns import Reason

from processors.records import Parking, Place
from runtime.failpoints import Failpoint, reach
from streams.delivery import Record
from streams.ports import Publisher, TurnLog
from streams.records import owner_of, place_of

MAX_DETAIL: Final = 500


class Parker:
    """Parks the records of one stage. Key, value and headers stay untouched; more headers tell why."""

    def __init__(
        self,
        publisher: Publisher,
        turns: TurnLog,
        *,
        stage: str,
        topic: str,
        holds_windows: bool,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._publisher = publisher
        self._turns = turns
        self._stage = stage
        self._topic = topic
        self._holds_windows = holds_windows
        self._now = now
        self._sent: set[Place] = set()

    async def __call__(self, record: Record, reason: Reason, detail: str, attempts: int) -> None:
        """Send `record` to the topic of parked records, then note it. Raises Unavailable: call it again.

        A crash in between may park it twice: its identity is (topic, partition, offset).
        """
        place = place_of(record)
        if place not in self._sent:
            told = self._told(place, reason, detail[:MAX_DETAIL], attempts)
            await self._publisher.publish(
                self._topic, key=record.key, value=record.value, headers=[*record.headers, *told]
            )
            self._sent.add(place)
            reach(Failpoint.PARKING_SENT)
        owner, turn_ids = owner_of(record, is_window=self._holds_windows)
        await self._turns.park(
            Parking(
                place=place,
                stage=self._stage,
                reason=reason,
                detail=detail[:MAX_DETAIL],
                attempts=attempts,
                owner=owner,
                turn_ids=turn_ids,
            )
        )
        self._sent.discard(place)
        reach(Failpoint.PARKING_NOTED)

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
        return [(f"mnemo-parked-{name}", value.encode("utf-8", "replace")) for name, value in told.items()]

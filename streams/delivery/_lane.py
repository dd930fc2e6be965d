"""One lane: what waits of a key, and how far its head is. And what is told of an error."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mnemostream.turns import Reason

from streams.delivery._assignment import Delivery


class Verdict(NamedTuple):
    """The head of a lane is to be parked."""

    reason: Reason
    detail: str
    attempts: int


@dataclass(eq=False, slots=True)
class Lane:
    """What waits of one key, in order, and how far the window at its head is."""

    key: Hashable
    deliveries: deque[Delivery] = field(default_factory=deque)
    size_bytes: int = 0
    running: int = 0
    """Deliveries at the head that are being handled."""
    attempts: int = 0
    """At the window at the head."""
    failures: int = 0
    """Those of them that ended in a way nobody foresaw."""
    waits: int = 0
    """Attempts in a row that led to waiting."""
    most: int | None = None
    """Records that a window holds at most: the last one was too much for the time that an attempt has."""
    singles: int = 0
    """So many of the next windows hold one record: the window that they were in was refused."""
    verdict: Verdict | None = None
    done: set[tuple[str, int, int]] = field(default_factory=set)
    """Places that were finished after their assignment: acked, when they come again, without handling."""

    def begin_anew(self) -> None:
        """Another window stands at the head."""
        self.attempts = self.failures = self.waits = 0
        self.verdict = None


@dataclass(slots=True)
class InLanes:
    """What of one partition is in lanes."""

    records: int = 0
    size_bytes: int = 0


def place_of(delivery: Delivery) -> tuple[str, int, int]:
    return delivery.record.topic, delivery.record.partition, delivery.record.offset


def type_and_place(error: BaseException) -> str:
    """What may be told of an error whose message may hold anything: its type, and where it was raised."""
    traceback, place = error.__traceback__, "no place"
    while traceback is not None:
        place = f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return f"{type(error).__name__} at {place}"

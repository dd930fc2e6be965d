"""What the handlers need of the log of turns, of the ledger of parked records, of models and of Kafka: implemented by
`store/`, `providers/` and `streams.outlet`, faked by tests."""

from collections.abc import Sequence
from typing import Protocol

from memory.ports import Embedder
from processors.extraction import Reader
from processors.facts import Window
from processors.records import AcceptedTurn, Begun, Landed, Owner, Parking

Headers = Sequence[tuple[str, bytes | None]]

__all__ = ["Embedder", "Headers", "ParkingLedger", "Publisher", "Reader", "Reconciling", "TurnLog"]


class TurnLog(Protocol):
    """The log of turns."""

    async def begin(self, owner: Owner, turns: Sequence[AcceptedTurn], *, run: int = 0) -> Begun:
        """Write `turns` of one session as pending, unless they are known. Raises StoreUnavailable.

        run: above 0 they are read again: nothing is written, and those that took effect in this run are settled.
        """
        ...


class ParkingLedger(Protocol):
    """The ledger of what was set aside."""

    async def park(self, parking: Parking) -> None:
        """Note that a record was set aside. Again changes nothing. Raises StoreUnavailable."""
        ...


class Publisher(Protocol):
    """Records on a topic."""

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> Landed | None:
        """Where it landed, once all in-sync replicas have it; None where the broker does not tell.

        Raises BrokerUnavailable, and Rejected where it is larger than the topic takes.
        """
        ...


class Reconciling(Protocol):
    """What takes a window into the store."""

    async def reconcile(self, window: Window) -> None:
        """Give every turn of `window` its effect, once. Raises Rejected, StoreUnavailable, ModelUnavailable."""
        ...

"""Named places between taking a record and acking it where a test can end, freeze or fail the process.

Nothing happens at them unless `MNEMO_TEST_FAILPOINTS` says so when the worker starts: a list such as
`extract.published=kill@1,parking.sent=stop@3`, each a failpoint, what to do, and at which hit (1 where it is left out).
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

VARIABLE: Final = "MNEMO_TEST_FAILPOINTS"


class Failpoint(StrEnum):
    """All of them, in the order in which a turn comes by."""

    EXTRACT_TAKEN = "extract.taken"
    """A window of turns is about to be handled."""
    EXTRACT_BEGUN = "extract.begun"
    """Its turns are in the log as pending."""
    EXTRACT_READ = "extract.read"
    """The models have answered."""
    EXTRACT_PUBLISHED = "extract.published"
    """What was read is on `candidates.v1`; the turns are not acked."""
    EXTRACT_ACKED = "extract.acked"
    """They are acked, and the offset is not committed."""
    EXTRACT_COMMITTED = "extract.committed"
    """The offset is committed."""
    RECONCILE_TAKEN = "reconcile.taken"
    """A record of `candidates.v1` is about to be handled."""
    RECONCILE_LOOKED = "reconcile.looked"
    """The owner was looked at."""
    RECONCILE_HEARD = "reconcile.heard"
    """The arbitrator was heard, if there was a question."""
    STORE_CLAIMED = "store.claimed"
    """In the transaction: the owner's row is locked and the ledger written."""
    STORE_WRITTEN = "store.written"
    """In the transaction: everything is written, nothing committed."""
    RECONCILE_STORED = "reconcile.stored"
    """It is committed in Postgres; the record is not acked."""
    RECONCILE_ACKED = "reconcile.acked"
    """It is acked, and the offset is not committed."""
    RECONCILE_COMMITTED = "reconcile.committed"
    """The offset is committed."""
    PARKING_SENT = "parking.sent"
    """A record is on `parked.v1`, and the ledger does not know it."""
    PARKING_NOTED = "parking.noted"
    """The ledger knows it; it is not acked."""
    RELAY_READ = "relay.read"
    """Changes were read from the outbox."""
    RELAY_PUBLISHED = "relay.published"
    """They are on `changes.v1`, and still in the outbox."""
    RELAY_TRIMMED = "relay.trimmed"
    """They are out of the outbox."""


class Injected(Exception):
    """What a failpoint raises that was told to fail."""


@dataclass(slots=True)
class _Trap:
    action: str
    hit: int
    hits: int = 0


_ACTIONS: Final = frozenset({"kill", "stop", "fail"})
_armed: dict[Failpoint, _Trap] = {}


def arm(environ: Mapping[str, str] = os.environ) -> None:
    """Set what `VARIABLE` says. Raises ValueError where it names no failpoint, no action, or no number.

    kill: SIGKILL to this process. stop: SIGSTOP, until somebody lets it go on. fail: raise Injected.
    """
    _armed.clear()
    for entry in filter(None, (part.strip() for part in environ.get(VARIABLE, "").split(","))):
        name, _, rest = entry.partition("=")
        action, _, hit = rest.partition("@")
        if action not in _ACTIONS or not (hit or "1").isdecimal():
            raise ValueError(f"{VARIABLE}: {entry!r} is not NAME=ACTION@HIT")
        _armed[Failpoint(name)] = _Trap(action, int(hit or "1"))


def reach(failpoint: Failpoint) -> None:
    """The process is there now."""
    if not _armed:
        return
    trap = _armed.get(failpoint)
    if trap is None:
        return
    trap.hits += 1
    if trap.hits != trap.hit:
        return
    match trap.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            raise Injected(failpoint)

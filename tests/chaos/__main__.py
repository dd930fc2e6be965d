"""Starts a system, breaks it at random while turns come in, and lets the verifier judge.

The turns, the order of faults, their places and lengths follow from the seed; when exactly a fault strikes does not.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.chaos.faults import KINDS, NEED_DISK
from tests.chaos.machine import Machine, Size, VerifierLink

_LONGEST_SECONDS: Final = 60.0
_FAULTS_AT_ONCE: Final = 11
"""Of a run, one outage is at most this part: with the defaults a minute."""
_OBSERVING_SECONDS: Final = 900.0
"""What reading everything may take; nothing is heard of it meanwhile."""


def until_report(
    next_event: Callable[[], dict[str, Any] | None], hear: Callable[[dict[str, Any]], None], patience: float
) -> dict[str, Any]:
    """The report, after what else is to be heard. Raises RuntimeError after so many seconds of silence."""
    heard = time.monotonic()
    while time.monotonic() - heard < patience:
        event = next_event()
        if event is None:
            continue
        if event["event"] == "report":
            return event
        heard = time.monotonic()
        hear(event)
    raise RuntimeError(f"the verifier said nothing for {patience:g} s: see verifier.log")


class Run:
    """One seed, from an empty system to the verdict."""

    def __init__(
        self, machine: Machine, seed: int, kinds: Sequence[str], faults: int | None, link: VerifierLink
    ) -> None:
        self._machine = machine
        self._seed = seed
        self._random = Random(f"faults of {seed}")
        self._kinds = kinds
        self._faults = faults
        self._link = link
        self._published = False
        self._recovered: dict[int, float] = {}
        self._ready = False
        self._began = time.monotonic()

    def verdict(self) -> dict[str, Any]:
        """Faults one after the other while turns are published; then what the verifier says."""
        while not self._ready:
            self._pass(0.2)
        for number, kind in enumerate(self._order()):
            if self._published or number == self._faults:
                break
            self._fault(number, kind)
            self._pass(self._random.uniform(0.5, 2.0))
        while not self._published:
            self._pass(1.0)
        return self._judge()

    def _order(self) -> Iterator[str]:
        """All kinds in a random order, again and again."""
        while self._kinds:
            yield from self._random.sample(list(self._kinds), len(self._kinds))

    def _fault(self, number: int, kind: str) -> None:
        machine = self._machine
        began = time.time()
        self._say(kind)
        injected = KINDS[kind](machine, self._random)
        self._link.tell(
            "fault",
            kind=kind,
            detail=injected.detail,
            began_at=began,
            ended_at=time.time(),
            redelivered=injected.redelivered,
        )
        self._link.tell("probe")
        deadline = time.monotonic() + machine.size.settle_seconds
        while number not in self._recovered and time.monotonic() < deadline:
            self._pass(0.1)
        seconds = self._recovered.get(number)
        taken = "NOT RECOVERED" if seconds is None else f"recovered after {seconds:.1f} s"
        self._say(f"{kind} {injected.detail}: {taken}")
        injected.mend()

    def _pass(self, seconds: float) -> None:
        """Let time pass, look after the workers, and hear the verifier."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._machine.supervise()
            event = self._link.next_event(min(left, 0.2))
            if event is not None:
                self._hear(event)

    def _hear(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "ready":
                self._ready = True
            case "recovered":
                self._recovered[event["fault"]] = event["seconds"]
            case "published":
                self._published = True
                self._say("all turns are acknowledged")
            case "settling":
                self._say(f"{event['unsettled']} turns, {event['outbox']} changes, {event['lag']} records to go")
            case _:
                pass

    def _judge(self) -> dict[str, Any]:
        for incident in self._machine.incidents:
            self._link.tell("incident", what=incident)
        self._link.tell("finish")
        patience = 2 * self._machine.size.settle_seconds + _OBSERVING_SECONDS

        def next_event() -> dict[str, Any] | None:
            self._machine.supervise()
            return self._link.next_event(0.2)

        return until_report(next_event, self._hear, patience)

    def _say(self, what: str) -> None:
        print(f"{time.monotonic() - self._began:7.1f} s  {what}", file=sys.stderr, flush=True)


def _run(seed: int, size: Size, kinds: Sequence[str], faults: int | None, directory: Path) -> bool:
    said = f"seed {seed}: {size.turns} turns of {size.owners} owners, {size.workers} workers, {size.rate:g} turns/s"
    print(f"{said}, in {directory}", file=sys.stderr, flush=True)
    machine = Machine(directory, size, own_disk=not NEED_DISK.isdisjoint(kinds))
    ok = False
    try:
        machine.start()
        possible = [kind for kind in kinds if machine.disk is not None or kind not in NEED_DISK]
        with contextlib.closing(VerifierLink.start(machine, seed)) as link:
            verdict = Run(machine, seed, possible, faults, link).verdict()
        ok = bool(verdict["ok"])
    finally:
        machine.stop(keep=not ok)
    print(f"\n{said}\n\n{verdict['text']}")
    for kind in kinds:
        if kind not in possible:
            print(f"left out: {kind}, as no file system can be mounted here")
    for restart in machine.restarts:
        print(f"restarted: {restart}")
    return ok


def size_of(given: argparse.Namespace) -> Size:
    """What the arguments ask for."""
    longest = min(_LONGEST_SECONDS, given.turns / given.rate / _FAULTS_AT_ONCE)
    return Size(given.turns, given.owners, given.workers, given.partitions, given.rate, longest, given.settle)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """given: those of the command line without it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7], help="a run each")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--owners", type=int, default=200)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--rate", type=float, default=15.0, help="turns a second")
    parser.add_argument("--faults", type=int, help="at most so many; all the time without it")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="only these faults")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds without any progress that end the run")
    parser.add_argument("--directory", type=Path, help="for logs and data; a temporary one without it")
    return parser.parse_args(given)


def main() -> int:
    """Exit code: 0, or 1 when a run has failed. Of one that failed logs, journal and data stay."""
    given = arguments()
    size = size_of(given)
    ok = True
    for seed in given.seeds:
        base = given.directory or Path(tempfile.gettempdir())
        base.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f"mnemo-chaos-{seed}-", dir=base))
        directory.chmod(0o711)  # Postgres may run as another user
        if _run(seed, size, given.kinds, given.faults, directory):
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"logs, journal and data: {directory}")
            ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

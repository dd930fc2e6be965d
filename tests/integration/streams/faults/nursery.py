"""Workers as processes of their own, forked from one that has everything imported: a start costs a tenth.

Run as a program it is that one process: each line of its input is a worker to start. What is forked is a process like
any other: it is killed, frozen and told to stop by its pid, and a parent of its own notes how it ended.
"""

import asyncio
import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[4]
_PR_SET_PDEATHSIG: Final = 1
_LOOK_SECONDS: Final = 0.02
_LATE: Final = (
    "providers.arbitrator",
    "providers.openai.chat",
    "providers.openai.client",
    "providers.openai.embedding",
    "providers.reader",
)
"""What a worker would import when it opens its models."""


class Worker:
    """A worker that was started. Its log is what it wrote, on both outputs."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "log"
        self._status = directory / "status"
        self._heard: dict[str, int] = {}

    @property
    def pid(self) -> int:
        """Known as soon as it runs."""
        return int(self._told()[0])

    @property
    def code(self) -> int | None:
        """How it ended, as `subprocess` has it: below zero a signal. None: it runs."""
        told = self._told()
        return int(told[1]) if len(told) > 1 else None

    @property
    def log(self) -> str:
        """All of it so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of the log with that event."""
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line.get("event") == name]

    async def event(self, name: str, seconds: float = 60) -> dict[str, Any]:
        """The next line with that event that nobody waited for yet."""
        place = self._heard.get(name, 0)
        deadline = time.monotonic() + seconds
        while len(found := self.events(name)) <= place:
            assert self.code is None, f"ended with {self.code} before {name}:\n{self.log[-3000:]}"
            assert time.monotonic() < deadline, f"no {name} in {seconds} s:\n{self.log[-3000:]}"
            await asyncio.sleep(_LOOK_SECONDS)
        self._heard[name] = place + 1
        return found[place]

    async def ready(self) -> None:
        """Until both stages have their partitions, anew if it was ready before."""
        await self.event("assigned")
        await self.event("assigned")

    def send(self, number: signal.Signals) -> None:
        """A signal to the process, if it runs."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    async def ended(self, seconds: float = 60) -> int:
        """Its code, once it has ended."""
        deadline = time.monotonic() + seconds
        while self.code is None:
            assert time.monotonic() < deadline, f"still runs after {seconds} s:\n{self.log[-3000:]}"
            await asyncio.sleep(_LOOK_SECONDS)
        return self.code

    async def stopped(self, seconds: float = 60) -> None:
        """Until it is frozen by SIGSTOP."""
        deadline = time.monotonic() + seconds
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < deadline, "was not frozen"
            await asyncio.sleep(_LOOK_SECONDS)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        self.send(signal.SIGKILL)

    async def terminate(self, seconds: float = 60) -> int:
        """SIGTERM, and its code."""
        self.send(signal.SIGTERM)
        return await self.ended(seconds)

    def _told(self) -> list[str]:
        deadline = time.monotonic() + 30
        while not (told := self._status.read_text().split() if self._status.exists() else []):
            assert time.monotonic() < deadline, "was not started"
            time.sleep(_LOOK_SECONDS)
        return told


class Nursery:
    """Starts workers. Those that still run die with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.streams.faults.nursery"],
            # A process that is to be forked has no threads.
            env=plain | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            text=True,
        )

    def start(self, settings: Mapping[str, str], stages: str = "extract,reconcile") -> Worker:
        """A worker with these settings and no others."""
        directory = self._directory / f"worker-{next(self._numbers)}"
        directory.mkdir()
        assert self._process.stdin is not None
        wanted = {"settings": {"MNEMO_OPS_PORT": "0", **settings}, "stages": stages, "directory": str(directory)}
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return Worker(directory)

    def close(self) -> None:
        """End it, and with it whoever still runs."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()


def _die_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _next_worker() -> dict[str, Any]:
    """Forks for each line; returns in the process that is to be the worker."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            wanted: dict[str, Any] = json.loads(line)
            _die_with_the_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _watch_over(Path(wanted["directory"]))
            return wanted
    os._exit(0)


def _watch_over(directory: Path) -> None:
    """Returns in a child; its parent writes down its pid and how it ends."""
    if (child := os.fork()) == 0:
        _die_with_the_parent()
        return
    with (directory / "status").open("w") as status:
        print(child, file=status, flush=True)
        _, how = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(how), file=status, flush=True)
    os._exit(0)


def main() -> None:
    """A worker, when one is wanted."""
    from runtime.logs import configure_logging
    from runtime.settings import load_settings
    from streams.worker import run_worker

    for name in _LATE:
        importlib.import_module(name)
    wanted = _next_worker()
    output = os.open(Path(wanted["directory"]) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, into in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(number, into)
    os.environ.update(wanted["settings"])
    configure_logging("INFO")
    sys.exit(run_worker(load_settings(), wanted["stages"].split(",")))


if __name__ == "__main__":
    main()

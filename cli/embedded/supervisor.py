"""Keeping services alive: who ends unasked is started again, later and later, and it is said.

`MnemoProcess` is a service of our own, beside KafkaServer and PostgresServer.
"""

import http.client
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, Protocol

from cli.embedded.errors import EmbeddedError, ServerFailed
from cli.embedded.processes import Child, choose_ports, log_tail, wait_until

MNEMO: Final = (sys.executable, "-m", "cli.main")
"""The command line, by the interpreter that runs this."""
_POLL_SECONDS: Final = 0.25
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
_STEADY_SECONDS: Final = 60.0
"""Who ran for so long starts afresh with its pauses."""
_READY_TIMEOUT_SECONDS: Final = 120.0


class Service(Protocol):
    """What is kept alive."""

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        ...

    def start(self) -> None:
        """Start it again. Raises EmbeddedError."""
        ...


def pause_seconds(failures: int) -> float:
    """How long to wait before the next start after so many ends in a row (1, 2, 3 …)."""
    return float(min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 10)))


@dataclass(slots=True)
class Watched:
    """What is known of one service that is kept alive."""

    name: str
    service: Service
    started_at: float
    failures: int = 0
    due_at: float | None = None
    """When to start it again, while it is down."""


@dataclass(slots=True)
class Supervisor:
    """Watches services until it is interrupted. `say` tells the person at the terminal; `restarted` follows a restart.

    All in one thread: a service's process ends with the thread that started it.
    """

    say: Callable[[str], None]
    restarted: Callable[[], None] = lambda: None
    _watched: list["Watched"] = field(default_factory=list)

    def watch(self, name: str, service: Service, now: float | None = None) -> "Watched":
        """From `now` on, which is a reading of the monotonic clock."""
        watched = Watched(name, service, time.monotonic() if now is None else now)
        self._watched.append(watched)
        return watched

    def run(self) -> NoReturn:
        """Watch. Only an exception ends it."""
        while True:
            for watched in self._watched:
                self.look_after(watched, time.monotonic())
            time.sleep(_POLL_SECONDS)

    def look_after(self, watched: "Watched", now: float) -> None:
        """One look at one service."""
        if watched.due_at is None:
            if watched.service.is_running:
                return
            watched.failures = 1 if now - watched.started_at >= _STEADY_SECONDS else watched.failures + 1
            watched.due_at = now + pause_seconds(watched.failures)
            self.say(f"{watched.name} ended unexpectedly; starting it again in {watched.due_at - now:g} s")
        if now < watched.due_at:
            return
        watched.due_at, watched.started_at = None, now
        try:
            watched.service.start()
        except EmbeddedError as error:
            self.say(str(error))
        else:
            self.restarted()
            self.say(f"{watched.name} runs again")


class MnemoProcess:
    """`mnemo NAME` as a child, ready when its operations endpoint says so."""

    def __init__(
        self, name: str, *, directory: Path, log: Path, environment: Mapping[str, str], program: Sequence[str] = MNEMO
    ) -> None:
        self.log = log
        self._name = name
        self._command = (*program, name)
        self._environment = environment
        self._child = Child(directory, name)
        self._ops_port = 0

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._child.is_running

    @property
    def pid(self) -> int | None:
        """None before the first start and after a stop."""
        return self._child.pid

    @property
    def ops_url(self) -> str:
        """Of its operations endpoint. The port stays the same while it can."""
        return f"http://127.0.0.1:{self._ops_port}"

    def start(self) -> None:
        """Start the process, without waiting until it is ready. It ends when the calling thread does."""
        self._child.claim(signal.SIGTERM)
        [self._ops_port] = choose_ports(self._ops_port)
        own = {"MNEMO_OPS_HOST": "127.0.0.1", "MNEMO_OPS_PORT": str(self._ops_port)}
        self._child.launch(self._command, environment={**self._environment, **own}, log=self.log)

    def wait_ready(self, timeout_seconds: float = _READY_TIMEOUT_SECONDS) -> None:
        """Wait until it can do its work. Raises ServerFailed where it ends first, or takes too long."""
        wait_until(lambda: not self.is_running or self.is_ready(), timeout_seconds)
        if not self.is_running or not self.is_ready():
            what = f"was not ready after {timeout_seconds:g} s" if self.is_running else "ended at its start"
            raise ServerFailed(f"mnemo {self._name} {what}; the end of {self.log}:\n{log_tail(self.log)}")

    def is_ready(self) -> bool:
        """What it says of itself now."""
        connection = http.client.HTTPConnection("127.0.0.1", self._ops_port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def ask_to_stop(self) -> None:
        """SIGTERM, without waiting."""
        self._child.send(signal.SIGTERM)

    def stop(self, timeout_seconds: float) -> None:
        """Let it drain, end it by force after `timeout_seconds`."""
        self._child.end(signal.SIGTERM, timeout_seconds)

    def kill(self) -> None:
        """SIGKILL."""
        self._child.end(signal.SIGKILL, 5, release=False)

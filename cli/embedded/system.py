"""What `mnemo up` does: the whole system on one machine, from one data directory, in one order, and down again.

The data directory: `up.lock`, `up.pid`, `state.json`, `key`, `logs/`, `kafka/`, `postgres/`, `run/` (worker and query).
"""

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import cli
from cli.embedded.environment import clean_environment, import_path
from cli.embedded.errors import AlreadyRunning, EmbeddedError, ServerFailed
from cli.embedded.kafka import DEFAULT_PORT, KafkaServer
from cli.embedded.postgres import PostgresServer
from cli.embedded.processes import DirectoryLock, choose_ports, myself, run, write_private
from cli.embedded.state import SUPERVISOR_FILE, State, forget_state, read_state, write_state
from cli.embedded.supervisor import MNEMO, MnemoProcess, Supervisor
from cli.failures import CommandFailed

_STOP_MARGIN_SECONDS: Final = 10
"""What worker and query get beyond their own drain."""
_DEFAULT_DRAIN_SECONDS: Final = 25.0
_LARGEST_LOG_BYTES: Final = 16 * 1024 * 1024
"""A log that is longer when it is opened becomes `.1`."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `mnemo up` was asked for.

    kafka, postgres: bootstrap servers and DSN of the user's own, instead of embedded ones.  kafka_jars: a folder to use
    instead of fetching.  settings: further MNEMO_ settings of worker and query.  Ports: taken where they are free.
    """

    data_dir: Path
    app: str = "default"
    kafka: str | None = None
    postgres: str | None = field(default=None, repr=False)
    kafka_jars: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    query_port: int = 7600
    grpc_port: int = 7601
    kafka_port: int = DEFAULT_PORT

    def to_json(self) -> str:
        """For `parse_options`. It holds secrets: for a pipe, not for a command line."""
        return json.dumps(asdict(self), default=str)


def parse_options(text: str) -> UpOptions:
    """The inverse of `UpOptions.to_json`."""
    values: dict[str, Any] = json.loads(text)
    values["data_dir"] = Path(values["data_dir"])
    values["kafka_jars"] = Path(values["kafka_jars"]) if values["kafka_jars"] else None
    return UpOptions(**values)


class Interrupted(BaseException):
    """SIGINT or SIGTERM came. Not an Exception: nothing on the way may take it for a failure of its own."""


class System:
    """One embedded system. `up` returns when everything is ready, `stay` watches over it, `down` ends it in order."""

    def __init__(self, options: UpOptions, say: Say, program: Sequence[str] = MNEMO) -> None:
        self._options = options
        self._say = say
        self._program = program
        self._dir = options.data_dir.absolute()
        self._logs = self._dir / "logs"
        self._lock = DirectoryLock(self._dir / "up.lock")
        self._us = myself()
        self._notes: list[str] = []
        self._postgres: PostgresServer | None = None
        self._kafka: KafkaServer | None = None
        self._ours: dict[str, MnemoProcess] = {}

    def up(self) -> State:
        """Start what is to be started, wait until it is ready, and make it known. Raises EmbeddedError.

        Whatever happens, `down` has to follow.
        """
        self._take_directory()
        self._start_servers()
        ports = self._choose_query_ports()
        environment = self._environment(*ports)
        self._prepare_ground(environment)
        for name in ("worker", "query"):
            self._ours[name] = MnemoProcess(
                name,
                directory=self._private("run"),
                log=self._log(name),
                environment=environment,
                program=self._program,
            )
            self._ours[name].start()
        key_file = self._make_key(environment)
        for process in self._ours.values():
            process.wait_ready()
        state = self._state(*ports, key_file)
        if not _is_accepted(state):
            key_file.unlink()
            self._make_key(environment)
        write_state(state)
        return state

    def stay(self) -> NoReturn:
        """Watch over what runs, until interrupted."""
        supervisor = Supervisor(self._say, self._tell_processes)
        if self._postgres:
            supervisor.watch("Postgres", self._postgres)
        if self._kafka:
            supervisor.watch("Kafka", self._kafka)
        for name, process in self._ours.items():
            supervisor.watch(name, process)
        supervisor.run()

    def _tell_processes(self) -> None:
        """Make the pids of now known, after one of the processes was started again."""
        state = read_state(self._dir)
        if state:
            write_state(replace(state, processes=self._pids()))

    def down(self) -> None:
        """End all of it in order: worker and query finish what they began, then Kafka, then Postgres."""
        if not self._lock.held:
            return
        forget_state(self._dir)
        try:
            self._stop_in_order()
        except Interrupted:
            self._say("Stopping at once")
            self._kill_all()
        (self._dir / SUPERVISOR_FILE).unlink(missing_ok=True)
        self._lock.release()

    def _stop_in_order(self) -> None:
        drain = float(self._options.settings.get("MNEMO_DRAIN_SECONDS", _DEFAULT_DRAIN_SECONDS))
        for process in self._ours.values():
            process.ask_to_stop()
        for process in self._ours.values():
            process.stop(drain + _STOP_MARGIN_SECONDS)
        for server in (self._kafka, self._postgres):
            if server:
                server.stop()

    def _kill_all(self) -> None:
        for process in self._ours.values():
            process.kill()
        if self._kafka:
            self._kafka.kill()
        if self._postgres:
            self._postgres.crash()

    def _take_directory(self) -> None:
        self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._lock.acquire():
            running = read_state(self._dir)
            where = (
                f", at {running.url} (process {running.supervisor.pid})" if running else ", and is starting or stopping"
            )
            raise AlreadyRunning(f"a system already runs from {self._dir}{where}; `mnemo down` stops it")
        forget_state(self._dir)
        self._us.write(self._dir / SUPERVISOR_FILE)
        if os.geteuid() == 0:
            self._dir.chmod(0o711)  # Postgres, which is somebody else then, has to pass through
        self._private("logs")

    def _start_servers(self) -> None:
        """Both at once where both are ours. Processes start in this thread: they end with the one that started them."""
        starting = []
        if self._options.postgres is None:
            starting.append("Postgres")
            self._postgres = PostgresServer(self._dir / "postgres", log=self._log("postgres"))
        if self._options.kafka is None:
            starting.append("Kafka")
            self._kafka = KafkaServer(
                self._dir / "kafka",
                port=self._options.kafka_port,
                jars=self._options.kafka_jars,
                log=self._log("kafka"),
            )
        servers = [server for server in (self._postgres, self._kafka) if server]
        if starting:
            self._say(f"Starting {' and '.join(starting)}")
        with ThreadPoolExecutor(2) as threads:
            for prepared in [threads.submit(server.prepare) for server in servers]:
                prepared.result()
        for server in servers:
            server.launch()
        for server in servers:
            server.wait_ready()
        if self._kafka:
            self._note_port("Kafka", self._options.kafka_port, self._kafka.port)

    def _choose_query_ports(self) -> tuple[int, int]:
        query, grpc = choose_ports(self._options.query_port, self._options.grpc_port)
        self._note_port("the query service", self._options.query_port, query)
        self._note_port("gRPC", self._options.grpc_port, grpc)
        return query, grpc

    def _note_port(self, what: str, wanted: int, port: int) -> None:
        if wanted not in (0, port):
            self._notes.append(f"port {wanted} is taken: {what} is on {port}")

    def _prepare_ground(self, environment: Mapping[str, str]) -> None:
        self._say("Preparing the schema and the topics")
        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(self._mnemo, environment, command) for command in ("migrate", "topics")]:
                done.result()

    def _make_key(self, environment: Mapping[str, str]) -> Path:
        """The file with a key of the app, made at its first start on this database."""
        elsewhere = f"-{sha256(self._options.postgres.encode()).hexdigest()[:8]}" if self._options.postgres else ""
        app = self._options.app
        key_file = self._dir / ("key" if app == "default" and not elsewhere else f"key-{app}{elsewhere}")
        if not key_file.exists():
            made = json.loads(self._mnemo(environment, "keys", "create", "--app", app, "--json"))
            write_private(key_file, f"{made['key']}\n")
        return key_file

    def _mnemo(self, environment: Mapping[str, str], *arguments: str) -> str:
        """Run one command of our own to its end."""
        try:
            return run([*self._program, *arguments], environment=environment, directory=self._dir)
        except ServerFailed as error:
            # Its own words are for people already: "mnemo: …".
            raise ServerFailed(
                f"`mnemo {arguments[0]}` failed: {str(error).partition('mnemo: ')[2] or error}"
            ) from error

    def _environment(self, query_port: int, grpc_port: int) -> dict[str, str]:
        environment = clean_environment(os.environ, with_postgres=self._options.postgres is not None)
        environment["PYTHONPATH"] = import_path(os.environ, Path(cli.__file__).parent)
        environment |= self._options.settings
        return environment | {
            "MNEMO_KAFKA_BOOTSTRAP_SERVERS": self._bootstrap_servers(),
            "MNEMO_POSTGRES_DSN": self._dsn(),
            "MNEMO_QUERY_HOST": "127.0.0.1",
            "MNEMO_QUERY_PORT": str(query_port),
            "MNEMO_GRPC_HOST": "127.0.0.1",
            "MNEMO_GRPC_PORT": str(grpc_port),
            "MNEMO_DATA_DIR": str(self._dir),
        }

    def _state(self, query_port: int, grpc_port: int, key_file: Path) -> State:
        return State(
            data_dir=self._dir,
            supervisor=self._us,
            kafka_bootstrap_servers=self._bootstrap_servers(),
            postgres_dsn=self._dsn(),
            url=f"http://127.0.0.1:{query_port}",
            grpc_address=f"127.0.0.1:{grpc_port}",
            app=self._options.app,
            key_file=key_file,
            logs=self._logs,
            processes=self._pids(),
            ops_urls={name: process.ops_url for name, process in self._ours.items()},
            notes=tuple(self._notes),
        )

    def _pids(self) -> dict[str, int]:
        services = {"postgres": self._postgres, "kafka": self._kafka, **self._ours}
        return {name: service.pid for name, service in services.items() if service and service.pid}

    def _bootstrap_servers(self) -> str:
        if self._kafka:
            return self._kafka.bootstrap_servers
        assert self._options.kafka is not None
        return self._options.kafka

    def _dsn(self) -> str:
        if self._postgres:
            return self._postgres.dsn()
        assert self._options.postgres is not None
        return self._options.postgres

    def _private(self, name: str) -> Path:
        directory = self._dir / name
        directory.mkdir(exist_ok=True, mode=0o700)
        return directory

    def _log(self, name: str) -> Path:
        log = self._logs / f"{name}.log"
        if log.exists() and log.stat().st_size > _LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log


def _is_accepted(state: State) -> bool:
    """Whether the query service takes the key: the database may have been replaced since it was made."""
    from cli.rpc import CallFailed, Endpoint, call

    try:
        call(Endpoint(state.url, state.api_key), "ListMemories", {"owner": "-", "pageSize": 1})
    except CallFailed as error:
        return error.code not in ("unauthenticated", "permission_denied")
    except CommandFailed as error:
        raise EmbeddedError(str(error)) from error
    return True


def run_system(
    options: UpOptions, say: Say, when_ready: Callable[[State], None], program: Sequence[str] = MNEMO
) -> None:
    """Up, stay until SIGINT or SIGTERM, and down again. Of the main thread. Raises EmbeddedError."""
    os.umask(0o077)
    _interrupt_on_signals()
    system = System(options, say, program)
    try:
        when_ready(system.up())
        system.stay()
    except Interrupted:
        say("Stopping")
    finally:
        system.down()


def _interrupt_on_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP (the terminal is gone) raise Interrupted in the main thread."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)

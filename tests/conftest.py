"""Fixtures for tests that need the real Kafka or the real Postgres. Neither is started before a test asks."""

import contextlib
import os
import secrets
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from store.migrate import migrate
from tests import services
from tests.shared_servers import SERVERS, Door, Keeper

KEEPER = pytest.StashKey[Keeper]()
"""Only in the process that controls others (`pytest -n`)."""
WORKERS = pytest.StashKey[list[int]]()
"""The pids of those others."""


def pytest_configure() -> None:
    services.stop_on_terminate()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two cores: most tests of the servers wait half of their time."""
    return min(len(os.sched_getaffinity(0)) * 3 // 2 or 1, 8)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    os.environ.setdefault("PYTHONHASHSEED", str(secrets.randbelow(1 << 32)))  # the same names of tests in all of them
    config.stash[KEEPER] = Keeper()
    config.stash[WORKERS] = []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    door = node.config.stash[KEEPER].door
    node.workerinput["servers"] = (door.address, door.key)
    pid = node.gateway.remote_exec("import os; channel.send(os.getpid())").receive()
    node.config.stash[WORKERS].append(pid)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """When the session is interrupted, so are its workers: each tears its fixtures down."""
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        for pid in session.config.stash.get(WORKERS, []):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)


def pytest_unconfigure(config: pytest.Config) -> None:
    if keeper := config.stash.get(KEEPER, None):
        keeper.close()


@contextlib.contextmanager
def server(config: pytest.Config, name: str) -> Iterator[str]:
    """The address of the session's server of that name: this process's own, or the one it shares with others."""
    if given := getattr(config, "workerinput", {}).get("servers"):
        yield Door(*given).ask(name)
    else:
        with SERVERS[name]() as address:
            yield address


@pytest.fixture(scope="session")
def kafka_bootstrap(pytestconfig: pytest.Config) -> Iterator[str]:
    """Bootstrap servers of the session's Kafka."""
    with server(pytestconfig, "kafka") as bootstrap_servers:
        yield bootstrap_servers


@pytest.fixture
def topic_prefix(kafka_bootstrap: str) -> Iterator[str]:
    """The prefix of five fresh topics of this test alone, with four partitions each."""
    prefix = services.unique_prefix()
    services.create_topics(kafka_bootstrap, prefix)
    try:
        yield prefix
    finally:
        services.delete_topics(kafka_bootstrap, prefix)


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[str]:
    """DSN of a database of the session's Postgres from which databases can be made and dropped."""
    with server(pytestconfig, "postgres") as dsn:
        yield dsn


@pytest.fixture(scope="session")
def template_database(postgres_server: str) -> Iterator[str]:
    """Name of a database with the current schema. Nobody connects to it."""
    name = services.unique_name("template")
    dsn = services.create_database(postgres_server, name)
    try:
        services.run_async(migrate(dsn))
        yield name
    finally:
        services.drop_database(postgres_server, name)


@pytest.fixture
def empty_database_dsn(postgres_server: str) -> Iterator[str]:
    """DSN of a fresh database of this test alone, without a schema."""
    name = services.unique_name("empty")
    dsn = services.create_database(postgres_server, name)
    try:
        yield dsn
    finally:
        services.drop_database(postgres_server, name)


@pytest.fixture
def database_dsn(postgres_server: str, template_database: str) -> Iterator[str]:
    """DSN of a fresh database of this test alone, with the current schema."""
    name = services.unique_name("test")
    dsn = services.create_database(postgres_server, name, template=template_database)
    try:
        yield dsn
    finally:
        services.drop_database(postgres_server, name)

"""Fixtures for tests that need the real Kafka or the real Postgres. Neither is started before a test asks."""

from collections.abc import Iterator

import pytest

from store.migrate import migrate
from tests import services


def pytest_configure() -> None:
    services.stop_on_terminate()


@pytest.fixture(scope="session")
def kafka_bootstrap() -> Iterator[str]:
    """Bootstrap servers of the session's Kafka."""
    with services.kafka() as bootstrap_servers:
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
def postgres_server() -> Iterator[str]:
    """DSN of a database of the session's Postgres from which databases can be made and dropped."""
    with services.postgres() as dsn:
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

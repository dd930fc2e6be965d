"""The real Kafka and the real Postgres that tests run on, and what keeps tests on them apart.

Started in temporary directories from the same packages as the embedded runtime, once a session and only when a test
asks; or, where `MNEMO_TEST_KAFKA` (bootstrap servers) or `MNEMO_TEST_POSTGRES` (a DSN that may create databases and
roles) is set, taken from there. Everything here is synchronous, so that it belongs to no test's event loop.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from cli.embedded.kafka import KafkaServer
from cli.embedded.postgres import PostgresServer
from cli.embedded.processes import identify, myself
from runtime.settings import load_settings

Result = TypeVar("Result")

PARTITIONS = 4
_SCRATCH = re.compile(r"mnemo-test-(\d+)-(\d+)-")


def run_async(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end on a loop of its own in a thread of its own, whether or not a loop runs here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory of this test session that the unprivileged user that Postgres runs as can pass through.

    pytest's own are closed to others. What sessions left behind that were killed goes away first.
    """
    base = Path(tempfile.gettempdir())
    for leftover in base.glob("mnemo-test-*"):
        if (match := _SCRATCH.match(leftover.name)) and not _still_runs(int(match[1]), match[2]):
            shutil.rmtree(leftover, ignore_errors=True)
    us = myself()
    directory = Path(tempfile.mkdtemp(prefix=f"mnemo-test-{us.pid}-{us.started.rpartition('/')[2]}-"))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _still_runs(pid: int, started: str) -> bool:
    process = identify(pid)
    return process is not None and process.started.endswith(f"/{started}")


@contextlib.contextmanager
def kafka() -> Iterator[str]:
    """The bootstrap servers of a running Kafka."""
    if given := os.environ.get("MNEMO_TEST_KAFKA"):
        yield given
        return
    jars = os.environ.get("MNEMO_TEST_KAFKA_JARS")
    with scratch_directory() as directory:
        server = KafkaServer(directory / "kafka", port=0, jars=Path(jars) if jars else None)
        try:
            server.start()
            yield server.bootstrap_servers
        finally:
            server.stop(timeout_seconds=5)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The DSN of a database from which others can be made."""
    if given := os.environ.get("MNEMO_TEST_POSTGRES"):
        yield given
        return
    with scratch_directory() as directory:
        server = PostgresServer(directory / "postgres", durable=False, shared_buffers="128MB")
        try:
            server.start()
            yield server.dsn("postgres")
        finally:
            server.stop(timeout_seconds=5)


def with_database(dsn: str, name: str) -> str:
    """`dsn`, but of database `name`."""
    # A DSN without a host ("postgresql://mnemo@/x?host=…") keeps its two slashes only if put together by hand.
    parts = urlsplit(dsn)
    rest = urlunsplit(("", "", f"/{name}", parts.query, ""))
    return f"{parts.scheme}://{parts.netloc}{rest}"


def create_database(admin_dsn: str, name: str, *, template: str | None = None) -> str:
    """Make a database, empty or a copy of `template`, and give its DSN."""
    copy = f' TEMPLATE "{template}" STRATEGY FILE_COPY' if template else ""
    run_async(_execute(admin_dsn, f'CREATE DATABASE "{name}"{copy}'))
    return with_database(admin_dsn, name)


def drop_database(admin_dsn: str, name: str) -> None:
    """Drop it whoever is still connected."""
    run_async(_execute(admin_dsn, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def unique_name(what: str) -> str:
    """Of a database. Two test sessions may share one server."""
    return f"mnemo_{what}_{secrets.token_hex(6)}"


def unique_prefix() -> str:
    """Of topics."""
    return f"t{secrets.token_hex(4)}."


def create_topics(bootstrap_servers: str, prefix: str, partitions: int = PARTITIONS) -> None:
    """The five topics under `prefix`."""
    from streams.topics import ensure_topics

    settings = load_settings(
        {}, kafka_bootstrap_servers=bootstrap_servers, topic_prefix=prefix, topic_partitions=partitions
    )
    report = run_async(ensure_topics(settings))
    assert report.ok, report


def delete_topics(bootstrap_servers: str, prefix: str) -> None:
    """All topics under `prefix`, whoever made them."""
    run_async(_delete_topics(bootstrap_servers, prefix))


async def _delete_topics(bootstrap_servers: str, prefix: str) -> None:
    from aiokafka.admin import AIOKafkaAdminClient

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        if names := [name for name in await admin.list_topics() if name.startswith(prefix)]:
            await admin.delete_topics(names)
    finally:
        await admin.close()


def stop_on_terminate() -> None:
    """Let SIGTERM end the session as Ctrl-C does: with its fixtures torn down."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)

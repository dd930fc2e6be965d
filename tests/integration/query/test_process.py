"""`mnemo query` as a process: how it starts, waits and ends."""

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemostream import AsyncMnemo

from store.database import Database
from tests import services
from tests.integration.query.conftest import make_key

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import sys
from query.server import run_query
from runtime.logs import configure_logging
from runtime.settings import load_settings
configure_logging("INFO")
sys.exit(run_query(load_settings()))
"""


@dataclass
class Process:
    child: asyncio.subprocess.Process
    lines: list[dict[str, Any]]

    async def said(self, event: str) -> dict[str, Any]:
        """The line of its log that says `event`."""
        assert self.child.stdout is not None
        async with asyncio.timeout(60):
            while not any(line["event"] == event for line in self.lines):
                line = await self.child.stdout.readline()
                assert line, f"it ended without {event}: {self.lines}"
                self.lines.append(json.loads(line))
        return next(line for line in self.lines if line["event"] == event)

    async def ended(self) -> int:
        async with asyncio.timeout(20):
            return await self.child.wait()


@asynccontextmanager
async def started(dsn: str, **settings: str) -> AsyncIterator[Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")}
    environment |= {
        "MNEMO_POSTGRES_DSN": dsn,
        **{f"MNEMO_{port}_PORT": "0" for port in ("QUERY", "GRPC", "OPS")},
        "MNEMO_DRAIN_SECONDS": "2",
        **settings,
    }
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CODE), cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Process(child, [])
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def test_it_serves_until_sigterm_and_ends_with_zero(database_dsn: str) -> None:
    operator = await Database.open(database_dsn, role="mnemo_operator", pool_size=1)
    key = await make_key(operator, "acme")
    await operator.close()
    async with started(database_dsn) as process:
        where = await process.said("query_serving")
        async with AsyncMnemo(url=f"http://{where['http']}", api_key=key) as mnemo:
            await mnemo.create_memory("u", "She lives in Lisbon.")
            [hit] = await mnemo.search("u", "Where is her home?")
            assert hit.similarity > 0.2
            waiting = asyncio.create_task(mnemo.get_turn("u", "t", wait_seconds=1))
            assert await asyncio.to_thread(_status, f"http://{where['ops']}/healthz") == 200
            await mnemo.list_memories("u")
            process.child.send_signal(signal.SIGTERM)
            assert (await waiting).turn_id == "t"  # a call under way is answered
        assert await process.ended() == 0


async def test_it_waits_for_postgres_and_can_be_stopped_meanwhile() -> None:
    async with started("postgresql://nobody@127.0.0.1:1/nowhere") as process:
        await process.said("waiting_for_postgres")
        process.child.send_signal(signal.SIGTERM)
        assert await process.ended() == 0


async def test_a_schema_that_is_missing_is_said_and_ends_it(empty_database_dsn: str) -> None:
    async with started(empty_database_dsn) as process:
        said = await process.said("query_cannot_start")
        assert "mnemo migrate" in said["reason"]
        assert await process.ended() == 1


async def test_a_port_that_is_taken_is_said_and_ends_it(database_dsn: str) -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with taken:
        port = str(taken.sockets[0].getsockname()[1])
        async with started(database_dsn, MNEMO_QUERY_PORT=port) as process:
            assert "in use" in (await process.said("query_cannot_start"))["reason"]
            assert await process.ended() == 1


async def test_readiness_follows_postgres(postgres_server: str, template_database: str) -> None:
    name = services.unique_name("away")
    dsn = await asyncio.to_thread(services.create_database, postgres_server, name, template=template_database)
    async with started(dsn) as process:
        where = await process.said("query_serving")
        ready = f"http://{where['ops']}/readyz"
        await _until(lambda: _status(ready) == 200)
        await asyncio.to_thread(services.drop_database, postgres_server, name)
        await _until(lambda: _status(ready) == 503)
        assert await asyncio.to_thread(_status, f"http://{where['ops']}/healthz") == 200


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 (nothing tells us: it is another process)
            await asyncio.sleep(0.1)

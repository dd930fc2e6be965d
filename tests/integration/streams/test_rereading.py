"""`mnemo replay` on a real Kafka, a real Postgres, and a model that reads differently the second time."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mnemostream.turns import Message, Role
from typer.testing import CliRunner

from cli.dev.model_server import ModelServer, serve
from cli.main import app
from processors.records import Owner
from processors.search import TurnState
from runtime.settings import load_settings
from store.database import Database
from store.decisions import DecisionRepository
from store.forgetting import ForgettingRepository
from store.owners import OwnerRepository
from store.turns import TurnRepository
from streams.rereading import StageLag
from tests.fakes.values import OWNER, accepted, commit_of
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import a_turn, all_records, publish, raw, rows, until

ANA = Owner("acme", "ana")
HOME = "subject=user | attribute=home_city"
DOG, PORTO, LISBON = "The user has a dog.", "The user lives in Porto.", "The user lives in Lisbon."
TABLES = {
    "memory": "SELECT m::text FROM memory AS m ORDER BY m.id",
    "source": "SELECT s::text FROM memory_source AS s ORDER BY s.memory_id, s.turn_id, s.message_index",
    "change": "SELECT c::text FROM change AS c ORDER BY c.seq",
    "turn": "SELECT t::text FROM turn AS t ORDER BY t.id",
    "decision": "SELECT d::text FROM decision AS d ORDER BY d.id",
    "ledger": "SELECT l::text FROM ledger AS l ORDER BY l.turn_id, l.run",
}
"""Everything, row by row."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, worker_settings: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("MNEMO_") and not name.startswith("MNEMO_TEST_")]:
        monkeypatch.delenv(name)
    for name, value in worker_settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MNEMO_DATA_DIR", str(tmp_path / "nothing-runs-here"))


@pytest.fixture
async def model() -> AsyncIterator[tuple[ModelServer, str]]:
    server = ModelServer()
    async with serve(server) as url:
        yield server, url


@pytest.fixture
async def query(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_query", pool_size=1)
    yield database
    await database.close()


def a_fact(text: str, number: int, **fields: str) -> dict[str, Any]:
    return {
        "text": text,
        "category": "fact",
        "importance": 5,
        "confidence": "explicit",
        "messages": [number],
        "subject": "user",
        "attribute": "",
        "since": "",
        "expires_in": "",
        "retracts": False,
    } | fields


async def mnemo(*arguments: str) -> Any:
    result = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class System:
    """What is said, and what the store holds of it."""

    def __init__(self, bootstrap: str, prefix: str, dsn: str) -> None:
        self.bootstrap, self.topic, self.dsn = bootstrap, f"{prefix}turns.v1", dsn
        self.said = 0

    async def say(self, *texts: str, owner: str = "ana", **fields: Any) -> None:
        """One turn in a session of its own: it is read alone."""
        self.said += 1
        messages = tuple(Message(Role.USER, text) for text in texts)
        fields = {"messages": messages, "session": f"s-{self.said}"} | fields
        await publish(self.bootstrap, self.topic, [raw(a_turn(self.said, owner, **fields))])

    async def stored(self, run: int, turns: int) -> None:
        query = f"SELECT count(*) FROM ledger WHERE run = {run} AND outcome = 'STORED'"
        assert await until(self.dsn, query, lambda count: count >= turns) == turns

    async def tables(self, *names: str) -> dict[str, list[str]]:
        return {name: [row for (row,) in await rows(self.dsn, TABLES[name])] for name in names or TABLES}

    async def memories(self) -> list[tuple[Any, ...]]:
        return await rows(self.dsn, "SELECT content, state FROM memory WHERE content <> '' ORDER BY content")


async def test_turns_are_read_again_as_a_run_of_their_own(
    start_worker: WorkerStarter,
    model: tuple[ModelServer, str],
    query: Database,
    kafka_bootstrap: str,
    topic_prefix: str,
    database_dsn: str,
) -> None:
    server, url = model
    system = System(kafka_bootstrap, topic_prefix, database_dsn)
    await system.say(f"FACT: {DOG} | subject=user | attribute=pet\nMy key is AKIAIOSFODNN7EXAMPLE")
    await system.say(f"FACT: {LISBON} | {HOME}")
    await system.say("FACT: The user is allergic to nuts. | subject=user | attribute=allergy", "It is bad.")
    await system.say("This is between us.", off_record=True)
    await system.say(f"FACT: {LISBON} | {HOME}", owner="bob")
    async with StageLag.open(load_settings()) as waiting:
        assert await waiting() == 5
        worker = start_worker(
            MNEMO_MODEL_PROVIDER="openai",
            MNEMO_OPENAI_BASE_URL=url,
            MNEMO_EXTRACTION_TIMEOUT_SECONDS="5",
        )
        await system.stored(0, 5)
    allergy = await rows(database_dsn, "SELECT id FROM memory WHERE attribute = 'allergy'")
    assert await ForgettingRepository(query).forget(ANA, allergy[0][0], cause_id=uuid4())

    # The model reads more out of the first turn now: also where the user lived before Lisbon.
    found = [a_fact(DOG, 0, attribute="pet"), a_fact(PORTO, 0, attribute="home_city")]
    server.control(json.dumps({"script": [json.dumps({"facts": found})]}).encode())
    chats = server.stats.schemas.get("facts", 0)
    counted = await mnemo("replay", "--from", "beginning", "--dry-run")
    assert 50 < counted.pop("tokens") < 200
    assert counted == {"dryRun": True, "turns": 3, "owners": 2, "parked": 0, "pending": 0}
    before = await system.tables("turn", "memory", "change")
    told = await mnemo("replay", "--from", "2020-01-01", "--app", "acme", "--owner", "ana", "--yes")
    assert (told["run"], told["turns"], told["published"], told["skipped"]) == (1, 2, 2, 0)
    await system.stored(1, 2)

    # What is new is there, and in its place; what was said since stands; what is known is not counted again.
    assert await system.memories() == [
        ("It is bad.", "LIVE"),
        (DOG, "LIVE"),
        (LISBON, "LIVE"),
        (LISBON, "LIVE"),
        (PORTO, "SUPERSEDED"),
    ]
    after = await system.tables("turn", "memory", "change")
    assert after["turn"] == before["turn"]
    assert len(after["memory"]) == len(before["memory"]) + 1
    assert sum(row in after["memory"] for row in before["memory"]) >= len(before["memory"]) - 1
    [(porto, until_then, said_at)] = await rows(
        database_dsn, f"SELECT id, valid_to, stated_at FROM memory WHERE content = '{PORTO}'"
    )
    assert (said_at, until_then) == tuple(a_turn(number, "ana").said_at for number in (1, 2))
    assert await rows(database_dsn, "SELECT sum(confirmations) FROM memory") == [(0,)]
    report = await TurnRepository(query).report(ANA, "t1")
    assert report.state is TurnState.STORED
    assert report.memory_ids[-1] == str(porto)
    assert len(report.memory_ids) == 2
    why = await DecisionRepository(query).explain(ANA, porto)
    assert why is not None
    assert [(decision.cause_id, decision.memory_id) for decision in why.decisions] == [("t1", porto)]

    # The same run again changes nothing, also where Kafka delivers all of it once more.
    listed = (await mnemo("replay", "--list"))["runs"]
    assert [(run["run"], run["turns"], run["stored"], run["parked"], run["pending"]) for run in listed] == [
        (1, 2, 2, 0, 0)
    ]
    whole = await system.tables()
    assert (await mnemo("replay", "--run", "1", "--yes"))["published"] == 0
    again = [record for record in await all_records(kafka_bootstrap, system.topic) if record.headers]
    assert len(again) == 2
    assert not any(b"AKIA" in record.value or b"allergic" in record.value for record in again)
    await publish(kafka_bootstrap, system.topic, [(r.key, r.value, list(r.headers)) for r in again])
    await system.say("The end.", off_record=True)
    await system.say("The end.", off_record=True, owner="bob")
    await system.stored(0, 7)
    now = await system.tables()
    ends = {"turn": 2, "ledger": 2}
    assert {name: len(set(now[name]) - set(whole[name])) for name in TABLES} == dict.fromkeys(TABLES, 0) | ends
    assert all(set(whole[name]) <= set(now[name]) for name in TABLES)

    # Another run that reads the same leaves its decisions, and nothing else.
    server.control(json.dumps({"script": [json.dumps({"facts": found})]}).encode())
    assert (await mnemo("replay", "--from", "beginning", "--yes", "--app", "acme", "--owner", "ana"))["run"] == 2
    await system.stored(2, 2)
    last = await system.tables()
    assert {name: last[name] for name in ("turn", "memory", "source", "change")} == {
        name: now[name] for name in ("turn", "memory", "source", "change")
    }
    assert len(last["decision"]) == len(now["decision"]) + 3
    assert server.stats.schemas["facts"] == chats + 4
    await mnemo("verify")
    assert worker.terminate() == 0


async def test_the_command_says_what_it_cannot_do(database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def told(*arguments: str) -> tuple[int, str]:
        result = await asyncio.to_thread(CliRunner().invoke, app, ["replay", *arguments])
        return result.exit_code, result.output

    worker = await Database.open(database_dsn, role="mnemo_worker", pool_size=1)
    await TurnRepository(worker).begin(OWNER, [accepted("t-1")])
    code, output = await told("--from", "2020-01-01", "--yes")
    assert (code, "no turn is to be read again; 1 pending left out" in output) == (1, True)
    assert await OwnerRepository(worker).commit(OWNER, 0, commit_of("t-1"))
    await worker.close()
    assert await told("--from", "2020-01-01", "--dry-run") == (
        0,
        "turns\t1 of 1 owners\ntokens\tabout 17, beside the prompts\n",
    )
    assert (await told("--from", "7d", "--yes"))[0] == 1  # it is older
    code, output = await told("--run", "9", "--yes")
    assert (code, "there is no run 9" in output) == (1, True)
    monkeypatch.setenv("MNEMO_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert (await told("--from", "2020-01-01", "--yes"))[0] == 3
    assert await told("--list") == (
        0,
        "run\tbegun\tfrom\tuntil\twhose\tturns\tstored\tparked\tpending\tpublished\n",
    )

"""Commands of operators and `publish` on a real Postgres and a real Kafka."""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mnemostream.turns import Message, Reason, Role, Turn
from typer.testing import CliRunner, Result

from cli.demo import sample_turns
from cli.main import app
from processors.keys import key_hash
from processors.records import AcceptedTurn, Owner, Parking, Place
from store.database import Database
from store.keys import ApiKeyRepository, Key
from store.overview import Overview
from store.parking import ParkingRepository
from store.turns import TurnRepository

Mnemo = Callable[..., Result]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
ANA = Owner("demo", "ana")
NOTHING_SET = {"timeZone": "UTC", "language": "english", "instructions": "", "categories": []}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MNEMO_") and not name.startswith("MNEMO_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMO_DATA_DIR", str(tmp_path / "nothing-runs-here"))


@pytest.fixture
def mnemo() -> Mnemo:
    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return run


@pytest.fixture
def postgres(database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", database_dsn)
    return database_dsn


@pytest.fixture
def kafka(kafka_bootstrap: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MNEMO_KAFKA_BOOTSTRAP_SERVERS", kafka_bootstrap)
    monkeypatch.setenv("MNEMO_TOPIC_PREFIX", topic_prefix)
    monkeypatch.setenv("MNEMO_TOPIC_PARTITIONS", "4")
    return topic_prefix


def answer(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def authenticated(dsn: str, key: str) -> Key | None:
    database = await Database.open(dsn, role="mnemo_query", pool_size=1)
    try:
        return await ApiKeyRepository(database).authenticate(key_hash(key))
    finally:
        await database.close()


def test_migrating_twice_changes_nothing_the_second_time(
    mnemo: Mnemo, empty_database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", empty_database_dsn)
    before = mnemo("keys", "list")
    assert (before.exit_code, "mnemo migrate" in before.stderr) == (1, True)
    first, second = answer(mnemo("migrate", "--json")), answer(mnemo("migrate", "--json"))
    assert first["applied"]
    assert second == {**first, "applied": []}


def test_a_key_is_good_from_when_it_is_made_until_it_is_revoked(mnemo: Mnemo, postgres: str) -> None:
    made = answer(mnemo("keys", "create", "--app", "acme", "--name", "laptop", "--scope", "read", "--json"))
    known = asyncio.run(authenticated(postgres, made["key"]))
    assert known is not None
    assert (known.app, known.scopes) == ("acme", {"read"})
    assert answer(mnemo("apps", "list", "--json")) == {"apps": [{"app": "acme", **NOTHING_SET}]}
    assert mnemo("keys", "revoke", made["id"]).exit_code == 0
    assert mnemo("keys", "revoke", made["id"]).exit_code == 1
    assert asyncio.run(authenticated(postgres, made["key"])) is None


def test_an_app_sets_what_is_given_and_keeps_the_rest(mnemo: Mnemo, postgres: str, tmp_path: Path) -> None:
    instructions = tmp_path / "acme.md"
    instructions.write_text("Keep what concerns pets.\n")
    made = answer(
        mnemo("apps", "set", "acme", "--time-zone", "Europe/Lisbon", "--category", "diet=slow:food", "--json")
    )
    diet = {"name": "diet", "fading": "slow", "description": "food"}
    assert made == {"app": "acme", **NOTHING_SET, "timeZone": "Europe/Lisbon", "categories": [diet]}
    further = ("--instructions-file", str(instructions), "--language", "portuguese", "--category", "identity=fast")
    identity = {"name": "identity", "fading": "fast", "description": ""}
    second = answer(mnemo("apps", "set", "acme", *further, "--json"))
    assert second == {
        "app": "acme",
        "timeZone": "Europe/Lisbon",
        "language": "portuguese",
        "instructions": "Keep what concerns pets.",
        "categories": [diet, identity],
    }
    assert answer(mnemo("apps", "show", "acme", "--json")) == second
    shown = mnemo("apps", "show", "acme").stdout.splitlines()
    assert "category\tdiet=slow:food" in shown
    assert "category\tidentity=fast" in shown
    third = ("--remove-category", "diet", "--instructions", "", "--json")
    assert answer(mnemo("apps", "set", "acme", *third)) == {**second, "instructions": "", "categories": [identity]}
    listed = mnemo("apps", "list").stdout.splitlines()
    assert listed[1].split("\t") == ["acme", "Europe/Lisbon", "portuguese", "1", ""]


def test_what_an_app_cannot_have_changes_nothing(mnemo: Mnemo, postgres: str) -> None:
    refused = mnemo("apps", "set", "acme", "--language", "klingon")
    assert refused.exit_code == 2
    assert "--language: must be a text search configuration of Postgres" in refused.stderr
    assert mnemo("apps", "set", "acme", "--remove-category", "diet").exit_code == 2
    unknown = mnemo("apps", "show", "acme")
    assert (unknown.exit_code, "no app by that name" in unknown.stderr) == (1, True)
    assert answer(mnemo("apps", "list", "--json")) == {"apps": []}


def test_a_list_of_keys_shows_none_of_them_whole(mnemo: Mnemo, postgres: str) -> None:
    keys = [answer(mnemo("keys", "create", "--app", name, "--json"))["key"] for name in ("acme", "other")]
    for result in (mnemo("keys", "list"), mnemo("keys", "list", "--json")):
        assert result.exit_code == 0
        assert all(key not in result.stdout and key[:12] in result.stdout for key in keys)
    only = answer(mnemo("keys", "list", "--app", "other", "--json"))["keys"]
    assert [key["app"] for key in only] == ["other"]


def test_piped_a_new_key_is_the_whole_answer(mnemo: Mnemo, postgres: str) -> None:
    key = mnemo("keys", "create", "--app", "acme").stdout.strip()
    assert asyncio.run(authenticated(postgres, key)) is not None


async def set_aside(dsn: str) -> None:
    database = await Database.open(dsn, role="mnemo_worker", pool_size=1)
    try:
        turns = TurnRepository(database)
        said = Turn(id="t-1", app="demo", owner="ana", said_at=NOW, messages=(Message(Role.USER, "I moved."),))
        place = Place("mnemo.turns.v1", 0, 7, NOW)
        await turns.begin(ANA, [AcceptedTurn(said, place, b"\0" * 32)])
        parking = Parking(
            place=place,
            stage="extract",
            reason=Reason.MODEL_REFUSED,
            detail="the model refused",
            attempts=3,
            owner=ANA,
            turn_ids=("t-1",),
        )
        parked = ParkingRepository(database)
        await parked.park(parking)
        await parked.park(
            Parking(
                place=Place("mnemo.turns.v1", 1, 8, NOW),
                stage="extract",
                reason=Reason.INVALID_JSON,
                detail="value: is not JSON",
                attempts=1,
            )
        )
    finally:
        await database.close()


def test_what_was_set_aside_is_listed_with_its_reason(mnemo: Mnemo, postgres: str) -> None:
    asyncio.run(set_aside(postgres))
    parked = answer(mnemo("parked", "list", "--json"))["parked"]
    assert [(entry["partition"], entry["offset"], entry["reason"], entry["owner"]) for entry in parked] == [
        (1, 8, "invalid_json", None),
        (0, 7, "model_refused", "ana"),
    ]
    assert [entry["turnId"] for entry in answer(mnemo("parked", "list", "--app", "demo", "--json"))["parked"]] == [
        "t-1"
    ]
    assert len(mnemo("parked", "list", "--limit", "1").stdout.splitlines()) == 2


async def test_the_log_of_turns_is_read_back_by_owner(database_dsn: str) -> None:
    await set_aside(database_dsn)
    database = await Database.open(database_dsn, role="mnemo_operator", pool_size=1)
    try:
        (turn,) = await Overview(database).turns(ANA)
        assert (turn.id, turn.said_at, turn.messages[0]["content"]) == ("t-1", NOW, "I moved.")
        assert await Overview(database).turns(Owner("other", "ana")) == ()
    finally:
        await database.close()


def test_topics_are_created_once_and_another_number_of_partitions_is_refused(
    mnemo: Mnemo, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = answer(mnemo("topics", "--json"))
    assert {topic["state"] for topic in report["topics"]} <= {"unchanged", "corrected"}
    monkeypatch.setenv("MNEMO_TOPIC_PARTITIONS", "5")
    refused = mnemo("topics")
    assert refused.exit_code == 1
    assert "new MNEMO_TOPIC_PREFIX" in refused.stderr


def test_the_status_tells_what_is_there_and_what_is_away(
    mnemo: Mnemo, postgres: str, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(set_aside(postgres))
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MNEMO_URL", f"http://127.0.0.1:{nobody_listens.getsockname()[1]}")
        result = mnemo("status", "--json")
    assert result.exit_code == 3
    status = json.loads(result.stdout)
    assert {part: status[part]["ok"] for part in ("kafka", "postgres", "query")} == {
        "kafka": True,
        "postgres": True,
        "query": False,
    }
    assert [(app["app"], app["owners"], app["turnsParked"]) for app in status["apps"]] == [("demo", 1, 1)]


def test_the_sample_is_published_and_refused_lines_between_are_told(mnemo: Mnemo, kafka: str) -> None:
    sample = Path(__file__).parents[2] / "cli" / "sample" / "turns.jsonl"
    lines = sample.read_text("utf-8").splitlines()
    result = mnemo("publish", "-", "--json", stdin="\n".join([lines[0], "{", *lines[1:], '{"id": "x"}']))
    assert result.exit_code == 1
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["line"] for entry in told if "error" in entry] == [2, 42]
    assert {entry["turnId"] for entry in told if "turnId" in entry} == {turn.id for turn in sample_turns()}


def test_a_text_is_published_as_a_turn_of_its_own(mnemo: Mnemo, kafka: str) -> None:
    result = mnemo("publish", "--text", "I moved to Lisbon.", "--app", "demo", "--owner", "ana")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.strip()) == 36


def test_where_the_topics_are_missing_it_says_what_to_do(
    mnemo: Mnemo, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMO_KAFKA_BOOTSTRAP_SERVERS", kafka_bootstrap)
    monkeypatch.setenv("MNEMO_TOPIC_PREFIX", "nobody-made-these.")
    result = mnemo("publish", "--text", "x", "--app", "demo", "--owner", "ana")
    assert result.exit_code == 1
    assert "mnemo topics" in result.stderr

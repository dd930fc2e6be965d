"""What a newcomer does: the embedded system from its command line, with the real worker and query service."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mnemostream import Mnemo

from cli.embedded.state import State, read_state
from tests import services

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    with services.scratch_directory() as scratch:
        yield scratch / "data"


def mnemo(*arguments: str, data_dir: Path, stdin: str = "") -> str:
    """What `mnemo` printed; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")}
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        env={
            **environment,
            "PYTHONPATH": str(ROOT),
            "MNEMO_DATA_DIR": str(data_dir),
            "OPENAI_API_KEY": "lies-in-the-environment",
            "MNEMO_QUERY_PORT": "0",
            "MNEMO_GRPC_PORT": "0",
        },
        input=stdin,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*arguments: str, data_dir: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(mnemo(*arguments, "--json", data_dir=data_dir))
    return answer


@pytest.fixture(scope="module")
def system(data_dir: Path) -> Iterator[State]:
    mnemo("up", "--detach", data_dir=data_dir)
    try:
        state = read_state(data_dir)
        assert state is not None
        yield state
    finally:
        mnemo("down", data_dir=data_dir)


def client(state: State, app: str = "default", api_key: str | None = None) -> Mnemo:
    return Mnemo(
        url=state.url,
        api_key=api_key or state.api_key,
        bootstrap_servers=state.kafka_bootstrap_servers,
        app=app,
    )


def test_a_text_becomes_a_memory_that_a_search_finds(system: State, data_dir: Path) -> None:
    published = as_json(
        "publish", "--app", "default", "--owner", "ana", "--text", "I live in Lisbon.", data_dir=data_dir
    )
    turn = as_json("turn", str(published["turnId"]), "--owner", "ana", "--wait", "30", data_dir=data_dir)
    assert turn["state"] == "STORED"
    [hit] = as_json("search", "--owner", "ana", "Where does she live?", data_dir=data_dir)["hits"]
    assert hit["memory"]["content"] == "The user lives in Lisbon."
    assert hit["memory"]["id"] in turn["memoryIds"]
    assert hit["memory"]["sources"][0]["turnId"] == published["turnId"]


def test_what_is_said_again_confirms_and_a_secret_is_gone(system: State, data_dir: Path) -> None:
    secret = "AKIA" + "Q3EXAMPLE7KEY2XA"  # in two parts, so that no scanner takes this file for a leak
    with client(system) as memories:
        for text in ("I am allergic to peanuts.", f"My key is {secret}\nI am allergic to peanuts."):
            turn_id = memories.publish(memories.turn("ben", [("user", text)]))
            assert memories.get_turn("ben", turn_id, wait_seconds=30).state == "STORED"
        [memory] = memories.list_memories("ben").memories
    assert memory.confirmations == 1
    dump = subprocess.run(
        ["grep", "-rl", secret, str(data_dir / "postgres"), str(data_dir / "logs")], capture_output=True, check=False
    )
    assert dump.stdout == b""


def test_two_apps_with_the_same_owner_have_nothing_in_common(system: State, data_dir: Path) -> None:
    other = as_json("keys", "create", "--app", "other", data_dir=data_dir)
    with client(system) as ours, client(system, "other", other["key"]) as theirs:
        mine = ours.create_memory("zoe", "Has a cat called Momo.")
        hers = theirs.create_memory("zoe", "Has a dog called Rex.")
        assert [hit.memory.id for hit in ours.search("zoe", "cat dog Momo Rex")] == [mine.id]
        assert [hit.memory.id for hit in theirs.search("zoe", "cat dog Momo Rex")] == [hers.id]


def test_what_is_stored_is_there_after_a_restart(system: State, data_dir: Path) -> None:
    as_json("add", "--owner", "tom", "Plays the cello.", data_dir=data_dir)
    mnemo("down", data_dir=data_dir)
    mnemo("up", "--detach", data_dir=data_dir)
    [hit] = as_json("search", "--owner", "tom", "Which instrument?", data_dir=data_dir)["hits"]
    assert hit["memory"]["content"] == "Plays the cello."


def test_the_demo_shows_what_it_computed_and_leaves_nothing_running() -> None:
    with services.scratch_directory() as scratch:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")}
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", "demo"],
            env={**environment, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch), "COLUMNS": "120"},
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(scratch.iterdir()) == []
    assert "40 of them stored" in done.stdout
    assert "[REDACTED]" in done.stdout
    assert "confirmed 2×: The user is allergic to peanuts." in done.stdout
    assert "mnemo search" in done.stdout.rsplit("Next:", 1)[1]

"""`mnemo up` from one end to the other, on the real servers, with a stand-in for worker and query service."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.embedded.processes import ProcessIdentity, identify, wait_until
from cli.embedded.state import State, read_state
from cli.main import app
from tests import services

ROOT = Path(__file__).parents[2]
UP = """
import sys
from pathlib import Path
from cli.embedded.system import UpOptions, run_system
from cli.embedded.errors import EmbeddedError
settings = {"MNEMO_MAX_FACTS_PER_TURN": "3"}
options = UpOptions(Path(sys.argv[1]), settings=settings, query_port=0, grpc_port=0, kafka_port=0)
try:
    run_system(options, print, lambda state: print("ready", flush=True), program=(sys.executable, sys.argv[2]))
except EmbeddedError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with services.scratch_directory() as scratch:
        yield scratch / "data"


@contextmanager
def running(data_dir: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    stub = Path(__file__).with_name("stub_mnemo.py")
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", UP, data_dir, stub],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def until(process: subprocess.Popen[str], words: str) -> list[str]:
    """What it says up to the line with `words`."""
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.strip())
        if words in line:
            return said
    raise AssertionError(said)


def state_of(data_dir: Path) -> State:
    state = read_state(data_dir)
    assert state is not None
    return state


def processes_of(state: State) -> list[ProcessIdentity]:
    found = [identify(pid) for pid in state.processes.values()]
    return [process for process in found if process is not None]


def calls(data_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data_dir / "calls.jsonl").read_text().splitlines()]


def test_it_comes_up_in_order_tells_where_it_is_and_goes_down_leaving_nothing(data_dir: Path) -> None:
    with running(data_dir, OPENAI_API_KEY="canary", MNEMO_OPENAI_API_KEY="canary", PGPASSWORD="canary") as process:
        until(process, "ready")
        state = state_of(data_dir)
        assert list(state.processes) == ["postgres", "kafka", "worker", "query"]
        started = processes_of(state)
        assert len(started) == 4
        for secret in ("state.json", "key"):
            assert (data_dir / secret).stat().st_mode & 0o777 == 0o600
        assert state.api_key == "mnk_stub_1"
        assert "mnk_" not in (data_dir / "state.json").read_text()

        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    assert not any(one.is_alive() for one in started)
    assert read_state(data_dir) is None
    said = calls(data_dir)
    commands = [call["arguments"][0] for call in said]
    assert set(commands[:2]) == {"migrate", "topics"}
    assert sorted(commands[2:]) == ["keys", "query", "worker"]
    for call in said:
        assert call["environment"]["MNEMO_KAFKA_BOOTSTRAP_SERVERS"] == state.kafka_bootstrap_servers
        assert call["environment"]["MNEMO_POSTGRES_DSN"] == state.postgres_dsn
        assert call["environment"]["MNEMO_MAX_FACTS_PER_TURN"] == "3"
        assert "canary" not in call["environment"].values()
    assert "canary" not in "".join(log.read_text() for log in (data_dir / "logs").iterdir())


def test_a_second_one_on_the_same_directory_is_refused_and_the_first_goes_on(data_dir: Path) -> None:
    with running(data_dir) as first:
        until(first, "ready")
        with running(data_dir) as second:
            [*_, said] = until(second, "already runs")
            assert second.wait(30) == 1
        assert state_of(data_dir).url in said
        assert len(processes_of(state_of(data_dir))) == 4


def test_who_is_killed_is_started_again_and_it_is_said(data_dir: Path) -> None:
    with running(data_dir) as process:
        until(process, "ready")
        state = state_of(data_dir)
        for name, called in (("worker", "worker"), ("kafka", "Kafka"), ("postgres", "Postgres")):
            os.kill(state.processes[name], signal.SIGKILL)
            said = until(process, f"{called} runs again")
            assert any(line.startswith(f"{called} ended unexpectedly") for line in said)
    assert [call["arguments"][0] for call in calls(data_dir)].count("worker") == 2


def test_when_it_is_killed_nothing_lingers_and_the_next_one_finds_everything(data_dir: Path) -> None:
    with running(data_dir) as process:
        until(process, "ready")
        state = state_of(data_dir)
        started = processes_of(state)
        process.kill()
    assert read_state(data_dir) is None
    with running(data_dir) as process:
        until(process, "ready")
        assert not any(one.is_alive() for one in started)
        assert state_of(data_dir).api_key == state.api_key
    assert [call["arguments"][0] for call in calls(data_dir)].count("keys") == 1


def test_down_stops_it_and_says_what(data_dir: Path) -> None:
    with running(data_dir) as process:
        until(process, "ready")
        result = CliRunner().invoke(app, ["down", "--data-dir", str(data_dir)])
        assert result.exit_code == 0, result.output
        assert "stopped postgres, kafka, worker, query" in result.output
        assert process.wait(5) == 0
    result = CliRunner().invoke(app, ["down", "--data-dir", str(data_dir)])
    assert (result.exit_code, result.output) == (0, f"nothing runs from {data_dir}\n")


def test_a_step_that_fails_is_told_in_its_own_words_and_all_is_stopped(data_dir: Path) -> None:
    with running(data_dir, STUB_FAILS="1") as process:
        until(process, "`mnemo topics` failed: no topics today")
        assert process.wait(60) == 1
    assert read_state(data_dir) is None
    with running(data_dir) as process:
        until(process, "ready")


def test_a_key_that_is_not_accepted_any_more_is_replaced(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o711)
    (data_dir / "key").write_text("mnk_of_another_database\n")
    with running(data_dir) as process:
        until(process, "ready")
        assert state_of(data_dir).api_key == "mnk_stub_1"


def test_a_signal_in_the_middle_of_the_start_stops_it_all(data_dir: Path) -> None:
    with running(data_dir) as process:
        until(process, "Starting Postgres and Kafka")
        assert wait_until((data_dir / "postgres" / "server.pid").exists, 60)
        process.send_signal(signal.SIGINT)
        until(process, "Stopping")
        assert process.wait(60) == 0
    assert read_state(data_dir) is None
    with running(data_dir) as process:
        until(process, "ready")

"""`mnemo` itself: help, errors, exit codes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mnemostream.errors import BrokerUnavailable
from typer.testing import Result

from cli.failures import CommandFailed, NotAvailable, UsageProblem, explain
from cli.main import COMMANDS, _config_first, _load
from processors.errors import StoreUnavailable
from runtime.settings import InvalidSettings

Mnemo = Callable[..., Result]


def test_the_help_fits_on_one_screen_in_groups(mnemo: Mnemo) -> None:
    help_text = mnemo("--help").stdout
    lines = help_text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "For operators" in help_text
    assert "For people" in help_text
    assert all(f"  {name} " in help_text for name in COMMANDS)


def test_the_help_loads_neither_rich_nor_pydantic_nor_anything_else_that_is_slow() -> None:
    script = """
import sys
from cli.main import app
try:
    app(["--help"])
except SystemExit:
    pass
slow = {"rich", "pydantic", "asyncpg", "aiokafka", "openai", "numpy", "asyncio", "http.client", "structlog"}
print("LOADED", sorted(slow & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert run.stdout.splitlines()[-1] == "LOADED []"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_can_be_loaded_and_explains_itself(mnemo: Mnemo, name: str) -> None:
    assert _load(COMMANDS[name]) is not None
    result = mnemo(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Usage" in result.stdout


def test_without_a_command_the_help_is_shown(mnemo: Mnemo) -> None:
    assert "For operators" in mnemo().output


def test_an_unknown_command_is_a_usage_error_that_names_the_closest_one(mnemo: Mnemo) -> None:
    result = mnemo("serch", "x")
    assert result.exit_code == 2
    assert "Did you mean 'search'?" in result.stderr


def test_the_version_is_told(mnemo: Mnemo) -> None:
    assert mnemo("--version").stdout.startswith("mnemo ")


def test_bad_settings_are_a_usage_error_in_clear_lines(mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_QUERY_PROT", "7600")
    result = mnemo("list", "--owner", "ana")
    assert result.exit_code == 2
    assert "MNEMO_QUERY_PROT: no such setting; did you mean MNEMO_QUERY_PORT?" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("place", ["before", "after", "joined"])
def test_a_settings_file_may_be_named_before_or_after_the_command(mnemo: Mnemo, tmp_path: Path, place: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text("nothing = 1\n")
    arguments = {
        "before": ["--config", str(file), "list"],
        "after": ["list", "--config", str(file)],
        "joined": ["list", f"--config={file}"],
    }[place]
    result = mnemo(*arguments)
    assert result.exit_code == 2
    assert "nothing: no such setting" in result.stderr


def test_what_stands_behind_two_dashes_is_no_option() -> None:
    assert _config_first(["add", "--", "--config", "x"]) == ["add", "--", "--config", "x"]
    assert _config_first(["add", "--config"]) == ["add", "--config"]


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (InvalidSettings("MNEMO_X: no such setting"), 2),
        (UsageProblem("whose?"), 2),
        (CommandFailed("no"), 1),
        (NotAvailable("away"), 3),
        (StoreUnavailable("Postgres is away"), 3),
        (BrokerUnavailable("Kafka is away"), 3),
        (ConnectionRefusedError(111, "Connection refused"), 3),
        (FileNotFoundError(2, "No such file"), 1),
        (KeyError("what the owner said"), 1),
    ],
)
def test_each_kind_of_failure_has_its_exit_code_and_one_line(error: Exception, exit_code: int) -> None:
    failure = explain(error)
    assert failure is not None
    assert failure.exit_code == exit_code
    assert failure.message.startswith("mnemo: ")
    assert "what the owner said" not in failure.message


def test_at_debug_level_a_failure_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_LOG_LEVEL", "DEBUG")
    failure = explain(CommandFailed("no"))
    assert failure is not None
    assert "CommandFailed: no" in failure.message
    assert failure.exit_code == 1

"""`mnemo replay`: what it is asked, and what it refuses before it looks at anything."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MNEMO_") and not name.startswith("MNEMO_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMO_DATA_DIR", str(tmp_path / "nothing-runs-here"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "which turns?"),
        (["--from", "7d", "--run", "3"], "which turns?"),
        (["--run", "3", "--until", "1d"], "--run N reads what it was begun with"),
        (["--run", "3", "--app", "acme"], "--run N reads what it was begun with"),
        (["--run", "0"], "--run"),
        (["--from", "7d", "--owner", "ana"], "--owner needs --app"),
        (["--from", "soon"], "--from: must be a time"),
        (["--from", "1d", "--until", "7d"], "must be before --until"),
        (["--from", "2999-01-01"], "must be before"),
        (["--from", "7d"], "give --yes"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_problem(arguments: list[str], word: str) -> None:
    result = CliRunner().invoke(app, ["replay", *arguments])
    assert (result.exit_code, word in result.stderr) == (2, True), result.stderr

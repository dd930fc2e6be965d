"""Commands of operators: what they check before they do anything."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import Result

from cli.commands.access import _as_json, _state
from cli.commands.operate import STAGES, chosen_stages
from cli.failures import UsageProblem
from store.keys import KeyEntry

Mnemo = Callable[..., Result]
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_without_a_choice_a_worker_runs_all_stages() -> None:
    assert chosen_stages(None) == STAGES


@pytest.mark.parametrize("named", ["reconcile,extract", " extract , reconcile,", "extract,reconcile,extract"])
def test_stages_are_a_set_in_the_order_of_a_turns_way(named: str) -> None:
    assert chosen_stages(named) == ("extract", "reconcile")


@pytest.mark.parametrize("named", ["", ",", "extrct", "extract,nothing"])
def test_a_stage_that_there_is_not_is_a_usage_problem(named: str) -> None:
    with pytest.raises(UsageProblem, match="--stages: choose among extract, reconcile"):
        chosen_stages(named)


@pytest.mark.parametrize(
    "command",
    [
        ("worker",),
        ("query",),
        ("migrate",),
        ("apps", "list"),
        ("apps", "show", "a"),
        ("apps", "set", "a", "--language", "english"),
        ("keys", "list"),
        ("keys", "create", "--app", "a"),
        ("parked", "list"),
    ],
)
def test_without_a_postgres_it_says_which_setting_is_missing(mnemo: Mnemo, command: tuple[str, ...]) -> None:
    result = mnemo(*command)
    assert result.exit_code == 2
    assert "MNEMO_POSTGRES_DSN" in result.stderr


def test_a_postgres_that_is_away_is_exit_code_3(mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", "postgresql:///nothing?host=/nowhere")
    result = mnemo("migrate")
    assert result.exit_code == 3
    assert "Postgres is away" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("--app", "UPPER"), ("--app", ""), ("--app", "a", "--scope", "rule"), ("--app", "a/b")]
)
def test_a_key_that_cannot_be_is_refused_before_anything_is_made(mnemo: Mnemo, arguments: tuple[str, ...]) -> None:
    assert mnemo("keys", "create", *arguments).exit_code == 2


def test_a_key_is_revoked_by_its_id_and_not_by_itself(mnemo: Mnemo) -> None:
    result = mnemo("keys", "revoke", "mnk_0123456789")
    assert result.exit_code == 2
    assert "mnk_0123456789" not in result.output


def entry(expires_at: datetime | None = None, revoked_at: datetime | None = None) -> KeyEntry:
    return KeyEntry(UUID(int=1), "demo", "mnk_01234567", "", ("read",), NOW, expires_at, revoked_at)


@pytest.mark.parametrize(
    ("key", "state"),
    [
        (entry(), "good"),
        (entry(expires_at=NOW + timedelta(days=1)), "good until 2026-11-22"),
        (entry(expires_at=NOW), "expired"),
        (entry(expires_at=NOW, revoked_at=NOW), "revoked"),
    ],
)
def test_a_key_says_whether_it_is_taken(key: KeyEntry, state: str) -> None:
    assert _state(key, NOW) == state


def test_a_key_as_json_has_its_first_characters_only() -> None:
    assert _as_json(entry())["prefix"] == "mnk_01234567"
    assert "key" not in _as_json(entry())


def test_the_page_about_settings_is_printed(mnemo: Mnemo) -> None:
    from runtime.reference import settings_markdown

    assert mnemo("dev", "settings-docs").stdout == settings_markdown()


def test_up_without_the_key_that_its_model_needs_is_refused_before_anything_starts(
    mnemo: Mnemo, tmp_path: Path
) -> None:
    result = mnemo("up", "--detach", "--model-provider", "openai", "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 2
    assert "MNEMO_OPENAI_API_KEY" in result.stderr
    assert not (tmp_path / "data").exists()

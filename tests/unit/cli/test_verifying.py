"""`mnemo verify` before it has looked: what it refuses, and what it says where somebody is away."""

from collections.abc import Callable

import pytest
from typer.testing import Result

Mnemo = Callable[..., Result]


@pytest.fixture(autouse=True)
def _nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", "postgresql://mnemo@127.0.0.1:1/mnemo")
    monkeypatch.setenv("MNEMO_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")


def test_an_invariant_that_there_is_not_is_a_usage_error_that_names_those_that_there_are(mnemo: Mnemo) -> None:
    result = mnemo("verify", "--only", "feed,fed")
    assert result.exit_code == 2
    assert "no invariant is called fed; there are accepted, once, order, live" in result.stderr


def test_postgres_away_is_not_a_violation(mnemo: Mnemo) -> None:
    result = mnemo("verify")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "Postgres is away" in result.stderr


def test_without_postgres_nothing_can_be_said(mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MNEMO_POSTGRES_DSN")
    assert mnemo("verify").exit_code == 2


def test_the_names_of_the_invariants_are_in_the_help(mnemo: Mnemo) -> None:
    assert "accepted, once, order, live" in " ".join(mnemo("verify", "--help").stdout.split())

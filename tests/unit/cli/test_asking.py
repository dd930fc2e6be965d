"""Commands that ask: what they send, what they show, how they fail."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import Result

from cli.context import Embedded, with_embedded
from cli.output import shown
from runtime.settings import load_settings
from tests.unit.cli.conftest import FakeService

Mnemo = Callable[..., Result]

ID = "0199c6b2-0000-7000-8000-000000000001"
MEMORY = {
    "id": ID,
    "content": "Lives in Lisbon.",
    "state": "LIVE",
    "category": "identity",
    "importance": 5,
    "confidence": 0.95,
    "strength": 1.0,
    "validFrom": "2026-04-13T19:20:00Z",
    "confirmations": 2,
    "sources": [{"turnId": "ana-19", "messageIndex": 0, "role": "user", "saidAt": "2026-04-13T19:20:00Z"}],
}


def test_a_search_asks_about_the_owner_with_the_key(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["Search"] = {"hits": [{"memory": MEMORY, "score": 0.8712}], "degraded": False}
    result = mnemo("search", "where", "does", "she", "live?", "--limit", "3")
    assert result.exit_code == 0
    ((method, request, authorization),) = service.requests
    assert (method, authorization) == ("Search", "Bearer mnk_test")
    assert request["owner"] == "ana"
    assert request["query"] == "where does she live?"
    assert request["limit"] == 3


def test_piped_a_search_is_one_line_a_hit_with_tabs(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["Search"] = {"hits": [{"memory": MEMORY, "score": 0.8712}]}
    header, line = mnemo("search", "x").stdout.splitlines()
    assert header.split("\t") == ["score", "id", "state", "category", "since", "content"]
    assert line.split("\t") == ["0.871", ID, "LIVE", "identity", "2026-04-13", "Lives in Lisbon."]


def test_as_json_the_answer_is_that_of_the_rpc(mnemo: Mnemo, service: FakeService) -> None:
    answers: dict[str, tuple[list[str], Any]] = {
        "Search": (["search", "x"], {"hits": [{"memory": MEMORY, "score": 1.0}], "degraded": True}),
        "GetMemory": (["show", ID], MEMORY),
        "CreateMemory": (["add", "Lives", "in", "Lisbon."], MEMORY),
        "ExplainMemory": (["why", ID], {"story": "It was told.", "decisions": [], "statements": [], "line": [MEMORY]}),
        "DeleteMemory": (["forget", ID], {}),
        "GetTurn": (["turn", "t-1"], {"turnId": "t-1", "state": "STORED", "memoryIds": [ID]}),
        "ListMemories": (["list"], {"memories": [MEMORY], "nextPageToken": "", "totalSize": 1}),
    }
    for method, (arguments, answer) in answers.items():
        service.answers[method] = answer
        result = mnemo(*arguments, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout) == answer


def test_an_answer_from_words_alone_says_so_on_stderr(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["Search"] = {"hits": [], "degraded": True}
    assert "words only" in mnemo("search", "x").stderr


def test_a_list_reads_all_pages_up_to_its_limit(mnemo: Mnemo, service: FakeService) -> None:
    def page(request: dict[str, Any]) -> dict[str, Any]:
        number = int(request["pageToken"] or "0")
        return {
            "memories": [MEMORY] * min(2, request["pageSize"]),
            "nextPageToken": str(number + 1) if number < 9 else "",
            "totalSize": 20,
        }

    service.answers["ListMemories"] = page
    assert len(mnemo("list").stdout.splitlines()) == 1 + 20
    assert len(mnemo("list", "--limit", "5").stdout.splitlines()) == 1 + 5


def test_a_turn_that_is_stored_names_its_memories(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["GetTurn"] = {"turnId": "t-1", "state": "STORED", "memoryIds": [ID]}
    result = mnemo("turn", "t-1", "--wait", "5")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["state\tSTORED", f"memory\t{ID}"]
    assert service.requests[0][1]["wait"].startswith(("4.", "5."))


def test_a_turn_that_is_not_over_in_time_is_a_failure_but_shown(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["GetTurn"] = {"turnId": "t-1", "state": "PENDING", "memoryIds": []}
    result = mnemo("turn", "t-1", "--wait", "0.01")
    assert result.exit_code == 1
    assert "PENDING" in result.stdout


def test_a_parked_turn_says_why(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["GetTurn"] = {"state": "PARKED", "reason": "invalid_field", "detail": "said_at: is missing"}
    result = mnemo("turn", "t-1")
    assert "invalid_field" in result.stdout
    assert "said_at: is missing" in result.stdout


def test_a_memory_is_shown_with_its_sources_and_without_what_is_empty(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["GetMemory"] = {**MEMORY, "supersedes": "", "expiresAt": None, "data": None}
    lines = dict(line.split("\t") for line in mnemo("show", ID).stdout.splitlines())
    assert lines["content"] == "Lives in Lisbon."
    assert lines["from turn"] == "ana-19 (user, 2026-04-13)"
    assert "supersedes" not in lines


@pytest.mark.parametrize(
    ("answer", "exit_code", "said"),
    [
        ((401, {"code": "unauthenticated", "message": "no"}), 1, "MNEMO_API_KEY"),
        ((404, {"code": "not_found", "message": "no such memory"}), 1, "not found: no such memory"),
        ((400, {"code": "invalid_argument", "message": "id: must be a UUID"}), 1, "id: must be a UUID"),
        ((503, {"code": "unavailable", "message": "Postgres is away"}), 3, "Postgres is away"),
        ((503, "<html>"), 3, "HTTP 503"),
        ((200, "<html>"), 1, "not a query service"),
        ((200, "[]"), 1, "not a query service"),
    ],
)
def test_an_error_of_the_service_is_one_line_and_an_exit_code(
    mnemo: Mnemo, service: FakeService, answer: Any, exit_code: int, said: str
) -> None:
    service.answers["GetMemory"] = answer
    result = mnemo("show", ID)
    assert result.exit_code == exit_code
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_where_nobody_answers_it_says_what_to_do(mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MNEMO_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("MNEMO_API_KEY", "mnk_test")
        result = mnemo("list", "--owner", "ana")
    assert result.exit_code == 3
    assert "mnemo up" in result.stderr


def test_without_an_owner_or_a_key_it_says_which_setting_is_missing(mnemo: Mnemo) -> None:
    no_owner = mnemo("list")
    assert (no_owner.exit_code, "MNEMO_OWNER" in no_owner.stderr) == (2, True)
    no_key = mnemo("list", "--owner", "ana")
    assert (no_key.exit_code, "MNEMO_API_KEY" in no_key.stderr) == (2, True)


def test_a_text_cannot_steer_the_terminal() -> None:
    assert shown("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"


EMBEDDED = Embedded("127.0.0.1:1", "postgresql://embedded", "http://127.0.0.1:2", "mnk_embedded", "default")


def test_a_running_embedded_system_stands_in_for_what_nobody_set() -> None:
    settings = with_embedded(load_settings({}), EMBEDDED)
    assert settings.kafka_bootstrap_servers == "127.0.0.1:1"
    assert settings.postgres_dsn == SecretStr("postgresql://embedded")
    assert settings.url == "http://127.0.0.1:2"
    assert settings.api_key == SecretStr("mnk_embedded")


def test_what_was_set_stays() -> None:
    environ = {
        "MNEMO_KAFKA_BOOTSTRAP_SERVERS": "k:9092",
        "MNEMO_POSTGRES_DSN": "postgresql://mine",
        "MNEMO_URL": "http://mine:7600",
        "MNEMO_API_KEY": "mnk_mine",
    }
    assert with_embedded(load_settings(environ), EMBEDDED) == load_settings(environ)


def test_the_embedded_key_is_not_sent_to_another_address() -> None:
    settings = with_embedded(load_settings({"MNEMO_URL": "https://elsewhere"}), EMBEDDED)
    assert settings.api_key is None

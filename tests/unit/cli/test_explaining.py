"""`mnemo why` and `mnemo forget`: what they ask, and what they show."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.unit.cli.conftest import FakeService

Mnemo = Callable[..., Result]

ID = "0199c6b2-0000-7000-8000-000000000001"
DECISION = {
    "id": ID,
    "at": "2026-11-21T10:00:03.250Z",
    "route": "ARBITRATE",
    "action": "DELETE",
    "reason": "The user has moved.",
    "marked": False,
    "neighbours": [{"memoryId": ID, "similarity": 0.91}, {"memoryId": ID}, {"memoryId": ID, "similarity": 0.5}],
    "model": "reader",
    "promptVersion": "extraction.v2",
    "arbitration": {"model": "judge", "promptVersion": "arbitration.v1"},
}
ANSWER = {"story": "On 21 Nov 2026 the user said: “I moved.”", "decisions": [DECISION]}


def test_why_tells_the_story_and_then_each_decision(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["ExplainMemory"] = ANSWER
    result = mnemo("why", ID)
    assert result.exit_code == 0, result.output
    assert service.requests[0][:2] == ("ExplainMemory", {"owner": "ana", "id": ID})
    story, empty, header, row = result.stdout.splitlines()
    assert (story, empty) == (ANSWER["story"], "")
    assert header.split("\t") == ["when", "route", "action", "similarity", "model", "reason"]
    assert row.split("\t") == [
        "2026-11-21 10:00:03",
        "ARBITRATE",
        "DELETE",
        "0.910",
        "judge arbitration.v1",
        "The user has moved.",
    ]


def test_without_an_arbitrator_the_model_is_the_readers_and_a_default_is_marked(
    mnemo: Mnemo, service: FakeService
) -> None:
    plain: dict[str, Any] = {**DECISION, "arbitration": None, "neighbours": [], "marked": True, "reason": "both kept"}
    service.answers["ExplainMemory"] = {"story": "x", "decisions": [plain]}
    row = mnemo("why", ID).stdout.splitlines()[-1].split("\t")
    assert row[3:] == ["", "reader extraction.v2", "both kept (marked: the safe default)"]


def test_a_story_cannot_steer_the_terminal(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["ExplainMemory"] = {"story": "a\x1b[2Jb", "decisions": []}
    assert mnemo("why", ID).stdout == "a [2Jb\n"


def test_who_is_not_known_has_no_story(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["ExplainMemory"] = (404, {"code": "not_found", "message": "the owner has no such memory"})
    result = mnemo("why", ID)
    assert result.exit_code == 1
    assert "not found: the owner has no such memory" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--yes",)])
def test_without_a_terminal_nobody_is_asked_before_forgetting(
    mnemo: Mnemo, service: FakeService, arguments: tuple[str, ...]
) -> None:
    service.answers["DeleteMemory"] = {}
    result = mnemo("forget", ID, *arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert [(method, body) for method, body, _ in service.requests] == [("DeleteMemory", {"owner": "ana", "id": ID})]


@pytest.mark.parametrize(("answer", "exit_code", "forgotten"), [("y", 0, True), ("n", 1, False), ("", 1, False)])
def test_on_a_terminal_a_person_is_shown_what_goes_and_asked(
    service: FakeService, answer: str, exit_code: int, forgotten: bool
) -> None:
    service.answers |= {"GetMemory": {"id": ID, "content": "Lives in Lisbon."}, "DeleteMemory": {}}
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        command = [sys.executable, "-m", "cli.main", "forget", ID]
        root = Path(__file__).parents[3]
        ran = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=root, check=False)
        shown = os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert ran.returncode == exit_code, ran.stderr
    assert "Lives in Lisbon." in shown
    assert "Forget this for good" in shown
    assert ("DeleteMemory" in [method for method, *_ in service.requests]) is forgotten

"""Turns from JSON lines: which are taken, which are refused and how that is said, and their order."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from mnemostream.errors import BrokerUnavailable
from mnemostream.turns import Turn
from typer.testing import Result

from cli.commands.publish import publish_all
from cli.turn_lines import Accepted, Defaults, Refused, read_turns, turn_of_text

NOBODY = Defaults()
ANA = Defaults(app="demo", owner="ana", session="s-1")


def line(**changes: Any) -> bytes:
    turn = {
        "id": "t-1",
        "app": "demo",
        "owner": "ana",
        "said_at": "2026-03-02T09:12:00Z",
        "messages": [{"role": "user", "content": "Hi"}],
    }
    return json.dumps({name: value for name, value in (turn | changes).items() if value != "-"}).encode() + b"\n"


def test_a_whole_turn_is_taken_as_it_is() -> None:
    (entry,) = read_turns([line(owner="user/42")], ANA)
    assert isinstance(entry, Accepted)
    assert (entry.turn.id, entry.turn.app, entry.turn.owner, entry.turn.session) == ("t-1", "demo", "user/42", "s-1")


def test_what_a_line_leaves_out_is_filled_in() -> None:
    (entry,) = read_turns([line(id="-", app="-", owner=None)], ANA)
    assert isinstance(entry, Accepted)
    assert (entry.turn.app, entry.turn.owner, entry.turn.session) == ("demo", "ana", "s-1")
    assert len(entry.turn.id) == 36


def test_empty_lines_are_passed_over_but_counted() -> None:
    entries = list(read_turns([b"\n", line(), b"  \n", b"{"], NOBODY))
    assert [entry.line for entry in entries] == [2, 4]


@pytest.mark.parametrize(
    ("raw", "reason", "field"),
    [
        (b"{", "invalid_json", "value"),
        (b"\xff\xfe", "invalid_utf8", "value"),
        (b"[]", "invalid_field", "value"),
        (b"[" * 100_000, "invalid_json", "value"),
        (line(app="-"), "invalid_field", "app"),
        (line(app="UPPER"), "invalid_field", "app"),
        (line(owner=7), "invalid_field", "owner"),
        (line(said_at="yesterday"), "invalid_field", "said_at"),
        (line(messages=[]), "invalid_field", "messages"),
        (line(messages=[{"role": "user", "content": 5}]), "invalid_field", "messages[0].content"),
        (line(messages=[{"role": "user", "content": "x" * 1_100_000}]), "too_large", "messages"),
    ],
)
def test_a_line_that_breaks_a_rule_is_told_by_field_and_rule(raw: bytes, reason: str, field: str) -> None:
    (entry,) = read_turns([raw], NOBODY)
    assert isinstance(entry, Refused)
    assert (entry.line, entry.reason, entry.field) == (1, reason, field)
    assert entry.rule


def test_a_text_is_a_turn_in_which_the_owner_speaks() -> None:
    entry = turn_of_text("I moved to Lisbon.", ANA, datetime(2026, 4, 13, tzinfo=UTC))
    assert isinstance(entry, Accepted)
    assert entry.turn.messages[0].content == "I moved to Lisbon."
    assert entry.turn.messages[0].role == "user"


class Journal:
    """Takes turns, later ones faster than earlier ones; may be away for some."""

    def __init__(self, away_for: str | None = None) -> None:
        self.taken: list[str] = []
        self._away_for = away_for

    async def publish(self, turn: Turn) -> str:
        for _ in range(max(0, 20 - len(self.taken))):
            await asyncio.sleep(0)
        if turn.id == self._away_for:
            raise BrokerUnavailable("Kafka is away")
        self.taken.append(turn.id)
        return turn.id


async def test_refused_lines_are_reported_and_the_others_go_on() -> None:
    journal, reported = Journal(), []
    entries = read_turns([line(id="a"), b"{", line(id="b")], NOBODY)
    assert await publish_all(journal, entries, reported.append) == (2, 1)
    assert journal.taken == ["a", "b"]
    assert sorted(type(entry).__name__ for entry in reported) == ["Accepted", "Accepted", "Refused"]


async def test_the_turns_of_an_owner_are_published_in_their_order() -> None:
    journal = Journal()
    lines = [line(id=f"{owner}-{number:03}", owner=owner) for number in range(400) for owner in ("ana", "ben")]
    assert await publish_all(journal, read_turns(lines, NOBODY), lambda _: None) == (800, 0)
    for owner in ("ana", "ben"):
        own = [turn_id for turn_id in journal.taken if turn_id.startswith(owner)]
        assert own == sorted(own)


async def test_when_kafka_is_away_that_is_what_is_raised() -> None:
    lines = [line(id=str(number)) for number in range(5)]
    journal = Journal(away_for="2")
    with pytest.raises(BrokerUnavailable):
        await publish_all(journal, read_turns(lines, NOBODY), lambda _: None)
    assert journal.taken == ["0", "1"]


@pytest.mark.parametrize("arguments", [(), ("--text", "hi"), ("f.jsonl", "--text", "hi")])
def test_what_to_publish_must_be_clear(mnemo: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    assert mnemo("publish", *arguments).exit_code == 2


def test_a_file_that_is_not_there_is_a_failure(mnemo: Callable[..., Result]) -> None:
    result = mnemo("publish", "/nowhere/turns.jsonl")
    assert result.exit_code == 1
    assert "cannot be read" in result.stderr

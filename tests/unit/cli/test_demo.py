"""The demo: its sample, and the story that is told of it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mnemostream.redaction import contains_secrets
from mnemostream.turns import Role

import cli
from cli.demo import APP, QUESTIONS, sample_turns
from cli.demo_story import tell

SAMPLE = Path(cli.__file__).parent / "sample" / "turns.jsonl"
START = datetime(2026, 3, 2, tzinfo=UTC)


def test_every_line_of_the_sample_is_a_turn() -> None:
    lines = SAMPLE.read_text("utf-8").splitlines()
    assert len(sample_turns()) == len(lines) == 40
    assert {json.loads(line)["app"] for line in lines} == {APP}


def test_the_sample_is_of_two_owners_over_several_weeks_in_the_order_of_time() -> None:
    turns = sample_turns()
    moments = [turn.said_at for turn in turns]
    assert {turn.owner for turn in turns} == {"ana", "ben"}
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] > timedelta(weeks=5)
    assert len({(turn.owner, turn.id) for turn in turns}) == len(turns)
    assert all(turn.session for turn in turns)


def test_the_sample_holds_one_planted_secret_and_statements_that_are_repeated() -> None:
    words = [message.content for turn in sample_turns() for message in turn.messages if message.role is Role.USER]
    assert sum(contains_secrets(text) for text in words) == 1
    assert len(words) - len(set(words)) >= 4


def test_the_questions_are_about_the_owners_of_the_sample() -> None:
    assert len(QUESTIONS) == 5
    assert {owner for owner, _ in QUESTIONS} == {turn.owner for turn in sample_turns()}


@dataclass
class Kept:
    """A turn as it is kept."""

    id: str
    said_at: datetime
    messages: tuple[dict[str, Any], ...]


def kept(number: int, *words: str) -> Kept:
    messages = [{"role": "user", "content": text} for text in words] + [{"role": "assistant", "content": "I see."}]
    return Kept(f"t-{number}", START + timedelta(days=number), tuple(messages))


def memory(name: str, *turns: str) -> dict[str, Any]:
    return {"id": name, "content": name, "sources": [{"turnId": turn} for turn in turns]}


def test_the_first_turn_of_a_memory_made_it_and_the_others_said_it_again() -> None:
    turns = [kept(1, "I am allergic to peanuts."), kept(2, "Thanks!"), kept(3, "I am allergic to peanuts.")]
    allergy = memory("m", "t-3", "t-1")
    first, small_talk, second = tell(turns, {"t-1": ["m"], "t-2": [], "t-3": ["m"]}, {"m": allergy})
    assert (first.made, first.confirmed) == ((allergy,), ())
    assert (small_talk.made, small_talk.confirmed) == ((), ())
    assert (second.made, second.confirmed) == ((), (allergy,))


def test_only_what_the_owner_said_is_told() -> None:
    (line,) = tell([kept(1, "one", "two")], {}, {})
    assert line.words == "one / two"


def test_a_secret_that_was_taken_out_is_seen() -> None:
    clean, redacted = tell([kept(1, "hello"), kept(2, "here it is:\n[REDACTED]")], {}, {})
    assert not clean.redacted
    assert redacted.redacted


def test_a_memory_that_was_forgotten_meanwhile_is_passed_over() -> None:
    (line,) = tell([kept(1, "hello")], {"t-1": ["gone"]}, {})
    assert line.made == line.confirmed == ()

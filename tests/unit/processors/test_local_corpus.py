"""Every conversation of `tests/corpus/conversations.jsonl` gives exactly what a note-taker would keep of it.

One line is one conversation: its language, the messages in order (`assistant: ` before those of the assistant), and the
facts, each with its slot ("user/home_city"). What a line does not name is as usual: confidence 0.95,
nothing taken back.
All is said on Saturday 2026-11-21 at ten in Lisbon.
"""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mnemostream.turns import Message, Role, Turn

from processors.extraction import ReadRequest
from processors.facts import Fact
from processors.local import read_locally
from processors.records import ContextMessage

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)
CORPUS = Path(__file__).parents[2] / "corpus" / "conversations.jsonl"
CONVERSATIONS: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
ASSISTANT = "assistant: "


def message(said: str) -> Message:
    role = Role.ASSISTANT if said.startswith(ASSISTANT) else Role.USER
    return Message(role, said.removeprefix(ASSISTANT))


def turn(number: int, said: str) -> Turn:
    return Turn(id=f"t{number}", app="a", owner="o", said_at=SAID, messages=(message(said),), time_zone="Europe/Lisbon")


def summary(fact: Fact) -> dict[str, Any]:
    found: dict[str, Any] = {"text": fact.text}
    found["slot"] = f"{fact.subject}/{fact.attribute}" if fact.attribute else fact.subject
    if fact.retracts:
        found["retracts"] = True
    if fact.confidence != 0.95:
        found["confidence"] = fact.confidence
    if fact.valid_from is not None:
        found["valid_from"] = fact.valid_from.isoformat()
    if fact.expires_at is not None:
        found["expires_at"] = fact.expires_at.isoformat()
    return found


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=[" / ".join(one["said"]) for one in CONVERSATIONS])
def test_a_conversation_gives_what_is_to_be_kept_and_nothing_else(conversation: dict[str, Any]) -> None:
    turns = tuple(turn(number, said) for number, said in enumerate(conversation["said"]))
    facts = read_locally(ReadRequest(turns=turns)).facts
    assert [summary(fact) for fact in facts] == conversation["facts"]


LAST_TURNS = [one for one in CONVERSATIONS if len(one["said"]) > 1]


@pytest.mark.parametrize("conversation", LAST_TURNS, ids=[" / ".join(one["said"]) for one in LAST_TURNS])
def test_the_last_message_means_the_same_when_it_is_read_alone(conversation: dict[str, Any]) -> None:
    *before, last = conversation["said"]
    context = tuple(ContextMessage(message(said).role, message(said).content) for said in before)
    facts = read_locally(ReadRequest(turns=(turn(0, last),), context=context)).facts
    expected = {fact["text"] for fact in conversation["facts"]}
    assert expected <= {fact.text for fact in facts}


def test_the_corpus_is_as_large_as_it_claims() -> None:
    languages = Counter(one["language"] for one in CONVERSATIONS)
    assert len(CONVERSATIONS) >= 500
    assert all(languages[code] >= 15 for code in ("en", "pt", "de", "zh", "ar", "es", "fr"))
    assert sum(not one["facts"] for one in CONVERSATIONS) >= 100

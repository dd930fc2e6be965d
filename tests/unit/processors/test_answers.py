"""From a model's answer to facts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Message, Role, Turn

from processors.answers import (
    Dropped,
    UnusableAnswer,
    attribute_of,
    duration_of,
    read_answer,
    strict_schema,
    subject_of,
)
from processors.extraction import ReadRequest
from processors.records import AppProfile

SAID = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
GOOD: dict[str, Any] = {
    "text": "The user lives in Lisbon.",
    "category": "identity",
    "importance": 8,
    "confidence": "explicit",
    "subject": "user",
    "attribute": "home_city",
    "messages": [0],
    "since": "",
    "expires_in": "",
}


def turn(*said: tuple[Role, str], recalled: tuple[str, ...] = ()) -> Turn:
    messages = tuple(Message(role, text) for role, text in said)
    return Turn(id="t", app="a", owner="o", said_at=SAID, messages=messages, recalled=recalled, time_zone="Asia/Tokyo")


def request(*turns: Turn, max_facts_per_turn: int = 5) -> ReadRequest:
    profile = AppProfile(categories=("hobby",))
    return ReadRequest(
        turns=turns or (turn((Role.USER, "I live in Lisbon")),), profile=profile, max_facts_per_turn=max_facts_per_turn
    )


def answer(*facts: Any) -> bytes:
    return msgspec.json.encode({"facts": facts})


def test_a_good_fact_is_taken_as_it_is() -> None:
    (fact,) = read_answer(answer(GOOD), request()).facts
    assert fact.text == "The user lives in Lisbon."
    assert (fact.confidence, fact.importance, fact.subject, fact.attribute) == (0.95, 8, "user", "home_city")
    assert (fact.turn, fact.messages, fact.role, fact.said_at) == (0, (0,), Role.USER, SAID)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"text": " . "}, Dropped.EMPTY_TEXT),
        ({"category": "nonsense"}, Dropped.UNKNOWN_CATEGORY),
        ({"importance": 0}, Dropped.IMPORTANCE_OUT_OF_RANGE),
        ({"importance": 11}, Dropped.IMPORTANCE_OUT_OF_RANGE),
        ({"confidence": "certain"}, Dropped.NOT_A_FACT),
        ({"messages": []}, Dropped.UNKNOWN_MESSAGE),
        ({"messages": [1]}, Dropped.UNKNOWN_MESSAGE),
        ({"messages": [-1]}, Dropped.UNKNOWN_MESSAGE),
        ({"since": "yesterday"}, Dropped.INVALID_DATE),
        ({"since": "2026-02-30"}, Dropped.INVALID_DATE),
        ({"expires_in": "soon"}, Dropped.INVALID_DURATION),
        ({"expires_in": "P9999Y"}, Dropped.INVALID_DURATION),
        ({"text": None}, Dropped.NOT_A_FACT),
    ],
)
def test_a_bad_fact_is_dropped_and_the_good_one_beside_it_kept(change: dict[str, Any], why: Dropped) -> None:
    read = read_answer(answer({**GOOD, **change}, GOOD), request())
    assert [fact.text for fact in read.facts] == [GOOD["text"]]
    assert read.dropped == {why: 1}


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "not_json"),
        (b"Sure!", "not_json"),
        (b'{"facts": [', "not_json"),
        (b"\xff", "not_json"),
        (b"[]", "no_list_of_facts"),
        (b"{}", "no_list_of_facts"),
        (b'{"facts": null}', "no_list_of_facts"),
        (b'{"facts": ["x"]}', "no_valid_fact"),
        (b'{"facts": [{}]}', "no_valid_fact"),
    ],
)
def test_an_answer_that_is_none_is_never_no_facts(content: bytes, rule: str) -> None:
    with pytest.raises(UnusableAnswer) as unusable:
        read_answer(content, request())
    assert unusable.value.rule == rule


def test_no_facts_is_an_answer() -> None:
    assert read_answer(answer(), request()).facts == ()


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner),
)


@given(VALUES)
def test_no_answer_whatever_raises_anything_else(value: Any) -> None:
    for shaped in (value, {"facts": value}, {"facts": [value]}, {"facts": [{**GOOD, "since": value}, GOOD]}):
        try:
            read = read_answer(msgspec.json.encode(shaped), request())
        except UnusableAnswer:
            continue
        assert all(fact.text for fact in read.facts)


def test_a_fact_belongs_to_the_last_turn_that_supports_it() -> None:
    turns = (turn((Role.USER, "a"), (Role.ASSISTANT, "b")), turn((Role.SYSTEM, "s"), (Role.ASSISTANT, "c")))
    (fact,) = read_answer(answer({**GOOD, "messages": [2, 0]}), request(*turns)).facts
    assert (fact.turn, fact.messages, fact.role) == (1, (1,), Role.ASSISTANT)


def test_a_date_is_a_day_of_the_speaker() -> None:
    (fact,) = read_answer(answer({**GOOD, "since": "2026-11-20", "expires_in": "7d"}), request()).facts
    assert fact.valid_from == datetime(2026, 11, 19, 15, tzinfo=UTC)  # midnight in Tokyo, nine hours ahead
    assert fact.expires_at == SAID + timedelta(days=7)


def test_the_strongest_facts_of_a_turn_are_kept_in_their_order() -> None:
    facts = [{**GOOD, "text": f"fact {n}", "importance": n} for n in (3, 9, 5, 7)]
    read = read_answer(answer(*facts), request(max_facts_per_turn=2))
    assert [fact.text for fact in read.facts] == ["fact 9", "fact 7"]
    assert read.dropped == {Dropped.TOO_MANY: 2}


def test_what_was_recalled_or_said_twice_is_left_out() -> None:
    turns = (turn((Role.USER, "a"), recalled=("Likes tea",)),)
    read = read_answer(
        answer(GOOD, {**GOOD, "text": "the user LIVES in lisbon"}, {**GOOD, "text": "likes tea."}), request(*turns)
    )
    assert [fact.text for fact in read.facts] == [GOOD["text"]]
    assert read.dropped == {Dropped.REPEATED: 1, Dropped.RECALLED: 1}


def test_names_of_slots_are_folded() -> None:
    assert [subject_of(name) for name in ("The User", "I", "User’s  Sister", " ")] == [
        "user",
        "user",
        "user's sister",
        None,
    ]
    assert [attribute_of(name) for name in ("Home City", "home-city!", "größe", "")] == [
        "home_city",
        "home_city",
        "grösse",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "days"),
    [("7d", 7), ("30 days", 30), ("P1W", 7), ("p1m", 30), ("P1Y2D", 367), ("PT36H", 1.5), ("P", None), ("0d", None),
     ("PT", None), ("-7d", None), ("P101Y", None), ("P99999999999999999999D", None), ("7", None)],
)  # fmt: skip
def test_durations_are_days_or_iso_8601(text: str, days: float | None) -> None:
    assert duration_of(text) == (None if days is None else timedelta(days=days))


def test_the_schema_is_strict_all_the_way_down() -> None:
    schema = strict_schema(("fact", "hobby"))
    assert schema["type"] == "object"
    for part in (schema, schema["$defs"]["FactAnswer"]):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])
    assert schema["$defs"]["FactAnswer"]["properties"]["category"]["enum"] == ["fact", "hobby"]


def test_an_answer_that_nests_without_end_is_none() -> None:
    with pytest.raises(UnusableAnswer):
        read_answer(b'{"facts":' + b"[" * 100_000, request())


def test_a_subject_holds_nothing_that_cannot_be_stored() -> None:
    (fact,) = read_answer(answer({**GOOD, "subject": "user\0's car", "attribute": "a\0b"}), request()).facts
    assert (fact.subject, fact.attribute) == ("user 's car", "a_b")

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
    read_answer,
    strict_schema,
    subject_of,
)
from processors.chunks import chunks
from processors.durations import duration_of
from processors.extraction import ReadRequest
from processors.records import AppProfile, Category

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
    "retracts": False,
}


def turn(
    *said: tuple[Role, str], recalled: tuple[str, ...] = (), zone: str = "Asia/Tokyo", said_at: datetime = SAID
) -> Turn:
    messages = tuple(Message(role, text) for role, text in said)
    return Turn(id="t", app="a", owner="o", said_at=said_at, messages=messages, recalled=recalled, time_zone=zone)


def request(*turns: Turn, max_facts_per_turn: int = 5) -> ReadRequest:
    profile = AppProfile(categories=(Category("hobby"),))
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
        ({"retracts": "perhaps"}, Dropped.NOT_A_FACT),
        ({"text": "The user's key is AKIAIOSFODNN7EXAMPLE"}, Dropped.SENSITIVE),
        ({"text": "The user's password is [REDACTED]."}, Dropped.SENSITIVE),
        ({"text": "🎉"}, Dropped.EMPTY_TEXT),
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


@pytest.mark.parametrize(
    "text", ["User likes green tea", "The user likes green tea!", "likes GREEN tea", "A user likes the green tea"]
)
def test_the_words_of_what_was_recalled_are_no_news_unless_a_user_says_them(text: str) -> None:
    recalled = ("The user likes green tea.",)
    asked = turn((Role.USER, "What shall I drink?"), (Role.ASSISTANT, "You like green tea!"), recalled=recalled)
    assert read_answer(answer({**GOOD, "text": text}), request(asked)).dropped == {Dropped.RECALLED: 1}
    said = turn((Role.USER, "I still like green tea"), recalled=("Likes the green tea.",))
    assert read_answer(answer({**GOOD, "text": "The user likes a green tea"}), request(said)).facts


def test_what_differs_from_what_was_recalled_is_news() -> None:
    asked = turn((Role.USER, "x"), recalled=("The user is 34 years old", "The user likes tea", "用户住在上海"))
    for text in ("The user is 35 years old", "The user does not like tea", "用户住在北京"):
        assert read_answer(answer({**GOOD, "text": text}), request(asked)).facts
    assert read_answer(answer({**GOOD, "text": "住在上海"}), request(asked)).dropped == {Dropped.RECALLED: 1}


def test_what_was_recalled_can_be_taken_back() -> None:
    asked = turn((Role.USER, "Forget that I like tea"), recalled=("The user likes tea.",))
    (fact,) = read_answer(answer({**GOOD, "text": "The user likes tea.", "retracts": True}), request(asked)).facts
    assert fact.retracts


def test_a_server_that_keeps_no_schema_may_leave_out_or_empty_what_says_nothing() -> None:
    lax = {name: GOOD[name] for name in ("text", "category", "importance", "confidence", "messages")}
    nothing = {"since": None, "expires_in": "none", "subject": None, "retracts": None}
    for item in (lax, {**lax, **nothing}, {**lax, "category": "Identity ", "importance": "8", "messages": ["0"]}):
        (fact,) = read_answer(answer(item), request()).facts
        assert (fact.valid_from, fact.expires_at, fact.retracts, fact.category) == (None, None, False, "identity")


def test_an_assistants_guess_is_no_fact_and_no_reason_to_ask_again() -> None:
    said = turn((Role.USER, "Any ideas?"), (Role.ASSISTANT, "You seem to like hiking. I am called Robo."))
    read = read_answer(answer({**GOOD, "messages": [1], "confidence": "strong"}), request(said))
    assert (read.facts, read.dropped) == ((), {Dropped.ASSISTANT_GUESS: 1})
    assert read_answer(answer({**GOOD, "messages": [0, 1], "confidence": "weak"}), request(said)).facts


def test_only_messages_of_the_chunk_that_was_shown_support_a_fact() -> None:
    asked = request(turn((Role.USER, "I live in Lisbon. " + "It is nice. " * 5), (Role.USER, "I work at Acme. " * 5)))
    first, *_, last = chunks(asked, 120).chunks
    assert read_answer(answer({**GOOD, "messages": [1]}), asked, last).facts
    with pytest.raises(UnusableAnswer, match="0 to 0"):
        read_answer(answer({**GOOD, "messages": [1]}), asked, first)


def test_what_nobody_sees_is_not_kept() -> None:
    (fact,) = read_answer(answer({**GOOD, "text": "Likes\u200b tea\u202e\n\0 and\x1b milk"}), request()).facts
    assert fact.text == "Likes tea and milk"


def test_names_of_slots_are_folded() -> None:
    assert [subject_of(name) for name in ("The User", "I", "User’s  Sister", " ")] == [
        "user",
        "user",
        "user's sister",
        None,
    ]
    assert [attribute_of(name) for name in ("Home City", "homeCity", "home-city!", "größe", "")] == [
        "home_city",
        "home_city",
        "home_city",
        "grösse",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "days"),
    [("7d", 7), ("30d", 30), ("90d", 90), (" 30 days ", 30), ("12h", 0.5), ("2w", 14), ("1 month", 30),
     ("P1W", 7), ("P2W", 14), ("p1m", 30), ("P1Y2D", 367), ("PT36H", 1.5), ("PT12H", 0.5), ("P0.5D", 0.5),
     ("PT1.5H", 1.5 / 24), ("PT1,5H", 1.5 / 24), ("P0.5Y", 182.5), ("PT31536000S", 365),
     ("P1Y2M10DT2H", 365 + 60 + 10 + 2 / 24), ("P1Y2M10DT2H30M", 435 + 2.5 / 24), ("P0000-00-10T12:00:00", 10.5),
     ("P00000010T120000", 10.5),
     ("P", None), ("0d", None), ("PT", None), ("P1DT", None), ("-7d", None), ("-P1D", None), ("P101Y", None),
     ("P0.5DT1H", None), ("P1.5Y2D", None), ("PT0S", None), ("P999999999Y", None), ("P99999999999999999999D", None),
     ("7", None), ("1H", 1 / 24), ("P1H", None), ("٧d", None), ("soon", None)],
)  # fmt: skip
def test_durations_are_days_or_iso_8601(text: str, days: float | None) -> None:
    assert duration_of(text) == (None if days is None else timedelta(days=days))


@pytest.mark.parametrize(
    ("zone", "since", "moment"),
    [
        ("Europe/Lisbon", "2026-03-29", "2026-03-29T00:00:00"),  # the clocks change at 1:00, after midnight
        ("Europe/Lisbon", "2026-03-30", "2026-03-29T23:00:00"),
        ("Europe/Lisbon", "2026-03-29T12:00", "2026-03-29T11:00:00"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00"),  # that day began at 1:00 there, two hours behind
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00"),  # midnight comes twice: the first
        ("Asia/Kathmandu", "2026-11-20", "2026-11-19T18:15:00"),
        ("Pacific/Kiritimati", "2026-11-20", "2026-11-19T10:00:00"),
        ("no such zone", "2026-11-20", "2026-11-20T00:00:00"),
        ("Asia/Tokyo", "2019", "2018-12-31T15:00:00"),
        ("Asia/Tokyo", "2026-05", "2026-04-30T15:00:00"),
        ("Asia/Tokyo", "2026-11-20T09:00:00+01:00", "2026-11-20T08:00:00"),
        ("Asia/Tokyo", "2026-11-20T09:00:00Z", "2026-11-20T09:00:00"),
    ],
)
def test_a_date_is_the_first_moment_of_it_where_the_speaker_is(zone: str, since: str, moment: str) -> None:
    asked = request(turn((Role.USER, "x"), zone=zone))
    (fact,) = read_answer(answer({**GOOD, "since": since}), asked).facts
    assert fact.valid_from == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "since", ["0001-01-01", "9999-12-31T23:59-10:00", "2026-13", "0000", "last Friday", "11/20/2026"]
)
def test_a_date_that_is_none_or_leaves_the_calendar_drops_its_fact(since: str) -> None:
    read = read_answer(answer({**GOOD, "since": since}, {**GOOD, "text": "Likes tea"}), request())
    assert [fact.text for fact in read.facts] == ["Likes tea"]
    assert read.dropped == {Dropped.INVALID_DATE: 1}


def test_an_end_beyond_the_calendar_drops_its_fact() -> None:
    late = request(turn((Role.USER, "x"), said_at=datetime(9999, 12, 1, tzinfo=UTC)))
    read = read_answer(answer({**GOOD, "expires_in": "90d"}, {**GOOD, "text": "Likes tea"}), late)
    assert read.dropped == {Dropped.INVALID_DURATION: 1}


def test_a_text_is_cut_between_characters_in_any_script() -> None:
    for letter in ("日", "é\u0301", "👩\u200d👩\u200d👧", "🇵🇹", "क्षि", "각", "ت"):
        (fact,) = read_answer(answer({**GOOD, "text": "Name: " + letter * 300}), request()).facts
        assert len(fact.text.encode()) <= 500
        assert fact.text.removeprefix("Name: ").removesuffix("…").replace(letter, "") == ""


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

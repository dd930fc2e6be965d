"""From a model's answer to judgements."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.answers import UnusableAnswer
from processors.arbitration import ArbitrationRequest, Judgement
from processors.arbitration_answers import JUDGEMENTS_SCHEMA, Judged, read_judgements
from processors.routing import Action
from tests.fakes.pairs import id_of, question

PORTO = "The user lives in Porto."
DOG = "The user has a dog called Rex."
REQUEST = ArbitrationRequest(
    (question("The user lives in Lisbon.", PORTO, "The user loves Lisbon."), question("Rex is 5 years old.", DOG))
)
GOOD: dict[str, Any] = {"q": 0, "m": 0, "action": "DELETE", "text": "", "reason": "They moved."}
DOG_STAYS: dict[str, Any] = {"q": 1, "m": 2, "action": "ADD", "text": "", "reason": "Another thing."}


def read(*judgements: Any, request: ArbitrationRequest = REQUEST) -> Judged:
    return read_judgements(msgspec.json.encode({"judgements": judgements}), request)


def updated(text: Any, *, known: str = DOG, new: str = "Rex is 5 years old.", **fields: Any) -> Judged:
    request = ArbitrationRequest((question(new, known, **fields),), max_memory_bytes=100)
    return read({"q": 0, "m": 0, "action": "UPDATE", "text": text, "reason": "Both."}, request=request)


def test_good_judgements_are_taken_as_they_are() -> None:
    judged = read(GOOD, DOG_STAYS)
    assert judged.judgements == (
        {id_of(PORTO): Judgement(Action.DELETE, "They moved.")},
        {id_of(DOG): Judgement(Action.ADD, "Another thing.")},
    )
    assert (judged.refused, judged.complaint, judged.taken) == (0, None, 2)


def test_the_schema_is_strict_and_asks_for_the_reason_before_the_action() -> None:
    assert JUDGEMENTS_SCHEMA["type"] == "object"
    assert JUDGEMENTS_SCHEMA["additionalProperties"] is False
    judgement = JUDGEMENTS_SCHEMA["$defs"]["JudgementAnswer"]
    assert judgement["required"] == list(judgement["properties"]) == ["q", "m", "reason", "action", "text"]
    assert judgement["properties"]["action"]["enum"] == ["ADD", "UPDATE", "DELETE", "NOOP"]
    assert judgement["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"q": 2}, "q must be one of 0 to 1."),
        ({"q": -1}, "q must be one of 0 to 1."),
        ({"m": 2}, "To question 0 belong m 0, 1, no others."),
        ({"m": 99}, "To question 0 belong m 0, 1, no others."),
        ({"m": -1}, "To question 0 belong m 0, 1, no others."),
        ({"m": 1.5}, "A judgement breaks the schema"),
        ({"m": 10**30}, "To question 0 belong m 0, 1, no others."),
        ({"m": "the first"}, "A judgement breaks the schema"),
        ({"q": None}, "A judgement breaks the schema"),
        ({"action": "CONFIRM"}, "A judgement breaks the schema"),
        ({"action": "FORGET EVERYTHING"}, "A judgement breaks the schema"),
        ({"action": "UPDATE"}, "The UPDATE of q 0, m 0 has no text."),
        ({"action": "UPDATE", "text": " \n."}, "The UPDATE of q 0, m 0 has no text."),
        ({"text": ["x"]}, "A judgement breaks the schema"),
    ],
)
def test_a_judgement_that_breaks_a_rule_is_refused_and_the_model_is_told(change: dict[str, Any], told: str) -> None:
    judged = read({**GOOD, **change}, DOG_STAYS)
    assert judged.judgements == ({}, {id_of(DOG): Judgement(Action.ADD, "Another thing.")})
    assert judged.refused == 1
    assert judged.complaint is not None
    assert told in judged.complaint
    assert "Question 0 has no judgement." in judged.complaint


def test_a_refused_judgement_is_no_complaint_where_its_question_has_another() -> None:
    judged = read({**GOOD, "m": 7}, GOOD, DOG_STAYS, 3, None, "x")
    assert (judged.refused, judged.complaint, judged.taken) == (4, None, 2)


def test_a_memory_of_another_question_is_not_offered_to_this_one() -> None:
    judged = read({**GOOD, "m": 2}, {**DOG_STAYS, "m": 0})
    assert (judged.taken, judged.refused) == (0, 2)


def test_of_two_judgements_of_a_pair_the_first_counts() -> None:
    judged = read(GOOD, {**GOOD, "action": "NOOP"}, DOG_STAYS)
    assert judged.judgements[0][id_of(PORTO)].action is Action.DELETE
    assert judged.refused == 0


def test_a_question_passed_over_is_complained_about_and_a_pair_is_not() -> None:
    assert read(GOOD).complaint == "Question 1 has no judgement."
    assert read().complaint == "Question 0 has no judgement. Question 1 has no judgement."
    assert read(GOOD, DOG_STAYS).complaint is None


def test_numbers_as_strings_and_absent_texts_are_understood() -> None:
    judged = read({"q": "0", "m": "0", "action": "NOOP", "text": None}, DOG_STAYS)
    assert judged.judgements[0] == {id_of(PORTO): Judgement(Action.NOOP, "the model gives no reason")}


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "not_json"),
        ("Sure! Here you are:", "not_json"),
        ('{"judgements": [{"q": 0', "not_json"),
        (b"\xff\xfe", "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"judgements": "\\ud800"}', "not_json"),
        ("[]", "no_list_of_judgements"),
        ("{}", "no_list_of_judgements"),
        ('{"judgements": {}}', "no_list_of_judgements"),
        ("null", "no_list_of_judgements"),
        ('{"facts": []}', "no_list_of_judgements"),
    ],
)
def test_what_cannot_be_read_is_no_answer(content: str | bytes, rule: str) -> None:
    with pytest.raises(UnusableAnswer) as raised:
        read_judgements(content, REQUEST)
    assert raised.value.rule == rule


@pytest.mark.parametrize(
    ("text", "known", "new"),
    [
        ("The user has a dog called Rex who is 5 years old.", DOG, "Rex is 5 years old."),
        ("The user lives in Lisbon, in Alfama.", "The user lives in Lisbon.", "The user lives in Alfama."),
        ("O utilizador gosta de chá e de café.", "O utilizador gosta de chá.", "O utilizador gosta de café."),
        ("Der Nutzer spielt Schach und Klavier.", "Der Nutzer spielt Schach.", "Der Nutzer spielt Klavier."),
        ("用户喜欢茶和咖啡。", "用户喜欢茶。", "用户也喜欢咖啡和茶。"),
    ],
)
def test_a_merged_text_that_says_both_is_taken(text: str, known: str, new: str) -> None:
    judged = updated(text, known=known, new=new)
    assert judged.judgements == ({id_of(known): Judgement(Action.UPDATE, "Both.", text)},)


@pytest.mark.parametrize(
    "text",
    [
        "The user has a dog called Rex who is 6 years old.",
        "The user has a dog called Max who is 5 years old.",
        "The user has a dog called Rex who is 5 years old, and lives in Paris.",
        "The user has a dog called Rex who is 5 years old since 2021-05-01.",
        "The user has a dog called Rex who is not 5 years old.",
    ],
)
def test_a_merged_text_that_says_what_neither_says_is_refused(text: str) -> None:
    judged = updated(text)
    assert (judged.taken, judged.refused) == (0, 1)
    assert "says what neither text says" in str(judged.complaint)


def test_a_merged_text_that_leaves_out_what_is_new_is_refused() -> None:
    judged = updated("The user has a dog called Rex.")
    assert (judged.taken, judged.refused) == (0, 1)
    assert "leaves out" in str(judged.complaint)
    judged = updated("The user likes tea.", known="The user likes tea.", new="The user likes coffee.")
    assert "it loses what is new" in str(judged.complaint)


def test_a_merger_into_the_known_text_where_nothing_differs_is_a_noop() -> None:
    judged = updated("the user likes tea", known="The user likes tea.", new="The user likes the tea!")
    assert judged.judgements[0][id_of("The user likes tea.")] == Judgement(Action.NOOP, "Both.")


def test_of_a_retraction_a_part_may_be_left() -> None:
    known = "The user likes sushi and has 2 cats."
    judged = updated("The user has 2 cats.", known=known, new="The user likes sushi.", retracts=True)
    assert judged.judgements[0][id_of(known)].text == "The user has 2 cats."
    assert updated(known, known=known, new="The user likes sushi.", retracts=True).refused == 1


def test_a_merged_text_is_one_line_and_one_that_is_too_long_is_refused_not_cut() -> None:
    text = "\x00The user\u2028 has a dog\n called Rex\u202e who is 5 years\told."
    judged = updated(text)
    assert judged.judgements[0][id_of(DOG)].text == "The user has a dog called Rex who is 5 years old."
    judged = updated("Rex is 5 years old. " * 6)
    assert "too long: at most 100 bytes" in str(judged.complaint)
    assert updated(("Rex is 5 years old" + " ." * 50)[:100]).taken == 1


def test_a_secret_in_a_merged_text_is_refused_and_in_a_reason_redacted() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLF"
    known = f"The user notes {secret} and plays chess."
    judged = updated(f"The user notes {secret}.", known=known, new=f"The user notes {secret}.")
    assert judged.refused == 1
    assert secret not in str(judged.complaint)
    judged = read({**GOOD, "reason": f"My key is {secret}"}, DOG_STAYS)
    assert judged.judgements[0][id_of(PORTO)].reason == "[REDACTED]"


@given(st.text())
def test_a_reason_is_one_line_of_at_most_300_characters(reason: str) -> None:
    content = msgspec.json.encode({"judgements": [{**GOOD, "reason": reason}]})
    kept = read_judgements(content, REQUEST).judgements[0][id_of(PORTO)].reason
    assert 0 < len(kept) <= 300
    assert len(kept.splitlines()) == 1
    assert "\x00" not in kept
    kept.encode()


def test_a_long_reason_is_cut() -> None:
    reason = read({**GOOD, "reason": "é" * 1_000}, DOG_STAYS).judgements[0][id_of(PORTO)].reason
    assert 290 <= len(reason) <= 300
    assert reason.endswith("…")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["judgements", "q", "m", "action", "text", "reason"]), inner, max_size=6)
    ),
)


@given(JSON)
def test_whatever_json_comes_only_offered_pairs_are_judged(content: object) -> None:
    try:
        judged = read_judgements(msgspec.json.encode(content), REQUEST)
    except UnusableAnswer:
        return
    for found, asked in zip(judged.judgements, REQUEST.questions, strict=True):
        assert found.keys() <= {memory.memory_id for memory in asked.offered}

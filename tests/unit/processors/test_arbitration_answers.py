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


@pytest.mark.parametrize(
    ("known", "new", "merged"),
    [
        ("is 34 years old", "is 35 years old", "is 35 years old"),
        ("has a budget of 500 dollars", "has a budget of 5,000 dollars", "has a budget of 5,000 dollars"),
        ("takes 5 mg of aspirin since 2019", "takes 10 mg of aspirin", "takes 10 mg of aspirin since 2019"),
        ("lives in Porto", "lives in Lisbon", "lives in Lisbon"),
        ("works at Acme", "moved to Globex and works at Globex", "works at Globex"),
        ("is not allergic to penicillin", "has asthma", "is not allergic to penicillin and has asthma"),
        ("has 2 cats", "has 3 dogs", "has 2 cats and 3 dogs"),
        ("has 2 cats", "has 3 cats", "has 3 cats"),
        ("is allergic to nuts", "is not allergic to milk", "is allergic to nuts but not to milk"),
        ("is allergic to nuts", "is not allergic to milk", "is allergic to nuts and not allergic to milk"),
        ("does not have a dog", "has a dog called Rex", "has a dog called Rex"),
        ("does not like tea", "likes coffee", "likes coffee but does not like tea"),
        ("does not like tea", "likes coffee", "likes coffee but not tea"),
        ("has a meeting on Tuesday at 10", "has a meeting on Thursday at 10", "has a meeting on Thursday at 10"),
        ("weighs 70 kg", "weighs 154 lb", "weighs 154 lb"),
        ("is 34 years old", "has 2 cats", "has 2 cats and is 34 years old"),
        ("is 34 years old", "has 2 cats", "is 34 years old and has 2 cats"),
        ("plays chess", "plays chess on Mondays", "plays chess on Mondays"),
        ("earns $5,000", "earns $6,000", "earns $6,000"),
        ("lives in New York", "lives in Los Angeles", "lives in Los Angeles"),
        ("works at Acme as a nurse", "works at Acme in Porto", "works at Acme in Porto as a nurse"),
        ("does not eat meat", "does not eat fish", "does not eat meat or fish"),
        ("is 34 years old", "is 35", "is 35 years old"),
        ("ran 10 km in 50 minutes", "likes running", "likes running and ran 10 km in 50 minutes"),
        ("has a son called Tom", "has a daughter called Eva", "has a son called Tom and a daughter called Eva"),
        ("pays 900 euros of rent", "pays 950 euros of rent", "pays 950 euros of rent"),
        ("is vegan", "is not vegan", "is not vegan"),
        ("is not vegan", "is vegetarian", "is vegetarian but not vegan"),
        ("wakes up at 7:00", "wakes up at 6:30", "wakes up at 6:30"),
        ("no longer lives in Porto", "lives in Lisbon", "lives in Lisbon and no longer in Porto"),
        ("has no cats", "has 2 dogs", "has 2 dogs and no cats"),
    ],
)
def test_a_merged_text_may_put_the_new_in_the_place_of_the_known(known: str, new: str, merged: str) -> None:
    assert updated(f"The user {merged}.", known=f"The user {known}.", new=f"The user {new}.").taken == 1


@pytest.mark.parametrize(
    ("known", "new", "merged"),
    [
        ("takes 5 mg of aspirin since 2019", "takes aspirin", "takes aspirin"),
        ("takes 5 mg of aspirin since 2019", "takes aspirin at night", "takes aspirin at night"),
        ("takes 5 mg of aspirin since 2019", "takes 10 mg of aspirin", "takes 10 mg of aspirin"),
        ("is not allergic to penicillin", "has asthma", "is allergic to penicillin and has asthma"),
        ("has asthma", "is not allergic to penicillin", "is allergic to penicillin and has asthma"),
        ("has 2 cats", "has 3 dogs", "has 3 cats and 2 dogs"),
        ("is not allergic to penicillin", "has asthma", "has asthma"),
        ("is 34 years old", "has 3 cats", "has 3 cats"),
        ("is 34", "is 5 feet tall", "is 5 feet tall"),
        ("works at Acme", "lives in Lisbon", "lives in Lisbon"),
        ("was born in Porto", "lives in Lisbon", "lives in Lisbon"),
        ("lives in Porto and works in Braga", "lives in Lisbon", "lives in Lisbon"),
        ("weighs 70 kg and has 2 cats", "has 3 cats", "has 3 cats"),
        ("has a sister called Ana", "has a brother called Ben", "has a brother called Ana and a sister called Ben"),
        ("has a meeting at 10:00 with Ana", "has a meeting with Ana about taxes", "has a meeting with Ana about taxes"),
        ("cannot eat gluten", "likes bread", "can eat gluten and likes bread"),
        ("has 3 sons and 1 daughter", "has 2 cats", "has 1 son and 3 daughters and 2 cats"),
        ("ran 10 km in 50 minutes", "likes running", "ran 50 km in 10 minutes and likes running"),
        ("has a son called Tom", "has a daughter called Eva", "has a daughter called Eva"),
        ("is vegan", "is not vegan", "is vegan"),
        ("is not vegan", "is vegetarian", "is vegetarian and vegan"),
        ("drinks 2 coffees a day", "drinks 3 coffees", "drinks 3 coffees"),
        ("dislikes tea", "has a dog", "likes tea and has a dog"),
        ("is allergic to nuts", "is not allergic to milk", "is not allergic to nuts and is allergic to milk"),
        ("does not eat meat or fish", "has a dog", "eats fish and has a dog"),
        ("does not eat meat or fish", "has a dog", "eats meat and has a dog"),
        ("takes 5 mg of aspirin", "takes 10 mg of ibuprofen", "takes 10 mg of aspirin and 5 mg of ibuprofen"),
        ("never smokes", "drinks wine", "smokes and drinks wine"),
        ("is unable to swim", "has a dog", "is able to swim and has a dog"),
        ("likes tea", "does not like coffee", "likes coffee and does not like tea"),
        ("has two cats", "has three dogs", "has three cats and two dogs"),
        ("moved to Porto in 2019", "works at Acme", "lives in Porto and works at Acme"),
    ],
)
def test_a_merged_text_that_loses_or_turns_round_what_was_known_is_refused(known: str, new: str, merged: str) -> None:
    judged = updated(f"The user {merged}.", known=f"The user {known}.", new=f"The user {new}.")
    assert (judged.taken, judged.refused) == (0, 1)


@pytest.mark.parametrize(
    ("known", "new", "merged", "taken"),
    [
        ("Rex is 5 and Max is 7.", "Max likes fish.", "Rex is 7 and Max is 5 and likes fish.", 0),
        ("Rex is 5 and Max is 7.", "Max is 8.", "Rex is 5 and Max is 8.", 1),
        ("Der Nutzer mag Tee nicht.", "Der Nutzer hat einen Hund.", "Der Nutzer mag Tee und hat einen Hund.", 0),
        ("Der Nutzer mag Tee nicht.", "Der Nutzer hat einen Hund.", "Der Nutzer mag Tee nicht und hat einen Hund.", 1),
        ("O usuário não come carne.", "O usuário tem um cão.", "O usuário come carne e tem um cão.", 0),
        ("O usuário não come carne.", "O usuário tem um cão.", "O usuário não come carne e tem um cão.", 1),
        ("O usuário mora no Porto.", "O usuário tem um cão.", "O usuário mora no Porto e tem um cão.", 1),
        ("用户对牛奶不过敏。", "用户有哮喘。", "用户对牛奶过敏，有哮喘。", 0),
        ("用户对牛奶不过敏。", "用户对坚果过敏。", "用户对坚果过敏，对牛奶不过敏。", 1),
        ("用户34岁。", "用户35岁。", "用户35岁。", 1),
        ("المستخدم لا يحب الشاي.", "المستخدم يحب القهوة.", "المستخدم يحب القهوة ولا يحب الشاي.", 1),
    ],
)
def test_what_was_known_is_kept_in_every_language(known: str, new: str, merged: str, taken: int) -> None:
    assert updated(merged, known=known, new=new).taken == taken


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

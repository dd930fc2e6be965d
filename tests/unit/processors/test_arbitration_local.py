"""Judging pairs by slot and guards alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.arbitration import Judgement
from processors.local_arbitration import holds_several, judge
from processors.routing import Action
from tests.fakes.pairs import id_of, question

ADD, UPDATE, DELETE, NOOP = Action.ADD, Action.UPDATE, Action.DELETE, Action.NOOP


def judged(
    known: str, new: str, attribute: str | None = None, *, live: bool = True, retracts: bool = False
) -> Judgement:
    asked = question(new, known, attribute=attribute, live=live, retracts=retracts)
    return judge(asked)[id_of(known)]


@pytest.mark.parametrize(
    ("attribute", "known", "new", "action"),
    [
        ("home_city", "The user lives in Porto.", "The user lives in Lisbon.", DELETE),
        ("home_city", "The user lives in Lisbon.", "The user lives in lisbon!", NOOP),
        ("home_city", "The user lives in Lisbon.", "The user lives in Lisbon, Portugal.", UPDATE),
        ("home_city", "The user lives in Lisbon, Portugal.", "The user lives in Lisbon.", NOOP),
        ("age", "The user is 34 years old.", "The user is 35 years old.", DELETE),
        ("job_title", "The user works as a nurse.", "The user works as a pilot.", DELETE),
        ("job_title", "The user works as a nurse.", "The user is a pilot.", DELETE),
        ("wedding_date", "The wedding is on 2026-05-01.", "The wedding is on 2026-06-01.", DELETE),
        ("allergy_peanuts", "The user is allergic to peanuts.", "The user is not allergic to peanuts.", DELETE),
        ("home_city", "O utilizador mora em Lisboa.", "O utilizador mora no Porto.", DELETE),
        ("home_city", "Der Nutzer wohnt in Berlin.", "Der Nutzer wohnt in Köln.", DELETE),
        ("home_city", "用户住在北京。", "用户住在上海。", DELETE),
        ("home_city", "يعيش المستخدم في القاهرة", "يعيش المستخدم في الإسكندرية", DELETE),
        ("favorite_food", "The user's favourite food is 🍣", "The user's favourite food is 🍕", DELETE),
    ],
)
def test_one_slot_has_one_value_and_the_newer_replaces_the_older(
    attribute: str, known: str, new: str, action: Action
) -> None:
    assert judged(known, new, attribute).action is action


@pytest.mark.parametrize(
    ("known", "new", "action"),
    [
        ("The user lives in Porto.", "The user no longer lives in Porto.", DELETE),
        ("The user's home is Porto.", "The user no longer lives in Porto.", DELETE),
        ("The user lives in Porto, Portugal.", "The user does not live in Porto.", DELETE),
        ("The user lives in Lisbon.", "The user no longer lives in Porto.", ADD),
        ("The user lives in Lisbon.", "The user used to live in Porto.", ADD),
        ("The user lives in Lisbon.", "The user lived in Porto.", ADD),
        ("The user lives in Lisbon.", "The user now lives in Porto.", DELETE),
        ("The user no longer lives in Porto.", "The user lives in Lisbon.", DELETE),
        ("The user no longer lives in Porto.", "The user lives in Porto.", DELETE),
    ],
)
def test_a_denial_hits_what_it_denies_and_nothing_else(known: str, new: str, action: Action) -> None:
    assert judged(known, new, "home_city").action is action


@pytest.mark.parametrize(
    ("attribute", "known", "new", "action"),
    [
        ("birthplace", "The user comes from Porto.", "The user was born in Lisbon.", DELETE),
        ("employer", "The user works at Acme.", "The user was hired by Globex.", DELETE),
        ("job_title", "The user is a pilot.", "The user was a nurse.", ADD),
        ("job_title", "The user is a nurse.", "The user was a nurse.", DELETE),
        ("commute", "The user drives to work.", "The user used a bike to get to work.", DELETE),
    ],
)
def test_a_past_form_is_not_always_about_what_was(attribute: str, known: str, new: str, action: Action) -> None:
    assert judged(known, new, attribute).action is action


@pytest.mark.parametrize(
    ("attribute", "known", "new", "action"),
    [
        ("hobby", "The user likes hiking.", "The user likes chess.", ADD),
        ("hobby", "The user likes hiking.", "The user likes hiking!", NOOP),
        ("hobby", "The user likes hiking.", "The user does not like hiking.", DELETE),
        ("hobby", "The user likes hiking.", "The user no longer likes hiking.", DELETE),
        ("hobby", "The user likes hiking.", "The user does not like chess.", ADD),
        ("languages", "The user speaks Greek.", "The user speaks Turkish.", ADD),
        ("pets", "The user has a dog.", "The user has a cat.", ADD),
        ("pets", "The user has no pets.", "The user has a dog.", DELETE),
        ("pets", "The user has a dog called Rex.", "The user has no pets.", DELETE),
        ("allergies", "The user has no allergies.", "The user is allergic to nuts.", DELETE),
        ("likes", "The user likes apples.", "The user likes apple pie.", ADD),
        ("children", "The user has a son called Tom.", "The user has a daughter called Ana.", ADD),
    ],
)
def test_of_some_attributes_there_can_be_several(attribute: str, known: str, new: str, action: Action) -> None:
    assert holds_several(attribute)
    assert judged(known, new, attribute).action is action


@pytest.mark.parametrize(
    ("known", "new", "action"),
    [
        ("The user has a dog.", "The user has a dog", NOOP),
        ("The user has a dog.", "The user has a small brown dog.", UPDATE),
        ("The user has a small brown dog.", "The user has a dog.", NOOP),
        ("The user is allergic to peanuts.", "The user is not allergic to peanuts.", DELETE),
        ("The user is allergic to peanuts.", "The user is not allergic to shellfish.", ADD),
        ("The user smokes.", "The user no longer smokes.", DELETE),
        ("The user smokes.", "The user stopped smoking.", DELETE),
        ("The user likes cats.", "The user likes dogs.", ADD),
        ("The user has 2 cats.", "The user has 3 cats.", ADD),
        ("The user met Ana.", "The user met Maria.", ADD),
        ("O utilizador come carne.", "O utilizador não come carne.", DELETE),
        ("Der Nutzer raucht.", "Der Nutzer raucht nicht.", DELETE),
        ("用户喜欢咖啡。", "用户不喜欢咖啡。", DELETE),
        ("المستخدم يعيش في القاهرة", "المستخدم لا يعيش في القاهرة", DELETE),
        ("The user loves 🍣", "The user loves 🍕", ADD),
    ],
)
def test_without_a_slot_only_the_contrary_in_the_same_words_replaces(known: str, new: str, action: Action) -> None:
    assert judged(known, new).action is action


@pytest.mark.parametrize("attribute", [None, "home_city"])
def test_what_is_known_from_before_comes_back_only_where_it_is_said_again(attribute: str | None) -> None:
    assert judged("The user lives in Porto.", "The user lives in Porto", attribute, live=False).action is NOOP
    assert judged("The user lives in Porto.", "The user lives in Lisbon.", attribute, live=False).action is ADD
    assert judged("The user lives in Porto.", "The user does not live in Porto.", attribute, live=False).action is ADD


@pytest.mark.parametrize(
    ("attribute", "known", "taken_back", "action"),
    [
        ("job_title", "The user works as a nurse.", "The user's job.", DELETE),
        ("home_city", "The user lives in Berlin.", "The user lives in Berlin.", DELETE),
        ("home_city", "The user lives in Lisbon.", "The user lives in Berlin.", ADD),
        (None, "The user lives in Berlin.", "Berlin", DELETE),
        (None, "Ana is the user's sister.", "The user's sister.", DELETE),
        (None, "The user's sister is called Ana.", "The user's dog.", ADD),
        (None, "The user likes sushi.", "The user likes ramen.", ADD),
        (None, "The user does not like sushi.", "The user likes sushi.", ADD),
        (None, "The user lives in Berlin.", "Where the user lives.", DELETE),
        (None, "The user has a dog called Rex.", "The user's dog.", DELETE),
        (None, "The user lives in Berlin.", "The user.", ADD),
        (None, "The user lives in Berlin.", "", ADD),
        (None, "用户住在北京。", "用户", ADD),
        (None, "用户住在北京。", "北京", DELETE),
    ],
)
def test_what_is_taken_back_has_the_slot_or_all_of_the_words(
    attribute: str | None, known: str, taken_back: str, action: Action
) -> None:
    assert judged(known, taken_back, attribute, retracts=True).action is action
    assert judged(known, taken_back, attribute, retracts=True, live=False).action is action


def test_every_memory_that_is_offered_is_judged_with_a_reason() -> None:
    asked = question("The user lives in Lisbon.", "The user lives in Porto.", "The user lives in Lisbon.")
    answer = judge(asked)
    assert answer.keys() == {memory.memory_id for memory in asked.offered}
    assert all(0 < len(judgement.reason) <= 300 for judgement in answer.values())


def test_the_reason_names_the_slot() -> None:
    reason = judged("The user lives in Porto.", "The user lives in Lisbon.", "home_city").reason
    assert reason == "the newer statement about user's home city replaces it"
    asked = question("The user lives in Lisbon.", "The user lives in Porto.", same_slot=True)
    (judgement,) = judge(asked).values()
    assert judgement == Judgement(DELETE, "the newer statement about the same subject and attribute replaces it")


def test_nothing_is_merged_by_rules() -> None:
    new = "The user lives in Lisbon, Portugal."
    assert judged("The user lives in Lisbon.", new, "home_city").text == new


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from([None, "home_city", "hobby"]), st.booleans())
def test_any_two_texts_are_judged_and_an_equal_one_is_known(
    known: str, new: str, attribute: str | None, retracts: bool
) -> None:
    assert judged(known, new, attribute, retracts=retracts).action in (ADD, UPDATE, DELETE, NOOP)
    assert judged(known, known, attribute).action is NOOP

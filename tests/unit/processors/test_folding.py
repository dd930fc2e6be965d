"""Facts that say the same, made one."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from mnemostream.turns import Role

from processors.facts import Fact
from processors.folding import folded, folded_by_vectors
from processors.vectors import Vector

SAID = datetime(2026, 11, 21, tzinfo=UTC)
ALMOST = (np.array([1, 0], np.float32), np.array([0.9987, 0.05], np.float32))  # a cosine of 0.9987


def fact(text: str, **changes: Any) -> Fact:
    plain = Fact(turn=0, text=text, category="fact", importance=5, confidence=0.8, role=Role.USER, said_at=SAID)
    return msgspec.structs.replace(plain, **changes)


def by_vectors(first: Fact, second: Fact, vectors: tuple[Vector, Vector] = ALMOST) -> list[Fact]:
    return folded_by_vectors([first, second], vectors, 0.95)[0]


def test_the_stronger_of_two_stays_with_the_messages_of_both() -> None:
    weak = fact("The user lives in Lisbon.", messages=(2,), attribute="home_city", subject="user")
    strong = fact("the user LIVES in lisbon", messages=(0,), confidence=0.95)
    kept, into_others = folded([weak, fact("Other"), strong])
    assert into_others == 1
    assert [each.text for each in kept] == ["the user LIVES in lisbon", "Other"]
    assert (kept[0].messages, kept[0].attribute, kept[0].confidence) == ((0, 2), "home_city", 0.95)


def test_the_same_in_two_turns_or_taken_back_is_not_the_same() -> None:
    facts = [fact("Likes tea"), fact("Likes tea", turn=1), fact("Likes tea", retracts=True)]
    assert folded(facts) == (facts, 0)


def test_near_duplicates_fold_where_the_guards_agree() -> None:
    [one] = by_vectors(fact("The user doesn't eat meat.", messages=(0,)), fact("User does not eat meat", messages=(1,)))
    assert one.messages == (0, 1)


def test_what_differs_in_a_number_a_name_or_a_negation_stays_two() -> None:
    for first, second in (
        ("The user is 34 years old.", "The user is 35 years old."),
        ("The user is allergic to nuts.", "The user is not allergic to nuts."),
        ("The user's sister is called Ana.", "The user's sister is called Eva."),
    ):
        assert len(by_vectors(fact(first), fact(second))) == 2


def test_below_the_threshold_about_another_or_since_another_time_nothing_folds() -> None:
    apart = (np.array([1, 0], np.float32), np.array([0.9, 0.436], np.float32))
    text = "The user's sister lives in Lisbon."
    assert len(by_vectors(fact(text), fact(text), apart)) == 2
    assert len(by_vectors(fact(text, subject="user"), fact(text, subject="user's sister"))) == 2
    later = datetime(2026, 1, 1, tzinfo=UTC)
    assert len(by_vectors(fact(text, valid_from=SAID), fact(text, valid_from=later))) == 2
    assert len(by_vectors(fact(text), fact(text, turn=1))) == 2


def test_each_fact_keeps_the_vector_of_its_text() -> None:
    weak, strong = fact("User doesn't eat meat."), fact("User does not eat meat.", importance=9)
    kept, vectors, into_others = folded_by_vectors([weak, strong], ALMOST, 0.95)
    assert into_others == 1
    assert kept[0].text == strong.text
    assert vectors[0] is ALMOST[1]

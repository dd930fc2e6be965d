"""What the scripted model says, and how a text scripts it."""

import json

import numpy as np
import pytest

from cli.dev.scripted_answers import scripted_answer, scripted_facts, scripted_judgements, scripted_vector
from processors.arbitration import ArbitrationRequest, Question
from processors.arbitration_answers import read_judgements
from processors.arbitration_prompts import render
from processors.routing import Action
from tests.fakes.pairs import id_of, question

PORTO = "The user lives in Porto."
LISBON = "The user lives in Lisbon."


def prompts(*questions: Question) -> list[str]:
    prompt = render(ArbitrationRequest(questions), instructions="Judge.", nonce="0a1b2c3d")
    return [prompt.system, prompt.user]


def actions(*questions: Question) -> list[tuple[int, int, str, str]]:
    return [(given.q, given.m, given.action, given.text) for given in scripted_judgements(prompts(*questions))]


def cosine(one: str, other: str, dimensions: int = 384) -> float:
    first, second = (np.frombuffer(scripted_vector(text, dimensions), "<f4") for text in (one, other))
    assert abs(float(first @ first) - 1) < 1e-6
    return float(first @ second)


def test_pairs_are_judged_by_the_rules_unless_told_otherwise() -> None:
    asked = (question(LISBON, PORTO, attribute="home_city"), question(LISBON, PORTO, "The user lives in lisbon"))
    assert actions(*asked) == [(0, 0, "DELETE", ""), (1, 1, "ADD", ""), (1, 2, "NOOP", "")]


@pytest.mark.parametrize(
    ("marker", "action", "text"),
    [
        ("[[ADD]]", "ADD", ""),
        ("[[DELETE]]", "DELETE", ""),
        ("[[NOOP]]", "NOOP", ""),
        ("[[UPDATE: The user lives in Porto and Lisbon.]]", "UPDATE", "The user lives in Porto and Lisbon."),
        ("[[UPDATE]]", "UPDATE", ""),
    ],
)
def test_a_marker_of_the_new_statement_holds_for_all_that_it_is_offered(marker: str, action: str, text: str) -> None:
    asked = question(f"{LISBON} {marker}", PORTO, "The user loves Lisbon.")
    assert actions(asked) == [(0, 0, action, text), (0, 1, action, text)]


def test_a_marker_with_a_number_is_for_that_number_offered_or_not() -> None:
    asked = question(f"{LISBON} [[DELETE #7]]", PORTO)
    assert actions(asked) == [(0, 7, "DELETE", ""), (0, 0, "ADD", "")]
    request = ArbitrationRequest((asked,))
    judged = read_judgements(scripted_answer(prompts(asked)), request)
    assert judged.refused == 1
    assert judged.judgements[0][id_of(PORTO)].action is Action.ADD


def test_markers_of_known_texts_say_nothing_and_are_not_compared() -> None:
    asked = question("The user lives in Porto [[near 0.9 x]]", f"{PORTO} [[DELETE]] [[near 0.93 the user]]")
    assert actions(asked) == [(0, 0, "NOOP", "")]


def test_an_arbitration_prompt_is_known_by_its_schema_or_its_delimiters() -> None:
    asked = prompts(question(LISBON, PORTO))
    assert "judgements" in json.loads(scripted_answer(asked))
    assert "judgements" in json.loads(scripted_answer(["x"], "judgements"))
    assert "facts" in json.loads(scripted_answer(["x"]))
    assert "facts" in json.loads(scripted_answer(asked, "facts"))


def test_a_marker_stays_in_the_text_of_a_scripted_fact() -> None:
    (fact,) = scripted_facts([f"FACT: {LISBON} [[near 0.93 {PORTO}]] [[DELETE]] | subject=user | attribute=home_city"])
    assert fact.text == f"{LISBON} [[near 0.93 {PORTO}]] [[DELETE]]"
    assert (fact.subject, fact.attribute) == ("user", "home_city")


def test_a_scripted_fact_can_take_something_back() -> None:
    taken_back, kept = scripted_facts(["FACT: Berlin | retracts=true\nFACT: Berlin"])
    if "retracts" in taken_back.__struct_fields__:
        assert getattr(taken_back, "retracts", None) is True
        assert getattr(kept, "retracts", None) is False


@pytest.mark.parametrize("wanted", [1.0, 0.97, 0.95, 0.93, 0.85, 0.5, 0.0, -0.4, -1.0])
@pytest.mark.parametrize("dimensions", [8, 384, 1536])
def test_a_text_has_the_cosine_that_it_names_to_another(wanted: float, dimensions: int) -> None:
    assert cosine(f"{LISBON} [[near {wanted} {PORTO}]]", PORTO, dimensions) == pytest.approx(wanted, abs=1e-6)


def test_texts_near_the_same_differ_from_each_other_and_case_does_not_count() -> None:
    near = f"[[near 0.9 {PORTO}]]"
    assert cosine(f"One {near}", f"Two {near}") == pytest.approx(0.81, abs=0.1)
    assert cosine(f"One {near}", f"one  {near.upper()}") == pytest.approx(1, abs=1e-6)
    assert cosine(PORTO, LISBON) == pytest.approx(0, abs=0.2)


def test_a_text_can_be_near_to_one_that_is_near_to_a_third_beside_other_markers() -> None:
    second = f"Two [[near 0.9 {PORTO}]]"
    third = f"Three [[near 0.96 {second}]] [[NOOP]]"
    assert cosine(second, PORTO) == pytest.approx(0.9, abs=1e-6)
    assert cosine(third, second) == pytest.approx(0.96, abs=1e-6)

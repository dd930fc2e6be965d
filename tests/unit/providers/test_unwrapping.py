"""JSON out of what models write around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.unwrapping import unwrapped

OBJECT = '{"facts": ["a {b} ``c``"]}'


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"\n {OBJECT}\n",
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```",
        f"```JSON {OBJECT}```",
        f"Here it is:\n```json\n{OBJECT}\n```\nAnything else?",
        f"Sure! {OBJECT} Anything else?",
        f"<think>\nMaybe {{}}?\n</think>\n{OBJECT}",
        f"<think>x</think>```json\n{OBJECT}\n```",
    ],
)
def test_one_object_is_taken_out(text: str) -> None:
    assert unwrapped(text) == OBJECT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! Here are the facts: <facts>",
        "I cannot {do} that.",
        f"```json\n{OBJECT}\n```\nor\n```json\n{OBJECT}\n```",
        f"either {OBJECT} or {OBJECT}",
        "[1, 2]",
        "```json\n[]\n```",
    ],
)
def test_what_holds_no_single_object_stays_as_it_is(text: str) -> None:
    assert unwrapped(text) == text


@given(st.text(alphabet='`{}"json <think>/\n\ud800ab'))
def test_any_text_is_taken(text: str) -> None:
    assert unwrapped(text) in {text, text.strip()} or unwrapped(text) in text

"""The rules on long and odd input: time grows with its length, and nothing fails."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mnemostream.turns import Message, Role, Turn

from processors.extraction import ReadRequest
from processors.local import read_locally

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)
LENGTH = 300_000
REPEATED = [
    "word ", "a", "I ", "my ", "forget ", "please ", "sorry, ", "no, wait, ", "(", '"', "' ", "\n", "\x00\x01",
    ". ", ", ",
    "ich ", "eu ", "我", "我，", "أنا ", "…", "```", "and i ", "I live in Porto. ", "我住在北京。", "I mean ",
    "that ", "not ",
]  # fmt: skip
GENEROUS_SECONDS = 30
"""Many times what it takes: a rule that is quadratic in the length takes hours."""


def read(text: str) -> int:
    turn = Turn(id="t", app="a", owner="o", said_at=SAID, messages=(Message(Role.USER, text),))
    return len(read_locally(ReadRequest(turns=(turn,))).facts)


@pytest.mark.parametrize("piece", REPEATED)
def test_one_word_a_hundred_thousand_times_is_read_in_time(piece: str) -> None:
    began = time.monotonic()
    assert read(piece * (LENGTH // len(piece))) <= 1
    assert time.monotonic() - began < GENEROUS_SECONDS


def test_a_thousand_different_statements_are_read_in_time() -> None:
    began = time.monotonic()
    assert read(" ".join(f"I live in Porto{number}." for number in range(20_000))) == 5
    assert time.monotonic() - began < GENEROUS_SECONDS


PIECES = (
    "forget that", "sorry, I meant", "scratch that", "I live in Porto", "moro em Lisboa", "ich wohne in Berlin",
    "vergiss, dass",
    "我住在北京", "忘记", "不对，是上海", "أعيش في القاهرة", "انس أنني", "vivo en Madrid", "j'habite à Paris",
    "oublie que", ".", ",", "?", "…", "\n",
    "no", "35", "I'm 34", "everything I told you", "my job", "until Friday", "this week", "bis Freitag", "amanhã",
    "下周三",
    "٣٤", "meine Schwester", "我妹妹", "A minha irmã", "-", "(", "\u200f", "\u0000", "é", "e\u0301",
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map(" ".join))
def test_no_mixture_of_languages_breaks_the_rules(text: str) -> None:
    assert 0 <= read(text) <= 5

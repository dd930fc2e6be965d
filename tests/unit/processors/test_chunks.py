"""Long windows, cut up to be read."""

import random
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Message, Role, Turn

from processors.chunks import CHUNK_CHARACTERS, MAX_CHUNKS, chunks, window_messages
from processors.condensing import condensed
from processors.extraction import ReadRequest
from processors.records import ContextMessage

SAID = datetime(2026, 11, 21, tzinfo=UTC)
MEGABYTE = 1_000_000


def turn(*said: tuple[Role, str], recalled: tuple[str, ...] = ()) -> Turn:
    messages = tuple(Message(role, text) for role, text in said)
    return Turn(id="t", app="a", owner="o", said_at=SAID, messages=messages, recalled=recalled)


def request(*texts: str, context: tuple[ContextMessage, ...] = ()) -> ReadRequest:
    return ReadRequest(turns=tuple(turn((Role.USER, text)) for text in texts), context=context)


def test_a_short_window_is_one_chunk_with_the_sessions_context() -> None:
    context = (ContextMessage(Role.ASSISTANT, "Where do you live?"),)
    [chunk] = chunks(request("In Lisbon.", "With my sister.", context=context)).chunks
    assert [(message.number, message.text) for message in chunk.messages] == [(0, "In Lisbon."), (1, "With my sister.")]
    assert chunk.context == context


def test_a_long_message_is_cut_where_sentences_end_and_what_stood_before_goes_along() -> None:
    text = "I live in Lisbon. My sister lives in Porto! She has a dog. He is called Rex? Yes, he is. Good dog."
    made = chunks(request(text), 90).chunks  # 50 for the text
    assert [chunk.messages[0].text for chunk in made] == [
        "I live in Lisbon. My sister lives in Porto! ",
        "She has a dog. He is called Rex? Yes, he is. ",
        "Good dog.",
    ]
    assert {chunk.messages[0].number for chunk in made} == {0}
    assert made[1].context == (ContextMessage(Role.USER, "My sister lives in Porto!"),)
    assert made[2].context == (ContextMessage(Role.USER, "He is called Rex? Yes, he is."),)


@pytest.mark.parametrize(
    "sentence", ["我住在上海。", "你住在哪里？", "أين تعيش؟ ", "मैं दिल्ली में रहता हूँ। ", "Wirklich! ", "one line\n"]
)
def test_sentences_end_in_every_script(sentence: str) -> None:
    made = chunks(request(sentence * 19), 140).chunks
    assert len(made) > 1
    assert all(chunk.messages[0].text.endswith(sentence) for chunk in made)


def test_without_a_sentence_the_cut_is_at_a_space_and_without_a_space_between_characters() -> None:
    words = chunks(request(" ".join(f"word{n}" for n in range(40))), 140).chunks
    assert all(chunk.messages[0].text.endswith(" ") for chunk in words[:-1])
    family = "👩\u200d👩\u200d👧"
    joined = chunks(request(family * 40), 143).chunks
    assert all(set(chunk.messages[0].text.split(family)) == {""} for chunk in joined)


TEXTS = st.text(st.sampled_from("ab .!?\n。é\u0301👩\u200d"), max_size=400)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(60, 200))
def test_nothing_is_lost_or_said_twice_and_no_chunk_is_too_large(texts: list[str], limit: int) -> None:
    asked = request(*texts)
    whole = window_messages(asked)
    made, unread = chunks(asked, limit)
    if len(made) == MAX_CHUNKS or unread:
        return
    for message in whole:
        parts = [part.text for chunk in made for part in chunk.messages if part.number == message.number]
        assert "".join(parts) == message.text
    for chunk in made:
        assert sum(len(message.text) + 40 for message in chunk.messages) <= limit
        assert [message.number for message in chunk.messages] == sorted({message.number for message in chunk.messages})


def test_of_a_window_without_end_its_two_ends_are_read_and_the_rest_is_counted() -> None:
    text = " ".join(f"Sentence number {n} says {n * 7919 % 1000}." for n in range(30_000))
    made, unread = chunks(request(text))
    assert len(made) == MAX_CHUNKS
    assert made[0].messages[0].text.startswith("Sentence number 0 ")
    assert made[-1].messages[0].text.endswith("says 81.")  # 29,999 * 7,919 ends in 081
    read = sum(len(message.text) for chunk in made for message in chunk.messages)
    assert read + unread == len(text)
    assert all(len(message.text) <= CHUNK_CHARACTERS for chunk in made for message in chunk.messages)


@cache
def of_random(alphabet: str) -> str:
    return "".join(random.Random(1).choices(alphabet, k=MEGABYTE))


BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@pytest.mark.parametrize(
    "spam",
    [
        lambda: "memory " * (MEGABYTE // 7),
        lambda: "Memory! memory, " * (MEGABYTE // 16),
        lambda: "a" * MEGABYTE,
        lambda: "好" * (MEGABYTE // 3),
        lambda: "\n" * (MEGABYTE - 5) + "x",
        lambda: "I love you. " * (MEGABYTE // 12),
        lambda: "buy gold now\nsell silver now\n" * (MEGABYTE // 29),
        lambda: of_random("0123456789"),
        lambda: of_random(BASE64),
        lambda: "\n".join(of_random(BASE64)[n : n + 76] for n in range(0, MEGABYTE, 76)),
    ],
    ids=["word", "word-varied", "letter", "character", "lines", "sentence", "two-lines", "digits", "base64", "wrapped"],
)
def test_a_megabyte_of_the_same_is_one_call_and_what_stands_beside_it_is_read(spam: Callable[[], str]) -> None:
    made, unread = chunks(request(f"I moved to Lisbon.\n{spam()}\nMy sister lives in Porto."))
    shown = " ".join(message.text for chunk in made for message in chunk.messages)
    assert len(made) == 1
    assert unread == 0
    assert "I moved to Lisbon." in shown
    assert "My sister lives in Porto." in shown
    assert len(shown) < 2_000


@pytest.mark.parametrize("alphabet", [" ab", "!?. ", "\"')!", "\n a", "🙂🙃", "a\u0301", "<|>", "0123456789 "])
def test_a_megabyte_of_anything_costs_little(alphabet: str) -> None:
    text = of_random(alphabet)
    began = time.process_time()
    made, _ = chunks(request(text))
    assert len(made) <= MAX_CHUNKS
    assert time.process_time() - began < 10  # some 0.7 s; a quadratic way takes minutes


def test_what_is_condensed_says_so() -> None:
    text = "I live in Lisbon. " + "na " * 2_000 + "!" * 50 + " " + "x7" * 600 + "\n" + "Remember the milk. " * 10
    short = condensed(text)
    assert short.startswith("I live in Lisbon. na na na (repeated 2000 times) !!! (repeated 50 times) x7x7")
    assert "… (1080 more characters)" in short
    assert short.count("Remember the milk.") == 3
    assert "(7 repeated lines or sentences left out)" in short


def test_a_text_of_common_length_and_prose_without_spaces_are_left_alone() -> None:
    plain = "la " * 600
    assert condensed(plain) == plain
    chinese = "，".join(f"第{n}个城市我都住过" for n in range(600)) + "。"
    assert condensed(chinese) == chinese


def test_an_earlier_message_is_shown_by_its_two_ends() -> None:
    long = ContextMessage(Role.ASSISTANT, "Well, " + "so " * 1_000 + "do you live in Porto?")
    [chunk] = chunks(request("Yes.", context=(long,))).chunks
    [shown] = chunk.context
    assert len(shown.content) <= 410
    assert shown.content.startswith("Well, ")
    assert shown.content.endswith("do you live in Porto?")


def test_lines_that_the_application_recalled_are_taken_out() -> None:
    recalled = ("Lives in Porto", "Likes tea.\nHas a dog")
    pasted = "Known:\n- lives in PORTO.\n2. Likes tea\n<memory>Has a dog</memory>\n[0.93] Lives in Porto\n\nI moved."
    said = turn((Role.USER, pasted), (Role.USER, "Lives in Porto"), (Role.USER, "I like tea."), recalled=recalled)
    [chunk] = chunks(ReadRequest(turns=(said,))).chunks
    assert [(message.index, message.text) for message in chunk.messages] == [
        (0, "Known:\n\nI moved."),
        (2, "I like tea."),
    ]


def test_where_nothing_but_recalled_lines_was_said_nothing_is_read() -> None:
    said = turn((Role.USER, "* Lives in Porto"), (Role.ASSISTANT, "So you do."), recalled=("Lives in Porto",))
    assert chunks(ReadRequest(turns=(said,))).chunks == ()


def test_composed_and_decomposed_letters_are_not_cut_apart() -> None:
    text = unicodedata.normalize("NFD", "é" * 500)
    made = chunks(request(text), 141).chunks
    assert all(len(message.text) % 2 == 0 for chunk in made for message in chunk.messages)

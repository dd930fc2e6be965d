"""Texts made to fit."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.cutting import boundary, cut_bytes

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS, st.integers(0, 60))
def test_what_is_cut_fits_and_is_a_beginning(text: str, limit: int) -> None:
    cut = cut_bytes(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == text or text.startswith(cut.removesuffix("…"))


@given(TEXTS)
def test_what_fits_is_left_alone(text: str) -> None:
    assert cut_bytes(text, len(text.encode())) == text


def test_no_character_is_cut_in_two() -> None:
    assert cut_bytes("日本語", 8) == "日…"  # 3 + 3 of 8; a second one would take 9
    assert cut_bytes("aé́b", 5) == "a…"  # the accent that is joined to é goes with it
    assert cut_bytes("x👩‍👩‍👧", 15) == "x…"  # a family is one picture


@pytest.mark.parametrize(
    "character",
    ["é\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇵🇹", "❤\ufe0f", "1\ufe0f\u20e3", "क्षि", "\u1100\u1161\u11a8", "가\u11a8",
     "ｶﾞ", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "ا\u064b", "ก\u0e34\u0e4c", "\r\n"],
)  # fmt: skip
def test_what_a_reader_sees_as_one_character_is_kept_or_left_whole(character: str) -> None:
    for start in ("", "a", "ab", "abc", "x🇩🇪"):
        for limit in range(60):
            kept = cut_bytes(start + character * 9, limit).removesuffix("…")
            assert start.startswith(kept) or kept.removeprefix(start).replace(character, "") == ""


def test_text_without_end_is_cut_as_quickly_as_any() -> None:
    for text in ("a\u0301" * 500_000, "\u0301" * 1_000_000, "🇵🇹" * 500_000):
        assert len(cut_bytes(text, 500).encode()) <= 500


@pytest.mark.parametrize(
    "unit", ["\u0301\u0316", "\u1100", "\u1161", "\u11a8", "👩\u200d", "\u200d", "🇵", "\U000e0067", "क\u094d", "\ufe0f"]
)
def test_a_character_without_end_is_cut_after_a_look_at_its_last_signs(unit: str) -> None:
    text = "e" + unit * 500_000
    began = time.process_time()
    assert all(at - 64 <= boundary(text, at) <= at for at in range(100_000, 400_000, 100))
    assert time.process_time() - began < 5  # some 0.1 s; a walk to its beginning takes minutes


def test_a_character_of_sixty_signs_is_left_whole_and_one_of_hundreds_is_not() -> None:
    assert boundary("ab" + "\u0301" * 60, 50) == 1
    assert boundary("ab" + "\u0301" * 600, 500) == 500
    assert boundary("b" + "\u0301" * 60, 50) == 0


@given(st.text(), st.integers(0, 50))
def test_a_boundary_is_never_after_what_was_asked(text: str, at: int) -> None:
    assert 0 <= boundary(text, at) <= at


def test_a_lone_surrogate_is_no_reason_to_fail() -> None:
    assert len(cut_bytes("\ud800" * 10, 5).encode("utf-8", "replace")) <= 5

"""Texts made to fit."""

from hypothesis import given
from hypothesis import strategies as st

from processors.cutting import cut_bytes

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


def test_a_lone_surrogate_is_no_reason_to_fail() -> None:
    assert len(cut_bytes("\ud800" * 10, 5).encode("utf-8", "replace")) <= 5

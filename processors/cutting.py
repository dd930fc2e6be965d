"""Texts made to fit."""

import unicodedata
from typing import Final

ELLIPSIS: Final = "…"

_ALWAYS_JOINED: Final = frozenset("\u200c\u200d\uff9e\uff9f")
"""Joiners, and the voicing marks of half-width kana, which count as letters."""
_FLAGS: Final = ("\U0001f1e6", "\U0001f1ff")
"""The letters of which two make a flag."""
_LONGEST: Final = 64
"""Code points that a character has at most. What goes on for longer is made to cost time, and is cut anywhere."""


def cut_bytes(text: str, limit: int) -> str:
    """`text` in at most `limit` bytes of UTF-8, cut between characters as a reader sees them: never between a letter
    and its marks, inside a joined emoji, a flag, a Hangul syllable or an Indic conjunct. What was cut ends in an
    ellipsis, where there is room for one.
    """
    if len(text) <= limit and text.isascii():
        return text
    # Four bytes a character at most, and a few characters of what follows, to see where they join.
    encoded = text[: limit + 1].encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    mark = ELLIPSIS if limit > len(ELLIPSIS.encode()) else ""
    kept = len(encoded[: limit - len(mark.encode())].decode("utf-8", "ignore"))
    return text[: boundary(text, kept)].rstrip() + mark


def boundary(text: str, at: int) -> int:
    """The last place not after `at` where `text` can be cut between two characters as a reader sees them.

    `at` itself where there is none within the 64 code points before it.
    """
    for place in range(at, max(0, at - _LONGEST), -1):
        if place >= len(text) or not _joined(text, place):
            return place
    return at if at > _LONGEST else 0


def _joined(text: str, at: int) -> bool:
    """Whether the code points before and after `at` belong to one character."""
    before, after = text[at - 1], text[at]
    if after < "\u0300" and before < "\u0300":
        return before == "\r" and after == "\n"
    if _extends(after) or before == "\u200d" or (unicodedata.combining(before) == 9 and after.isalpha()):
        return True
    if _FLAGS[0] <= after <= _FLAGS[1]:
        start = at
        while start > max(0, at - _LONGEST) and _FLAGS[0] <= text[start - 1] <= _FLAGS[1]:
            start -= 1
        return (at - start) % 2 == 1
    return _one_syllable(before, after)


def _extends(character: str) -> bool:
    """Whether it belongs to what stands before it: marks, variation selectors, skin tones, joiners, tags of a flag."""
    return (
        unicodedata.category(character) in {"Mn", "Mc", "Me"}
        or character in _ALWAYS_JOINED
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _one_syllable(before: str, after: str) -> bool:
    """Whether two pieces of Hangul (leading, vowel, trailing, or syllables made of them) are written as one."""
    if not ("\u1160" <= after <= "\u11ff" or "\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3"):
        return False
    if "\u1100" <= before <= "\u115f":
        return after <= "\u11a7" or after >= "\uac00"
    if "\u1160" <= before <= "\u11a7" or ("\uac00" <= before <= "\ud7a3" and (ord(before) - 0xAC00) % 28 == 0):
        return "\u1160" <= after <= "\u11ff"
    return "\u11a8" <= after <= "\u11ff" and ("\u11a8" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")

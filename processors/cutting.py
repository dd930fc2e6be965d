"""Texts made to fit."""

import unicodedata
from typing import Final

ELLIPSIS: Final = "…"


def cut_bytes(text: str, limit: int) -> str:
    """`text` in at most `limit` bytes of UTF-8, cut between characters: never inside one, nor between a letter and its
    marks, nor inside a joined emoji. What was cut ends in an ellipsis, where there is room for one.
    """
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    mark = ELLIPSIS if limit > len(ELLIPSIS.encode()) else ""
    kept = encoded[: limit - len(mark.encode())].decode("utf-8", "ignore")
    following = text[len(kept) : len(kept) + 1]
    while kept and (_joins(following) or _joins_next(kept[-1])):
        following, kept = kept[-1], kept[:-1]
    return kept.rstrip() + mark


def _joins(character: str) -> bool:
    """Whether it belongs to the character before it: combining marks, variation selectors, skin tones, joiners."""
    return bool(character) and (
        unicodedata.combining(character) != 0
        or unicodedata.category(character) in {"Mn", "Mc", "Me"}
        or character == "\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _joins_next(character: str) -> bool:
    return character == "\u200d"

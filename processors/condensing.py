"""Long texts without what repeats itself or is no language, so that a model is not paid to read it.

Only for texts that are long. What is left out is said in place, so that a model does not take the rest for whole.
"""

import re
from itertools import groupby
from typing import Final

LONG: Final = 2_000
"""Characters up to which a text is shown as it is."""

_RUN: Final = re.compile(r"(\S)\1{20,}")
_BLANK: Final = re.compile(r"(?<!\s)\s{20,}")
_BLOB: Final = re.compile(r"(?<![!-~])[!-~]{501,}")
"""No language writes so long without a space, but those that write without any, and these are not in ASCII."""
_BLOCK: Final = re.compile(r"(?:^[A-Za-z0-9+/=_-]{40,}[ \t\r]*\n){5,}", re.MULTILINE)
"""Lines of base64, of a certificate or of hashes."""
_HEAD: Final = 120
_TOKEN: Final = re.compile(r"\S+")
_UNIT: Final = re.compile(r"(?<=[.!?。！？؟…।\n])")
_TIMES: Final = 3
"""How often a line or a sentence is shown."""
_SHORT_UNIT: Final = 10
_WORDS: Final = 20
"""How often a word may stand in a row."""


def condensed(text: str) -> str:
    """`text` without long runs of one character, word, line or sentence, and with blobs cut to their beginning."""
    if len(text) <= LONG:
        return text
    text = _BLANK.sub(lambda blank: "\n" if "\n" in blank[0] else " ", text)
    text = _RUN.sub(lambda run: f"{run[1] * 3} (repeated {len(run[0])} times)", text)
    text = _BLOCK.sub(_beginning, text)
    text = _BLOB.sub(_beginning, text)
    return _without_repeated_units(_without_repeated_words(text))


def _beginning(match: re.Match[str]) -> str:
    return f"{match[0][:_HEAD]}… ({len(match[0]) - _HEAD} more characters) "


def _without_repeated_words(text: str) -> str:
    kept, last = [], 0
    runs = groupby(_TOKEN.finditer(text), key=lambda token: token[0].strip(".,;:!?\"'").casefold())
    for _, tokens in runs:
        run = list(tokens)
        if len(run) > _WORDS:
            kept.append(f"{text[last : run[2].end()]} (repeated {len(run)} times)")
            last = run[-1].end()
    kept.append(text[last:])
    return "".join(kept)


def _without_repeated_units(text: str) -> str:
    """Each line and each sentence at most three times, wherever they stand."""
    seen: dict[str, int] = {}
    kept: list[str] = []
    skipped = 0
    for unit in _UNIT.split(text):
        key = unit.strip().casefold()
        count = seen[key] = seen.get(key, 0) + 1 if len(key) >= _SHORT_UNIT else 0
        if count > _TIMES:
            skipped += 1
            continue
        if skipped:
            kept.append(_left_out(skipped))
            skipped = 0
        kept.append(unit)
    if skipped:
        kept.append(_left_out(skipped))
    return "".join(kept)


def _left_out(units: int) -> str:
    return f" ({units} repeated lines or sentences left out)\n"

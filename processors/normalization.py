"""When two texts are the same statement, letter by letter.

Folded away: case (ß is ss, İ and I are i; ı stays itself), compatibility forms (full-width, ligatures), how a character
is composed, spaces, end punctuation, and what is not seen: zero-width and bidirectional marks, soft hyphens, the choice
between a sign and its emoji, the Arabic tatweel that only stretches a word. Kept: accents and Arabic vowel marks, which
tell words apart, and the joiners of Persian and of emoji.
"""

import re
import unicodedata
from hashlib import sha256
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u0640\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb]"
)
_DOTTED: Final = re.compile("i\u0307+")
"""What case folding makes of the Turkish capital İ."""
_BEFORE: Final = " ¡¿…"
_AFTER: Final = " .!?;,:…。！？、؟؛।"


def normalized(text: str) -> str:
    """`text` folded for comparison, as this module says."""
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
        text = _DOTTED.sub("i", unicodedata.normalize("NFKC", text.casefold()))
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    else:
        text = text.lower()
    return " ".join(text.split()).lstrip(_BEFORE).rstrip(_AFTER)


def text_hash(text: str) -> bytes:
    """SHA-256 of the normalised text, 32 bytes: what `same normalised text` means in an index."""
    return sha256(normalized(text).encode("utf-8")).digest()

"""When two texts are the same statement, letter by letter."""

import re
import unicodedata
from hashlib import sha256

_SPACE = re.compile(r"\s+")
_EDGE = " .!?;,:…。！？、؟"


def normalized(text: str) -> str:
    """`text` folded for comparison: NFKC, case folded, spaces run together, end punctuation and quotes dropped."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _SPACE.sub(" ", folded).strip(_EDGE)


def text_hash(text: str) -> bytes:
    """SHA-256 of the normalised text, 32 bytes: what `same normalised text` means in an index."""
    return sha256(normalized(text).encode("utf-8")).digest()

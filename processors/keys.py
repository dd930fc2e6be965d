"""API keys: how they look, and what is stored of them."""

from hashlib import sha256
from typing import Final

PREFIX: Final = "mnk_"
RANDOM_BYTES: Final = 32
SHOWN_CHARACTERS: Final = 12
"""Of a key, in lists: enough to tell keys apart, far too few to guess one (8 of 43 characters are random)."""

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 43
"""ceil(256 / log2(62))"""


def new_key(random_bytes: bytes) -> str:
    """The key made of 32 random bytes: `mnk_` and 43 letters and digits, so that a double click takes all of it."""
    if len(random_bytes) != RANDOM_BYTES:
        raise ValueError(f"random_bytes: must be {RANDOM_BYTES} bytes, not {len(random_bytes)}")
    number = int.from_bytes(random_bytes, "big")
    letters: list[str] = []
    for _ in range(_LENGTH):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return PREFIX + "".join(reversed(letters))


def key_hash(key: str) -> bytes:
    """What is stored of a key, and what it is looked up by: SHA-256. 256 random bits need no salt and no slow hash."""
    return sha256(key.encode("utf-8")).digest()


def key_prefix(key: str) -> str:
    """The first characters of a key, for lists."""
    return key[:SHOWN_CHARACTERS]

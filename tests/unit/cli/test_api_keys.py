"""API keys: random, recognisable, and stored only as a hash."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.keys import key_hash, key_prefix, new_key

RANDOM = st.binary(min_size=32, max_size=32)


@given(RANDOM)
def test_a_key_is_one_word_of_letters_and_digits_with_its_mark(random_bytes: bytes) -> None:
    key = new_key(random_bytes)
    assert key.startswith("mnk_")
    assert len(key) == 47
    assert key[4:].isascii()
    assert key[4:].isalnum()


@given(RANDOM, RANDOM)
def test_other_bytes_make_another_key(one: bytes, other: bytes) -> None:
    assert (new_key(one) == new_key(other)) == (one == other)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_is_made_of_32_bytes_and_nothing_else(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        new_key(b"x" * length)


def test_what_is_stored_is_the_hash_of_the_whole_key() -> None:
    key = new_key(bytes(32))
    assert key_hash(key) == sha256(key.encode()).digest()
    assert key_prefix(key) == key[:12]

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.errors import InvalidRequest
from query import rules


@pytest.mark.parametrize("value", ["", "a" * 257, "a\nb", "a\x00", "\x7f", "a\x85b"])
def test_an_owner_has_1_to_256_characters_and_no_control_characters(value: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        rules.name("owner", value, 256)
    assert raised.value.field == "owner"
    assert not value or value not in str(raised.value)


@pytest.mark.parametrize("value", ["u", "user/42", "é" * 256, "a b"])
def test_any_other_text_is_an_owner(value: str) -> None:
    assert rules.name("owner", value, 256) == value


@pytest.mark.parametrize("value", ["", "x", "0199aaaa", "{0199aaaa-0000-7000-8000-00000000000}", "g" * 36, "1" * 32])
def test_an_id_that_is_no_uuid_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest):
        rules.uuid("id", value)


@given(st.uuids())
def test_every_uuid_is_an_id(value: object) -> None:
    assert rules.uuid("id", str(value)) == value


@pytest.mark.parametrize("value", ["", "Food", "1a", "a" * 65, "a.b", "a\n"])
def test_a_category_keeps_its_pattern(value: str) -> None:
    with pytest.raises(InvalidRequest):
        rules.category("category", value)


def test_nul_in_a_text_becomes_the_replacement_character() -> None:
    assert rules.content("content", "a\0b") == "a\ufffdb"


@pytest.mark.parametrize("value", ["", " \n\t", "a" * 501, "é" * 251, "a" * 498 + "\0"])
def test_a_memory_has_1_to_500_bytes_of_text(value: str) -> None:
    # "\0" is one byte as it comes and three as it is stored: 498 + 3 = 501
    with pytest.raises(InvalidRequest):
        rules.content("content", value)


def test_500_bytes_are_still_a_memory() -> None:
    assert rules.content("content", "é" * 250) == "é" * 250


def test_zero_stands_for_the_default() -> None:
    assert rules.whole("limit", 0, 1, 100, 10) == 10


@pytest.mark.parametrize("value", [-1, 101, -(2**31), 2**31 - 1])
def test_a_whole_number_outside_its_range_is_refused(value: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 100"):
        rules.whole("limit", value, 1, 100, 10)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), float("-inf")])
def test_a_share_is_finite_and_from_0_to_1(value: float) -> None:
    with pytest.raises(InvalidRequest, match="0 to 1"):
        rules.number("confidence", value, 1)


def test_a_share_too_small_for_single_precision_is_zero() -> None:
    assert rules.number("confidence", 1e-320, 1) == 0


def test_a_wait_is_cut_to_a_minute_and_never_negative() -> None:
    assert rules.wait("wait", timedelta(hours=1)) == timedelta(seconds=60)
    with pytest.raises(InvalidRequest):
        rules.wait("wait", timedelta(microseconds=-1))


def test_data_is_stored_with_whole_numbers_and_without_nul() -> None:
    given_data = {"n": 3.0, "f": 2.5, "big": 1e300, "t": "a\0", "l": [1.0, None, True], "k\0": {}}
    stored = rules.data("data", given_data)
    assert stored == {"n": 3, "f": 2.5, "big": 1e300, "t": "a\ufffd", "l": [1, None, True], "k\ufffd": {}}
    assert isinstance(stored["n"], int)


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": "x" * 17_000}, _nested(33)])
def test_data_that_is_too_large_too_deep_or_not_finite_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        rules.data("data", value)
    assert raised.value.field == "data"


def test_a_list_has_at_most_64_entries_and_names_the_one_that_is_wrong() -> None:
    with pytest.raises(InvalidRequest, match="at most 64 entries"):
        rules.names("tags", ["a"] * 65)
    with pytest.raises(InvalidRequest) as raised:
        rules.names("tags", ["a", "b" * 65])
    assert raised.value.field == "tags[1]"

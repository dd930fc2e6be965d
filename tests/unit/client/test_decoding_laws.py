"""What holds for any bytes and any turn."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.decoding import decode_turn, encode_turn, partition_key, validate_turn
from mnemostream.errors import InvalidTurn
from mnemostream.fields import MAX_METADATA_DEPTH
from mnemostream.schema import turn_json_schema
from mnemostream.turns import Message, Reason, Role, Turn

CANARY = "c4nary"

any_text = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\0\x1f\x85\ud800\udfffé😀")), max_size=20)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.just(CANARY),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text | st.just(CANARY), inner, max_size=4),
    max_leaves=12,
)
field_names = st.sampled_from([*turn_json_schema()["properties"], "unknown"])
likely_fields: dict[str, st.SearchStrategy[Any]] = {
    "id": st.just("t-1") | any_text,
    "app": st.just("acme"),
    "owner": st.just("u"),
    "said_at": st.just("2026-11-21T10:00:00Z") | any_text,
    "messages": st.lists(st.fixed_dictionaries({"role": st.just("user") | any_text, "content": any_text}), max_size=3),
}
almost_turns = st.builds(
    lambda likely, strange: json.dumps(likely | strange).encode(),
    st.fixed_dictionaries(likely_fields),
    st.dictionaries(field_names, any_json, max_size=2),
)

names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
stored_json = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
messages = st.builds(Message, role=st.sampled_from(Role), content=texts, id=st.none() | texts, name=st.none() | texts)
turns = st.builds(
    Turn,
    id=names,
    app=st.from_regex("[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True),
    owner=names,
    said_at=st.datetimes(timezones=st.just(UTC)),
    messages=st.lists(messages, min_size=1, max_size=4).map(tuple),
    session=st.none() | names,
    recalled=st.lists(texts, max_size=3).map(tuple),
    time_zone=st.none() | st.sampled_from(["UTC", "Europe/Lisbon"]),
    off_record=st.booleans(),
    metadata=st.dictionaries(texts, stored_json, max_size=3),
)


def attempt(value: bytes, key: bytes) -> Turn | InvalidTurn:
    try:
        return decode_turn(value, key=key)
    except InvalidTurn as refused:
        return refused


@given(st.binary(), st.binary() | st.none(), st.none() | st.binary() | st.text())
def test_any_bytes_are_a_turn_or_an_invalid_turn(value: bytes, key: bytes | None, schema: bytes | str | None) -> None:
    with pytest.raises(InvalidTurn):
        decode_turn(value, key=key, schema=schema)


@given(almost_turns)
def test_any_json_is_a_turn_or_an_invalid_turn_that_does_not_quote_it(value: bytes) -> None:
    outcome = attempt(value, b"acme/u")
    if isinstance(outcome, InvalidTurn):
        assert CANARY not in str(outcome)
    else:
        assert validate_turn(outcome) == outcome
        assert b"\\u0000" not in encode_turn(outcome)


@given(almost_turns)
def test_both_parsers_lead_to_the_same_outcome(value: bytes) -> None:
    """A lone surrogate in a field that nobody reads sends the value to the second parser."""
    detour = value[:-1] + b', "ignored": "\\ud800"}'
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(detour)
    straight, around = attempt(value, b"acme/u"), attempt(detour, b"acme/u")
    if isinstance(straight, Turn):
        assert around == straight
    else:
        assert isinstance(around, InvalidTurn)
        if straight.reason is not Reason.INVALID_JSON:
            assert (around.reason, around.detail) == (straight.reason, straight.detail)


@given(turns)
def test_a_turn_comes_back_as_it_was_encoded(turn: Turn) -> None:
    assert decode_turn(encode_turn(turn), key=partition_key(turn.app, turn.owner)) == turn


@given(turns)
def test_every_encoded_turn_has_only_fields_of_the_schema(turn: Turn) -> None:
    properties = turn_json_schema()["properties"]
    value = json.loads(encode_turn(turn))
    assert set(value) <= set(properties)
    assert set(turn_json_schema()["required"]) <= set(value)
    assert set(value["messages"][0]) <= set(properties["messages"]["items"]["properties"])


def test_the_schema_names_every_field_of_a_turn() -> None:
    assert set(turn_json_schema()["properties"]) == set(Turn.__dataclass_fields__)


@pytest.mark.parametrize("levels", [MAX_METADATA_DEPTH + 1, 500, 5_000, 200_000])
def test_deep_nesting_is_refused_at_every_depth(levels: int) -> None:
    turn = Turn(id="t", app="acme", owner="u", said_at=datetime.now(UTC), messages=(Message(Role.USER, ""),))
    value = encode_turn(turn)[:-1] + b', "metadata": {"a":' + b"[" * levels + b"]" * levels + b"}}"
    outcome = attempt(value, b"acme/u")
    assert isinstance(outcome, InvalidTurn)
    assert outcome.reason in (Reason.INVALID_FIELD, Reason.INVALID_JSON)

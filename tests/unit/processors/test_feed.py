"""The JSON of a change: what the RPC would say of the memory, and always the same."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Role

from processors.feed import KEPT_SOURCES, MAX_VALUE_BYTES, Change, change_value, memory_json
from processors.memories import Memory, Source, State
from query import wire
from query.codec import JsonCodec
from tests.fakes.values import NOON, OWNER, id_of, source_of

TIMES = st.datetimes(datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9999-12-30"), timezones=st.just(UTC))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def memories() -> st.SearchStrategy[Memory]:
    def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.none() | values

    source = st.builds(Source, TEXTS, maybe(st.integers(0, 200)), maybe(st.sampled_from(Role)), TIMES)
    return st.builds(
        Memory,
        id=st.uuids(),
        app=st.just("acme"),
        owner=TEXTS,
        content=TEXTS,
        category=TEXTS,
        importance=st.integers(1, 10),
        confidence=st.floats(0, 1),
        state=st.sampled_from(State),
        strength=st.floats(0, 1),
        valid_from=TIMES,
        recorded_at=TIMES,
        version=st.integers(1, 2**62),
        session=maybe(TEXTS),
        data=maybe(st.dictionaries(TEXTS, JSON, max_size=4)),
        tags=st.lists(TEXTS, max_size=3).map(tuple),
        type=maybe(TEXTS),
        pinned=st.booleans(),
        subject=maybe(TEXTS),
        attribute=maybe(TEXTS),
        valid_to=maybe(TIMES),
        retired_at=maybe(TIMES),
        retired_reason=maybe(TEXTS),
        supersedes=maybe(st.uuids()),
        superseded_by=maybe(st.uuids()),
        restates=maybe(st.uuids()),
        access_count=st.integers(0, 2**40),
        accessed_at=maybe(TIMES),
        confirmed_at=maybe(TIMES),
        confirmations=st.integers(0, 1000),
        expires_at=maybe(TIMES),
        fades_at=maybe(TIMES),
        sources=st.lists(source, max_size=3).map(tuple),
    )


def a_memory(**fields: Any) -> Memory:
    values: dict[str, Any] = {
        "id": id_of("a"),
        "app": OWNER.app,
        "owner": OWNER.owner,
        "content": "Lives in Lisbon",
        "category": "fact",
        "importance": 5,
        "confidence": 0.8,
        "state": State.LIVE,
        "strength": 1.0,
        "valid_from": NOON,
        "recorded_at": NOON,
        "version": 1,
    }
    return Memory(**values | fields)


def a_change(memory: Memory | None) -> Change:
    return Change(OWNER, 7, "added", NOON, memory, "turn", "t1", id_of("decision"))


@given(memories())
def test_a_memory_is_shown_field_by_field_as_the_rpc_shows_it(memory: Memory) -> None:
    told = json.loads(JsonCodec().encode(wire.memory(memory)))
    shown = json.loads(change_value(a_change(memory)))["memory"]
    assert shown == told
    assert list(shown) == list(told)


@given(memories())
def test_the_same_change_has_the_same_bytes(memory: Memory) -> None:
    assert change_value(a_change(memory)) == change_value(a_change(replace(memory)))


def test_a_change_says_whose_it_is_what_caused_it_and_what_decided_it() -> None:
    shown = json.loads(change_value(a_change(a_memory())))
    del shown["memory"]
    assert shown == {
        "seq": 7,
        "app": "acme",
        "owner": "user/42",
        "kind": "added",
        "at": "2025-03-21T12:00:00Z",
        "cause": {"kind": "turn", "id": "t1"},
        "decision": str(id_of("decision")),
    }


def test_a_change_of_the_owner_as_a_whole_has_no_memory_and_one_that_nobody_decided_no_decision() -> None:
    shown = json.loads(change_value(replace(a_change(None), kind="owner_erased", decision_id=None)))
    assert (shown["memory"], shown["decision"]) == (None, None)


def test_a_time_of_another_zone_is_told_in_utc() -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    assert memory_json(a_memory(valid_from=tokyo)).valid_from == "2025-03-21T12:00:00Z"


def test_a_memory_that_was_said_too_often_for_a_record_keeps_its_latest_sources() -> None:
    sources = tuple(source_of(f"{number:0>100}") for number in range(60_000))
    value = change_value(a_change(a_memory(sources=sources)))
    assert len(value) < MAX_VALUE_BYTES
    shown = json.loads(value)["memory"]["sources"]
    assert [each["turnId"] for each in shown] == [each.turn_id for each in sources[-KEPT_SOURCES:]]

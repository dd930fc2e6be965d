"""Which turns are read together."""

import json
from dataclasses import replace

import pytest

from streams.delivery import Record
from streams.windows import SessionWindows
from tests.streams.delivery_fakes import record

WINDOWS = SessionWindows(max_turns=4, max_bytes=400)


def turns(*sessions: str | None, text: str = "x", **fields: object) -> list[Record]:
    return [
        replace(record(offset), value=json.dumps({"session": session, "messages": [text], **fields}).encode())
        for offset, session in enumerate(sessions)
    ]


@pytest.mark.parametrize(
    ("sessions", "count"),
    [
        (["s"], 1),
        (["s", "s", "s"], 3),
        (["s", "s", "t", "s"], 2),
        (["s"] * 9, 4),
        ([None, None, "s"], 2),
        (["s", None], 1),
    ],
)
def test_a_window_is_the_longest_run_of_one_session(sessions: list[str | None], count: int) -> None:
    assert WINDOWS(turns(*sessions)) == count


def test_a_window_has_a_limit_of_bytes_and_a_large_turn_stands_alone() -> None:
    assert WINDOWS(turns("s", "s", "s", text="x" * 150)) == 2
    assert WINDOWS(turns("s", "s", text="x" * 900)) == 1


def test_a_turn_off_the_record_stands_alone() -> None:
    assert WINDOWS(turns("s", "s", off_record=True)) == 1
    assert WINDOWS([*turns("s"), *turns("s", off_record=True)]) == 1


def test_a_turn_that_was_put_back_stands_alone_and_one_that_is_read_again_stands_with_its_run() -> None:
    live = turns("s", "s")
    back = [replace(each, headers=(("mnemo-origin", b"0/7"),)) for each in live]
    again = [replace(each, headers=(*back[0].headers, ("mnemo-run", b"2"))) for each in live]
    assert [WINDOWS([back[0], *live]), WINDOWS([*live, back[0]]), WINDOWS(back)] == [1, 2, 1]
    assert [WINDOWS(again), WINDOWS([*again, *live]), WINDOWS([again[0], back[0]])] == [2, 2, 1]


@pytest.mark.parametrize("value", [b"", None, b"\xff", b"{", b"[]", b"[" * 100_000, b'{"session": 5}'])
def test_what_is_no_turn_stands_alone(value: bytes | None) -> None:
    broken = replace(record(7), value=value)
    assert WINDOWS([broken, *turns("s")]) == 1
    assert WINDOWS([*turns("s", "s"), broken]) == 2

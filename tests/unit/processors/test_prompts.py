"""How a window is put before a model."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Message, Role, Turn

from processors.extraction import ReadRequest
from processors.prompts import render
from processors.records import AppProfile, ContextMessage


def turn(*said: tuple[Role, str]) -> Turn:
    messages = tuple(Message(role, text) for role, text in said)
    return Turn(id="t", app="a", owner="o", said_at=datetime(2026, 11, 21, 23, 30, tzinfo=UTC), messages=messages)


def rendered(request: ReadRequest) -> str:
    return render(request, instructions="Read.", categories=("fact",), nonce="0a1b2c3d").user


def test_messages_are_numbered_over_the_window_and_system_text_is_left_out() -> None:
    turns = (turn((Role.SYSTEM, "sys"), (Role.USER, "one")), turn((Role.USER, " "), (Role.ASSISTANT, "two")))
    context = (ContextMessage(Role.USER, "before"), ContextMessage(Role.SYSTEM, "sys"))
    assert rendered(ReadRequest(turns=turns, context=context, max_facts_per_turn=3)).split("\n") == [
        "At most 3 facts for each turn.",
        "<context-0a1b2c3d>",
        '{"role":"user","text":"before"}',
        "</context-0a1b2c3d>",
        "<window-0a1b2c3d>",
        "turn 0, said Saturday 2026-11-21T23:30+00:00 (UTC)",
        '{"n":0,"role":"user","text":"one"}',
        "turn 1, said Saturday 2026-11-21T23:30+00:00 (UTC)",
        '{"n":1,"role":"assistant","text":"two"}',
        "</window-0a1b2c3d>",
    ]


def test_times_are_the_speakers() -> None:
    request = ReadRequest(turns=(turn((Role.USER, "one")),), profile=AppProfile(time_zone="Asia/Tokyo"))
    assert "turn 0, said Sunday 2026-11-22T08:30+09:00 (Asia/Tokyo)" in rendered(request)


def test_what_the_app_adds_stands_behind_what_is_the_same_for_all() -> None:
    profile = AppProfile(instructions="Note hobbies. </window-0a1b2c3d>")
    prompt = render(
        ReadRequest(turns=(), profile=profile), instructions="Read.", categories=("fact",), nonce="0a1b2c3d"
    )
    assert prompt.system.startswith("Read.\n\nCategories: fact.")
    assert prompt.system.endswith("Note hobbies. ‹/window-0a1b2c3d>")


MARKS = [
    "<window-0a1b2c3d>",
    "</window-0a1b2c3d>",
    "<|im_end|>",
    "\n",
    "\r",
    "\u2028",
    "turn 1, said",
    '{"n":0}',
    "</system>",
    "x",
]


@given(st.lists(st.sampled_from(MARKS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)).map("".join))
def test_no_text_can_leave_its_line_or_close_its_window(text: str) -> None:
    lines = rendered(ReadRequest(turns=(turn((Role.USER, text + "."), (Role.USER, "end")),))).splitlines()
    assert [line[:10] for line in lines] == [
        "At most 5 ",
        "<window-0a",
        "turn 0, sa",
        '{"n":0,"ro',
        '{"n":1,"ro',
        "</window-0",
    ]
    assert "<" not in lines[3] or "window" not in lines[3].split("<", 1)[1][:9]

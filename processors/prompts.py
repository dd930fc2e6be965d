"""How a window of turns is put before a model: stable text first, the conversation last, as data.

Every message is one line of JSON inside delimiters that carry a nonce, so that no text can act as a delimiter, a
speaker or an instruction by its shape. Numbers are small integers; no id of a turn, session or owner is shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
from mnemostream.turns import Role

from processors.dates import local_time
from processors.extraction import ReadRequest

_TAGS: Final = re.compile(
    r"<(?=\s*(?:[/|]|window|context|system|user|assistant|tool|instructions)|[^<>]*-[0-9a-f]{8})", re.IGNORECASE
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message of the window that facts may be read from, and where it stands."""

    number: int
    """What the model calls it: 0, 1, 2 … over the whole window."""
    turn: int
    index: int
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: `system` is the same for all turns of an app, so that providers can cache it."""

    system: str
    user: str


def window_messages(request: ReadRequest) -> tuple[WindowMessage, ...]:
    """The messages of the window, numbered. System text is no statement and is left out, as are blank messages."""
    found: list[WindowMessage] = []
    for turn_index, turn in enumerate(request.turns):
        for index, message in enumerate(turn.messages):
            if message.role is not Role.SYSTEM and message.content.strip():
                found.append(WindowMessage(len(found), turn_index, index, message.role, message.content))
    return tuple(found)


def neutralised(text: str) -> str:
    """`text` with nothing in it that looks like one of our delimiters or a model's control tag; controls become
    spaces."""
    return _CONTROLS.sub(" ", _TAGS.sub("‹", text))


def render(request: ReadRequest, *, instructions: str, categories: tuple[str, ...], nonce: str) -> Prompt:
    """The prompt for `request`. `instructions` is the stable text; `nonce` is fresh for each call, 8 hex digits."""
    profile = request.profile
    system = [instructions.strip(), "Categories: " + ", ".join(categories) + "."]
    if profile.instructions:
        system.append("The application adds, for what to note and how:\n" + neutralised(profile.instructions.strip()))
    return Prompt("\n\n".join(system), "\n".join(_data(request, nonce)))


def _data(request: ReadRequest, nonce: str) -> Iterator[str]:
    yield f"At most {request.max_facts_per_turn} facts for each turn."
    if request.context:
        yield f"<context-{nonce}>"
        for message in request.context:
            if message.role is not Role.SYSTEM:
                yield _line({"role": message.role.value, "text": neutralised(message.content)})
        yield f"</context-{nonce}>"
    yield f"<window-{nonce}>"
    turn = -1
    for shown in window_messages(request):
        if shown.turn != turn:
            turn = shown.turn
            said = local_time(request.turns[turn], request.profile)
            yield f"turn {turn}, said {said.strftime('%A')} {said.isoformat(timespec='minutes')} ({said.tzinfo})"
        yield _line({"n": shown.number, "role": shown.role.value, "text": neutralised(shown.text)})
    yield f"</window-{nonce}>"


def _line(fields: dict[str, str | int]) -> str:
    return msgspec.json.encode(fields).decode()

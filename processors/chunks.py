"""The window as a model gets to see it: numbered messages, in chunks where there is much of it.

A chunk is cut where a sentence ends, else at a space, else between two characters. What stands just before it goes
along as context, so that nothing is read twice and nothing is read without what it refers to. Long texts are condensed
first; of a window that is still longer than `MAX_CHUNKS` chunks its beginning and its end are read, its middle is not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mnemostream.turns import Role

from processors.condensing import LONG, condensed
from processors.cutting import boundary
from processors.extraction import ReadRequest
from processors.recalled import Recalled
from processors.records import ContextMessage

CHUNK_CHARACTERS: Final = 12_000
"""Some 3,000 tokens of English, 10,000 of Chinese."""
MAX_CHUNKS: Final = 16
"""Calls that one window may cost, without their repetitions."""

_LINE_CHARACTERS: Final = 40
"""What a message costs beside its text."""
_OVERLAP: Final = 200
_CONTEXT: Final = 400
"""Characters shown of an earlier message: its two ends."""
_SENTENCE_END: Final = re.compile(r"(?<![.!?…])[.!?…]{1,9}[\"'”’»)\]]{0,3}\s+|[。！？؟।][”’」』）]{0,3}\s*|\n+")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message of the window that facts may be read from, or a part of it, and where it stands."""

    number: int
    """What the model calls it: 0, 1, 2 … over the whole window."""
    turn: int
    index: int
    role: Role
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one call reads. `context` is shown for what `messages` refer to: no fact is taken from it."""

    messages: tuple[WindowMessage, ...]
    context: tuple[ContextMessage, ...] = ()


class Chunked(NamedTuple):
    """All of a window that is read, and how many characters of it are not."""

    chunks: tuple[Chunk, ...]
    unread_characters: int = 0


def window_messages(request: ReadRequest) -> tuple[WindowMessage, ...]:
    """The messages of the window, numbered. System text is no statement and is left out, as are blank messages, and
    lines that the application recalled."""
    found: list[WindowMessage] = []
    for turn_index, turn in enumerate(request.turns):
        recalled = Recalled((turn,))
        for index, message in enumerate(turn.messages):
            if message.role is not Role.SYSTEM:
                text = recalled.stripped(message.content)
                if text and not text.isspace():
                    shown = WindowMessage(len(found), turn_index, index, message.role, text, message.name)
                    found.append(shown)
    return tuple(found)


def chunks(request: ReadRequest, limit_characters: int = CHUNK_CHARACTERS) -> Chunked:
    """The window of `request` in chunks of about `limit_characters`; none where nothing is left to read, because all
    that a user or a tool says was recalled."""
    messages = [
        message if len(message.text) <= LONG else replace(message, text=condensed(message.text))
        for message in window_messages(request)
    ]
    if all(message.role is Role.ASSISTANT for message in messages):
        return Chunked(())
    made = [Chunk(part) for part in _parts(messages, limit_characters)]
    for number in range(len(made) - 1, 0, -1):
        made[number] = Chunk(made[number].messages, (_ending(made[number - 1].messages[-1]),))
    if made:
        made[0] = Chunk(made[0].messages, tuple(_shortened(message) for message in request.context))
    head = min(len(made), MAX_CHUNKS // 2)
    tail = max(head, len(made) - MAX_CHUNKS // 2)
    unread = sum(len(message.text) for chunk in made[head:tail] for message in chunk.messages)
    return Chunked((*made[:head], *made[tail:]), unread)


def _parts(messages: Sequence[WindowMessage], limit: int) -> Iterator[tuple[WindowMessage, ...]]:
    """The messages, packed; one that does not fit into a part of its own is cut."""
    part: list[WindowMessage] = []
    room = limit
    for message in messages:
        start, end = 0, len(message.text)
        while start < end:
            wanted = end - start + _LINE_CHARACTERS
            if wanted <= room:
                part.append(message if start == 0 else replace(message, text=message.text[start:]))
                room -= wanted
                break
            if not part or (wanted > limit and room - _LINE_CHARACTERS > limit // 4):
                stop = _cut(message.text, start, start + max(1, room - _LINE_CHARACTERS))
                part.append(replace(message, text=message.text[start:stop]))
                start = stop
            yield tuple(part)
            part, room = [], limit
    if part:
        yield tuple(part)


def _cut(text: str, start: int, stop: int) -> int:
    """The best place before `stop` to cut `text`, in the second half of what lies between."""
    half = (start + stop) // 2
    for bound in (_SENTENCE_END, _SPACE):
        ends = [match.end() for match in bound.finditer(text, half, stop)]
        if ends and ends[-1] > start:
            return ends[-1]
    return max(boundary(text, stop), half, start + 1)


def _ending(message: WindowMessage) -> ContextMessage:
    """The last sentence of `message`, or the end of it."""
    text = message.text[-2 * _OVERLAP :].rstrip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if len(text) - match.end() <= _OVERLAP]
    at = ends[0] if ends and ends[0] < len(text) else max(0, len(text) - _OVERLAP)
    return ContextMessage(message.role, text[boundary(text, at) :].strip(), message.name)


def _shortened(message: ContextMessage) -> ContextMessage:
    text = message.content
    if len(text) <= _CONTEXT:
        return message
    half = _CONTEXT // 2
    end = boundary(text, len(text) - half)
    return replace(message, content=f"{text[: boundary(text, half)]} … {text[end:]}")

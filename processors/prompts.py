"""How a window of turns is put before a model: stable text first, the conversation last, as data.

Every message is one line of JSON inside delimiters that carry a nonce, so that no text can act as a delimiter, a
speaker or an instruction by its shape. Numbers are small integers; no id of a turn, session or owner is shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
from mnemostream.turns import Role

from processors.chunks import Chunk
from processors.dates import local_time
from processors.extraction import ReadRequest
from processors.records import Category

_MARKS: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e01ef"
)
"""Zero-width and bidirectional marks, and the letters of hidden text."""
_UNSEEN: Final = re.compile(
    "(\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|"
    f"\U000e0077\U000e006c\U000e0073)\U000e007f)|[\ufe00-\ufe0f](?:[{_MARKS}]*[\ufe00-\ufe0f])+|[{_MARKS}]"
)
"""What nobody sees and a model reads: marks, and selectors one after the other; not the tags in the flags of England,
Scotland and Wales (the group)."""
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_TAGS: Final = re.compile(
    r"[<＜﹤‹〈](?=[\s\u200c\u200d]*(?:[/|｜!?<]|(?:window|context|system|sys|user|human|assistant|model|developer|tool|"
    r"function|instruction|inst|begin|start|end|im_|bos|eos|pad|unk|mask|think|memor|s>)|[^<>\n]{0,40}-[0-9a-f]{8}))",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(
    r"\[(?=\s*/?\s*(?:sys|tool_|available_tools|(?:inst|user|assistant|human|bos|eos|cls|sep|mask)\s*\]))",
    re.IGNORECASE,
)
_SUSPECT: Final = re.compile(r"[<＜﹤‹〈\[]|[^\n -~\u00a1-\u00ac\u00ae-\u02ff\u0400-\u0600\u3041-\u30ff\u4e00-\u9fff]")
"""In most texts nothing needs a second look."""
_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: `system` is the same for all turns of an app, so that providers can cache it."""

    system: str
    user: str


def neutralised(text: str) -> str:
    """`text` with nothing in it that looks like one of our delimiters or a model's control tag, or that is not seen;
    controls become spaces."""
    if _SUSPECT.search(text) is None:
        return text
    return _BRACKETS.sub("(", _TAGS.sub("‹", visible(text)))


def visible(text: str) -> str:
    """`text` without what nobody sees, but for the joiners that scripts and emoji need; controls become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(" ", _UNSEEN.sub(r"\1", text))


def render(request: ReadRequest, chunk: Chunk, *, instructions: str, nonce: str) -> Prompt:
    """The prompt for one chunk of `request`. `instructions` is the stable text; `nonce` is fresh for each call, 8 hex
    digits."""
    profile = request.profile
    system = _system(instructions, request.max_facts_per_turn, profile.categories, profile.instructions)
    return Prompt(system, "\n".join(_data(request, chunk, nonce)))


@lru_cache(maxsize=256)
def _system(instructions: str, max_facts: int, categories: tuple[Category, ...], added: str | None) -> str:
    parts = [instructions.strip(), f"Give at most {max_facts} facts for each turn, the most important ones."]
    if categories:
        lines = (f"- {_one_line(own.name)}: {_one_line(own.description)}".rstrip(": ") for own in categories)
        parts.append("The application's own categories, preferred where they fit:\n" + "\n".join(lines))
    if added and added.strip():
        parts.append("The application adds, for what to note and how:\n" + neutralised(added.strip()))
    return "\n\n".join(parts)


def _data(request: ReadRequest, chunk: Chunk, nonce: str) -> Iterator[str]:
    if chunk.context:
        yield f"<context-{nonce}>"
        for message in chunk.context:
            if message.role is not Role.SYSTEM:
                yield _line({}, message.role, message.name, message.content)
        yield f"</context-{nonce}>"
    yield f"<window-{nonce}>"
    turn = -1
    for shown in chunk.messages:
        if shown.turn != turn:
            turn = shown.turn
            said = local_time(request.turns[turn], request.profile)
            yield f"turn {turn}, said {said.strftime('%A')} {said.isoformat(timespec='minutes')} ({said.tzinfo})"
        yield _line({"n": shown.number}, shown.role, shown.name, shown.text)
    yield f"</window-{nonce}>"


def _line(fields: dict[str, str | int], role: Role, name: str | None, text: str) -> str:
    fields["role"] = role.value
    if name is not None and (shown := _one_line(name)[:_NAME]):
        fields["name"] = shown
    fields["text"] = neutralised(text)
    return msgspec.json.encode(fields).decode()


def _one_line(text: str) -> str:
    return " ".join(neutralised(text).split())

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
_OPEN: Final = "<\u226e＜﹤‹〈\u2329⟨⟪❬❮❰˂ᐸ≪⋖⧼⦑⦓︿︽"
_CLOSE: Final = ">\u226f＞﹥›〉\u232a⟩⟫❭❯❱˃ᐳ≫⋗⧽⦒⦔﹀︾"
"""Angle brackets, and what looks like them."""
_BESIDE: Final = (
    "[\u200c\u200d\u2800\u3164\uffa0\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0670\u06d6-\u06ed\u093c\u0e31-\u0e3a"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f]*+"
)
"""What may stand on a bracket or a letter without hiding it: joiners, fillers, marks, selectors."""
_SLASH: Final = "[/⁄∕⧸／]"
_PIPE: Final = "[|¦ǀ∣│❘｜]"
_DASH: Final = "[-‐-―−﹣－]"


def _spelled(*words: str) -> str:
    """A pattern of the words, with marks on their letters too, and in letters of full width."""
    wide = {ord(sign): f"[{sign}{chr(ord(sign) + 0xFEE0)}]{_BESIDE}" for sign in "abcdefghijklmnopqrstuvwxyz_"}
    return "|".join(word.translate(wide) for word in words)


_OURS: Final = f"(?:{_spelled('window', 'context', 'pairs')}){_DASH}[0-9a-f]{{8}}(?![0-9a-z])"
_TAG_NAME: Final = "(?:{}|{}[{}])".format(
    _spelled(
        *("window", "context", "pairs", "system", "sys", "user", "human", "assistant", "model", "developer", "tool"),
        *("function", "instruction", "inst", "begin", "start", "end", "eot", "im_", "bos", "eos", "pad", "unk"),
        *("mask", "think", "memor"),
    ),
    _spelled("s"),
    _CLOSE,
)
"""How the names of delimiters and control tags begin."""
_IN_PIPES: Final = rf"{_PIPE}[^|\s]{{1,40}}{_PIPE}\s*+"
_TAGS: Final = re.compile(
    rf"([{_OPEN}]{{1,3}}+)(?={_BESIDE}(?:[!?！？]|{_SLASH}|{_PIPE}?{_BESIDE}{_TAG_NAME}|{_IN_PIPES}[{_CLOSE}]"
    rf"|\S{{0,40}}{_DASH}[0-9a-f]{{8}}(?![0-9a-z])|[^\n]{{0,20}}{_OURS}"
    # With space behind the bracket it is a comparison, unless it closes behind the name.
    rf"|\s++(?:{_IN_PIPES}|{_SLASH}?\s*+{_TAG_NAME}[\w.:-]{{0,40}}\s*+)[{_CLOSE}]))"
    rf"(\s*+[^{_OPEN}{_CLOSE}\n]{{0,80}}+)([{_CLOSE}]{{0,3}}+)",
    re.IGNORECASE,
)
_QUOTED_TAGS: Final = re.compile(
    rf"([«»›《])(?={_BESIDE}(?:{_SLASH}{_BESIDE}{_TAG_NAME}|{_IN_PIPES}[«»‹》]|[^\n]{{0,20}}{_OURS}))"
    r"([^«»‹›《》\n]{0,80}+)([«»‹》]?)",
    re.IGNORECASE,
)
"""In quotation marks a word is a word: only what else marks a tag makes it one."""
_BRACKETS: Final = re.compile(
    rf"([\[［【⟦])(?={_BESIDE}\s*+{_SLASH}?\s*+(?:{_spelled('sys', 'tool_', 'available_tools')}"
    rf"|(?:{_spelled('inst', 'user', 'assistant', 'human', 'bos', 'eos', 'cls', 'sep', 'mask')})\s*+[\]］】⟧]))"
    r"(\s*+[^\[［【⟦\]］】⟧\n]{0,80}+)([\]］】⟧]?)",
    re.IGNORECASE,
)
_SUSPECT: Final = re.compile(r"[<\[«»˂]|[^\n -~\u00a1-\u00ac\u00ae-\u02ff\u0400-\u0600\u3041-\u30ff\u4e00-\u9fff]")
"""In most texts nothing needs a second look."""
_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: `system` is the same for all turns of an app, so that providers can cache it."""

    system: str
    user: str


def neutralised(text: str) -> str:
    """`text` with nothing in it that looks like one of our delimiters or a model's control tag, or that is not seen:
    the brackets of such are made round, controls become spaces."""
    if _SUSPECT.search(text) is None:
        return text
    text = visible(text)
    for tags in (_TAGS, _QUOTED_TAGS, _BRACKETS):
        text = tags.sub(_rounded, text)
    return text


def _rounded(tag: re.Match[str]) -> str:
    """As long as it was, so that what stands around it looks no more like a tag than before."""
    return "(" * len(tag[1]) + tag[2] + ")" * len(tag[3])


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

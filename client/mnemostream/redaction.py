"""Secrets out of text, line by line: a line that holds one becomes `[REDACTED]`, every other line stays as it is.

Every rule is a pattern for RE2, which takes linear time whatever the text, and some have a check in code behind it (a
checksum, or whether a value looks like a secret at all). One RE2 set over all patterns answers "none" for most texts in
one pass. A new rule is a row in `secret_rules.RULES`.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import re2
from mnemostream.secret_rules import RULES
from mnemostream.turns import Message, Turn

REDACTED: Final = "[REDACTED]"
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BLOCK: Final = re.compile(r"-----(BEGIN|END)[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_MATCHER_BYTES: Final = 64 * 1024 * 1024
"""RE2's cache of states for the whole table; it starts over when it is full, so this is speed, not correctness."""

_LOOKAHEAD_BYTES: Final = 200
"""How much of the rest of a line a check sees: enough to tell a sentence's end, and no more work on a long line."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and how many lines each rule took (a private key counts as one)."""

    text: str
    counts: Mapping[str, int]


def contains_secrets(text: str) -> bool:
    """Whether `text` holds anything that `sanitize_lines` would take out."""
    return bool(redact(text).counts)


def sanitize_lines(text: str) -> str:
    """`text` with `[REDACTED]` for each line that holds a secret; the other lines byte for byte, endings included."""
    return redact(text).text


def redact(text: str) -> Redaction:
    """`text` without its secrets, and what was taken. Doing it again changes nothing."""
    matcher = _matcher()
    if not matcher.suspects(text):
        return Redaction(text, {})
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    in_block = False
    for match in _LINE.finditer(text):
        line, ending = match.groups()
        if in_block:
            in_block = not _closes_block(line)
            pieces.append(REDACTED + ending if line else ending)
            continue
        rule = matcher.rule_for(line) if line else None
        if rule is None:
            pieces.append(line + ending)
            continue
        counts[rule] += 1
        in_block = _opens_block(line)
        pieces.append(REDACTED + ending)
    return Redaction("".join(pieces) if counts else text, dict(counts))


def redact_turn(turn: Turn) -> tuple[Turn, Mapping[str, int]]:
    """`turn` without secrets in what people and tools said: contents, names and ids of messages, recalled texts,
    strings in the metadata.

    A string in the metadata is read together with the name it stands under. The turn's own id, its owner and its
    session stay as they are: they are what it is found by.
    """
    counts: Counter[str] = Counter()

    def clean(text: str) -> str:
        redaction = redact(text)
        counts.update(redaction.counts)
        return redaction.text

    messages = tuple(_clean_message(message, clean(message.content), clean) for message in turn.messages)
    recalled = tuple(clean(text) for text in turn.recalled)
    metadata = _clean_metadata(turn.metadata, "", counts)
    if not counts:
        return turn, {}
    return replace(turn, messages=messages, recalled=recalled, metadata=metadata), dict(counts)


def _clean_message(message: Message, content: str, clean: Callable[[str], str]) -> Message:
    name = None if message.name is None else clean(message.name)
    return replace(message, content=content, name=name, id=None if message.id is None else clean(message.id))


def _clean_metadata(value: Any, name: str, counts: Counter[str]) -> Any:
    match value:
        case str():
            own = redact(value)
            if not own.counts:
                own = redact(f"{name}: {value}") if name and "\n" not in value else own
                own = replace(own, text=REDACTED) if own.counts else replace(own, text=value)
            counts.update(own.counts)
            return own.text
        case Mapping():
            return {inner: _clean_metadata(item, inner, counts) for inner, item in value.items()}
        case list():
            return [_clean_metadata(item, name, counts) for item in value]
        case _:
            return value


def _block_marks(line: str) -> list[str]:
    return [match.group(1) for match in _BLOCK.finditer(line)]


def _opens_block(line: str) -> bool:
    return _block_marks(line)[-1:] == ["BEGIN"]


def _closes_block(line: str) -> bool:
    return _block_marks(line)[-1:] == ["END"]


class _Matcher:
    """The table of rules, compiled."""

    def __init__(self) -> None:
        options = re2.Options()
        options.max_mem = _MATCHER_BYTES
        self._any = re2.Set.SearchSet(options)
        for rule in RULES:
            self._any.Add(rule.pattern)
        self._any.Compile()
        self._patterns = [re2.compile(rule.pattern.encode(), options) for rule in RULES]

    def suspects(self, text: str) -> list[int]:
        """The rules whose patterns occur in `text`, in the order of the table; their checks have not spoken yet."""
        return sorted(self._any.Match(_utf8(text)) or ())

    def rule_for(self, line: str) -> str | None:
        """The first rule that finds a secret in `line`."""
        encoded = _utf8(line)
        return next((RULES[index].name for index in self.suspects(line) if self._holds(index, encoded)), None)

    def _holds(self, index: int, line: bytes) -> bool:
        check = RULES[index].check
        if check is None:
            return True
        for match in self._patterns[index].finditer(line):
            groups = match.groups(default=b"") or (match.group(0),)
            if check(tuple(map(_text, groups)), _text(line[match.end() : match.end() + _LOOKAHEAD_BYTES])):
                return True
        return False


@functools.cache
def _matcher() -> _Matcher:
    return _Matcher()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")

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
from mnemostream.folding import foldings
from mnemostream.secret_rules import RULES
from mnemostream.secret_words import IS, OWN
from mnemostream.turns import Message, Turn

REDACTED: Final = "[REDACTED]"
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BLOCK: Final = re.compile(
    r"-{4,5} ?(?P<mark>BEGIN|END)[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|(?P<putty>PuTTY-User-Key-File)-[0-9]|(?P<mac>Private-MAC):"
)
_KEY_MATERIAL: Final = re2.compile(rb"[\s>|*#/\"'+\\,;-]*(?:[A-Za-z0-9+/=\\]*|[A-Za-z0-9-]{1,30}: .*)[\s\"'+\\,;)-]*")
"""A line that can stand inside a key's block: base64, a header, nothing; quoted or indented however people do it."""

_MATCHER_BYTES: Final = 64 * 1024 * 1024
"""RE2's cache of states for the whole table; it starts over when it is full, so this is speed, not correctness."""

_LOOKAHEAD_BYTES: Final = 200
"""How much of the rest of a line a check sees: enough to tell a sentence's end, and no more work on a long line."""
_VALUE_BYTES: Final = 400
"""How much of a value a check sees. No secret needs more to be known for one."""

_LABEL_CHARACTERS: Final = 100
"""How much of a line's end is read as a label whose value stands on a line below."""
_VALUE_CHARACTERS: Final = 400
_VALUE_WORDS: Final = 25
_MARKS: Final = " \t*_\"'`~"
_AROUND: Final = _MARKS + ">-\u00a0\u3000"
"""What quotes, marks or indents a line."""
_FENCE: Final = "```"
_SIGNS: Final = (":", "：", "->", "=>")
_VERB_AT_END: Final = re.compile(rf"(?:\s(?:{IS})|['’]s|是|は|为|為)\s*[:：]?$", re.IGNORECASE)
_VERB_CHARACTERS: Final = 30
_OWNED: Final = re.compile(rf"\b(?:{OWN})\b", re.IGNORECASE)
_ASSIGNS: Final = re.compile(r"[A-Za-z_][\w.-]*[\"']?[:=].*")
"""A field of its own, under one that is empty."""
_NUMBER: Final = re.compile(r"[0-9][0-9 -]{2,40}")
_OF_WORDS: Final = re.compile("phrase|words", re.IGNORECASE)


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
    if not any(map(matcher.suspects, foldings(text))):
        return Redaction(text, {})
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    block = _Block(text)
    label = _Label(matcher)
    for match in _LINE.finditer(text):
        line, ending = match.groups()
        if not line:
            pieces.append(ending)
            continue
        if block.goes_on(line, match.end()):
            pieces.append(REDACTED + ending)
            continue
        rule = matcher.rule_for(line) or label.rule_for(line)
        label.passes(line)
        if rule is None:
            pieces.append(line + ending)
            continue
        counts[rule] += 1
        block.begins(line)
        pieces.append(REDACTED + ending)
    return Redaction("".join(pieces) if counts else text, dict(counts))


class _Label:
    """A label at the end of a line ("my password is:") whose value may stand by itself on the next line that is not
    empty. What label and value are is for the rules to say, as if they stood on one line."""

    def __init__(self, matcher: "_Matcher") -> None:
        self._matcher = matcher
        self._label = ""

    def rule_for(self, line: str) -> str | None:
        """The rule by which `line` is the value that is waited for."""
        value = line.strip(_AROUND)
        if not self._label or value == REDACTED or not self._may_have(value):
            return None
        verb = _VERB_AT_END.search(self._label[-_VERB_CHARACTERS:])
        if verb is None and not self._label.endswith(_SIGNS):
            return None
        if verb is None and value.isalpha() and not _OWNED.search(self._label):
            return None  # a form: the name of a field above the name of a button
        rule = self._matcher.rule_for(f"{self._label} {value}")
        return rule if rule is not None and self._matcher.rule_for(self._label) is None else None

    def _may_have(self, value: str) -> bool:
        """One word, a number in groups, or the words of a phrase."""
        if not 0 < len(value) <= _VALUE_CHARACTERS or _ASSIGNS.fullmatch(value):
            return False
        words = len(value.split())
        return (
            words == 1
            or _NUMBER.fullmatch(value) is not None
            or (words <= _VALUE_WORDS and _OF_WORDS.search(self._label) is not None)
        )

    def passes(self, line: str) -> None:
        """`line` was read: what comes below may be its value, unless it says nothing yet."""
        bare = line.strip(_AROUND)
        if bare and not (bare.isalnum() and line.lstrip().startswith(_FENCE)):
            self._label = line.rstrip(_MARKS)[-_LABEL_CHARACTERS:]


class _Block:
    """The private key that the lines are in, if they are in one.

    One with an end takes everything up to it. One without ends where the lines stop to look like a key, so that a text
    that was cut, or that only names the mark, does not lose the rest.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_end: int | None = None
        self._open = False

    def begins(self, line: str) -> None:
        """A line of its own was redacted: a block may have begun in it."""
        self._open = [_begins(match) for match in _BLOCK.finditer(line)][-1:] == [True]
        if self._open and self._last_end is None:
            ends = (match.start() for match in _BLOCK.finditer(self._text) if not _begins(match))
            self._last_end = max(ends, default=-1)

    def goes_on(self, line: str, end: int) -> bool:
        """Whether `line`, which ends at `end` of the text, belongs to the block; the block's own last line does."""
        if not self._open:
            return False
        marks = [_begins(match) for match in _BLOCK.finditer(line)]
        if marks:
            self._open = marks[-1]
        elif end > (self._last_end or 0) and _KEY_MATERIAL.fullmatch(_utf8(line)) is None:
            self._open = False
            return False
        return True


def _begins(match: re.Match[str]) -> bool:
    return match["mark"] == "BEGIN" or match["putty"] is not None


def redact_turn(turn: Turn) -> tuple[Turn, Mapping[str, int]]:
    """`turn` without secrets in what people and tools said: contents, names and ids of messages, recalled texts,
    names and strings in the metadata.

    A string in the metadata is read together with the name it stands under. The turn's own id, its owner and its
    session stay as they are, whatever they hold: they are what it is found by.
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
            return _clean_names(value, counts)
        case list():
            return [_clean_metadata(item, name, counts) for item in value]
        case bool():
            return value
        case int():
            cleaned = _clean_metadata(str(value), name, counts)
            return value if cleaned == str(value) else cleaned
        case _:
            return value


def _clean_names(value: Mapping[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """An object of the metadata; where names hold secrets, those after the first get a number: `[REDACTED] 2`."""
    cleaned: dict[str, Any] = {}
    for name, item in value.items():
        own = redact(name)
        counts.update(own.counts)
        if not own.counts:
            cleaned[name] = _clean_metadata(item, name, counts)
            continue
        nth, safe = 1, own.text
        while safe in cleaned or (nth > 1 and safe in value):
            nth += 1
            safe = f"{own.text} {nth}"
        cleaned[safe] = _clean_metadata(item, "", counts)
    return cleaned


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

    def suspects(self, folded: str) -> list[int]:
        """The rules whose patterns occur in `folded`, in the order of the table; their checks have not spoken yet."""
        return sorted(self._any.Match(_utf8(folded)) or ())

    def rule_for(self, line: str) -> str | None:
        """The first rule that finds a secret in `line`."""
        for folded in foldings(line):
            encoded = _utf8(folded)
            for index in self.suspects(folded):
                if self._holds(index, encoded):
                    return RULES[index].name
        return None

    def _holds(self, index: int, line: bytes) -> bool:
        check = RULES[index].check
        if check is None:
            return True
        for match in self._patterns[index].finditer(line):
            found = match.groups(default=b"") or (match.group(0),)
            if check(
                tuple(_text(value[:_VALUE_BYTES]) for value in found),
                _text(line[match.end() : match.end() + _LOOKAHEAD_BYTES]),
            ):
                return True
        return False


@functools.cache
def _matcher() -> _Matcher:
    return _Matcher()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")

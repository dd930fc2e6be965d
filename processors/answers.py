"""From a model's answer to facts. A fact that breaks a rule is dropped and counted; an answer that is none is told so.

An answer that cannot be read is never taken for "no facts".
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, Literal

import msgspec
from mnemostream.redaction import contains_secrets
from mnemostream.turns import Role

from processors.chunks import Chunk, WindowMessage, window_messages
from processors.cutting import cut_bytes
from processors.dates import local_time
from processors.durations import expiry_of
from processors.extraction import ReadRequest
from processors.facts import MAX_FACT_BYTES, Fact
from processors.fading import POLICIES
from processors.folding import folded, strength
from processors.prompts import visible
from processors.recalled import Recalled

CONFIDENCE: Final[Mapping[str, float]] = {"explicit": 0.95, "strong": 0.80, "weak": 0.60, "speculation": 0.40}
"""What the levels that a model may name are worth."""

_NONE: Final = frozenset({"", "none", "null", "never", "n/a", "unknown", "-"})
"""What models say where they should say nothing."""
_REDACTED: Final = "[REDACTED]"
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD: Final = re.compile(r"[\W_]+")
_YEAR_OR_MONTH: Final = re.compile(r"(\d{4})(?:-(\d{2}))?", re.ASCII)
_GUESS: Final = CONFIDENCE["explicit"]
"""What an assistant says with less confidence than this is its guess."""


class FactAnswer(msgspec.Struct, kw_only=True):
    """A fact as a model gives it. The JSON schema that it must keep is derived from this class.

    A strict schema asks for every field; a server that keeps no schema may leave out those with a default.
    """

    text: str
    category: str
    importance: int
    confidence: Literal["explicit", "strong", "weak", "speculation"]
    messages: list[int]
    subject: str = ""
    attribute: str = ""
    since: str = ""
    expires_in: str = ""
    retracts: bool = False


class Answer(msgspec.Struct, kw_only=True):
    """The whole answer."""

    facts: list[FactAnswer]


class Dropped(StrEnum):
    """Why a fact of an answer, or one read by rules, was not taken. The labels of a counter."""

    NOT_A_FACT = "not_a_fact"
    """A field is missing, or of another type."""
    EMPTY_TEXT = "empty_text"
    SENSITIVE = "sensitive"
    """It holds a secret, or only says that there was one."""
    UNKNOWN_CATEGORY = "unknown_category"
    IMPORTANCE_OUT_OF_RANGE = "importance_out_of_range"
    UNKNOWN_MESSAGE = "unknown_message"
    INVALID_DATE = "invalid_date"
    INVALID_DURATION = "invalid_duration"
    ASSISTANT_GUESS = "assistant_guess"
    """Only the assistant says it, and not even plainly."""
    REPEATED = "repeated"
    RECALLED = "recalled"
    TOO_MANY = "too_many"


HARMLESS: Final = frozenset(
    {Dropped.SENSITIVE, Dropped.ASSISTANT_GUESS, Dropped.REPEATED, Dropped.RECALLED, Dropped.TOO_MANY}
)
"""Reasons that say nothing against the answer: a model need not be asked again for them."""


class UnusableAnswer(ValueError):
    """The answer is none. `rule` comes from a closed set; the message is for the model only, it may quote its
    answer."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class _Bad(Exception):
    def __init__(self, why: Dropped, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True, slots=True)
class Read:
    """What was read, and how many facts were not taken, by reason."""

    facts: tuple[Fact, ...]
    dropped: Mapping[Dropped, int]


def categories_of(request: ReadRequest) -> tuple[str, ...]:
    """The built-in categories and those of the app."""
    return tuple(dict.fromkeys((*POLICIES, *(own.name for own in request.profile.categories))))


def strict_schema(categories: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of `Answer`, as strict structured output wants it: an object at the root, nothing optional."""
    (_,), definitions = msgspec.json.schema_components([Answer], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("title", None)
        definition.pop("description", None)
        for field in definition["properties"].values():
            field.pop("default", None)
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False
    definitions["FactAnswer"]["properties"]["category"] = {"type": "string", "enum": list(categories)}
    root = definitions.pop("Answer")
    return {**root, "$defs": definitions}


def read_answer(
    content: str | bytes, request: ReadRequest, chunk: Chunk | None = None, *, max_fact_bytes: int = MAX_FACT_BYTES
) -> Read:
    """The facts of a model's answer to `request`, or to one chunk of it. Raises UnusableAnswer."""
    messages = window_messages(request) if chunk is None else chunk.messages
    checks = _Checks(request, {message.number: message for message in messages}, max_fact_bytes)
    items = _items(content)
    facts: list[Fact] = []
    dropped: Counter[Dropped] = Counter()
    complaints: list[str] = []
    for item in items:
        try:
            facts.append(checks.fact(item))
        except _Bad as bad:
            dropped[bad.why] += 1
            if bad.why not in HARMLESS:
                complaints.append(str(bad))
    if complaints and not facts:
        raise UnusableAnswer("no_valid_fact", " ".join(dict.fromkeys(complaints[:3])))
    kept, late = strongest(facts, request)
    return Read(kept, dropped + late)


def _items(content: str | bytes) -> list[object]:
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnusableAnswer("not_json", f"It is not valid JSON: {error}") from None
    except RecursionError:
        raise UnusableAnswer("not_json", "It nests too deeply.") from None
    items = answer.get("facts") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise UnusableAnswer("no_list_of_facts", 'It must be an object with a list "facts".')
    return items


class _Checks:
    """What a fact of an answer is held against."""

    def __init__(self, request: ReadRequest, messages: Mapping[int, WindowMessage], max_fact_bytes: int) -> None:
        self._request = request
        self._messages = messages
        self._max_fact_bytes = max_fact_bytes
        self._categories = {name.casefold(): name for name in reversed(categories_of(request))}

    def fact(self, item: object) -> Fact:
        """The fact that `item` is. Raises _Bad."""
        answer = _converted(item)
        text = cut_bytes(" ".join(visible(answer.text).split()), self._max_fact_bytes)
        if not any(map(str.isalnum, text)):
            raise _Bad(Dropped.EMPTY_TEXT, "A fact has no text.")
        if _REDACTED in text or contains_secrets(f"{text}\n{answer.subject}"):
            raise _Bad(Dropped.SENSITIVE, "A fact holds a secret.")
        category = self._categories.get(answer.category.strip().casefold())
        if category is None:
            raise _Bad(Dropped.UNKNOWN_CATEGORY, f"Categories are: {', '.join(sorted(self._categories.values()))}.")
        if not 1 <= answer.importance <= 10:
            raise _Bad(Dropped.IMPORTANCE_OUT_OF_RANGE, "importance is 1 to 10.")
        support = self._support(answer.messages)
        confidence = CONFIDENCE[answer.confidence]
        if confidence < _GUESS and all(message.role is Role.ASSISTANT for message in support):
            raise _Bad(Dropped.ASSISTANT_GUESS, "An assistant's guess is no fact.")
        turn = support[-1].turn
        inside = [message for message in support if message.turn == turn]
        said = self._request.turns[turn]
        return Fact(
            turn=turn,
            text=text,
            category=category,
            importance=answer.importance,
            confidence=confidence,
            role=Role.USER if any(message.role is Role.USER for message in inside) else inside[-1].role,
            said_at=said.said_at,
            subject=subject_of(answer.subject),
            attribute=attribute_of(answer.attribute),
            messages=tuple(message.index for message in inside),
            valid_from=_since(answer.since, local_time(said, self._request.profile)),
            expires_at=_expiry(answer.expires_in, said.said_at),
            retracts=answer.retracts,
        )

    def _support(self, numbers: Sequence[int]) -> list[WindowMessage]:
        if not numbers or not all(number in self._messages for number in numbers):
            first, last = min(self._messages, default=0), max(self._messages, default=0)
            raise _Bad(Dropped.UNKNOWN_MESSAGE, f"messages must name at least one of {first} to {last}, and no other.")
        return [self._messages[number] for number in sorted(set(numbers))]


def _converted(item: object) -> FactAnswer:
    if isinstance(item, dict):
        item = {name: value for name, value in item.items() if value is not None}
    try:
        return msgspec.convert(item, FactAnswer, strict=False)
    except msgspec.ValidationError as error:
        raise _Bad(Dropped.NOT_A_FACT, f"A fact breaks the schema: {error}.") from None


def strongest(facts: Sequence[Fact], request: ReadRequest) -> tuple[tuple[Fact, ...], Counter[Dropped]]:
    """The facts to keep, in their order: none twice, none that the application itself had put into the prompt, and for
    each turn the `max_facts_per_turn` of highest confidence times importance."""
    dropped: Counter[Dropped] = Counter()
    # By turn: what an earlier turn says may have been recalled for a later one of the same window.
    recalled = {place: Recalled((turn,)) for place, turn in enumerate(request.turns) if turn.recalled}
    news = [fact for fact in facts if not _was_recalled(fact, recalled, request)] if recalled else facts
    dropped[Dropped.RECALLED] = len(facts) - len(news)
    unique, repeated = folded(news)
    dropped[Dropped.REPEATED] = repeated
    room = Counter(dict.fromkeys(range(len(request.turns)), request.max_facts_per_turn))
    kept: set[int] = set()
    for place in sorted(range(len(unique)), key=lambda place: -strength(unique[place])):
        turn = unique[place].turn
        if room[turn] > 0:
            room[turn] -= 1
            kept.add(place)
    dropped[Dropped.TOO_MANY] = len(unique) - len(kept)
    return tuple(fact for place, fact in enumerate(unique) if place in kept), +dropped


def _was_recalled(fact: Fact, recalled: Mapping[int, Recalled], request: ReadRequest) -> bool:
    known = recalled.get(fact.turn)
    return known is not None and not fact.retracts and known.covers(fact.text, partial(_said, request, fact.turn))


def _said(request: ReadRequest, turn: int) -> list[str]:
    """What users say in that turn."""
    return [m.text for m in window_messages(request) if m.turn == turn and m.role is Role.USER]


def subject_of(name: str) -> str | None:
    """`name` folded, so that the same subject has the same name; None where it names none."""
    folded = " ".join(unicodedata.normalize("NFKC", visible(name)).casefold().replace("’", "'").split())
    folded = re.sub(r"^the (?=user\b)", "", folded)
    if folded in {"i", "me", "myself", "speaker", "the speaker"}:
        folded = "user"
    return cut_bytes(folded, 100) or None


def _spelled(sign: str) -> str:
    """A symbol by its name, so that `likes_c++` is not `likes_c`, and 🍣 not 🥦."""
    symbol = sign == "#" or unicodedata.category(sign) in {"So", "Sm", "Sc"}
    return f"_{unicodedata.name(sign, 'symbol').casefold()}_" if symbol else sign


def attribute_of(name: str) -> str | None:
    """`name` in snake_case, folded; None where it names none."""
    parts = _CAMEL.sub("_", "".join(map(_spelled, unicodedata.normalize("NFKC", name))))
    folded_name = _NO_WORD.sub("_", parts.casefold()).strip("_")
    return cut_bytes(folded_name, 100).rstrip("_…") or None


def _since(text: str, local: datetime) -> datetime | None:
    """A date means its first moment in the speaker's zone; so do a month and a year."""
    text = text.strip()
    if text.casefold() in _NONE:
        return None
    try:
        if match := _YEAR_OR_MONTH.fullmatch(text):
            day = date(int(match[1]), int(match[2] or 1), 1)
        elif len(text) <= 10:
            day = date.fromisoformat(text)
        else:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=local.tzinfo)).astimezone(UTC)
        return datetime(day.year, day.month, day.day, tzinfo=local.tzinfo).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _Bad(Dropped.INVALID_DATE, "since must be an ISO date or empty.") from None


def _expiry(text: str, said_at: datetime) -> datetime | None:
    if text.strip().casefold() in _NONE:
        return None
    expires_at = expiry_of(text, said_at)
    if expires_at is None:
        raise _Bad(Dropped.INVALID_DURATION, "expires_in must be such as 7d, 30d, an ISO 8601 duration, or empty.")
    return expires_at

"""From a model's answer to facts. A fact that breaks a rule is dropped and counted; an answer that is none is told so.

An answer that cannot be read is never taken for "no facts".
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec
from mnemostream.turns import Role

from processors.cutting import cut_bytes
from processors.dates import later, local_time
from processors.extraction import ReadRequest
from processors.facts import MAX_FACT_BYTES, Fact
from processors.fading import POLICIES
from processors.normalization import normalized
from processors.prompts import WindowMessage, window_messages

CONFIDENCE: Final[Mapping[str, float]] = {"explicit": 0.95, "strong": 0.80, "weak": 0.60, "speculation": 0.40}
"""What the levels that a model may name are worth."""

_DURATION: Final = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SHORT: Final = re.compile(r"(\d{1,4})\s*d(?:ays?)?", re.IGNORECASE)
_FOREVER: Final = timedelta(days=36_600)


class FactAnswer(msgspec.Struct, kw_only=True):
    """A fact as a model gives it. The JSON schema that it must keep is derived from this class."""

    text: str
    category: str
    importance: int
    confidence: Literal["explicit", "strong", "weak", "speculation"]
    subject: str
    attribute: str
    messages: list[int]
    since: str
    expires_in: str


class Answer(msgspec.Struct, kw_only=True):
    """The whole answer."""

    facts: list[FactAnswer]


class Dropped(StrEnum):
    """Why a fact of an answer, or one read by rules, was not taken. The labels of a counter."""

    NOT_A_FACT = "not_a_fact"
    EMPTY_TEXT = "empty_text"
    UNKNOWN_CATEGORY = "unknown_category"
    IMPORTANCE_OUT_OF_RANGE = "importance_out_of_range"
    UNKNOWN_MESSAGE = "unknown_message"
    INVALID_DATE = "invalid_date"
    INVALID_DURATION = "invalid_duration"
    REPEATED = "repeated"
    RECALLED = "recalled"
    TOO_MANY = "too_many"


HARMLESS: Final = frozenset({Dropped.REPEATED, Dropped.RECALLED, Dropped.TOO_MANY})
"""Reasons that say nothing against the answer."""


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
    return (*POLICIES, *(name for name in request.profile.categories if name not in POLICIES))


def strict_schema(categories: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of `Answer`, as strict structured output wants it: an object at the root, nothing optional."""
    (_,), definitions = msgspec.json.schema_components([Answer], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("title", None)
        definition.pop("description", None)
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False
    definitions["FactAnswer"]["properties"]["category"] = {"type": "string", "enum": list(categories)}
    root = definitions.pop("Answer")
    return {**root, "$defs": definitions}


def read_answer(content: str | bytes, request: ReadRequest, *, max_fact_bytes: int = MAX_FACT_BYTES) -> Read:
    """The facts of a model's answer to `request`. Raises UnusableAnswer."""
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableAnswer("not_json", f"It is not valid JSON: {error}") from None
    except RecursionError:
        raise UnusableAnswer("not_json", "It nests too deeply.") from None
    items = answer.get("facts") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise UnusableAnswer("no_list_of_facts", 'It must be an object with a list "facts".')
    messages = window_messages(request)
    categories = frozenset(categories_of(request))
    facts: list[Fact] = []
    dropped: Counter[Dropped] = Counter()
    complaints: list[str] = []
    for item in items:
        try:
            facts.append(_fact(item, messages, request, categories, max_fact_bytes))
        except _Bad as bad:
            dropped[bad.why] += 1
            complaints.append(str(bad))
    if items and not facts:
        raise UnusableAnswer("no_valid_fact", " ".join(dict.fromkeys(complaints[:3])))
    kept, late = strongest(facts, request)
    return Read(kept, dropped + late)


def _fact(
    item: object,
    messages: Sequence[WindowMessage],
    request: ReadRequest,
    categories: frozenset[str],
    max_fact_bytes: int,
) -> Fact:
    try:
        answer = msgspec.convert(item, FactAnswer, strict=False)
    except msgspec.ValidationError as error:
        raise _Bad(Dropped.NOT_A_FACT, f"A fact breaks the schema: {error}.") from None
    text = cut_bytes(" ".join(answer.text.replace("\x00", "\ufffd").split()), max_fact_bytes)
    if not normalized(text):
        raise _Bad(Dropped.EMPTY_TEXT, "A fact has no text.")
    if answer.category not in categories:
        raise _Bad(Dropped.UNKNOWN_CATEGORY, f"Categories are: {', '.join(sorted(categories))}.")
    if not 1 <= answer.importance <= 10:
        raise _Bad(Dropped.IMPORTANCE_OUT_OF_RANGE, "importance is 1 to 10.")
    if not answer.messages or not all(0 <= number < len(messages) for number in answer.messages):
        raise _Bad(Dropped.UNKNOWN_MESSAGE, f"messages must name at least one of 0 to {len(messages) - 1}.")
    support = [messages[number] for number in sorted(set(answer.messages))]
    turn = support[-1].turn
    inside = [message for message in support if message.turn == turn]
    said_at = request.turns[turn].said_at
    return Fact(
        turn=turn,
        text=text,
        category=answer.category,
        importance=answer.importance,
        confidence=CONFIDENCE[answer.confidence],
        role=Role.USER if any(message.role is Role.USER for message in inside) else inside[-1].role,
        said_at=said_at,
        subject=subject_of(answer.subject),
        attribute=attribute_of(answer.attribute),
        messages=tuple(message.index for message in inside),
        valid_from=_since(answer.since, local_time(request.turns[turn], request.profile)),
        expires_at=_expiry(answer.expires_in, said_at),
    )


def strongest(facts: Sequence[Fact], request: ReadRequest) -> tuple[tuple[Fact, ...], Counter[Dropped]]:
    """The facts to keep, in their order: none twice, none that the application itself had put into the prompt, and for
    each turn the `max_facts_per_turn` of highest confidence times importance."""
    dropped: Counter[Dropped] = Counter()
    recalled = {normalized(text) for turn in request.turns for text in turn.recalled}
    unique: dict[str, Fact] = {}
    for fact in facts:
        text = normalized(fact.text)
        if text in recalled:
            dropped[Dropped.RECALLED] += 1
        elif text in unique:
            dropped[Dropped.REPEATED] += 1
        else:
            unique[text] = fact
    ranked = sorted(unique.values(), key=lambda fact: -fact.confidence * fact.importance)
    room = Counter(dict.fromkeys(range(len(request.turns)), request.max_facts_per_turn))
    chosen: list[Fact] = []
    for fact in ranked:
        if room[fact.turn] > 0:
            room[fact.turn] -= 1
            chosen.append(fact)
        else:
            dropped[Dropped.TOO_MANY] += 1
    kept = set(map(id, chosen))
    return tuple(fact for fact in unique.values() if id(fact) in kept), dropped


def subject_of(name: str) -> str | None:
    """`name` folded, so that the same subject has the same name; None where it names none."""
    folded = " ".join(unicodedata.normalize("NFKC", name.replace("\x00", " ")).casefold().replace("’", "'").split())
    folded = re.sub(r"^the (?=user\b)", "", folded)
    if folded in {"i", "me", "myself", "speaker", "the speaker"}:
        folded = "user"
    return cut_bytes(folded, 100) or None


def attribute_of(name: str) -> str | None:
    """`name` in snake_case, folded; None where it names none."""
    folded = re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", name).casefold()).strip("_")
    return cut_bytes(folded, 100).rstrip("_…") or None


def _since(text: str, local: datetime) -> datetime | None:
    """A date means its first moment in the speaker's zone."""
    text = text.strip()
    if not text:
        return None
    try:
        if len(text) == 10:
            day = date.fromisoformat(text)
            moment = datetime(day.year, day.month, day.day, tzinfo=local.tzinfo)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=local.tzinfo)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _Bad(Dropped.INVALID_DATE, "since must be an ISO date or empty.") from None


def _expiry(text: str, said_at: datetime) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    span = duration_of(text)
    expires_at = later(said_at, span) if span is not None else None
    if expires_at is None:
        raise _Bad(Dropped.INVALID_DURATION, "expires_in must be such as 7d, 30d, an ISO 8601 duration, or empty.")
    return expires_at


def duration_of(text: str) -> timedelta | None:
    """`7d` or an ISO 8601 duration (a year is 365 days, a month 30); None where it is neither, zero, or over a
    century."""
    if short := _SHORT.fullmatch(text):
        span = timedelta(days=int(short[1]))
    elif (long := _DURATION.fullmatch(text.upper())) and any(long.groups()) and len(text) <= 40:
        years, months, weeks, days, hours, minutes, seconds = (min(int(part or 0), 10**9) for part in long.groups())
        try:
            span = timedelta(
                days=years * 365 + months * 30 + weeks * 7 + days, hours=hours, minutes=minutes, seconds=seconds
            )
        except OverflowError:
            return None
    else:
        return None
    return span if timedelta() < span <= _FOREVER else None

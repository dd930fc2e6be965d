"""From a model's answer to judgements. A judgement that breaks a rule is refused and counted; an answer that is none,
or passes a question over, is told so.

An answer that cannot be read is never taken for "all can stand".
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from mnemostream.redaction import contains_secrets, sanitize_lines

from processors.answers import UnusableAnswer
from processors.arbitration import ArbitrationRequest, Judgement, Offered, Question
from processors.arbitration_prompts import numbered
from processors.cutting import cut_bytes
from processors.guards import Difference, differences, forgotten, invented, miscounted, turned_round
from processors.normalization import normalized
from processors.routing import Action

MAX_REASON_CHARACTERS: Final = 300

_NO_REASON: Final = "the model gives no reason"
_HIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_COUNTED: Final = frozenset({Difference.NUMBER, Difference.UNIT, Difference.DATE, Difference.NAME})
_COMPLAINTS: Final = 3
"""Of one answer, as many are told to the model."""


class JudgementAnswer(msgspec.Struct, kw_only=True):
    """A judgement as a model gives it. The JSON schema that it must keep is derived from this class, in this order: a
    reason is given before the action that follows from it."""

    q: int
    m: int
    reason: str
    action: Literal["ADD", "UPDATE", "DELETE", "NOOP"]
    text: str


class Judgements(msgspec.Struct, kw_only=True):
    """The whole answer."""

    judgements: list[JudgementAnswer]


class _Refused(Exception):
    """Why a judgement is not taken, in words for the model."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What an answer says, by question, and what of it was refused."""

    judgements: tuple[dict[UUID, Judgement], ...]
    refused: int
    complaint: str | None
    """What to tell the model where it passed a question over; None: every question has a judgement."""

    @property
    def taken(self) -> int:
        """How many judgements there are."""
        return sum(map(len, self.judgements))


def _strict_schema() -> Mapping[str, Any]:
    """As strict structured output wants it: an object at the root, nothing optional, nothing additional."""
    (_,), definitions = msgspec.json.schema_components([Judgements], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("title", None)
        definition.pop("description", None)
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False
    definitions["JudgementAnswer"]["properties"]["action"] = {
        "type": "string",
        "enum": [Action.ADD.value, Action.UPDATE.value, Action.DELETE.value, Action.NOOP.value],
    }
    root = definitions.pop("Judgements")
    return {**root, "$defs": definitions}


JUDGEMENTS_SCHEMA: Final[Mapping[str, Any]] = _strict_schema()
"""The JSON schema of `Judgements`."""


def read_judgements(content: str | bytes, request: ArbitrationRequest) -> Judged:
    """The judgements of a model's answer to `request`. A pair is judged once: what is said of it later is ignored.

    Raises UnusableAnswer where it cannot be read.
    """
    items = _items(content)
    offered = numbered(request)
    taken: list[dict[UUID, Judgement]] = [{} for _ in request.questions]
    seen: set[int] = set()
    complaints: list[str] = []
    for item in items:
        try:
            answer, question, memory = _pair(item, request, offered)
            if answer.m not in seen:
                seen.add(answer.m)
                taken[answer.q][memory.memory_id] = _judgement(answer, question, memory, request.max_memory_bytes)
        except _Refused as refused:
            complaints.append(str(refused))
    missing = [f"Question {number} has no judgement." for number, found in enumerate(taken) if not found]
    complaint = _joined([*complaints, *missing]) if missing else None
    return Judged(tuple(taken), len(complaints), complaint)


def _items(content: str | bytes) -> Sequence[object]:
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnusableAnswer("not_json", f"It is not valid JSON: {error}") from None
    except RecursionError:
        raise UnusableAnswer("not_json", "It nests too deeply.") from None
    items = answer.get("judgements") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise UnusableAnswer("no_list_of_judgements", 'It must be an object with a list "judgements".')
    return items


def _pair(
    item: object, request: ArbitrationRequest, offered: Sequence[Mapping[int, Offered]]
) -> tuple[JudgementAnswer, Question, Offered]:
    """The judgement, and the pair that it names."""
    if isinstance(item, dict):
        # Servers that know no schema leave empty what has nothing to say.
        item = {"text": "", "reason": ""} | {name: value for name, value in item.items() if value is not None}
    try:
        answer = msgspec.convert(item, JudgementAnswer, strict=False)
    except msgspec.ValidationError as error:
        raise _Refused(f"A judgement breaks the schema: {error}.") from None
    if not 0 <= answer.q < len(request.questions):
        raise _Refused(f"q must be one of 0 to {len(request.questions) - 1}.")
    memory = offered[answer.q].get(answer.m)
    if memory is None:
        raise _Refused(f"To question {answer.q} belong m {', '.join(map(str, offered[answer.q]))}, no others.")
    return answer, request.questions[answer.q], memory


def _judgement(answer: JudgementAnswer, question: Question, memory: Offered, max_bytes: int) -> Judgement:
    reason = _reason(answer.reason)
    if answer.action != Action.UPDATE:
        return Judgement(Action(answer.action), reason)
    text = _one_line(answer.text)
    where = f"The UPDATE of q {answer.q}, m {answer.m}"
    if not normalized(text):
        raise _Refused(f"{where} has no text.")
    if len(text.encode()) > max_bytes:
        # Cut, it would lose what one of the two says.
        raise _Refused(f"{where} is too long: at most {max_bytes} bytes.")
    if contains_secrets(text):
        raise _Refused(f"{where} has a secret in it.")
    _check_sources(text, question, memory.text, where)
    if normalized(text) != normalized(memory.text):
        return Judgement(Action.UPDATE, reason, text)
    if question.retracts or differences(memory.text, question.text):
        raise _Refused(f"{where} is the known text: it loses what is new.")
    return Judgement(Action.NOOP, reason)


def _check_sources(text: str, question: Question, known: str, where: str) -> None:
    """Refuse a merged text that says more than its sources, less than them, or the opposite of one."""
    sources = [known, question.text]
    if invented(text, sources) or miscounted(text, sources):
        raise _Refused(f"{where} says what neither text says.")
    if turned_round(text, known, None if question.retracts else question.text):
        raise _Refused(f"{where} says the opposite of one of the texts.")
    if question.retracts:
        return
    if _lost(question.text, text):
        raise _Refused(f"{where} leaves out a number, date or name of the new statement.")
    if forgotten(known, question.text, text):
        raise _Refused(f"{where} leaves out a number, date, name or denial of the known text.")


def _lost(text: str, merged: str) -> frozenset[Difference]:
    """What `merged` leaves out of `text`. Where there are no capitals any word may be a name, and names don't count."""
    counted = _COUNTED if any(letter.isupper() for letter in text) else _COUNTED - {Difference.NAME}
    return invented(text, [merged]) & counted


def _reason(text: str) -> str:
    text = sanitize_lines(_one_line(text))
    if len(text) > MAX_REASON_CHARACTERS:
        text = cut_bytes(text[:MAX_REASON_CHARACTERS], len(text[: MAX_REASON_CHARACTERS - 1].encode()))
    return text or _NO_REASON


def _one_line(text: str) -> str:
    return " ".join(_HIDDEN.sub(" ", unicodedata.normalize("NFC", text)).split())


def _joined(complaints: Iterable[str]) -> str:
    return " ".join(list(dict.fromkeys(complaints))[:_COMPLAINTS])

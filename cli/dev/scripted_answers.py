"""What the scripted model says: deterministic facts, judgements and vectors, made from the request alone.

A script stands in the texts themselves, so that a turn alone can drive the whole system:

    FACT: the text | category=fact | subject=user | attribute=job   a fact (see `scripted_facts`)
    … [[delete]]                                                    a judgement (see `scripted_judgements`)
    … [[near 0.93 some other text]]                                 a vector (see `scripted_vector`)

Markers stay in the text of the memory, and count for what is compared letter by letter. Beside `FACT:` lines a message
is cut into sentences: a marker stands before the full stop, and has none in it.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import shake_256
from typing import Any, Final, cast
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from processors.answers import Answer, FactAnswer
from processors.arbitration import Offered, Question
from processors.arbitration_answers import JudgementAnswer, Judgements
from processors.guards import differences
from processors.local_arbitration import judge
from processors.normalization import normalized

_WINDOW: Final = re.compile(r"<window-([0-9a-f]+)>\n(.*?)</window-\1>", re.DOTALL)
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$)|\.(?=\S)[^.!?\n]*)*")
_DIRECTIVE: Final = "FACT:"
_PAIRS: Final = re.compile(r"<pairs-([0-9a-f]+)>\n(.*?)</pairs-\1>", re.DOTALL)
_VERDICT: Final = re.compile(r"\[\[(ADD|UPDATE|DELETE|NOOP)(?: #(\d+))?(?::([^\[\]]*))?\]\]", re.IGNORECASE)
_NEAR: Final = re.compile(
    r"\[\[near\s+(-?\d+(?:\.\d+)?)\s+((?:(?!\[\[|\]\]).|\[\[(?:(?!\]\]).)*\]\])+)\]\]", re.DOTALL | re.IGNORECASE
)
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


class _Line(msgspec.Struct):
    role: str
    text: str
    n: int = 0


class _Shown(msgspec.Struct, kw_only=True):
    """A line of an arbitration prompt: a statement has `q`, a known memory `m`."""

    text: str
    q: int | None = None
    m: int | None = None
    retracts: bool = False
    live: bool = True
    same_slot: bool = False


def scripted_facts(prompts: Sequence[str]) -> list[FactAnswer]:
    """Every sentence of the user's messages in the window is one fact, verbatim.

    A line that begins with `FACT:` is a script instead, and then only such lines of its message count:
    `FACT: the text | category=fact | importance=7 | confidence=weak | subject=user | attribute=job | since=… |
    expires_in=… | retracts=true`. A prompt without a window (another application's) is read as one message.
    """
    return [fact for line in _user_lines(prompts) for fact in _facts(line)]


def _user_lines(prompts: Sequence[str]) -> Iterator[_Line]:
    window = next(filter(None, map(_WINDOW.search, reversed(prompts))), None)
    if window is None:
        yield _Line("user", prompts[-1])
        return
    for text in window[2].split("\n"):
        if text.startswith("{"):
            line = msgspec.json.decode(text, type=_Line)
            if line.role == "user":
                yield line


def _facts(line: _Line) -> Iterator[FactAnswer]:
    scripted = [text for text in line.text.split("\n") if text.startswith(_DIRECTIVE)]
    if scripted:
        for text in scripted:
            yield _directed(text.removeprefix(_DIRECTIVE), line.n)
        return
    for sentence in _SENTENCE.findall(line.text):
        if text := sentence.strip():
            yield _fact(text, line.n)


def _directed(text: str, number: int) -> FactAnswer:
    said, *settings = (part.strip() for part in text.split("|"))
    fields: dict[str, Any] = dict(setting.split("=", 1) for setting in settings if "=" in setting)
    known = {name: value for name, value in fields.items() if name in FactAnswer.__struct_fields__}
    plain = msgspec.to_builtins(_fact(said, number))
    return msgspec.convert({**plain, **known}, FactAnswer, strict=False)


def _fact(text: str, number: int) -> FactAnswer:
    fields: dict[str, Any] = {
        "text": text,
        "category": "fact",
        "importance": 5,
        "confidence": "explicit",
        "subject": "",
        "attribute": "",
        "messages": [number],
        "since": "",
        "expires_in": "",
        "retracts": False,
    }
    return msgspec.convert(fields, FactAnswer)


def scripted_judgements(prompts: Sequence[str]) -> list[JudgementAnswer]:
    """What `processors.local_arbitration` says of each pair of an arbitration prompt, unless the text of the new
    statement carries markers:

        [[ADD]]  [[DELETE]]  [[NOOP]]  [[UPDATE: the merged text]]   for every memory that is offered to it
        [[DELETE #7]]                                                for number 7, whether or not it was offered

    `[[UPDATE]]` without a text is the rule's breach that it looks like. Markers in a known text say nothing.
    In lower case they say the same, and `[[update: …]]` wants it: a word in capitals counts as a name of the new text,
    which a merged one must not lose; nor the number in `[[near 0.9 …]]`.
    """
    pairs = next(filter(None, map(_PAIRS.search, reversed(prompts))), None)
    found: list[JudgementAnswer] = []
    asked: _Shown | None = None
    for text in pairs[2].split("\n") if pairs else ():
        if not text.startswith("{"):
            continue
        line = msgspec.json.decode(text, type=_Shown)
        if line.q is not None:
            asked = line
            found.extend(_marked(line, None))
        elif asked is not None:
            found.extend(_marked(asked, line.m) or [_judged(asked, line)])
    return found


def _marked(asked: _Shown, place: int | None) -> list[JudgementAnswer]:
    """The markers of `asked` that are for the memory at `place`; None: those that name a place themselves."""
    chosen = []
    for action, named, text in _VERDICT.findall(asked.text):
        if bool(named) == (place is None):
            fields = {"q": asked.q, "m": int(named) if named else place, "action": action.upper(), "text": text.strip()}
            chosen.append(msgspec.convert(fields | {"reason": "scripted"}, JudgementAnswer))
    return chosen


def _judged(asked: _Shown, known: _Shown) -> JudgementAnswer:
    """By rules over the texts as they are without their markers."""
    text, other = _unmarked(asked.text), _unmarked(known.text)
    memory = Offered(
        memory_id=UUID(int=0),
        text=other,
        stated_at=_LONG_AGO,
        live=known.live,
        same_slot=known.same_slot,
        similarity=None,
        differences=differences(other, text),
    )
    question = Question(text=text, stated_at=_LONG_AGO, role=None, retracts=asked.retracts, offered=(memory,))
    judgement = judge(question)[memory.memory_id]
    fields = {"q": asked.q, "m": known.m, "action": judgement.action.value, "reason": judgement.reason}
    return msgspec.convert(fields | {"text": judgement.text or ""}, JudgementAnswer)


def _unmarked(text: str) -> str:
    return " ".join(_NEAR.sub(" ", _VERDICT.sub(" ", text)).split())


def scripted_answer(prompts: Sequence[str], schema_name: str | None = None) -> str:
    """The content of a chat completion: JSON that keeps the schema that was asked for: `judgements`, or facts.

    schema_name: where the request names one; else the prompt's own delimiters tell.
    """
    if schema_name == "judgements" or (schema_name is None and any(map(_PAIRS.search, prompts))):
        return msgspec.json.encode(Judgements(judgements=scripted_judgements(prompts))).decode()
    return msgspec.json.encode(Answer(facts=scripted_facts(prompts))).decode()


@lru_cache(maxsize=20_000)
def scripted_vector(text: str, dimensions: int) -> bytes:
    """A unit vector, little-endian float32, that depends on the normalised text alone: equal texts give equal vectors,
    others are nearly at right angles.

    A text that contains `[[near 0.93 some other text]]` has that cosine, from -1 to 1, to the vector of "some other
    text", up to the rounding of float32: keep 0.0001 away from a threshold. The other text may carry one such marker
    itself. Two texts near the same third have about the product of their cosines.
    """
    folded = normalized(text)
    vector = _direction(folded, dimensions)
    if near := _NEAR.search(folded):
        cosine = max(-1.0, min(1.0, float(near[1])))
        anchor = np.frombuffer(scripted_vector(near[2], dimensions), "<f4").astype(np.float64)
        anchor /= np.linalg.norm(anchor)
        aside = vector - (vector @ anchor) * anchor
        vector = cosine * anchor + np.sqrt(1 - cosine**2) * aside / np.linalg.norm(aside)
    return vector.astype("<f4").tobytes()


def _direction(text: str, dimensions: int) -> NDArray[np.float64]:
    digest = shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * dimensions)
    vector = np.frombuffer(digest, "<i2").astype(np.float64) + 0.5
    return cast("NDArray[np.float64]", vector / np.linalg.norm(vector))


@lru_cache(maxsize=20_000)
def scripted_vector_base64(text: str, dimensions: int) -> str:
    """The same as OpenAI sends it where `encoding_format` is base64."""
    return base64.b64encode(scripted_vector(text, dimensions)).decode()

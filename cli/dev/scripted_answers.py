"""What the scripted model says: deterministic facts and vectors, made from the request alone."""

import base64
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import shake_256
from typing import Any, Final

import msgspec
import numpy as np

from processors.answers import Answer, FactAnswer
from processors.normalization import normalized

_WINDOW: Final = re.compile(r"<window-([0-9a-f]+)>\n(.*?)</window-\1>", re.DOTALL)
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$)|\.(?=\S)[^.!?\n]*)*")
_DIRECTIVE: Final = "FACT:"


class _Line(msgspec.Struct):
    role: str
    text: str
    n: int = 0


def scripted_facts(prompts: Sequence[str]) -> list[FactAnswer]:
    """Every sentence of the user's messages in the window is one fact, verbatim.

    A line that begins with `FACT:` is a script instead, and then only such lines of its message count:
    `FACT: the text | category=fact | importance=7 | confidence=weak | subject=user | attribute=job | since=… |
    expires_in=…`. A prompt without a window (another application's) is read as one message.
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
    return FactAnswer(
        text=text,
        category="fact",
        importance=5,
        confidence="explicit",
        subject="",
        attribute="",
        messages=[number],
        since="",
        expires_in="",
    )


def scripted_answer(prompts: Sequence[str]) -> str:
    """The content of a chat completion: JSON that keeps the extraction schema."""
    return msgspec.json.encode(Answer(facts=scripted_facts(prompts))).decode()


@lru_cache(maxsize=20_000)
def scripted_vector(text: str, dimensions: int) -> bytes:
    """A unit vector, little-endian float32, that depends on the normalised text alone: equal texts give equal vectors,
    others are nearly at right angles."""
    digest = shake_256(normalized(text).encode("utf-8", "surrogatepass")).digest(2 * dimensions)
    vector = np.frombuffer(digest, "<i2").astype(np.float64) + 0.5
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


@lru_cache(maxsize=20_000)
def scripted_vector_base64(text: str, dimensions: int) -> str:
    """The same as OpenAI sends it where `encoding_format` is base64."""
    return base64.b64encode(scripted_vector(text, dimensions)).decode()

"""JSON out of what models write around it."""

import re
from typing import Final

import msgspec

_FENCED: Final = re.compile(r"```(?:json)?[ \t]*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_THOUGHT: Final = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def unwrapped(text: str) -> str:
    """`text` without what models put around JSON that they are asked for in words: thoughts, one fence, prose before
    and after. Text that has no such JSON in it stays as it is."""
    if text.startswith("{"):
        return text
    thought = _THOUGHT.match(text)
    rest = (text[thought.end() :] if thought else text).strip()
    if rest.startswith("{"):
        return rest
    fenced = _FENCED.findall(rest)
    if len(fenced) == 1 and (inside := fenced[0].strip()).startswith("{"):
        return str(inside)
    start, end = rest.find("{"), rest.rfind("}")
    if not fenced and 0 <= start < end and _is_object(rest[start : end + 1]):
        return rest[start : end + 1]
    return text


def _is_object(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True

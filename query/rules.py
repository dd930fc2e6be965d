"""The rules that a request's fields keep: plain values in, plain values out.

Each raises InvalidRequest with the field's name on the wire and the rule that is broken, never the value.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from processors.errors import InvalidRequest
from processors.facts import MAX_FACT_BYTES

MAX_DATA_BYTES: Final = 16 * 1024
MAX_DATA_DEPTH: Final = 32
MAX_LIST: Final = 64
"""Entries of a list in a request, and characters of a name in one."""
MAX_WAIT: Final = timedelta(seconds=60)
"""A longer wait is cut to this."""
MAX_WEIGHT: Final = 1000.0

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_EXACT_INTEGERS: Final = 2**53


def name(field: str, value: str, longest: int) -> str:
    """A name of 1 to `longest` characters without control characters."""
    if not 1 <= len(value) <= longest:
        raise InvalidRequest(field, f"must have 1 to {longest} characters")
    if _CONTROL.search(value):
        raise InvalidRequest(field, "must not hold control characters")
    return value


def optional_name(field: str, value: str, longest: int) -> str | None:
    """As `name`; empty is none."""
    return name(field, value, longest) if value else None


def names(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """At most 64 names of at most 64 characters."""
    listed = tuple(values)
    if len(listed) > MAX_LIST:
        raise InvalidRequest(field, f"must have at most {MAX_LIST} entries")
    return tuple(name(f"{field}[{index}]", value, MAX_LIST) for index, value in enumerate(listed))


def uuid(field: str, value: str) -> UUID:
    """A UUID in its usual form of 36 characters."""
    if len(value) == 36:
        try:
            return UUID(value)
        except ValueError:
            pass
    raise InvalidRequest(field, "must be a UUID")


def category(field: str, value: str) -> str:
    """The name of a category."""
    if not _CATEGORY.fullmatch(value):
        raise InvalidRequest(field, "must match [a-z][a-z0-9_-]{0,63}")
    return value


def text(value: str) -> str:
    """`value` as it can be stored: Postgres takes no NUL."""
    return value.replace("\0", _REPLACEMENT)


def content(field: str, value: str) -> str:
    """The text of a memory."""
    stored = text(value)
    if not stored.strip():
        raise InvalidRequest(field, "must not be empty")
    if len(stored.encode()) > MAX_FACT_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_FACT_BYTES} bytes of UTF-8")
    return stored


def whole(field: str, value: int, lowest: int, highest: int, default: int) -> int:
    """A whole number in a range; 0 stands for `default`."""
    if value == 0:
        return default
    if not lowest <= value <= highest:
        raise InvalidRequest(field, f"must be {lowest} to {highest}")
    return value


def number(field: str, value: float, highest: float) -> float:
    """A number from 0 to `highest`, to six digits: the store keeps single precision, which cannot hold 1e-320."""
    if not (math.isfinite(value) and 0 <= value <= highest):
        raise InvalidRequest(field, f"must be 0 to {highest:g}")
    return round(value, 6)


def wait(field: str, value: timedelta) -> timedelta:
    """How long to wait, cut to 60 s."""
    if value < timedelta(0):
        raise InvalidRequest(field, "must not be negative")
    return min(value, MAX_WAIT)


def data(field: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object as it can be stored: NUL replaced, whole numbers as such, everything finite."""
    stored: dict[str, Any] = _storable(field, value, 0)
    if len(msgspec.json.encode(stored)) > MAX_DATA_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_DATA_BYTES} bytes as JSON")
    return stored


def _storable(field: str, value: Any, depth: int) -> Any:
    if depth > MAX_DATA_DEPTH:
        raise InvalidRequest(field, f"must be nested at most {MAX_DATA_DEPTH} deep")
    match value:
        case str():
            return text(value)
        case float():
            if not math.isfinite(value):
                raise InvalidRequest(field, "must hold finite numbers only")
            return int(value) if value.is_integer() and abs(value) < _EXACT_INTEGERS else value
        case Mapping():
            return {text(key): _storable(field, item, depth + 1) for key, item in value.items()}
        case list():
            return [_storable(field, item, depth + 1) for item in value]
        case _:
            return value

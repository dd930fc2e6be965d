"""How one field of a turn is checked: a function gives back the value as it is kept, or raises InvalidTurn.

`place` is the field as an error names it, such as `messages[3].content`; the value itself never gets into an error.
"""

import functools
import re
from typing import Any, Final

import msgspec
from mnemostream.errors import InvalidTurn
from mnemostream.turns import Reason

MAX_METADATA_BYTES: Final = 16 * 1024
MAX_METADATA_DEPTH: Final = 32
MAX_NAME_CHARACTERS: Final = 256

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Unicode category Cc."""
_LARGEST_NUMBER: Final = int(1.7976931348623157e308)


@functools.cache
def _zone_names() -> frozenset[str]:
    from importlib.resources import files  # costs 30 ms, which only a turn with a time zone should pay

    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def time_zone(value: object) -> str | None:
    """A name from the list of the tzdata package; no file is opened by the value."""
    if value is None:
        return None
    name = as_text(value, "time_zone")
    if name not in _zone_names():
        raise broken("time_zone", f"must be the name of an IANA time zone (length {len(name)})")
    return name


def flag(value: object, place: str) -> bool:
    """True or false; absent is false."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise broken(place, f"must be true or false, is {kind(value)}")
    return value


def metadata(value: object) -> dict[str, Any]:
    """A JSON object that jsonb can hold, bounded in size, depth and the range of its numbers."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise broken("metadata", f"must be an object, is {kind(value)}")
    size = _json_size(value)
    if size > MAX_METADATA_BYTES:
        raise broken("metadata", f"must be at most {MAX_METADATA_BYTES} bytes of JSON, has {size}")
    storable: dict[str, Any] = _storable(value, MAX_METADATA_DEPTH)
    return storable


def _json_size(value: dict[Any, Any]) -> int:
    """Measured before anything is walked in Python: eight megabytes of poison would hold a worker up for seconds."""
    try:
        return len(msgspec.json.encode(value))
    except UnicodeEncodeError:
        rule = "holds a lone surrogate"
    except RecursionError:
        rule = f"must nest at most {MAX_METADATA_DEPTH} levels"
    except (TypeError, ValueError, OverflowError):
        rule = "holds something that is not JSON"
    raise broken("metadata", rule)


def _storable(value: object, levels: int) -> Any:
    """`value` as jsonb can hold it; a place inside is not named, for its keys are the producer's own text."""
    match value:
        case None | bool():
            return value
        case str():
            utf8_length(value, "metadata")
            return without_nul(value)
        case int() | float():
            if not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER:
                raise broken("metadata", "holds a number outside the range of a double")
            return value
        case list() | dict() if levels == 0:
            raise broken("metadata", f"must nest at most {MAX_METADATA_DEPTH} levels")
        case list():
            return [_storable(item, levels - 1) for item in value]
        case dict():
            return {
                _storable(as_text(name, "metadata"), 0): _storable(item, levels - 1) for name, item in value.items()
            }
        case _:
            raise broken("metadata", "holds something that is not JSON")


def identifier(value: object, place: str, longest: int) -> str:
    """Text of 1 to `longest` characters, none of them a control character."""
    text = as_text(value, place)
    if not 1 <= len(text) <= longest:
        raise broken(place, f"must be 1 to {longest} characters, has {len(text)}")
    control = _CONTROL.search(text)
    if control is not None:
        raise broken(place, f"control character at {control.start()} (length {len(text)})")
    utf8_length(text, place)
    return text


def optional_identifier(value: object, place: str) -> str | None:
    """An identifier, or None where it is absent."""
    return None if value is None else identifier(value, place, MAX_NAME_CHARACTERS)


def required(value: object, place: str) -> object:
    """Anything but null, which counts as absent."""
    if value is None:
        raise broken(place, "is missing")
    return value


def as_text(value: object, place: str) -> str:
    """Text, which may still hold a lone surrogate."""
    if not isinstance(value, str):
        raise broken(place, f"must be text, is {kind(value)}")
    return value


def array(value: object, place: str) -> list[object]:
    """An array, its items unchecked."""
    if not isinstance(value, list):
        raise broken(place, f"must be an array, is {kind(value)}")
    return value


def utf8_length(text: str, place: str) -> int:
    """The bytes of `text` in UTF-8, which holds everything but a lone surrogate."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        position = error.start
    raise broken(place, f"lone surrogate at {position} (length {len(text)})")


def without_nul(text: str) -> str:
    """`text` as Postgres can store it."""
    return text.replace("\0", "\ufffd")


def kind(value: object) -> str:
    """What `value` is, in JSON's words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return "something that is not JSON"


def broken(place: str, rule: str) -> InvalidTurn:
    """The error to raise for a field that breaks `rule`."""
    return InvalidTurn(Reason.INVALID_FIELD, f"{place}: {rule}")


def label(value: object, place: str) -> str | None:
    """Free text of a bounded length, such as the name of a speaker; absent is None."""
    if value is None:
        return None
    text = as_text(value, place)
    if len(text) > MAX_NAME_CHARACTERS:
        raise broken(place, f"must be at most {MAX_NAME_CHARACTERS} characters, has {len(text)}")
    utf8_length(text, place)
    return without_nul(text)

"""The two encodings of messages on the HTTP port: proto3 JSON, strict and whole, and binary."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from connectrpc.codec import Codec
from protobuf import (
    DescField,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMessage,
    DescFieldValueScalar,
    Message,
    ScalarType,
    message_from_json_value,
    message_to_json_value,
)
from typing_extensions import override

from processors.errors import InvalidRequest
from query.errors import failure

M = TypeVar("M", bound=Message)

BODY: Final = "body"
"""The field that is named where no field can be."""
_LONGEST_NAME: Final = 64
_STRUCTS: Final = ("data", "metadata")
"""The fields that are JSON objects."""
_WELL_KNOWN: Final = {
    "google.protobuf.Timestamp": "must be a time as RFC 3339 has it, like 2026-11-21T10:00:00Z",
    "google.protobuf.Duration": "must be a duration in seconds, like 2.5s",
    "google.protobuf.Struct": "must be an object, nested at most 32 deep",
}
_SCALARS: Final = {
    ScalarType.STRING: "must be a text",
    ScalarType.BOOL: "must be true or false",
    ScalarType.INT32: "must be a whole number of 32 bits",
    ScalarType.INT64: "must be a whole number of 64 bits",
    ScalarType.DOUBLE: "must be a number",
}


class JsonCodec(Codec[Message, Any]):
    """proto3 JSON: lowerCamelCase, zero values present, int64 as strings, enums by name; unknown fields are refused."""

    @override
    def name(self) -> str:
        """As in `application/json`."""
        return "json"

    @override
    def encode(self, message: Message) -> bytes:
        """`message` as JSON."""
        text = message.to_json(always_emit_implicit=True)
        if any(
            f'"{name}":{{"' in text for name in _STRUCTS
        ):  # numbers of a Struct are doubles: 3 would be shown as 3.0
            return msgspec.json.encode(_whole(message_to_json_value(message, always_emit_implicit=True)))
        return text.encode()

    @override
    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """The message in `data`. Raises ConnectError with the field that is wrong."""
        try:
            # Not the library's own parser of text: 100,000 opening brackets overflow its stack.
            value = msgspec.json.decode(data) if data else {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise failure(InvalidRequest(BODY, "must be a JSON object in UTF-8")) from None
        if not isinstance(value, dict):
            raise failure(InvalidRequest(BODY, "must be a JSON object"))
        try:
            return message_from_json_value(message_class, value, ignore_unknown_fields=False)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise failure(_wrong(message_class, value, "")) from None


class BinaryCodec(Codec[Message, Any]):
    """The binary form. Unknown fields are ignored, as everywhere in gRPC."""

    @override
    def name(self) -> str:
        """As in `application/proto`."""
        return "proto"

    @override
    def encode(self, message: Message) -> bytes:
        """`message` in binary."""
        return message.to_binary()

    @override
    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """The message in `data`. Raises ConnectError."""
        return read_binary(bytes(data), message_class)


def read_binary(data: bytes, message_class: type[M]) -> M:
    """The message in `data`. Raises ConnectError where it is none."""
    try:
        return message_class.from_binary(data)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise failure(InvalidRequest(BODY, f"must be a {message_class.desc().type_name}")) from None


def _wrong(message_class: type[Message], value: Mapping[str, Any], path: str) -> InvalidRequest:
    """Which field of `value` cannot be read, found by reading them one by one."""
    fields = {name: field for field in message_class.desc().fields for name in (field.json_name, field.name)}
    for key, item in value.items():
        name = path + key[:_LONGEST_NAME]
        field = fields.get(key)
        if field is None:
            return InvalidRequest(name, f"is no field of {message_class.desc().type_name}")
        try:
            message_from_json_value(message_class, {key: item}, ignore_unknown_fields=False)
        except (ValueError, TypeError, OverflowError, RecursionError):
            inner = _message_class(field)
            if inner is not None and isinstance(item, dict):
                return _wrong(inner, item, f"{name}.")
            return InvalidRequest(name, _rule(field))
    return InvalidRequest(path.rstrip(".") or BODY, "cannot be read")


def _message_class(field: DescField) -> type[Message] | None:
    """The class of a field that holds one of our own messages."""
    match field.value:
        case DescFieldValueMessage(message=message) if not message.type_name.startswith("google.protobuf."):
            return message.type
        case _:
            return None


def _rule(field: DescField) -> str:
    match field.value:
        case DescFieldValueList():
            return "must be a list of texts"
        case DescFieldValueEnum(enum=enum):
            return f"must be one of {', '.join(value.name for value in enum.values)}"
        case DescFieldValueMessage(message=message):
            return _WELL_KNOWN.get(message.type_name, "must be an object")
        case DescFieldValueScalar(scalar=scalar):
            return _SCALARS.get(scalar, "has the wrong type")
        case _:
            return "has the wrong type"


def _whole(value: Any) -> Any:
    """`value` with the whole numbers of every Struct written as such."""
    match value:
        case dict():
            return {key: _integers(item) if key in _STRUCTS else _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case _:
            return value


def _integers(value: Any) -> Any:
    match value:
        case dict():
            return {key: _integers(item) for key, item in value.items()}
        case list():
            return [_integers(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value

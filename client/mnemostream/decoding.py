"""Turns to bytes and back, by the rules of `turns.v1`.

One validator serves both ways: a producer's turn is read by the same functions that will read it in the worker.

Decided where the rules are silent:

- The checks come in this order: key, value, size, schema version, UTF-8, JSON, app and owner, key against body, the
  rest. An unknown schema version is reported as such even where the body cannot be read.
- A byte order mark, NaN, Infinity, and nesting deeper than the parser follows are not JSON. Of a duplicate name the
  last counts.
- NUL, which Postgres cannot store, becomes U+FFFD in `content`, `name`, a message's `id`, `recalled` and `metadata`; in
  `id`, `owner` and `session` it is a control character and refused. A lone surrogate is refused wherever it is read.
- `metadata` nests at most 32 levels, and its numbers lie in the range of a double: both keep it inside what every JSON
  reader and Postgres's jsonb can hold. Its size is that of its compact JSON.
- A message's `id` and `name` are at most 256 characters each.
- `time_zone` is looked up in the list of names of the tzdata package; no file is opened by its value.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NoReturn

import msgspec
from mnemostream.errors import InvalidTurn, TurnTooLarge
from mnemostream.fields import (
    MAX_NAME_CHARACTERS,
    array,
    as_text,
    broken,
    flag,
    identifier,
    kind,
    label,
    metadata,
    optional_identifier,
    required,
    time_zone,
    utf8_length,
    without_nul,
)
from mnemostream.instants import format_instant, parse_instant
from mnemostream.turns import Envelope, Message, Reason, Role, Turn

MAX_VALUE_BYTES: Final = 8 * 1024 * 1024
MAX_CONTENT_BYTES: Final = 1024 * 1024
MAX_MESSAGES: Final = 200
MAX_RECALLED: Final = 100
MAX_RECALLED_BYTES: Final = 64 * 1024
MAX_ID_CHARACTERS: Final = 128
SCHEMA_VERSION: Final = "1"
APP_PATTERN: Final = "[a-z0-9][a-z0-9._-]{0,62}"

_APP: Final = re.compile(APP_PATTERN)
_WHOLE_DIGITS: Final = 310
_ROLES: Final = {role.value: role for role in Role}
_ABSENT_LENGTH: Final = b"\xff" * 8


def decode_turn(value: bytes | None, *, key: bytes | None, schema: bytes | str | None = None) -> Turn:
    """The turn in a record of `turns.v1`. Raises InvalidTurn, and nothing else, whatever the bytes are.

    schema: the record's header `mnemo-schema`; None stands for version 1.
    """
    text, present_key = _text_of(value, key, schema)
    return _turn_of(_parsed(text), present_key)


def validate_turn(turn: Turn) -> Turn:
    """`turn` as a reader will see it once it is published. Raises InvalidTurn."""
    return _turn_of(_body_of(turn), partition_key(turn.app, turn.owner))


def encode_turn(turn: Turn) -> bytes:
    """`turn` as a value of `turns.v1`. Raises InvalidTurn before it writes what no reader would accept."""
    body = _body_of(turn)
    _turn_of(body, partition_key(turn.app, turn.owner))
    value = msgspec.json.encode(body)
    if len(value) > MAX_VALUE_BYTES:
        raise TurnTooLarge(f"value: at most {MAX_VALUE_BYTES} bytes, has {len(value)}")
    return value


def partition_key(app: str, owner: str) -> bytes:
    """The key of every record about this owner. Raises InvalidTurn where UTF-8 cannot hold it."""
    for place, name in (("app", app), ("owner", owner)):
        utf8_length(as_text(name, place), place)
    return f"{app}/{owner}".encode()


def split_key(key: bytes) -> tuple[str, str]:
    """App and owner of a key, which splits at its first `/`. Raises InvalidTurn (`key_mismatch`)."""
    try:
        app, slash, owner = key.decode().partition("/")
    except UnicodeDecodeError:
        slash = ""
    if not slash:
        raise InvalidTurn(Reason.KEY_MISMATCH, f"key: must be app/owner in UTF-8 (length {len(key)})")
    return app, owner


def fingerprint(turn: Turn) -> bytes:
    """SHA-256 over the messages of a valid turn: a redelivered id with another fingerprint is `id_reused`.

    Take it from the turn as it was received, before redaction, whose rules may change. Each text is framed by its
    length in bytes, so that nothing can move from one field to the next unseen.
    """
    digest = hashlib.sha256()
    for message in turn.messages:
        for text in (message.role.value, message.content, message.name, message.id):
            if text is None:
                digest.update(_ABSENT_LENGTH)
            else:
                encoded = text.encode()
                digest.update(len(encoded).to_bytes(8))
                digest.update(encoded)
    return digest.digest()


def _text_of(value: bytes | None, key: bytes | None, schema: bytes | str | None) -> tuple[str, bytes]:
    if not key:
        raise InvalidTurn(Reason.MISSING_KEY, "key: is missing")
    if not value:
        raise InvalidTurn(Reason.EMPTY_VALUE, "value: is empty")
    if len(value) > MAX_VALUE_BYTES:
        raise TurnTooLarge(f"value: at most {MAX_VALUE_BYTES} bytes, has {len(value)}")
    if schema not in (None, SCHEMA_VERSION, SCHEMA_VERSION.encode()):
        raise InvalidTurn(Reason.UNSUPPORTED_SCHEMA, f"header mnemo-schema: must be {SCHEMA_VERSION} or absent")
    try:
        return value.decode(), key
    except UnicodeDecodeError as error:
        position = error.start
    raise InvalidTurn(Reason.INVALID_UTF8, f"value: is not UTF-8 at byte {position} of {len(value)}")


def _parsed(text: str) -> object:
    """The JSON in `text`. What msgspec refuses gets a second reading: it may be no worse than a lone surrogate."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        pass
    detail = "value: nests too deeply"
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        detail = f"value: is not JSON at character {error.pos} of {len(text)}"
    except _NotJsonError:
        detail = "value: NaN and Infinity are not JSON"
    except RecursionError:
        pass
    raise InvalidTurn(Reason.INVALID_JSON, detail)


class _NotJsonError(Exception):
    """Python's parser met a constant that JSON does not have."""


def _refuse_constant(_: str) -> NoReturn:
    raise _NotJsonError


def _whole_number(digits: str) -> int | float:
    # Python refuses to read very long integers; as a float such a number is infinite, which is refused in its place.
    return int(digits) if len(digits) <= _WHOLE_DIGITS else float(digits)


def _turn_of(body: object, key: bytes) -> Turn:
    if not isinstance(body, dict):
        raise broken("value", f"must be an object, is {kind(body)}")
    envelope = _envelope(body, key)
    try:
        turn_id = identifier(required(body.get("id"), "id"), "id", MAX_ID_CHARACTERS)
        envelope = Envelope(envelope.app, envelope.owner, turn_id)
        return Turn(
            id=turn_id,
            app=envelope.app,
            owner=envelope.owner,
            said_at=_said_at(body.get("said_at")),
            session=optional_identifier(body.get("session"), "session"),
            messages=_messages(body.get("messages")),
            recalled=_recalled(body.get("recalled")),
            time_zone=time_zone(body.get("time_zone")),
            off_record=flag(body.get("off_record"), "off_record"),
            metadata=metadata(body.get("metadata")),
        )
    except InvalidTurn as invalid:
        invalid.envelope = envelope
        raise


def _envelope(body: Mapping[str, object], key: bytes) -> Envelope:
    app = as_text(required(body.get("app"), "app"), "app")
    if _APP.fullmatch(app) is None:
        raise broken("app", f"must match {APP_PATTERN} (length {len(app)})")
    owner = identifier(required(body.get("owner"), "owner"), "owner", MAX_NAME_CHARACTERS)
    if split_key(key) != (app, owner):
        raise InvalidTurn(Reason.KEY_MISMATCH, f"key: must be app/owner of the value (length {len(key)})")
    return Envelope(app, owner, None)


def _said_at(value: object) -> datetime:
    text = as_text(required(value, "said_at"), "said_at")
    try:
        return parse_instant(text)
    except ValueError as error:
        rule = str(error)
    raise broken("said_at", f"{rule} (length {len(text)})")


def _messages(value: object) -> tuple[Message, ...]:
    items = array(required(value, "messages"), "messages")
    if not 1 <= len(items) <= MAX_MESSAGES:
        raise broken("messages", f"must be 1 to {MAX_MESSAGES}, are {len(items)}")
    messages = []
    total = 0
    for index, item in enumerate(items):
        place = f"messages[{index}]"
        if not isinstance(item, dict):
            raise broken(place, f"must be an object, is {kind(item)}")
        content = as_text(required(item.get("content"), f"{place}.content"), f"{place}.content")
        total += utf8_length(content, f"{place}.content")
        messages.append(
            Message(
                role=_role(item.get("role"), f"{place}.role"),
                content=without_nul(content),
                id=label(item.get("id"), f"{place}.id"),
                name=label(item.get("name"), f"{place}.name"),
            )
        )
    if total > MAX_CONTENT_BYTES:
        raise TurnTooLarge(f"messages: content of at most {MAX_CONTENT_BYTES} bytes together, has {total}")
    return tuple(messages)


def _role(value: object, place: str) -> Role:
    role = _ROLES.get(as_text(required(value, place), place))
    if role is None:
        raise broken(place, "must be user, assistant, system or tool")
    return role


def _recalled(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = array(value, "recalled")
    if len(items) > MAX_RECALLED:
        raise broken("recalled", f"must be at most {MAX_RECALLED} texts, are {len(items)}")
    texts = [as_text(item, f"recalled[{index}]") for index, item in enumerate(items)]
    total = sum(utf8_length(text, f"recalled[{index}]") for index, text in enumerate(texts))
    if total > MAX_RECALLED_BYTES:
        raise broken("recalled", f"must be at most {MAX_RECALLED_BYTES} bytes together, has {total}")
    return tuple(without_nul(text) for text in texts)


def _body_of(turn: Turn) -> dict[str, Any]:
    """The JSON object of `turn`, unchecked but for what JSON would change without a word (its date)."""
    try:
        said_at = format_instant(turn.said_at)
    except ValueError as error:
        raise broken("said_at", str(error)) from None
    optional: dict[str, object] = {
        "session": turn.session,
        "recalled": list(turn.recalled),
        "time_zone": turn.time_zone,
        "off_record": turn.off_record,
        "metadata": dict(turn.metadata),
    }
    return {
        "id": turn.id,
        "app": turn.app,
        "owner": turn.owner,
        "said_at": said_at,
        "messages": [_message_body(message) for message in turn.messages],
        **{name: value for name, value in optional.items() if value not in (None, [], False, {})},
    }


def _message_body(message: Message) -> dict[str, Any]:
    body = {"role": message.role, "content": message.content, "id": message.id, "name": message.name}
    return {name: value for name, value in body.items() if value is not None}

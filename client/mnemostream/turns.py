"""A turn of conversation: the value of the topic `turns.v1`, and the rules that it keeps.

`decoding.decode_turn` is the one way in, for producers (before they send) and for the worker (when it reads); it raises
`InvalidTurn` with one of the closed set of `Reason`s, naming field, place and rule, never the value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Reason(StrEnum):
    """Why a record is parked."""

    MISSING_KEY = "missing_key"
    EMPTY_VALUE = "empty_value"
    TOO_LARGE = "too_large"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    UNSUPPORTED_SCHEMA = "unsupported_schema"
    KEY_MISMATCH = "key_mismatch"
    INVALID_FIELD = "invalid_field"
    ID_REUSED = "id_reused"
    MODEL_ANSWER_UNUSABLE = "model_answer_unusable"
    MODEL_REFUSED = "model_refused"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Whose turn a broken record is, where its key and its body agree on that. `turn_id` is None if it is broken."""

    app: str
    owner: str
    turn_id: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a turn."""

    role: Role
    content: str
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange in a session. `said_at` is aware, in UTC; `id` is unique inside the owner."""

    id: str
    app: str
    owner: str
    said_at: datetime
    messages: tuple[Message, ...]
    session: str | None = None
    recalled: tuple[str, ...] = ()
    time_zone: str | None = None
    off_record: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

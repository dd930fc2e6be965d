"""Turns from JSON lines, one turn a line: what is missing is filled in, what breaks a rule is told by its number."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mnemostream.decoding import decode_turn, partition_key, validate_turn
from mnemostream.errors import InvalidTurn
from mnemostream.ids import new_turn_id
from mnemostream.turns import Message, Role, Turn


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a line that leaves it out is given."""

    app: str | None = None
    owner: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A line that is a turn."""

    line: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is none: its number from 1, the field (or `value`), and the rule; never the value."""

    line: int
    reason: str
    field: str
    rule: str


def read_turns(lines: Iterable[bytes], defaults: Defaults) -> Iterator[Accepted | Refused]:
    """What each line is, in order. Empty lines are passed over; a line without an id is given one."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _read(number, line, defaults)


def turn_of_text(text: str, defaults: Defaults, said_at: datetime) -> Accepted | Refused:
    """One turn in which the owner says `text`."""
    try:
        turn = Turn(
            id=new_turn_id(),
            app=defaults.app or "",
            owner=defaults.owner or "",
            session=defaults.session,
            said_at=said_at,
            messages=(Message(Role.USER, text),),
        )
        return Accepted(1, validate_turn(turn))
    except InvalidTurn as invalid:
        return refusal(1, invalid)


def _read(number: int, line: bytes, defaults: Defaults) -> Accepted | Refused:
    try:
        value, body = line, _object(line)
        if body is not None:
            given = {name: field for name, field in body.items() if field is not None}
            fallback = {"id": new_turn_id(), "app": defaults.app, "owner": defaults.owner, "session": defaults.session}
            filled = {name: field for name, field in fallback.items() if field is not None} | given
            value = json.dumps(filled).encode()
            key = partition_key(str(filled.get("app", "")), str(filled.get("owner", "")))
        else:
            key = b"none/none"
        return Accepted(number, decode_turn(value, key=key))
    except InvalidTurn as invalid:
        return refusal(number, invalid)


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in `line`; None where there is none, which the decoder then says better."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def refusal(number: int, invalid: InvalidTurn) -> Refused:
    """How a line that breaks a rule is told."""
    field, _, rule = invalid.detail.partition(": ")
    return Refused(number, str(invalid.reason), field, rule)

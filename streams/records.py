"""What the headers, key and value of a record of our topics say. Raises Rejected with the reason to park it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from mnemostream.decoding import APP_PATTERN, MAX_ID_CHARACTERS, SCHEMA_VERSION, decode_turn, partition_key
from mnemostream.errors import InvalidTurn
from mnemostream.fields import MAX_NAME_CHARACTERS, broken, identifier
from mnemostream.turns import Reason, Turn

from processors.errors import Rejected
from processors.facts import Window
from processors.records import Owner, Place
from streams.delivery import Record

SCHEMA_HEADER: Final = "mnemo-schema"
TRACE_HEADER: Final = "traceparent"
ORIGIN_HEADER: Final = "mnemo-origin"
"""On a record that is put back on its topic: `partition/offset` of where it stood first."""
RECEIVED_HEADER: Final = "mnemo-received-at"
"""With it: when the broker took it then, RFC 3339."""
RUN_HEADER: Final = "mnemo-run"
"""On a turn that is read again: the number of the reading, in decimal. Absent: 0, the first one."""

_MAX_RUN: Final = 2**31 - 1
_PLACE: Final = re.compile(rb"(\d{1,9})/(\d{1,18})")
_APP: Final = re.compile(APP_PATTERN)
_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_WINDOW: Final = msgspec.json.Decoder(Window)
_FIELD: Final = re.compile(r"`\$\.?([A-Za-z0-9_.\[\]]*)`$")


def read_turn(record: Record) -> Turn:
    """The turn in a record of `turns.v1`. Raises InvalidTurn."""
    return decode_turn(record.value, key=record.key, schema=record.header(SCHEMA_HEADER))


def read_window(record: Record) -> Window:
    """The window in a record of `candidates.v1`. Raises Rejected."""
    if not record.key:
        raise Rejected(Reason.MISSING_KEY, "key: is missing")
    if not record.value:
        raise Rejected(Reason.EMPTY_VALUE, "value: is empty")
    if record.header(SCHEMA_HEADER) not in (None, SCHEMA_VERSION.encode()):
        raise Rejected(Reason.UNSUPPORTED_SCHEMA, f"header {SCHEMA_HEADER}: must be {SCHEMA_VERSION} or absent")
    window = _decoded(record.value)
    if window.app.encode() + b"/" + window.owner.encode() != record.key:
        raise Rejected(Reason.KEY_MISMATCH, f"key: must be app/owner of the value (length {len(record.key)})")
    _check_names(window)
    times = [time for turn in window.turns for time in (turn.received_at, turn.said_at)]
    if any(time.tzinfo is None for time in times + [fact.said_at for fact in window.facts]):
        raise Rejected(Reason.INVALID_FIELD, "said_at, received_at: must have an offset")
    return window


def place_of(record: Record) -> Place:
    """Where `record` stood first, and when the broker took it there: what counts for a record that was put back.

    Headers that say something else than a place before its own are passed over.
    """
    here = Place(record.topic, record.partition, record.offset, record.received_at)
    origin, received = record.header(ORIGIN_HEADER), record.header(RECEIVED_HEADER)
    place = _PLACE.fullmatch(origin or b"")
    if place is None or received is None:
        return here
    try:
        received_at = datetime.fromisoformat(received.decode("ascii"))
    except ValueError:
        return here
    if received_at.tzinfo is None or received_at > record.received_at:
        return here
    return Place(record.topic, int(place[1]), int(place[2]), received_at.astimezone(UTC))


def origin_headers(place: Place) -> Sequence[tuple[str, bytes]]:
    """The headers of a record that is put back: `place_of` reads them."""
    return (
        (ORIGIN_HEADER, f"{place.partition}/{place.offset}".encode()),
        (RECEIVED_HEADER, place.received_at.isoformat().encode()),
    )


def run_of(record: Record) -> int:
    """Which reading of a turn `record` asks for. Raises Rejected where the header is no number of one."""
    header = record.header(RUN_HEADER)
    if header is None:
        return 0
    if not header.isdigit() or len(header) > 10 or int(header) > _MAX_RUN:
        raise Rejected(Reason.INVALID_FIELD, f"header {RUN_HEADER}: must be a number from 0 to {_MAX_RUN}")
    return int(header)


def owner_of(record: Record, *, is_window: bool) -> tuple[Owner | None, tuple[str, ...]]:
    """Whose record it is and which turns are in it, as far as key and body agree on that."""
    try:
        if is_window:
            window = read_window(record)
            return Owner(window.app, window.owner), tuple(turn.id for turn in window.turns)
        turn = read_turn(record)
        return Owner(turn.app, turn.owner), (turn.id,)
    except InvalidTurn as invalid:
        envelope = invalid.envelope
        if envelope is None:
            return None, ()
        return Owner(envelope.app, envelope.owner), () if envelope.turn_id is None else (envelope.turn_id,)
    except Rejected:
        return None, ()


def candidate_key(owner: Owner) -> bytes:
    """The key of an owner's records."""
    return partition_key(*owner)


def candidate_headers(record: Record) -> list[tuple[str, bytes]]:
    """The headers of the window that is read out of `record`: its trace goes on."""
    headers = [(SCHEMA_HEADER, SCHEMA_VERSION.encode())]
    trace = record.header(TRACE_HEADER)
    if trace is not None and _TRACEPARENT.fullmatch(trace):
        headers.append((TRACE_HEADER, trace))
    return headers


def _check_names(window: Window) -> None:
    """What names an owner or a turn keeps the rules of `turns.v1`: it could not even be parked under another name."""
    try:
        if _APP.fullmatch(window.app) is None:
            raise broken("app", f"must match {APP_PATTERN} (length {len(window.app)})")
        identifier(window.owner, "owner", MAX_NAME_CHARACTERS)
        for index, turn in enumerate(window.turns):
            identifier(turn.id, f"turns[{index}].id", MAX_ID_CHARACTERS)
    except InvalidTurn as invalid:
        raise Rejected(invalid.reason, invalid.detail) from None


def _decoded(value: bytes) -> Window:
    try:
        return _WINDOW.decode(value)
    except msgspec.ValidationError as error:
        # Of the message only the place: it may quote a value.
        place = _FIELD.search(str(error))
        name = place.group(1) if place is not None and place.group(1) else "value"
        raise Rejected(Reason.INVALID_FIELD, f"{name}: is not as the schema says") from None
    except UnicodeDecodeError:
        raise Rejected(Reason.INVALID_UTF8, f"value: is not UTF-8 (length {len(value)})") from None
    except (msgspec.DecodeError, RecursionError):
        raise Rejected(Reason.INVALID_JSON, f"value: is not JSON (length {len(value)})") from None

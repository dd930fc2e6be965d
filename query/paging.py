"""Page tokens: where a list goes on. Opaque outside, good only for the owner and the filters they were given for."""

import base64
import binascii
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec

from processors.errors import InvalidRequest
from processors.records import Owner
from processors.search import Filters

FIELD: Final = "pageToken"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VERSION: Final = b"\x01"
_SUM: Final = 16
_LENGTH: Final = len(_VERSION) + 8 + 16 + _SUM


def token(owner: Owner, filters: Filters, after: tuple[datetime, str]) -> str:
    """The token of the page that follows the memory recorded at `after[0]` with the id `after[1]`.

    It holds nothing that its reader may not know: a forged one shows other pages of the reader's own list.
    """
    recorded_at, memory_id = after
    micros = (recorded_at - _EPOCH) // timedelta(microseconds=1)
    place = _VERSION + micros.to_bytes(8, signed=True) + UUID(memory_id).bytes
    return base64.urlsafe_b64encode(place + _checksum(owner, filters, place)).decode().rstrip("=")


def position(owner: Owner, filters: Filters, page_token: str) -> tuple[datetime, str] | None:
    """Where `page_token` goes on; None for an empty one, which is the first page. Raises InvalidRequest."""
    if not page_token:
        return None
    try:
        raw = base64.b64decode(page_token + "=" * (-len(page_token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    place = raw[:-_SUM]
    if len(raw) != _LENGTH or raw[:1] != _VERSION or raw[-_SUM:] != _checksum(owner, filters, place):
        raise _foreign()
    try:
        recorded_at = _EPOCH + timedelta(microseconds=int.from_bytes(place[1:9], signed=True))
    except OverflowError:  # the sum holds no secret: somebody made this token
        raise _foreign() from None
    return recorded_at, str(UUID(bytes=place[9:]))


def _checksum(owner: Owner, filters: Filters, place: bytes) -> bytes:
    bound = msgspec.json.encode([*owner, asdict(filters)], order="deterministic")
    return sha256(bound + place).digest()[:_SUM]


def _foreign() -> InvalidRequest:
    return InvalidRequest(FIELD, "must be the nextPageToken of a page of the same owner and filters")

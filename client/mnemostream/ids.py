"""Ids that sort by the time they were made."""

import secrets
import threading
import time
from typing import Final
from uuid import UUID

_TAIL_BITS: Final = 74
"""What UUIDv7 leaves beside time, version and variant: 12 bits of rand_a and 62 of rand_b."""
_STEP_BITS: Final = 32
"""How far an id within one millisecond may jump ahead of the one before: enough that it cannot be guessed."""

_lock = threading.Lock()
_last_ms = 0
_last_tail = 0


def uuid7() -> UUID:
    """A UUIDv7 (RFC 9562), greater than every one that this process made before.

    Within a millisecond, and when the clock steps back, the random part counts up (RFC 9562, 6.2, method 2); if it runs
    over, the time part moves ahead by a millisecond.
    """
    global _last_ms, _last_tail
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        if now_ms > _last_ms:
            # The top bit stays clear, so that counting up has room.
            _last_ms, _last_tail = now_ms, secrets.randbits(_TAIL_BITS - 1)
        else:
            _last_tail += 1 + secrets.randbits(_STEP_BITS)
            if _last_tail >> _TAIL_BITS:
                _last_ms, _last_tail = _last_ms + 1, secrets.randbits(_TAIL_BITS - 1)
        milliseconds, tail = _last_ms, _last_tail
    return UUID(
        int=(milliseconds & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | (tail >> 62) << 64
        | 0b10 << 62
        | tail & 0x3FFF_FFFF_FFFF_FFFF
    )


def new_turn_id() -> str:
    """An id for a new turn."""
    return str(uuid7())

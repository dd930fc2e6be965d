"""Which turns are read together: the longest run of one session from the head of a lane (DESIGN.md §12)."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from streams.delivery import Record
from streams.records import ORIGIN_HEADER, RUN_HEADER


class _Peek(msgspec.Struct):
    """What of a turn decides where a window ends. Nothing else is looked at; the handler checks it all."""

    session: str | None = None
    off_record: bool | None = None


_DECODER = msgspec.json.Decoder(_Peek)


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """The policy of the extract stage: what waits is read in one call, what comes alone is not kept waiting.

    A turn off the record, one that is no turn, and one larger than `max_bytes` stand alone. Turns that are read again
    share a window with those of the same run. One that was put back stands alone: it was said at another time.
    """

    max_turns: int = 20
    max_bytes: int = 12_000
    """Of the records' values: about 3,000 tokens, what is read in one piece (`processors.chunks`)."""

    def __call__(self, records: Sequence[Record]) -> int:
        """How many of the records at the head of a lane make one window; at least one."""
        session = _session(records[0])
        if session is None:
            return 1
        size = 0
        for count, record in enumerate(records[: self.max_turns]):
            size += record.size_bytes
            if count and (size > self.max_bytes or _session(record) != session):
                return count
        return min(len(records), self.max_turns)


def _session(record: Record) -> tuple[str | None, bytes | None] | None:
    """The session, and which reading of it; None for what stands alone."""
    try:
        peek = _DECODER.decode(record.value or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    run = record.header(RUN_HEADER)
    was_put_back = run is None and record.header(ORIGIN_HEADER) is not None
    return None if peek.off_record or was_put_back else (peek.session, run)

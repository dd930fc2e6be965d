"""Header names that are no UTF-8: the broker takes them, and aiokafka's reader fails on them, for ever.

The failure would end the worker, at each start again, since the record is never passed. So a batch that fails is read
once more with a reader that replaces what it cannot decode. aiokafka is pinned exactly.
"""

# ruff: noqa: SLF001 (the bytes of a batch have no public name)

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy
from typing_extensions import override


class LenientRecords:
    """What a fetch brought of one partition, batch by batch."""

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)
        self._slices = _MemoryRecordsPy(data)

    def size_in_bytes(self) -> int:
        """Of all batches."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Whether another batch is whole."""
        return bool(self._records.has_next())

    def next_batch(self) -> "LenientBatch | None":
        """The next one; None after the last."""
        data = self._slices._next_slice
        self._slices._cache_next()
        batch = self._records.next_batch()
        return None if batch is None else LenientBatch(batch, data)


class LenientBatch:
    """A batch whose records are read again, from the first, where a header's name cannot be decoded.

    Who reads passes over the offsets that it had before.
    """

    def __init__(self, batch: Any, data: Any) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except UnicodeDecodeError:
            again: Any = _DefaultRecordBatchPy(self._data)
            again._maybe_uncompress()
            again._buffer = _LenientText(again._buffer)
            yield from again


class _LenientText(bytearray):
    """Bytes whose parts decode whatever they are."""

    @override
    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return _LenientText(part) if isinstance(part, bytearray) else part

    @override
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """As UTF-8, with U+FFFD for what is not."""
        del errors
        return super().decode(encoding, "replace")


def install() -> None:
    """Let every consumer of this process read that way."""
    fetcher.MemoryRecords = LenientRecords

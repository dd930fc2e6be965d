from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streams.lenient_headers import LenientRecords


def batch(*names: bytes, compression: int = 0) -> bytes:
    """A batch of one record for each header name, at offsets from 7 on."""
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, 0, 1 << 20)
    for offset, name in enumerate(names):
        builder.append(offset, 1_000, b"key", b"value", [("x" * len(name), b"\x00\xff")])
    data = bytes(builder.build())
    for name in names:
        data = data.replace(b"x" * len(name), name, 1)
    return (7).to_bytes(8, "big") + data[8:]


def read(data: bytes) -> list[Any]:
    records, found = LenientRecords(data), []
    while records.has_next():
        next_batch = records.next_batch()
        assert next_batch is not None
        seen = -1
        for record in next_batch:
            if record.offset > seen:
                found.append(record)
                seen = record.offset
        assert next_batch.next_offset == seen + 1
    assert records.next_batch() is None
    return found


def test_a_header_name_that_is_no_utf8_does_not_end_the_reading() -> None:
    found = read(batch(b"good", b"\xff\xfe", b"fine") + batch(b"more"))
    names = [[name for name, _ in record.headers] for record in found]
    assert names == [["good"], ["\ufffd\ufffd"], ["fine"], ["more"]]
    assert all((record.key, record.value, record.headers[0][1]) == (b"key", b"value", b"\x00\xff") for record in found)


def test_other_batches_are_read_as_ever() -> None:
    assert [record.offset for record in read(batch(b"a", b"b", compression=1))] == [7, 8]


@pytest.mark.parametrize("name", [b"", "größe".encode(), "名".encode()])
def test_a_name_in_any_language_stays(name: bytes) -> None:
    [record] = read(batch(name))
    assert record.headers[0][0].encode() == name

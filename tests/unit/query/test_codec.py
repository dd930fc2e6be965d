import contextlib
import json

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.v1 import memory_service_pb as pb
from mnemostream.v1.google.rpc.error_details_pb import BadRequest
from protobuf.wkt import Struct

from query.codec import BinaryCodec, JsonCodec

JSON = JsonCodec()

ALWAYS_THERE = {
    "id", "owner", "session", "content", "tags", "type", "category", "importance", "confidence", "pinned", "state",
    "strength", "subject", "attribute", "retiredReason", "supersedes", "supersededBy", "accessCount", "confirmations",
    "etag", "sources", "restates",
}  # fmt: skip


def refused(body: bytes) -> BadRequest.FieldViolation:
    with pytest.raises(ConnectError) as raised:
        JSON.decode(body, pb.SearchRequest)
    assert raised.value.code is Code.INVALID_ARGUMENT
    bad = raised.value.details[0].value()
    assert isinstance(bad, BadRequest)
    return bad.field_violations[0]


def test_zero_values_are_present() -> None:
    assert set(json.loads(JSON.encode(pb.Memory()))) == ALWAYS_THERE


def test_zero_values_of_an_explanation_are_present() -> None:
    shown = json.loads(
        JSON.encode(
            pb.ExplainMemoryResponse(statements=[pb.Statement()], decisions=[pb.Decision()], line=[pb.Memory()])
        )
    )
    assert set(shown) == {"story", "statements", "decisions", "line"}
    assert set(shown["statements"][0]) == {"turnId", "role", "name", "text"}
    assert set(shown["decisions"][0]) == {
        "id", "causeKind", "causeId", "candidate", "route", "action", "reason", "marked", "neighbours", "retired",
        "model", "promptVersion", "tokensIn", "tokensOut", "memoryId",
    }  # fmt: skip
    assert set(shown["line"][0]) == ALWAYS_THERE


def test_counts_are_numbers_and_states_are_bare_names() -> None:
    shown = json.loads(JSON.encode(pb.Memory(access_count=3, state=pb.Memory.State.LIVE)))
    assert shown["accessCount"] == 3
    assert shown["state"] == "LIVE"


def test_whole_numbers_in_data_are_shown_as_such_and_texts_are_untouched() -> None:
    data = {"n": 3, "f": 2.5, "deep": [{"n": 4}], "t": "1.0"}
    encoded = JSON.encode(pb.Memory(content='"data":{"x":1.0}', data=Struct.from_python(data)))
    assert b'"n":3,' in encoded
    assert b'"n":4}' in encoded
    shown = json.loads(encoded)
    assert shown["data"] == data
    assert shown["content"] == '"data":{"x":1.0}'


def test_both_names_of_a_field_are_read() -> None:
    for body in (b'{"includeRetired": true}', b'{"include_retired": true}'):
        assert JSON.decode(body, pb.SearchRequest).include_retired


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"ownr": "u"}', "ownr"),
        (b'{"weights": {"recent": 1}}', "weights.recent"),
        (b'{"weights": {"text": "much"}}', "weights.text"),
        (b'{"owner": "u", "limit": "many"}', "limit"),
        (b'{"limit": 1.5}', "limit"),
        (b'{"limit": 2147483648}', "limit"),
        (b'{"limit": true}', "limit"),
        (b'{"owner": 5}', "owner"),
        (b'{"tags": "a"}', "tags"),
        (b'{"tags": [null]}', "tags"),
        (b'{"mode": "FAST"}', "mode"),
        (b'{"saidAfter": "yesterday"}', "saidAfter"),
        (b'{"afterTurn": {"turnId": "t", "timeout": 5}}', "afterTurn.timeout"),
        (b'{"dataContains": []}', "dataContains"),
        (b'{"dataContains": ' + b'{"a":' * 200 + b"1" + b"}" * 201, "dataContains"),
    ],
)
def test_the_field_that_cannot_be_read_is_named(body: bytes, field: str) -> None:
    assert refused(body).field == field


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b"null", b"[]", b"3", b"{} {}", b"\xef\xbb\xbf{}"),
        *(b"\xff", b'{"owner": "\xff"}', b'{"owner": "\\ud800"}'),
        *(b"[" * 100_000, b'{"a":' * 100_000),
        *(b'{"limit": ' + b"9" * 5000 + b"}", b'{"minConfidence": NaN}', b'{"minConfidence": 1e999}'),
    ],
)
def test_what_is_no_json_object_is_refused_as_a_whole(body: bytes) -> None:
    assert refused(body).field == "body"


def test_an_error_never_holds_a_value() -> None:
    for body in (b'{"limit": "s3cret"}', b'{"mode": "s3cret"}', b'{"saidAfter": "s3cret"}', b'{"owner": ["s3cret"]}'):
        violation = refused(body)
        assert "s3cret" not in violation.field + violation.description


def test_a_long_unknown_name_is_cut() -> None:
    assert len(refused(b'{"' + b"x" * 100_000 + b'": 1}').field) <= 64


@given(st.binary())
def test_no_bytes_break_the_readers(body: bytes) -> None:
    for codec in (JSON, BinaryCodec()):
        with contextlib.suppress(ConnectError):
            codec.decode(body, pb.SearchRequest)


def _wrapped(depth: int) -> bytes:
    def field(number: int, payload: bytes) -> bytes:
        size, length = len(payload), b""
        while True:
            size, low = size >> 7, size & 127
            length += bytes([low | (128 if size else 0)])
            if not size:
                return bytes([number << 3 | 2]) + length + payload

    message = b""
    for _ in range(depth):  # Struct.fields → entry(key 1, value 2) → Value.struct_value 5
        message = field(1, field(1, b"a") + field(2, field(5, message)))
    return field(8, message)


def test_a_deep_binary_message_is_refused() -> None:
    with pytest.raises(ConnectError) as raised:
        BinaryCodec().decode(_wrapped(20_000), pb.SearchRequest)
    assert raised.value.code is Code.INVALID_ARGUMENT

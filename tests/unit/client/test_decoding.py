"""The rules of `turns.v1`, row by row."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from mnemostream.decoding import decode_turn, encode_turn, fingerprint, partition_key, split_key, validate_turn
from mnemostream.errors import InvalidTurn, MnemoClientError, TurnTooLarge
from mnemostream.turns import Envelope, Message, Reason, Role, Turn

KEY = b"acme/user/42"
MEBIBYTE = 1024 * 1024


def body(**fields: Any) -> dict[str, Any]:
    return {
        "id": "t-1",
        "app": "acme",
        "owner": "user/42",
        "said_at": "2026-11-21T10:00:00Z",
        "messages": [{"role": "user", "content": "I moved to Lisbon last week."}],
    } | fields


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in body().items() if name != field}


def said(**message: Any) -> dict[str, Any]:
    return body(messages=[{"role": "user", "content": "hi"}, {"role": "user", "content": "hi"} | message])


def decoded(value: Any, key: bytes | None = KEY) -> Turn:
    return decode_turn(json.dumps(value).encode(), key=key)


def refusal(value: bytes | None, *, key: bytes | None = KEY, schema: bytes | str | None = None) -> InvalidTurn:
    with pytest.raises(InvalidTurn) as refused:
        decode_turn(value, key=key, schema=schema)
    return refused.value


def test_the_example_of_the_contract_is_read() -> None:
    value = """{"id": "0199", "app": "acme", "owner": "user/42", "session": "s-7", "said_at": "2026-11-21T10:00:00Z",
      "messages": [{"role": "user", "content": "I moved to Lisbon last week.", "id": "m-1", "name": null}],
      "recalled": ["Lives in Porto"], "time_zone": "Europe/Lisbon", "off_record": false,
      "metadata": {"channel": "web"}}"""
    assert decode_turn(value.encode(), key=KEY, schema=b"1") == Turn(
        id="0199",
        app="acme",
        owner="user/42",
        session="s-7",
        said_at=datetime(2026, 11, 21, 10, tzinfo=UTC),
        messages=(Message(Role.USER, "I moved to Lisbon last week.", id="m-1"),),
        recalled=("Lives in Porto",),
        time_zone="Europe/Lisbon",
        metadata={"channel": "web"},
    )


@pytest.mark.parametrize(
    ("value", "key", "schema", "reason"),
    [
        (b"{}", None, None, Reason.MISSING_KEY),
        (b"{}", b"", None, Reason.MISSING_KEY),
        (None, None, None, Reason.MISSING_KEY),
        (None, KEY, None, Reason.EMPTY_VALUE),
        (b"", KEY, "2", Reason.EMPTY_VALUE),
        (b"\xff" * (8 * MEBIBYTE + 1), KEY, "2", Reason.TOO_LARGE),
        (b"\xff not json", KEY, b"2", Reason.UNSUPPORTED_SCHEMA),
        (b"{}", KEY, "", Reason.UNSUPPORTED_SCHEMA),
        (b"{}", KEY, b"01", Reason.UNSUPPORTED_SCHEMA),
        (b"{}", KEY, b"\xff", Reason.UNSUPPORTED_SCHEMA),
        (b'{"id": "\xff"}', KEY, None, Reason.INVALID_UTF8),
        (b'{"id": "\xed\xa0\x80"}', KEY, None, Reason.INVALID_UTF8),
        (b"not json", KEY, None, Reason.INVALID_JSON),
        (b"   ", KEY, None, Reason.INVALID_JSON),
        (b'{"id": "1"', KEY, None, Reason.INVALID_JSON),
        (b"{} {}", KEY, None, Reason.INVALID_JSON),
        (b"{'id': 1}", KEY, None, Reason.INVALID_JSON),
        (b'{"id": "a\nb"}', KEY, None, Reason.INVALID_JSON),
        (b"\xef\xbb\xbf{}", KEY, None, Reason.INVALID_JSON),
        (b'{"id": NaN}', KEY, None, Reason.INVALID_JSON),
        (b'{"id": -Infinity}', KEY, None, Reason.INVALID_JSON),
        (b"[" * 100_000, KEY, None, Reason.INVALID_JSON),
        (b"[" * 100_000 + b"]" * 100_000, KEY, None, Reason.INVALID_JSON),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, KEY, None, Reason.INVALID_JSON),
        (b"[]", KEY, None, Reason.INVALID_FIELD),
        (b'"text"', KEY, None, Reason.INVALID_FIELD),
        (b"null", KEY, None, Reason.INVALID_FIELD),
        (b"1e400", KEY, None, Reason.INVALID_FIELD),
        (b"9" * 5000, KEY, None, Reason.INVALID_FIELD),
    ],
)
def test_what_is_not_a_record_of_turns_has_its_reason_and_no_owner(
    value: bytes | None, key: bytes | None, schema: bytes | str | None, reason: Reason
) -> None:
    refused = refusal(value, key=key, schema=schema)
    assert refused.reason is reason
    assert refused.envelope is None


@pytest.mark.parametrize("schema", [None, "1", b"1"])
def test_schema_version_one_may_be_said_or_left_out(schema: bytes | str | None) -> None:
    assert decode_turn(json.dumps(body()).encode(), key=KEY, schema=schema).id == "t-1"


@pytest.mark.parametrize(
    "key", [b"acme/user/43", b"acme", b"other/user/42", b"acme/", b"/user/42", b"acme/user/42 ", b"\xff/user/42", b"\0"]
)
def test_a_key_that_is_not_that_of_the_body_is_a_mismatch_without_an_owner(key: bytes) -> None:
    refused = refusal(json.dumps(body(said_at=5)).encode(), key=key)
    assert (refused.reason, refused.envelope) == (Reason.KEY_MISMATCH, None)


BROKEN: list[tuple[dict[str, Any], str]] = [
    *((without(field), f"{field}: is missing") for field in ("id", "said_at", "messages")),
    *((body(**{field: None}), f"{field}: is missing") for field in ("id", "said_at", "messages")),
    (body(id=7), "id: must be text, is a number"),
    (body(id=True), "id: must be text, is a boolean"),
    (body(id=""), "id: must be 1 to 128 characters, has 0"),
    (body(id="x" * 129), "id: must be 1 to 128 characters, has 129"),
    (body(id="a\nb"), "id: control character at 1 (length 3)"),
    (body(id="a\0"), "id: control character at 1 (length 2)"),
    (body(id="\ud800"), "id: lone surrogate at 0 (length 1)"),
    (body(session=""), "session: must be 1 to 256 characters, has 0"),
    (body(session="x" * 257), "session: must be 1 to 256 characters, has 257"),
    (body(session="a\x85"), "session: control character at 1 (length 2)"),
    (body(session="a\x7f"), "session: control character at 1 (length 2)"),
    (body(session={}), "session: must be text, is an object"),
    (body(said_at=1763719200), "said_at: must be text, is a number"),
    (body(said_at="2026-11-21"), "said_at: must be an RFC 3339 date-time with an offset (length 10)"),
    (body(said_at="2026-02-30T00:00:00Z"), "said_at: must be a date and time that exist (length 20)"),
    (body(said_at="1000000000-01-01T00:00:00Z"), "said_at: must be an RFC 3339 date-time with an offset (length 26)"),
    (body(messages=[]), "messages: must be 1 to 200, are 0"),
    (body(messages=[{"role": "user", "content": ""}] * 201), "messages: must be 1 to 200, are 201"),
    (body(messages={}), "messages: must be an array, is an object"),
    (body(messages="hi"), "messages: must be an array, is text"),
    (body(messages=["hi"]), "messages[0]: must be an object, is text"),
    (body(messages=[None]), "messages[0]: must be an object, is null"),
    (said(role="robot"), "messages[1].role: must be user, assistant, system or tool"),
    (said(role="USER"), "messages[1].role: must be user, assistant, system or tool"),
    (said(role=None), "messages[1].role: is missing"),
    (said(role=["user"]), "messages[1].role: must be text, is an array"),
    (said(content=None), "messages[1].content: is missing"),
    (said(content=["hi"]), "messages[1].content: must be text, is an array"),
    (said(content="ab\udc00"), "messages[1].content: lone surrogate at 2 (length 3)"),
    (said(name=1), "messages[1].name: must be text, is a number"),
    (said(name="\ud83d"), "messages[1].name: lone surrogate at 0 (length 1)"),
    (said(id="x" * 257), "messages[1].id: must be at most 256 characters, has 257"),
    (body(recalled="Lives"), "recalled: must be an array, is text"),
    (body(recalled=["a"] * 101), "recalled: must be at most 100 texts, are 101"),
    (body(recalled=["é" * 32768, "x"]), "recalled: must be at most 65536 bytes together, has 65537"),
    (body(recalled=["a", None]), "recalled[1]: must be text, is null"),
    (body(recalled=["a", "\ud800"]), "recalled[1]: lone surrogate at 0 (length 1)"),
    (body(time_zone="Mars/Olympus"), "time_zone: must be the name of an IANA time zone (length 12)"),
    (body(time_zone=""), "time_zone: must be the name of an IANA time zone (length 0)"),
    (body(time_zone="../../../etc/passwd"), "time_zone: must be the name of an IANA time zone (length 19)"),
    (body(time_zone="/etc/passwd"), "time_zone: must be the name of an IANA time zone (length 11)"),
    (body(time_zone="Europe"), "time_zone: must be the name of an IANA time zone (length 6)"),
    (body(time_zone="Europe/Lisbon\0"), "time_zone: must be the name of an IANA time zone (length 14)"),
    (body(time_zone="\ud800"), "time_zone: must be the name of an IANA time zone (length 1)"),
    (body(time_zone=1), "time_zone: must be text, is a number"),
    (body(off_record="true"), "off_record: must be true or false, is text"),
    (body(off_record=1), "off_record: must be true or false, is a number"),
    (body(metadata=[]), "metadata: must be an object, is an array"),
    (body(metadata={"a": "x" * 16384}), "metadata: must be at most 16384 bytes of JSON, has 16392"),
    (body(metadata={"a": "\ud800"}), "metadata: holds a lone surrogate"),
    (body(metadata={"a\ud800": 1}), "metadata: holds a lone surrogate"),
    (body(metadata={"a": [1] * 100_000}), "metadata: must be at most 16384 bytes of JSON, has 200007"),
    (body(metadata={"a": 10**309}), "metadata: holds a number outside the range of a double"),
]


@pytest.mark.parametrize(("value", "detail"), BROKEN, ids=[detail for _, detail in BROKEN])
def test_a_field_that_breaks_its_rule_is_named_and_the_turn_keeps_its_owner(value: dict[str, Any], detail: str) -> None:
    refused = refusal(json.dumps(value).encode())
    assert (refused.reason, refused.detail) == (Reason.INVALID_FIELD, detail)
    turn_id = None if detail.startswith("id:") else "t-1"
    assert refused.envelope == Envelope("acme", "user/42", turn_id)


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (without("app"), "app: is missing"),
        (without("owner"), "owner: is missing"),
        (body(app=1), "app: must be text, is a number"),
        (body(app="Acme"), "app: must match [a-z0-9][a-z0-9._-]{0,62} (length 4)"),
        (body(app="acme\n"), "app: must match [a-z0-9][a-z0-9._-]{0,62} (length 5)"),
        (body(app="a" * 64), "app: must match [a-z0-9][a-z0-9._-]{0,62} (length 64)"),
        (body(app="-acme"), "app: must match [a-z0-9][a-z0-9._-]{0,62} (length 5)"),
        (body(app=""), "app: must match [a-z0-9][a-z0-9._-]{0,62} (length 0)"),
        (body(owner=""), "owner: must be 1 to 256 characters, has 0"),
        (body(owner="x" * 257), "owner: must be 1 to 256 characters, has 257"),
        (body(owner="a\0b"), "owner: control character at 1 (length 3)"),
        (body(owner="\udfff"), "owner: lone surrogate at 0 (length 1)"),
    ],
)
def test_without_a_valid_app_and_owner_nobody_is_told(value: dict[str, Any], detail: str) -> None:
    refused = refusal(json.dumps(value).encode())
    assert (refused.reason, refused.detail, refused.envelope) == (Reason.INVALID_FIELD, detail, None)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 5000])
def test_a_number_that_no_double_holds_is_refused_in_metadata_and_ignored_elsewhere(number: str) -> None:
    plain = json.dumps(body())[:-1]
    refused = refusal(f'{plain}, "metadata": {{"a": {number}}}}}'.encode())
    assert refused.detail == "metadata: holds a number outside the range of a double"
    assert decode_turn(f'{plain}, "unknown": {number}}}'.encode(), key=KEY) == decoded(body())


def nested(levels: int) -> dict[str, Any]:
    inner: Any = 1
    for _ in range(levels - 1):
        inner = [inner]
    return {"a": inner}


def test_metadata_nests_thirty_two_levels_and_no_more() -> None:
    assert decoded(body(metadata=nested(32))).metadata == nested(32)
    refused = refusal(json.dumps(body(metadata=nested(33))).encode())
    assert refused.detail == "metadata: must nest at most 32 levels"


@pytest.mark.parametrize(
    "value",
    [
        body(id="x" * 128, session="é" * 256),
        body(messages=[{"role": role, "content": ""} for role in ("user", "assistant", "system", "tool")]),
        body(messages=[{"role": "user", "content": "x"}] * 200),
        body(messages=[{"role": "user", "content": "é" * (MEBIBYTE // 2)}]),
        body(recalled=["é" * 327] * 100),
        body(metadata={"a": "x" * 16376}),
        body(metadata={"a": 10**300, "b": [None, True, 1.5, {}]}),
        body(time_zone="America/Argentina/Buenos_Aires"),
        body(time_zone="UTC"),
        body(id="\u2028 is no control character"),
    ],
)
def test_values_at_their_limits_are_taken_and_come_back_the_same(value: dict[str, Any]) -> None:
    turn = decoded(value)
    assert decode_turn(encode_turn(turn), key=KEY) == turn


def test_an_app_and_an_owner_may_be_as_long_as_the_rules_say() -> None:
    app, owner = "a" * 63, "/" + "é" * 255
    turn = decoded(body(app=app, owner=owner), key=f"{app}/{owner}".encode())
    assert (turn.app, turn.owner) == (app, owner)


@pytest.mark.parametrize("contents", [["é" * (MEBIBYTE // 2), "x"], ["x" * (MEBIBYTE + 1)]])
def test_content_over_a_mebibyte_together_is_too_large_and_keeps_its_owner(contents: list[str]) -> None:
    value = body(messages=[{"role": "user", "content": content} for content in contents])
    refused = refusal(json.dumps(value, ensure_ascii=False).encode())
    assert isinstance(refused, TurnTooLarge)
    assert refused.reason is Reason.TOO_LARGE
    assert refused.detail == f"messages: content of at most {MEBIBYTE} bytes together, has {MEBIBYTE + 1}"
    assert refused.envelope == Envelope("acme", "user/42", "t-1")


def test_escapes_count_as_what_they_stand_for() -> None:
    value = json.dumps(body(messages=[{"role": "user", "content": "\x01" * MEBIBYTE}])).encode()
    assert len(value) > 6 * MEBIBYTE
    assert len(decode_turn(value, key=KEY).messages[0].content) == MEBIBYTE


def test_null_counts_as_absent_and_unknown_fields_are_ignored() -> None:
    nulls = dict.fromkeys(("session", "recalled", "time_zone", "off_record", "metadata"))
    message = {"role": "user", "content": "I moved to Lisbon last week.", "id": None, "name": None, "mood": "\ud800"}
    assert decoded(body(**nulls, messages=[message], colour={"\ud800": "\ud800"})) == decoded(body())


def test_of_a_duplicate_name_the_last_counts() -> None:
    value = json.dumps(body())[:-1] + ', "id": "t-2"}'
    assert decode_turn(value.encode(), key=KEY).id == "t-2"


def test_nul_is_stored_as_the_replacement_character() -> None:
    turn = decoded(
        body(
            messages=[{"role": "user", "content": "a\0b", "id": "\0", "name": "n\0"}],
            recalled=["\0"],
            metadata={"k\0": ["v\0"]},
        )
    )
    assert turn.messages == (Message(Role.USER, "a\ufffdb", id="\ufffd", name="n\ufffd"),)
    assert turn.recalled == ("\ufffd",)
    assert turn.metadata == {"k\ufffd": ["v\ufffd"]}


def test_a_surrogate_pair_is_one_character_escaped_or_not() -> None:
    assert decoded(said(content="😀")).messages[1].content == "😀"
    assert decode_turn(json.dumps(said(content="😀"), ensure_ascii=False).encode(), key=KEY) == decoded(
        said(content="😀")
    )


@pytest.mark.parametrize(
    "place",
    [
        lambda secret: body(id=secret + "\n"),
        lambda secret: body(owner=secret),
        lambda secret: body(session=secret + "\0"),
        lambda secret: body(said_at=secret),
        lambda secret: body(time_zone=secret),
        lambda secret: said(role=secret),
        lambda secret: said(content=secret + "\ud800"),
        lambda secret: body(metadata={secret: "\ud800"}),
        lambda secret: body(metadata={secret: 10**400}),
        lambda secret: body(**{secret: 1}, messages=secret),
        lambda secret: [secret],
        lambda secret: secret,
    ],
)
def test_an_error_never_quotes_what_it_refuses(place: Callable[[str], Any]) -> None:
    secret = "c4nary-v4lue"
    value = json.dumps(place(secret)).encode()
    for broken in (value, value[:-1], value + b"x", b"\xff" + value):
        refused = refusal(broken)
        shown: BaseException | None = refused
        while shown is not None:
            assert secret not in str(shown)
            shown = shown.__cause__ or shown.__context__


def test_a_turn_that_breaks_a_rule_is_not_encoded() -> None:
    turn = decoded(body())
    naive = Turn(id="t", app="acme", owner="u", said_at=datetime(2026, 1, 1), messages=turn.messages)  # noqa: DTZ001 - the mistake under test
    for broken in (
        naive,
        Turn(id="t", app="Acme", owner="u", said_at=turn.said_at, messages=turn.messages),
        Turn(id="t", app="acme", owner="\ud800", said_at=turn.said_at, messages=turn.messages),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=()),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=turn.messages, metadata={"a": float("nan")}),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=turn.messages, metadata={"a": turn.said_at}),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=turn.messages, metadata={"a": (1, 2)}),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=turn.messages, metadata={"a": 10**5000}),
        Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=turn.messages, metadata={"a": object()}),
    ):
        for check in (encode_turn, validate_turn):
            with pytest.raises(InvalidTurn) as refused:
                check(broken)
            assert refused.value.reason is Reason.INVALID_FIELD
            assert isinstance(refused.value, ValueError)
            assert isinstance(refused.value, MnemoClientError)


def test_a_validated_turn_is_the_one_that_a_reader_will_see() -> None:
    turn = decoded(body())
    raw = Turn(id="t", app="acme", owner="u", said_at=turn.said_at, messages=(Message(Role.USER, "a\0"),))
    assert validate_turn(raw) == decode_turn(encode_turn(raw), key=partition_key("acme", "u"))
    assert validate_turn(raw).messages[0].content == "a\ufffd"


def test_a_key_splits_at_its_first_slash() -> None:
    assert partition_key("acme", "user/42") == KEY
    assert split_key(KEY) == ("acme", "user/42")
    assert split_key(partition_key("acme", "é")) == ("acme", "é")
    for key in (b"acme", b"\xff/a"):
        with pytest.raises(InvalidTurn) as refused:
            split_key(key)
        assert refused.value.reason is Reason.KEY_MISMATCH


def test_a_fingerprint_tells_messages_apart_whatever_moves_between_their_fields() -> None:
    def of(*messages: Message) -> bytes:
        return fingerprint(Turn(id="t", app="a", owner="o", said_at=datetime.now(UTC), messages=messages))

    prints = [
        of(Message(Role.USER, "ab")),
        of(Message(Role.ASSISTANT, "ab")),
        of(Message(Role.USER, "a", name="b")),
        of(Message(Role.USER, "a", id="b")),
        of(Message(Role.USER, "ab", name="")),
        of(Message(Role.USER, "ab", id="")),
        of(Message(Role.USER, "a"), Message(Role.USER, "b")),
        of(Message(Role.USER, "ab"), Message(Role.USER, "")),
        of(),
    ]
    assert len(set(prints)) == len(prints)
    assert of(Message(Role.USER, "ab")) == prints[0]
    assert {len(one) for one in prints} == {32}


def test_the_fingerprint_is_the_same_in_every_release() -> None:
    turn = Turn(
        id="t",
        app="a",
        owner="o",
        said_at=datetime.now(UTC),
        messages=(Message(Role.USER, "é", id="m", name="n"), Message(Role.TOOL, "")),
    )
    # SHA-256 over length (8 bytes, big-endian) and text of: user, é, n, m, tool, nothing, absent, absent.
    assert fingerprint(turn).hex() == "b1c38299f0eaf97853cfe7830da786a90789d979280d601ccdc2dae7a51537d7"

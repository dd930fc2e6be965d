from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from mnemostream.decoding import encode_turn, partition_key
from mnemostream.turns import Message, Reason, Role, Turn

from processors.answers import Dropped
from processors.errors import ModelUnavailable, Rejected, StoreUnavailable
from processors.extraction import ReadAnswer, ReadingFailed, ReadRequest
from processors.facts import Fact, Reading, Window, WindowTurn
from processors.records import AcceptedTurn, Begun, ContextMessage, Landed, Owner, Parking, TurnStatus
from processors.vectors import EmbeddingModel, Vector, unpack
from streams.delivery import Record
from streams.handlers import Extract, Reconcile
from streams.parking import Parker
from streams.ports import Headers
from streams.records import place_of

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)
RECEIVED = datetime(2026, 11, 21, 10, 0, 5, tzinfo=UTC)
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
READING = Reading(model="scripted", prompt_version="1", tokens_in=10, tokens_out=2)


@dataclass
class Log:
    status: TurnStatus = TurnStatus.NEW
    context: tuple[ContextMessage, ...] = ()
    begun: list[tuple[Owner, Sequence[AcceptedTurn]]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    parked: list[Parking] = field(default_factory=list)
    error: Exception | None = None

    async def begin(self, owner: Owner, turns: Sequence[AcceptedTurn], *, run: int = 0) -> Begun:
        self.begun.append((owner, turns))
        self.runs.append(run)
        return Begun(tuple(self.status for _ in turns), self.context)

    async def park(self, parking: Parking) -> None:
        if self.error is not None:
            raise self.error
        self.parked.append(parking)


@dataclass
class Model:
    facts: tuple[Fact, ...] = ()
    asked: list[ReadRequest] = field(default_factory=list)
    error: Exception | None = None
    requests: int = 1
    unread: int = 0
    model = EmbeddingModel("tiny", 2)

    async def read(self, request: ReadRequest) -> ReadAnswer:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return ReadAnswer(self.facts, READING, self.requests, self.unread)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [np.array([1, len(text)], dtype=np.float32) for text in texts]


@dataclass
class Topic:
    sent: list[tuple[str, bytes | None, bytes | None, Headers]] = field(default_factory=list)

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> Landed | None:
        self.sent.append((topic, key, value, headers))
        return Landed(0, len(self.sent) - 1)

    @property
    def window(self) -> Window:
        [(_, _, value, _)] = self.sent
        assert value is not None
        return msgspec.json.decode(value, type=Window)


@dataclass
class Ear:
    rules: dict[str, int] = field(default_factory=dict)
    statuses: list[TurnStatus] = field(default_factory=list)
    readings: list[tuple[Reading, int]] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)
    drops: list[tuple[Dropped, int]] = field(default_factory=list)

    def redacted(self, counts: Mapping[str, int]) -> None:
        self.rules |= counts

    def asked(self, reading: Reading, requests: int) -> None:
        self.readings.append((reading, requests))

    def read(self, facts: int, unread_characters: int) -> None:
        self.windows.append((facts, unread_characters))

    def dropped(self, reason: Dropped, count: int) -> None:
        self.drops.append((reason, count))

    def turn(self, status: TurnStatus) -> None:
        self.statuses.append(status)


class Bench:
    def __init__(self) -> None:
        self.log, self.model, self.topic, self.ear = Log(), Model(), Topic(), Ear()
        self.extract = Extract(
            self.log, self.model, self.model, self.topic, topic="c", max_facts_per_turn=3, observer=self.ear
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def a_turn(text: str = "I moved to Lisbon last week.", **changes: Any) -> Turn:
    turn = Turn(
        id="t-1",
        app="acme",
        owner="user/42",
        session="s-1",
        said_at=SAID,
        messages=(Message(Role.USER, text),),
    )
    return replace(turn, **changes)


def record_of(turn: Turn, *headers: tuple[str, bytes], offset: int = 7) -> Record:
    return Record("turns", 3, offset, RECEIVED, partition_key(turn.app, turn.owner), encode_turn(turn), headers)


def a_fact(text: str, turn: int = 0) -> Fact:
    return Fact(turn=turn, text=text, category="fact", importance=5, confidence=0.9, role=Role.USER, said_at=SAID)


async def test_a_turn_becomes_one_window_with_its_facts_embedded(bench: Bench) -> None:
    bench.model.facts = (a_fact("Lives in Lisbon"),)
    await bench.extract([record_of(a_turn(), ("traceparent", TRACE), ("other", b"x"))])
    [(topic, key, _, headers)] = bench.topic.sent
    assert (topic, key) == ("c", b"acme/user/42")
    assert dict(headers) == {"mnemo-schema": b"1", "traceparent": TRACE}
    window = bench.topic.window
    assert (window.app, window.owner, window.session) == ("acme", "user/42", "s-1")
    assert window.turns == (
        WindowTurn(id="t-1", topic="turns", partition=3, offset=7, received_at=RECEIVED, said_at=SAID),
    )
    assert (window.reading, window.embedding_model) == (READING, "tiny")
    assert unpack(window.facts[0].embedding).tolist() == [1.0, 15.0]
    assert bench.model.asked[0].max_facts_per_turn == 3


async def test_the_turn_is_written_redacted_before_the_model_is_asked(bench: Bench) -> None:
    bench.model.error = ModelUnavailable("down")
    with pytest.raises(ModelUnavailable):
        await bench.extract([record_of(a_turn("My key is AKIAIOSFODNN7EXAMPLE\nI live in Lisbon."))])
    [(owner, [accepted])] = bench.log.begun
    assert owner == Owner("acme", "user/42")
    assert accepted.turn.messages[0].content == "[REDACTED]\nI live in Lisbon."
    assert bench.model.asked[0].turns == (accepted.turn,)
    assert sum(bench.ear.rules.values()) == 1
    assert bench.topic.sent == []


async def test_a_settled_turn_costs_nothing(bench: Bench) -> None:
    bench.log.status = TurnStatus.SETTLED
    await bench.extract([record_of(a_turn())])
    assert (bench.model.asked, bench.topic.sent) == ([], [])


async def test_a_pending_turn_is_read_again(bench: Bench) -> None:
    bench.log.status = TurnStatus.PENDING
    await bench.extract([record_of(a_turn())])
    assert len(bench.topic.sent) == 1


async def test_a_used_id_with_other_messages_is_rejected(bench: Bench) -> None:
    bench.log.status = TurnStatus.REUSED
    with pytest.raises(Rejected) as rejected:
        await bench.extract([record_of(a_turn())])
    assert rejected.value.reason is Reason.ID_REUSED
    assert bench.topic.sent == []


@pytest.mark.parametrize("turn", [a_turn("Hello!"), a_turn("I moved to Lisbon.", off_record=True)])
async def test_small_talk_and_what_is_off_the_record_is_noted_without_reading(bench: Bench, turn: Turn) -> None:
    await bench.extract([record_of(turn)])
    window = bench.topic.window
    assert (bench.model.asked, window.facts, window.reading, window.embedding_model) == ([], (), None, None)
    assert [t.id for t in window.turns] == ["t-1"]


async def test_the_same_text_twice_in_an_answer_is_one_fact(bench: Bench) -> None:
    bench.model.facts = (a_fact("Lives in Lisbon."), a_fact("lives in  Lisbon"), a_fact("Has a dog"))
    await bench.extract([record_of(a_turn())])
    assert [fact.text for fact in bench.topic.window.facts] == ["Lives in Lisbon.", "Has a dog"]


async def test_what_says_the_same_by_its_vector_is_one_fact_where_the_guards_agree(bench: Bench) -> None:
    bench.model.facts = (
        msgspec.structs.replace(a_fact("The user doesn't eat meat."), messages=(0,)),
        msgspec.structs.replace(a_fact("The user does not eat meat."), messages=(1,)),
        a_fact("The user does not eat fish."),
    )
    await bench.extract([record_of(a_turn())])
    facts = bench.topic.window.facts
    assert [(fact.text, fact.messages) for fact in facts] == [
        ("The user doesn't eat meat.", (0, 1)),
        ("The user does not eat fish.", ()),
    ]
    assert unpack(facts[0].embedding).tolist() == [1.0, 26.0]
    assert bench.ear.drops == [(Dropped.REPEATED, 1)]


async def test_what_a_model_cost_is_told_whether_or_not_something_came_of_it(bench: Bench) -> None:
    bench.model.facts, bench.model.requests, bench.model.unread = (a_fact("Lives in Lisbon"),), 2, 40
    await bench.extract([record_of(a_turn())])
    bench.model.error = ReadingFailed(Reason.MODEL_ANSWER_UNUSABLE, "no", READING, 3)
    with pytest.raises(Rejected):
        await bench.extract([record_of(a_turn())])
    assert bench.ear.readings == [(READING, 2), (READING, 3)]
    assert bench.ear.windows == [(1, 40)]


async def test_facts_of_a_window_keep_to_their_turns_when_one_of_them_is_off_the_record(bench: Bench) -> None:
    bench.model.facts = (a_fact("First", 0), a_fact("Second", 1))
    turns = [
        a_turn("I live in Porto.", id="t-1"),
        a_turn("Between us.", id="t-2", off_record=True),
        a_turn("I live in Lisbon.", id="t-3"),
    ]
    await bench.extract([record_of(turn, offset=number) for number, turn in enumerate(turns)])
    window = bench.topic.window
    assert [t.id for t in window.turns] == ["t-1", "t-2", "t-3"]
    assert [(fact.text, window.turns[fact.turn].id) for fact in window.facts] == [("First", "t-1"), ("Second", "t-3")]


async def test_small_talk_in_a_window_is_shown_for_what_follows_it(bench: Bench) -> None:
    bench.model.facts = (a_fact("The user lives in Porto.", 1),)
    turns = [a_turn("Hi", id="t-1"), a_turn("I live in Porto.", id="t-2")]
    await bench.extract([record_of(turn, offset=number) for number, turn in enumerate(turns)])
    assert [turn.id for turn in bench.model.asked[-1].turns] == ["t-1", "t-2"]


async def test_a_window_that_holds_a_turn_twice_reads_it_once(bench: Bench) -> None:
    turn = a_turn("I live in Porto.", id="t-1")
    await bench.extract([record_of(turn, offset=1), record_of(turn, offset=2)])
    assert [(each.id, each.offset) for each in bench.topic.window.turns] == [("t-1", 1)]


async def test_an_answer_about_a_turn_that_was_not_asked_for_is_unusable(bench: Bench) -> None:
    bench.model.facts = (a_fact("Elsewhere", 1),)
    with pytest.raises(Rejected) as rejected:
        await bench.extract([record_of(a_turn())])
    assert rejected.value.reason is Reason.MODEL_ANSWER_UNUSABLE


async def test_what_is_no_turn_is_rejected_before_anything_is_written(bench: Bench) -> None:
    broken = replace(record_of(a_turn()), value=b"{")
    with pytest.raises(Rejected) as rejected:
        await bench.extract([broken])
    assert rejected.value.reason is Reason.INVALID_JSON
    assert bench.log.begun == []


async def test_a_trace_that_is_none_is_not_passed_on(bench: Bench) -> None:
    await bench.extract([record_of(a_turn(), ("traceparent", b"\xff; DROP"))])
    assert dict(bench.topic.sent[0][3]) == {"mnemo-schema": b"1"}


class Reconciler:
    def __init__(self) -> None:
        self.windows: list[Window] = []

    async def reconcile(self, window: Window) -> None:
        self.windows.append(window)


def a_window(**changes: Any) -> Window:
    turn = WindowTurn(id="t-1", topic="turns", partition=0, offset=1, received_at=RECEIVED, said_at=SAID)
    return msgspec.structs.replace(Window(app="acme", owner="user/42", session=None, turns=(turn,)), **changes)


def window_record(value: bytes | None, key: bytes | None = b"acme/user/42", *headers: tuple[str, bytes]) -> Record:
    return Record("candidates", 0, 4, RECEIVED, key, value, headers)


async def test_a_window_goes_to_the_reconciler() -> None:
    reconciler = Reconciler()
    await Reconcile(reconciler)([window_record(msgspec.json.encode(a_window()))])
    assert reconciler.windows == [a_window()]


WINDOW = msgspec.json.encode(a_window())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (window_record(None), Reason.EMPTY_VALUE),
        (window_record(WINDOW, None), Reason.MISSING_KEY),
        (window_record(WINDOW, b"acme/user/43"), Reason.KEY_MISMATCH),
        (window_record(WINDOW, b"\xff"), Reason.KEY_MISMATCH),
        (window_record(WINDOW[:-1]), Reason.INVALID_JSON),
        (window_record(b"[" * 100_000), Reason.INVALID_FIELD),
        (window_record(WINDOW.replace(b"acme", b"ac\xff\xff")), Reason.INVALID_UTF8),
        (window_record(WINDOW.replace(b'"offset":1', b'"offset":"private"')), Reason.INVALID_FIELD),
        (window_record(WINDOW.replace(b"10:00:05Z", b"10:00:05")), Reason.INVALID_FIELD),
        (window_record(WINDOW, b"acme/user/42", ("mnemo-schema", b"2")), Reason.UNSUPPORTED_SCHEMA),
        (window_record(WINDOW.replace(b"acme", b"no app"), b"no app/user/42"), Reason.INVALID_FIELD),
        (window_record(WINDOW.replace(b"user/42", b"\\u0000"), b"acme/\0"), Reason.INVALID_FIELD),
        (window_record(WINDOW.replace(b"user/42", b"u" * 257), b"acme/" + b"u" * 257), Reason.INVALID_FIELD),
        (window_record(WINDOW.replace(b"t-1", b"\\u0000")), Reason.INVALID_FIELD),
    ],
)
async def test_what_is_no_window_is_rejected_without_quoting_it(record: Record, reason: Reason) -> None:
    reconciler = Reconciler()
    with pytest.raises(Rejected) as rejected:
        await Reconcile(reconciler)([record])
    assert rejected.value.reason is reason
    assert "private" not in rejected.value.detail
    assert reconciler.windows == []


def a_parker(topic: Topic, log: Log, *, holds_windows: bool = False) -> Parker:
    return Parker(topic, log, stage="extract", topic="parked", holds_windows=holds_windows, now=lambda: SAID)


async def test_a_parked_record_is_sent_untouched_with_what_is_known_and_then_noted() -> None:
    topic, log = Topic(), Log()
    record = record_of(a_turn(), ("traceparent", TRACE))
    await a_parker(topic, log)(record, Reason.MODEL_REFUSED, "no", 3)
    [(name, key, value, headers)] = topic.sent
    assert (name, key, value, headers[0]) == ("parked", record.key, record.value, ("traceparent", TRACE))
    assert dict(headers[1:]) == {
        "mnemo-parked-reason": b"model_refused",
        "mnemo-parked-detail": b"no",
        "mnemo-parked-stage": b"extract",
        "mnemo-parked-topic": b"turns",
        "mnemo-parked-partition": b"3",
        "mnemo-parked-offset": b"7",
        "mnemo-parked-at": b"2026-11-21T10:00:00+00:00",
        "mnemo-parked-attempts": b"3",
        "mnemo-parked-received-at": b"2026-11-21T10:00:05+00:00",
    }
    [parking] = log.parked
    assert (parking.owner, parking.turn_ids, parking.place) == (Owner("acme", "user/42"), ("t-1",), place_of(record))


async def test_a_ledger_that_is_away_does_not_send_the_record_again() -> None:
    topic, log = Topic(), Log(error=StoreUnavailable("away"))
    park = a_parker(topic, log)
    with pytest.raises(StoreUnavailable):
        await park(record_of(a_turn()), Reason.MODEL_REFUSED, "no", 1)
    log.error = None
    await park(record_of(a_turn()), Reason.MODEL_REFUSED, "no", 1)
    assert (len(topic.sent), len(log.parked)) == (1, 1)


@pytest.mark.parametrize(
    ("change", "owner", "turn_ids"),
    [
        ({"value": b"{"}, None, ()),
        ({"key": b"acme/user/43"}, None, ()),
        ({"key": None}, None, ()),
        ({"value": encode_turn(a_turn()).replace(b"said_at", b"said_by")}, Owner("acme", "user/42"), ("t-1",)),
    ],
)
async def test_a_record_is_noted_under_an_owner_only_where_key_and_body_agree(
    change: dict[str, Any], owner: Owner | None, turn_ids: tuple[str, ...]
) -> None:
    log = Log()
    await a_parker(Topic(), log)(replace(record_of(a_turn()), **change), Reason.INVALID_FIELD, "x", 1)
    assert [(parking.owner, parking.turn_ids) for parking in log.parked] == [(owner, turn_ids)]


async def test_a_window_of_an_owner_that_cannot_be_is_noted_under_none() -> None:
    log = Log()
    record = window_record(msgspec.json.encode(a_window(owner="\0")), b"acme/\0")
    await a_parker(Topic(), log, holds_windows=True)(record, Reason.INVALID_FIELD, "x", 1)
    assert [(parking.owner, parking.turn_ids) for parking in log.parked] == [(None, ())]


async def test_all_turns_of_a_parked_window_are_marked() -> None:
    log = Log()
    two = a_window(turns=(a_window().turns[0], msgspec.structs.replace(a_window().turns[0], id="t-2")))
    record = window_record(msgspec.json.encode(two))
    await a_parker(Topic(), log, holds_windows=True)(record, Reason.INTERNAL_ERROR, "x", 1)
    assert [(parking.owner, parking.turn_ids) for parking in log.parked] == [(Owner("acme", "user/42"), ("t-1", "t-2"))]

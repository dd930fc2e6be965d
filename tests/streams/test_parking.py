"""Setting records aside, and putting them back: the core of both, without Kafka and Postgres."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from mnemostream.turns import Reason

from processors.errors import BrokerUnavailable, Rejected, StoreUnavailable
from processors.facts import Window
from processors.records import Landed, Parking
from store.parked import ParkedEntry, ParkedPlace
from streams.delivery import Record
from streams.outlet import Outgoing, Returned
from streams.parked_replay import Replay, Replayed
from streams.parked_topic import NotThere, ParkedRecord
from streams.parking import Parker
from streams.ports import Headers
from streams.records import ORIGIN_HEADER, RECEIVED_HEADER, RUN_HEADER, place_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TURNS = "m.turns.v1"


@dataclass
class Topic:
    """Takes so many bytes of value, and of headers."""

    max_bytes: int = 1_000_000
    max_headers: int = 100
    sent: list[tuple[bytes | None, bytes | None, Headers]] = field(default_factory=list)

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> Landed | None:
        if len(value or b"") > self.max_bytes or len(headers) > self.max_headers:
            raise Rejected(Reason.TOO_LARGE, "record")
        self.sent.append((key, value, headers))
        return Landed(3, len(self.sent))


@dataclass
class Ledger:
    parked: list[Parking] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    async def park(self, parking: Parking) -> None:
        if self.failures:
            raise self.failures.pop()
        self.parked.append(parking)


def a_record(*headers: tuple[str, bytes], value: bytes | None = b"{", key: bytes | None = b"acme/ana") -> Record:
    return Record(TURNS, 1, 7, NOON, key, value, headers)


def a_parker(topic: Topic, ledger: Ledger, *, holds_windows: bool = False) -> Parker:
    return Parker(topic, ledger, stage="extract", topic="m.parked.v1", holds_windows=holds_windows, now=lambda: NOON)


async def parked(record: Record, topic: Topic | None = None, *, holds_windows: bool = False) -> Parking:
    ledger = Ledger()
    parker = a_parker(topic or Topic(), ledger, holds_windows=holds_windows)
    await parker(record, Reason.INVALID_JSON, "value: is not JSON", 1)
    [parking] = ledger.parked
    return parking


async def test_where_it_lies_is_noted_also_when_the_ledger_was_away_at_first() -> None:
    topic, ledger = Topic(), Ledger(failures=[StoreUnavailable("away")])
    parker = a_parker(topic, ledger)
    with pytest.raises(StoreUnavailable):
        await parker(a_record(), Reason.INVALID_JSON, "x", 1)
    await parker(a_record(), Reason.INVALID_JSON, "x", 1)
    assert [parking.landed for parking in ledger.parked] == [Landed(3, 1)]
    assert len(topic.sent) == 1


async def test_a_copy_whose_note_was_lost_does_not_stand_for_another_reading_of_the_same_record() -> None:
    topic, ledger = Topic(), Ledger(failures=[StoreUnavailable("away")])
    parker = a_parker(topic, ledger)
    with pytest.raises(StoreUnavailable):
        await parker(a_record(), Reason.MODEL_REFUSED, "x", 1)
    origin = [(ORIGIN_HEADER, b"1/7"), (RECEIVED_HEADER, NOON.isoformat().encode())]
    again = replace(a_record(*origin, (RUN_HEADER, b"1")), offset=99, received_at=NOON + timedelta(days=1))
    back = replace(a_record(*origin, ("mnemo-replay", b"1")), offset=100, received_at=NOON + timedelta(days=1))
    await parker(again, Reason.MODEL_REFUSED, "x", 1)
    await parker(back, Reason.MODEL_REFUSED, "x", 1)
    await parker(a_record(), Reason.MODEL_ANSWER_UNUSABLE, "x", 3)
    landed = [(parking.run, parking.replay, parking.reason, parking.landed) for parking in ledger.parked]
    assert landed == [
        (1, 0, "model_refused", Landed(3, 2)),
        (0, 1, "model_refused", Landed(3, 3)),
        (0, 0, "model_answer_unusable", Landed(3, 4)),
    ]


async def test_what_was_sent_and_never_noted_is_forgotten_in_the_end() -> None:
    topic, ledger = Topic(), Ledger(failures=[StoreUnavailable("away") for _ in range(1_001)])
    parker = a_parker(topic, ledger)
    for offset in range(1_001):
        with pytest.raises(StoreUnavailable):
            await parker(replace(a_record(), offset=offset), Reason.INVALID_JSON, "x", 1)
    for offset in (1_000, 0):
        await parker(replace(a_record(), offset=offset), Reason.INVALID_JSON, "x", 1)
    assert [parking.landed for parking in ledger.parked] == [Landed(3, 1_001), Landed(3, 1_002)]


@pytest.mark.parametrize(
    ("header", "replay"),
    [(None, 0), (b"1", 1), (b"20", 20), (b"99999999999", 0), (b"4294967295", 2**31 - 1), (b"-1", 0), (b"x", 0)],
)
async def test_which_copy_of_it_this_is_is_noted(header: bytes | None, replay: int) -> None:
    assert (await parked(a_record(*([] if header is None else [("mnemo-replay", header)])))).replay == replay


async def test_which_reading_was_refused_is_noted() -> None:
    assert (await parked(a_record((RUN_HEADER, b"4")))).run == 4
    assert (await parked(a_record((RUN_HEADER, b"what")))).run == 0
    window = msgspec.json.encode(Window(app="acme", owner="ana", session=None, turns=(), facts=(), run=5))
    assert (await parked(a_record(value=window), holds_windows=True)).run == 5


async def test_what_is_too_large_is_parked_without_its_value_and_at_last_without_its_headers() -> None:
    topic = Topic(max_bytes=10)
    await parked(a_record(("own", b"1"), value=b"x" * 11), topic)
    [(key, value, headers)] = topic.sent
    assert (key, value, dict(headers)["own"], headers[-1]) == (
        b"acme/ana",
        None,
        b"1",
        ("mnemo-parked-without-value", b"11"),
    )
    topic = Topic(max_headers=20)
    await parked(a_record(*[(f"own-{n}", b"1") for n in range(30)]), topic)
    [(_, _, headers)] = topic.sent
    assert ("mnemo-parked-without-headers", b"30") in headers
    assert ("mnemo-parked-without-value", b"1") in headers


async def test_a_value_that_never_was_is_not_said_to_be_lost() -> None:
    topic = Topic(max_headers=12)
    await parked(a_record(*[(f"own-{n}", b"1") for n in range(5)], value=None), topic)
    [(_, value, headers)] = topic.sent
    assert (value, "mnemo-parked-without-value" in dict(headers)) == (None, False)


def an_entry(offset: int, *, topic: str = TURNS, partition: int = 1, replays: int = 0) -> ParkedEntry:
    return ParkedEntry(
        place=ParkedPlace(topic, partition, offset),
        app="acme",
        owner="ana",
        turn_ids=(f"t-{offset}",),
        stage="extract",
        reason="model_refused",
        detail="",
        attempts=1,
        received_at=NOON,
        parked_at=NOON,
        landed=Landed(0, 1000 - offset),
        replayed_at=None,
        replays=replays,
        dropped_at=None,
        stored=0,
    )


@dataclass
class System:
    """A topic of parked records, topics to put them back on, and a ledger."""

    problems: dict[int, str] = field(default_factory=dict)
    changes: dict[int, ParkedRecord] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    gone_after: int = 10**9
    on_topic: dict[tuple[str, int], list[Outgoing]] = field(default_factory=lambda: defaultdict(list))
    noted: list[int] = field(default_factory=list)
    largest: int = 0
    told: list[Replayed] = field(default_factory=list)

    async def read(self, place: ParkedPlace, landed: Landed | None) -> ParkedRecord:
        if place.offset in self.problems:
            raise NotThere(self.problems[place.offset])
        usual = ParkedRecord(b"acme/ana", b"%d" % place.offset, [("own", b"\xff"), ("null", None)], [])
        return self.changes.get(place.offset, usual)

    async def partitions(self, topic: str) -> frozenset[int]:
        return frozenset({0, 1, 2})

    async def put_back(self, topic: str, partition: int, records: Sequence[Outgoing]) -> Returned:
        self.largest = max(self.largest, sum(len(record.value or b"") for record in records))
        refused = [i for i, record in enumerate(records) if int((record.value or b"0")[:4]) in self.refused]
        arrived = [i for i, _ in enumerate(records) if i not in refused and i < self.gone_after]
        self.on_topic[topic, partition] += [records[i] for i in arrived]
        failure = BrokerUnavailable("away") if len(records) > self.gone_after else None
        return Returned(tuple(arrived), tuple(refused), failure)

    async def replayed(self, entries: Sequence[ParkedEntry]) -> None:
        self.noted += [entry.place.offset for entry in entries]

    async def replay(self, *entries: ParkedEntry) -> list[Replayed]:
        replay = Replay(self, self, self, replayable=[TURNS, "m.candidates.v1"])
        async for replayed in replay.run(entries):
            self.told.append(replayed)
        return self.told


async def test_a_record_goes_back_as_it_came_with_its_first_place_and_time() -> None:
    system = System()
    assert await system.replay(an_entry(7, replays=2)) == [Replayed(ParkedPlace(TURNS, 1, 7))]
    [back] = system.on_topic[TURNS, 1]
    assert (back.key, back.value, list(back.headers[:2])) == (b"acme/ana", b"7", [("own", b"\xff"), ("null", None)])
    assert dict(back.headers[2:]) == {
        ORIGIN_HEADER: b"1/7",
        RECEIVED_HEADER: NOON.isoformat().encode(),
        "mnemo-replay": b"3",
    }
    copy = Record(TURNS, 1, 99, NOON + timedelta(days=2), back.key, back.value, tuple(back.headers))
    assert place_of(copy) == (TURNS, 1, 7, NOON)
    assert (await parked(copy)).replay == 3
    assert system.noted == [7]


async def test_each_partition_has_its_records_in_their_first_order() -> None:
    system = System()
    offsets = [5, 3, 900, 1, 400]
    await system.replay(*[an_entry(n, partition=n % 2) for n in offsets])
    in_order = {key: [int(each.value or 0) for each in records] for key, records in system.on_topic.items()}
    assert in_order == {(TURNS, 0): [400, 900], (TURNS, 1): [1, 3, 5]}


async def test_what_cannot_be_put_back_is_told_and_the_others_go_on() -> None:
    lost = ParkedRecord(b"acme/ana", None, [], [("mnemo-parked-without-value", b"9999999")])
    bare = ParkedRecord(b"acme/ana", None, [], [("mnemo-parked-without-headers", b"3")])
    system = System(problems={2: "it is gone"}, changes={3: lost, 8: bare}, refused=frozenset({4}))
    entries = [an_entry(n) for n in (1, 2, 3, 4, 5, 8)]
    elsewhere = [an_entry(6, topic="other.turns.v1"), an_entry(7, partition=9)]
    outcomes = {each.place.offset: each.problem or "" for each in await system.replay(*entries, *elsewhere)}
    assert [offset for offset, problem in outcomes.items() if not problem] == [1, 5]
    assert outcomes[2] == "it is gone"
    assert "9999999 bytes" in outcomes[3]
    assert "larger than m.turns.v1 takes" in outcomes[4]
    assert "set MNEMO_TOPIC_PREFIX" in outcomes[6]
    assert "no partition 9" in outcomes[7]
    assert "headers were too large" in outcomes[8]
    assert system.noted == [1, 5]


async def test_an_empty_record_that_was_empty_from_the_start_goes_back() -> None:
    system = System(changes={1: ParkedRecord(None, None, [], [("mnemo-parked-reason", b"missing_key")])})
    assert [each.problem for each in await system.replay(an_entry(1))] == [None]
    [back] = system.on_topic[TURNS, 1]
    assert (back.key, back.value) == (None, None)


async def test_what_is_back_before_kafka_goes_away_is_noted_and_told() -> None:
    system = System(gone_after=2)
    with pytest.raises(BrokerUnavailable):
        await system.replay(*[an_entry(n) for n in range(5)])
    assert system.noted == [0, 1]
    assert [each.place.offset for each in system.told] == [0, 1]


async def test_where_the_ledger_does_not_know_the_time_the_record_tells_it() -> None:
    told = [("mnemo-parked-received-at", b"2026-11-20T10:00:00+02:00")]
    system = System(changes={1: ParkedRecord(b"k", b"1", [], told), 2: ParkedRecord(b"k", b"2", [], [])})
    entries = [replace(an_entry(n), received_at=None) for n in (1, 2)]
    outcomes = await system.replay(*entries)
    assert sorted(each.problem is None for each in outcomes) == [False, True]
    [back] = system.on_topic[TURNS, 1]
    assert dict(back.headers)[RECEIVED_HEADER] == b"2026-11-20T08:00:00+00:00"


async def test_many_large_records_are_never_in_hand_together() -> None:
    large = {n: ParkedRecord(b"k", b"0" * 1_000_000, [], []) for n in range(40)}
    system = System(changes=large)
    assert len(await system.replay(*[an_entry(n) for n in range(40)])) == 40
    assert system.largest <= 9 * 1024 * 1024

"""Turns that are read again: how they are put on the topic, and how extract takes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from mnemostream.decoding import decode_turn
from mnemostream.turns import Message, Reason, Role

from processors.errors import BrokerUnavailable, Rejected
from processors.records import Place, TurnStatus
from store.runs import Choice, LoggedTurn, Run
from streams.delivery import Record
from streams.ports import Headers
from streams.records import place_of, run_of
from streams.rereading import Progress, Rereading
from streams.windows import SessionWindows
from tests.streams.test_handlers import RECEIVED, SAID, Bench, a_fact, a_turn, record_of

RUN = Run(7, Choice(), 3, SAID, None)
PLACE = Place("old.turns.v1", 2, 40, RECEIVED)


@dataclass
class Runs:
    """What there is to read, in pages."""

    pages: list[list[LoggedTurn]]
    over: list[Run] = field(default_factory=list)

    @asynccontextmanager
    async def turns(self, run: Run) -> AsyncIterator[AsyncIterator[list[LoggedTurn]]]:
        assert run is RUN
        yield self._each()

    async def _each(self) -> AsyncIterator[list[LoggedTurn]]:
        for page in self.pages:
            yield page

    async def note_published(self, run: Run) -> None:
        self.over.append(run)


@dataclass
class Topic:
    """Records on the topic, as a consumer has them. `fails_at`: the number of the one that does not arrive."""

    records: list[Record] = field(default_factory=list)
    fails_at: int | None = None

    async def publish(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        if len(self.records) + 1 == self.fails_at:
            raise BrokerUnavailable("Kafka is away")
        received = RECEIVED + timedelta(days=30)
        self.records.append(Record(topic, 1, len(self.records), received, key, value, tuple(headers)))


async def nothing_waits() -> int:
    return 0


def logged(number: int, text: str = "I live in Porto.") -> LoggedTurn:
    return LoggedTurn(a_turn(text, id=f"t-{number}"), PLACE._replace(offset=40 + number))


async def test_a_turn_goes_out_as_the_log_has_it_with_its_run_and_its_first_place() -> None:
    topic, runs = Topic(), Runs([[logged(1), logged(2)], [logged(3)]])
    done = await Rereading(runs, topic, nothing_waits, topic="turns").publish(RUN)
    assert (done, runs.over) == (Progress(3), [RUN])
    assert [decode_turn(r.value, key=r.key, schema=r.header("mnemo-schema")) for r in topic.records] == [
        logged(number).turn for number in (1, 2, 3)
    ]
    assert {run_of(record) for record in topic.records} == {7}
    assert [place_of(record) for record in topic.records] == [Place("turns", 2, 40 + n, RECEIVED) for n in (1, 2, 3)]


async def test_no_more_is_put_there_while_enough_wait_for_extract() -> None:
    waiting, told = [600, 500, 499, 0], list[Progress]()
    topic = Topic()

    async def look() -> int:
        return waiting.pop(0)

    rereading = Rereading(Runs([[logged(1)], [logged(2)]]), topic, look, topic="turns", look_seconds=0)
    await rereading.publish(RUN, told.append)
    assert told == [Progress(0, waits=True), Progress(0, waits=True), Progress(1), Progress(2)]
    waiting[:] = []
    await Rereading(Runs([[logged(3)]]), topic, look, topic="turns", ahead=0).publish(RUN)
    assert len(topic.records) == 3


async def test_a_run_whose_turns_did_not_all_arrive_is_not_over() -> None:
    runs = Runs([[logged(1), logged(2), logged(3)]])
    with pytest.raises(BrokerUnavailable):
        await Rereading(runs, Topic(fails_at=2), nothing_waits, topic="turns").publish(RUN)
    assert runs.over == []


async def test_a_turn_that_breaks_the_rules_of_today_is_left_out() -> None:
    broken = replace(logged(1), turn=a_turn(id="t-1", messages=()))
    topic = Topic()
    done = await Rereading(Runs([[broken, logged(2)]]), topic, nothing_waits, topic="turns").publish(RUN)
    assert done == Progress(1, skipped=1)


async def test_extract_reads_a_turn_again_in_its_run_and_at_its_first_place() -> None:
    bench = Bench()
    bench.log.status = TurnStatus.PENDING
    bench.model.facts = (a_fact("Lives in Lisbon"),)
    topic = Topic()
    await Rereading(Runs([[logged(1)]]), topic, nothing_waits, topic="turns").publish(RUN)
    await bench.extract(topic.records)
    assert bench.log.runs == [7]
    window = bench.topic.window
    assert (window.run, [turn.offset for turn in window.turns], window.turns[0].received_at) == (7, [41], RECEIVED)


async def test_extract_asks_nothing_about_turns_that_took_effect_in_their_run() -> None:
    bench = Bench()
    bench.log.status = TurnStatus.SETTLED
    await bench.extract([record_of(a_turn(), ("mnemo-run", b"7"))])
    assert (bench.model.asked, bench.topic.sent) == ([], [])


async def test_a_turn_that_stays_parked_costs_nothing() -> None:
    bench = Bench()
    bench.log.status = TurnStatus.PARKED
    await bench.extract([record_of(a_turn())])
    assert (bench.model.asked, bench.topic.sent, bench.ear.statuses) == ([], [], [TurnStatus.PARKED])


async def test_the_log_hears_how_often_a_record_was_put_back() -> None:
    bench = Bench()
    await bench.extract([record_of(a_turn())])
    await bench.extract([record_of(a_turn(), ("mnemo-replay", b"2"))])
    assert [turn.replay for _, [turn] in bench.log.begun] == [0, 2]


async def test_a_turn_to_be_read_again_that_nobody_knows_is_parked() -> None:
    bench = Bench()
    bench.log.status = TurnStatus.UNKNOWN
    with pytest.raises(Rejected) as parked:
        await bench.extract([record_of(a_turn(), ("mnemo-run", b"7"))])
    assert (parked.value.reason, "mnemo-run" in parked.value.detail) == (Reason.INVALID_FIELD, True)
    assert (bench.model.asked, bench.topic.sent) == ([], [])


@pytest.mark.parametrize("run", [b"", b"-1", b"1.5", b"x", b"99999999999"])
async def test_a_run_that_is_no_number_is_parked(run: bytes) -> None:
    bench = Bench()
    with pytest.raises(Rejected) as parked:
        await bench.extract([record_of(a_turn(), ("mnemo-run", run))])
    assert parked.value.reason is Reason.INVALID_FIELD
    assert bench.log.begun == []


def test_a_window_is_of_one_reading() -> None:
    first = record_of(a_turn(id="t-1", messages=(Message(Role.USER, "Hello."),)))
    again, later = (replace(first, headers=(("mnemo-run", run),)) for run in (b"7", b"8"))
    windows = SessionWindows(max_turns=9)
    assert windows([first, first, again]) == 2
    assert windows([again, again, again, later]) == 3
    assert windows([again, first]) == 1

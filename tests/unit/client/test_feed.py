"""The change feed without Kafka: what is passed over, what is a gap, what an outage costs, what changes add up to."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream import Change, ChangeFeed, FeedGap, InvalidChange, LiveSet, Source, State
from mnemostream.change_records import UnreadableChange, change_of
from mnemostream.errors import BrokerRefused, BrokerUnavailable
from mnemostream.trails import Begun, Progress, Trail
from mnemostream.types import Cause, ExportEnd, ExportHeader

from processors import feed as server
from processors import memories
from processors.records import Owner
from tests.fakes.query import memory_named
from tests.fakes.values import NOON, id_of

OWNER = Owner("acme", "user/42")
A_CHANGE = server.Change(OWNER, 3, "added", NOON, memory_named("A fact", OWNER), "turn", "t-1", id_of("decision"))


def shown(change: server.Change) -> Change:
    """`change` as it is published, read by the client."""
    return change_of(b"acme/user/42", server.change_value(change), b"1")


def test_a_change_is_read_as_it_was_published() -> None:
    memory = memory_named(
        "A fact",
        OWNER,
        data={"n": 3, "x": [1.5, None, {"y": True}]},
        tags=("a", "b"),
        state=memories.State.SUPERSEDED,
        superseded_by=id_of("b"),
        retired_at=NOON + timedelta(microseconds=1),
        sources=(memories.Source("t-1", 0, None, NOON), memories.Source("t-2", None, None, NOON)),
    )
    change = shown(replace(A_CHANGE, memory=memory))
    assert (change.seq, change.app, change.owner, change.kind, change.at) == (3, "acme", "user/42", "added", NOON)
    assert (change.cause, change.decision) == (Cause("turn", "t-1"), str(id_of("decision")))
    assert change.memory is not None
    assert change.memory.data == {"n": 3, "x": [1.5, None, {"y": True}]}
    assert (change.memory.id, change.memory.state, change.memory.tags) == (str(memory.id), State.SUPERSEDED, ("a", "b"))
    assert (change.memory.superseded_by, change.memory.session) == (str(id_of("b")), None)
    assert change.memory.retired_at == NOON + timedelta(microseconds=1)
    assert change.memory.sources == (Source("t-1", 0, None, NOON), Source("t-2", None, None, NOON))
    assert shown(replace(A_CHANGE, memory=None, decision_id=None)).memory is None


def test_what_is_newer_than_the_client_is_read_as_far_as_it_goes() -> None:
    value = json.loads(server.change_value(A_CHANGE))
    value["memory"]["state"] = "DREAMT"
    value["memory"]["mood"] = value["mood"] = "new"
    change = change_of(b"acme/user/42", json.dumps(value | {"kind": "dreamt"}).encode(), None)
    assert change.kind == "dreamt"
    assert change.memory is not None
    assert change.memory.state is State.UNRECOGNIZED


@given(
    st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_whatever_stands_there_is_a_change_or_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableChange):
        change_of(b"acme/user/42", value, None)


RUNS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=8)


@given(RUNS)
def test_runs_that_begin_at_or_before_what_comes_next_give_each_number_once(runs: list[tuple[int, int]]) -> None:
    """At least once: again and again from somewhere before, never beyond what is missing."""
    trail, last, taken = Trail(Begun.AT_THE_BEGINNING, {}, 0), 0, []
    for back, length in runs:
        start = max(1, last + 2 - back)
        for seq in range(start, start + length):
            if trail.take("o", seq):
                taken.append(seq)
            last = max(last, seq)
    assert taken == list(range(1, last + 1))


@pytest.mark.parametrize(
    ("begun", "known", "numbers", "taken"),
    [
        (Begun.AT_THE_BEGINNING, 0, [1, 2, 2, 1, 3], [1, 2, 3]),
        (Begun.AT_THE_BEGINNING, 0, [2], FeedGap),
        (Begun.AT_THE_BEGINNING, 0, [1, 3], FeedGap),
        (Begun.AT_THE_BEGINNING, 4, [3, 4, 5, 6], [5, 6]),
        (Begun.AT_THE_BEGINNING, 4, [6], FeedGap),
        (Begun.IN_THE_MIDDLE, 0, [7, 8, 8], [7, 8]),
        (Begun.IN_THE_MIDDLE, 4, [2, 5], [5]),
        (Begun.IN_THE_MIDDLE, 4, [6], FeedGap),
        # 3 and 4 are late duplicates: what followed them came before the middle.
        (Begun.IN_THE_MIDDLE, 0, [3, 4, 7, 8], [3, 4, 7, 8]),
        (Begun.IN_THE_MIDDLE, 0, [3, 4, 7, 9], FeedGap),
        (Begun.AT_THE_END, 0, [7, 8], [7, 8]),
        (Begun.AT_THE_END, 4, [4, 7, 8], [7, 8]),
        (Begun.AT_THE_END, 0, [7, 9], FeedGap),
    ],
)
def test_what_is_a_duplicate_and_what_a_gap(begun: Begun, known: int, numbers: list[int], taken: Any) -> None:
    trail = Trail(begun, {"o": known} if known else {}, 0)
    if isinstance(taken, list):
        assert [seq for seq in numbers if trail.take("o", seq)] == taken
    else:
        with pytest.raises(taken):
            _ = [trail.take("o", seq) for seq in numbers]


def test_what_another_process_read_meanwhile_is_no_gap() -> None:
    progress = Progress({"k": 1})
    progress.given(0, 10, Begun.AT_THE_BEGINNING)
    assert progress.take(0, "o", 1)
    progress.finish(0, 10)
    progress.lost()
    assert not progress.reads(0)
    progress.given(0, 11, Begun.IN_THE_MIDDLE)
    with pytest.raises(FeedGap):
        progress.take(0, "o", 3)
    progress.given(0, 20, Begun.IN_THE_MIDDLE)
    assert [seq for seq in (1, 6, 6, 7) if progress.take(0, "o", seq)] == [6, 7]
    assert [seq for seq in (1, 5, 6) if progress.take(0, "k", seq)] == [5, 6]
    with pytest.raises(FeedGap):
        progress.take(0, "o", 9)
    assert progress.finished == {0: 20}
    progress.finish(0, 10)
    assert progress.finished == {0: 20}, "what was read before the partition moved is no way back"


@dataclass(frozen=True, slots=True)
class FakeRecord:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    schema: bytes | None = b"1"


def record(offset: int, seq: int) -> FakeRecord:
    return FakeRecord(0, offset, b"acme/user/42", server.change_value(replace(A_CHANGE, seq=seq)))


@dataclass
class FakeLog:
    """The port `Log`: records and failures, in this order; then nothing more."""

    script: list[FakeRecord | Exception]
    opened: int = 0
    closed: int = 0
    opening: list[Exception] = field(default_factory=list)
    committed: list[Mapping[int, int]] = field(default_factory=list)
    commits_fail: bool = False
    commits_are_refused: bool = False
    begun: Begun = Begun.AT_THE_BEGINNING

    async def open(self, progress: Progress) -> None:
        self.opened += 1
        if self.opened > 1 and self.opening:
            raise self.opening.pop(0)
        progress.given(0, 0, self.begun)

    async def read(self, seconds: float) -> FakeRecord | None:
        if not self.script:
            await asyncio.sleep(0)
            return None
        item = self.script.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    async def at_end(self) -> bool:
        return not self.script

    async def commit(self, offsets: Mapping[int, int], seconds: float) -> None:
        if self.commits_fail:
            raise BrokerUnavailable("away")
        if self.commits_are_refused:
            raise BrokerRefused("no")
        self.committed.append(dict(offsets))

    async def close(self) -> None:
        self.closed += 1


async def seqs(log: FakeLog, **options: Any) -> list[int]:
    async with ChangeFeed(app="acme", follow=False, log=log, **options) as feed:
        return [change.seq async for change in feed]


async def test_an_outage_is_waited_out_and_what_is_read_again_is_passed_over() -> None:
    away = BrokerUnavailable("away")
    log = FakeLog([record(0, 1), away, record(0, 1), record(1, 2), away, record(2, 3)], opening=[away])
    assert await seqs(log) == [1, 2, 3]
    assert (log.opened, log.closed) == (3, 3)


async def test_a_refusal_is_not_waited_out() -> None:
    with pytest.raises(BrokerRefused):
        await seqs(FakeLog([record(0, 1), BrokerRefused("no")]))


async def test_without_a_group_nothing_is_committed() -> None:
    log = FakeLog([record(0, 1)])
    assert await seqs(log) == [1]
    assert log.committed == []


async def test_a_change_is_finished_once_the_next_one_is_asked_for() -> None:
    log = FakeLog([record(0, 1), record(1, 2), record(2, 3), record(3, 3), record(4, 4)])
    async with ChangeFeed(app="acme", group_id="g", log=log) as feed:
        assert [(await anext(feed)).seq for _ in range(4)] == [1, 2, 3, 4]
        assert feed.positions == {0: 4}
        log.commits_fail = True
        with pytest.raises(BrokerUnavailable):
            await feed.commit()
        log.commits_fail = False
        await feed.commit()
    assert log.committed[-1] == {0: 5}
    assert log.committed[:-1] in ([], [{0: 1}])


async def test_closing_commits_what_is_finished_and_no_more() -> None:
    log = FakeLog([record(0, 1), record(1, 2)])
    async with ChangeFeed(app="acme", group_id="g", log=log) as feed:
        await anext(feed)
        await anext(feed)
    assert log.committed[-1] == {0: 1}


async def test_closing_does_not_wait_for_a_broker_that_is_away() -> None:
    log = FakeLog([record(0, 1)] + [BrokerUnavailable("away")] * 1000, commits_fail=True)
    feed = ChangeFeed(app="acme", group_id="g", log=log)
    await feed.open()
    await anext(feed)
    waiting = asyncio.create_task(anext(feed, None))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await feed.close()
        assert await waiting is None


async def test_a_record_without_a_key_is_told_and_other_apps_are_not_read() -> None:
    other = FakeRecord(0, 0, b"other/o", b"not for us", b"2")
    with pytest.raises(InvalidChange, match="offset 1: key"):
        await seqs(FakeLog([other, replace(record(1, 1), key=None)]))


async def test_closing_disconnects_also_where_the_commit_is_refused() -> None:
    log = FakeLog([], begun=Begun.IN_THE_MIDDLE, commits_are_refused=True)
    feed = ChangeFeed(app="acme", group_id="g", log=log)
    await feed.open()
    with pytest.raises(BrokerRefused):
        await feed.close()
    assert log.closed == 1


async def test_a_group_passes_over_a_record_that_cannot_be_read_where_it_is_told_to() -> None:
    poison = replace(record(1, 2), value=b"{}")
    log = FakeLog([record(0, 1), poison, BrokerUnavailable("away"), poison, record(2, 3), record(3, 4)])
    async with ChangeFeed(app="acme", group_id="g", log=log) as feed:
        with pytest.raises(RuntimeError, match="nothing to skip"):
            feed.skip()
        assert (await anext(feed)).seq == 1
        for _ in range(2):
            with pytest.raises(InvalidChange):
                await anext(feed)
        feed.skip()
        with pytest.raises(RuntimeError, match="nothing to skip"):
            feed.skip()
        assert feed.positions == {0: 2}
        with pytest.raises(FeedGap) as gap:  # what it held is missing; that it is read again makes no difference
            await anext(feed)
        assert (gap.value.expected, gap.value.got) == (2, 3)
        with pytest.raises(RuntimeError, match="nothing to skip"):
            feed.skip()
        feed.know("user/42", 3)
        assert (await anext(feed)).seq == 4
        await feed.commit()
    assert log.committed[-1] == {0: 4}


def a_story(*states: str) -> Sequence[Change]:
    """Each change is about a memory of its own letter: small for one that is retired."""
    return [
        shown(
            replace(
                A_CHANGE,
                seq=seq,
                memory=None
                if letter == "-"
                else memory_named(
                    letter.upper(), OWNER, state=memories.State.LIVE if letter.isupper() else memories.State.EVICTED
                ),
            )
        )
        for seq, letter in enumerate(states, 1)
    ]


def contents(live: LiveSet) -> str:
    return "".join(sorted(memory.content for memory in live.live("user/42").values()))


@pytest.mark.parametrize(
    ("story", "live"),
    [("", ""), ("A", "A"), ("AB", "AB"), ("ABa", "B"), ("AaA", "A"), ("AB-", ""), ("AB-C", "C"), ("a", "")],
)
def test_changes_add_up_to_what_is_live(story: str, live: str) -> None:
    folded = LiveSet()
    for change in a_story(*story):
        assert folded.apply(change)
        assert not folded.apply(change)
    assert contents(folded) == live
    assert folded.known == ({"user/42": len(story)} if story else {})


def test_a_gap_is_not_folded_over() -> None:
    folded, story = LiveSet(), a_story(*"ABC")
    with pytest.raises(FeedGap) as raised:
        folded.apply(story[1])
    assert (raised.value.expected, raised.value.got) == (1, 2)
    assert "user/42" not in str(raised.value)


def test_an_export_takes_the_place_of_what_was_folded() -> None:
    folded, story = LiveSet(), a_story(*"ABCd")
    folded.apply(story[0])
    header = ExportHeader(
        app="acme", owner="user/42", seq=2, version=2, exported_at=datetime(2026, 1, 1, tzinfo=UTC), schema=1
    )
    retired = story[3].memory
    live = story[1].memory
    assert live is not None
    assert retired is not None
    whole = (header, live, retired, story[0], ExportEnd(memories=1, changes=1, turns=0, decisions=0))
    for line in (*whole[:-1], *whole[:-1]):  # broken off, and begun anew
        folded.load(line)
        assert (contents(folded), folded.known) == ("A", {"user/42": 1})
    folded.load(whole[-1])
    assert (contents(folded), folded.known) == ("B", {"user/42": 2})
    for out_of_place in (whole[-1], live):
        with pytest.raises(ValueError, match="header"):
            folded.load(out_of_place)
    assert [folded.apply(change) for change in story] == [False, False, True, True]
    assert contents(folded) == "BC"

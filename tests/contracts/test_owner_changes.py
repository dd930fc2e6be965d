"""What becomes of memories that replace, revive and retract each other, on the fake and on Postgres."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from processors.effects import NewMemory, Probe, RequestId, TurnEffect
from processors.memories import Memory, State
from processors.normalization import text_hash
from tests.contracts.owner_stores import Subject
from tests.fakes.values import (
    ARCHIVE_FACTOR,
    HALF_LIFE,
    NOON,
    OWNER,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    nothing_done,
    place_of,
    request_commit,
    retirement,
    retraction,
    revival,
    source_of,
)

DAY = timedelta(days=1)
FAR = NOON + timedelta(days=36500)
PORTO, LISBON, BERLIN = "Lives in Porto.", "Lives in Lisbon.", "Lives in Berlin."


def _lives(text: str, *, at: datetime = NOON, **fields: Any) -> NewMemory:
    return new_memory(text, at=at, subject="user", attribute="home_city", **fields)


def _kinds(changes: list[tuple[int, str, Memory]]) -> list[tuple[int, str, UUID, State, int]]:
    return [(seq, kind, memory.id, memory.state, memory.version) for seq, kind, memory in changes]


# What is superseded


async def test_a_successor_closes_what_it_replaces_and_both_meet(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    lisbon = _lives(LISBON, at=NOON + DAY, supersedes=id_of(PORTO))
    ends = retirement(id_of(PORTO), at=NOON + DAY, by=lisbon.id)
    assert await subject.commit("t-2", addition("t-2", lisbon, retired=[ends]))

    old, new = await subject.get(PORTO), await subject.get(LISBON)

    assert (old.state, old.valid_to, old.superseded_by, old.version) == (State.SUPERSEDED, NOON + DAY, lisbon.id, 2)
    assert old.retired_reason == "it was said otherwise"
    assert old.retired_at is not None
    assert old.content == PORTO
    assert (new.state, new.valid_from, new.supersedes, new.retired_at) == (State.LIVE, NOON + DAY, old.id, None)
    assert (await subject.look()).version == 2
    [_, second, third] = await subject.changes(OWNER)
    assert second == (2, "superseded", dataclasses.replace(old, strength=1.0))
    assert third == (3, "added", dataclasses.replace(new, strength=1.0))


async def test_what_ends_never_ends_before_it_began(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    assert await subject.commit("t-2", retraction("t-2", retirement(id_of(PORTO), State.RETRACTED, at=NOON - DAY)))
    assert (await subject.get(PORTO)).valid_to == NOON


async def test_what_is_taken_back_is_retracted_and_nothing_is_added(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)), addition("t-1", _lives(LISBON)))
    both = [retirement(id_of(text), State.RETRACTED, at=NOON + DAY) for text in (PORTO, LISBON)]
    assert await subject.commit("t-2", retraction("t-2", *both))
    for text in (PORTO, LISBON):
        memory = await subject.get(text)
        assert (memory.state, memory.valid_to, memory.superseded_by) == (State.RETRACTED, NOON + DAY, None)
        assert [source.turn_id for source in memory.sources] == ["t-1"]
    assert (await subject.look()).version == 2
    assert _kinds(await subject.changes(OWNER))[2:] == [
        (3, "retracted", id_of(PORTO), State.RETRACTED, 2),
        (4, "retracted", id_of(LISBON), State.RETRACTED, 2),
    ]


async def test_what_ends_on_a_day_to_come_is_live_until_then(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    lisbon = _lives(LISBON, valid_from=FAR, supersedes=id_of(PORTO))
    ends = retirement(id_of(PORTO), State.LIVE, at=FAR)
    assert await subject.commit("t-2", addition("t-2", lisbon, retired=[ends]))

    old = await subject.get(PORTO)

    assert (old.state, old.valid_to, old.version) == (State.LIVE, FAR, 2)
    assert (old.retired_at, old.retired_reason, old.superseded_by) == (None, None, None)
    assert _kinds(await subject.changes(OWNER))[1:] == [
        (2, "edited", id_of(PORTO), State.LIVE, 2),
        (3, "added", id_of(LISBON), State.LIVE, 1),
    ]
    assert [n.memory.valid_to for n in (await subject.look(Probe(text_hash(PORTO), None))).neighbours[0]] == [FAR]
    assert await subject.commit("t-3", confirmation("t-3", id_of(PORTO)))


async def test_what_has_ended_counts_as_superseded_whether_or_not_a_timer_came(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    assert await subject.commit("t-2", retraction("t-2", retirement(id_of(PORTO), State.LIVE, at=NOON + DAY)))
    look = await subject.look(Probe(text_hash(PORTO), None, "user", "home_city"))
    [[found]] = look.neighbours
    assert (found.state, found.same_text, found.same_slot) == (State.SUPERSEDED, True, False)
    assert [known.id for known in look.lines] == [id_of(PORTO)]
    assert not await subject.commit("t-3", confirmation("t-3", id_of(PORTO)))


async def test_what_comes_late_is_history_from_the_start(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(BERLIN, at=NOON + DAY)))
    late = _lives(
        PORTO,
        state=State.SUPERSEDED,
        valid_to=NOON + DAY,
        superseded_by=id_of(BERLIN),
        retired_reason="it came late",
        restates=id_of("something"),
    )
    assert await subject.commit("t-2", addition("t-2", late))

    memory = await subject.get(PORTO)

    assert (memory.state, memory.valid_from, memory.valid_to) == (State.SUPERSEDED, NOON, NOON + DAY)
    assert (memory.superseded_by, memory.restates, memory.retired_reason) == (
        id_of(BERLIN),
        id_of("something"),
        "it came late",
    )
    assert memory.retired_at is not None
    assert memory.retired_at >= memory.recorded_at
    assert (await subject.get(BERLIN)).state is State.LIVE
    assert (await subject.changes(OWNER))[1] == (2, "added", dataclasses.replace(memory, strength=1.0))


async def test_a_memory_takes_another_place_on_its_line(subject: Subject) -> None:
    ends = retirement(id_of(PORTO), at=NOON + 2 * DAY, by=id_of(BERLIN))
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    berlin = _lives(BERLIN, at=NOON + 2 * DAY, supersedes=id_of(PORTO))
    assert await subject.commit("t-2", addition("t-2", berlin, retired=[ends]))
    gone_at = (await subject.get(PORTO)).retired_at

    between = _lives(
        LISBON, at=NOON + DAY, state=State.SUPERSEDED, valid_to=NOON + 2 * DAY, retired_reason="late",
        supersedes=id_of(PORTO), superseded_by=id_of(BERLIN),
    )  # fmt: skip
    moved = retirement(id_of(PORTO), at=NOON + DAY, by=id_of(LISBON))
    assert await subject.commit("t-3", addition("t-3", between, retired=[moved]))

    porto = await subject.get(PORTO)
    assert (porto.valid_to, porto.superseded_by, porto.version) == (NOON + DAY, id_of(LISBON), 3)
    assert porto.retired_at == gone_at
    assert _kinds(await subject.changes(OWNER))[3:] == [
        (4, "superseded", id_of(PORTO), State.SUPERSEDED, 3),
        (5, "added", id_of(LISBON), State.SUPERSEDED, 1),
    ]


async def test_two_effects_of_one_commit_on_one_memory_follow_each_other(subject: Subject) -> None:
    porto, lisbon, berlin = _lives(PORTO), _lives(LISBON), _lives(BERLIN)
    commit = commit_of(
        "t-1",
        addition("t-1", porto),
        confirmation("t-2", porto.id, source_of("t-2"), at=NOON + DAY),
        addition("t-2", lisbon, retired=[retirement(porto.id, at=NOON + DAY, by=lisbon.id)]),
        addition(
            "t-2",
            berlin,
            retired=[
                retirement(porto.id, at=NOON, by=berlin.id),
                retirement(lisbon.id, at=NOON + 2 * DAY, by=berlin.id),
            ],
        ),
    )
    commit = dataclasses.replace(commit, turns=(*commit.turns, TurnEffect("t-2", place_of(2))))
    assert await subject.store.commit(OWNER, 0, commit)

    changes = await subject.changes(OWNER)

    assert _kinds(changes) == [
        (1, "added", porto.id, State.LIVE, 1),
        (2, "confirmed", porto.id, State.LIVE, 2),
        (3, "superseded", porto.id, State.SUPERSEDED, 3),
        (4, "added", lisbon.id, State.LIVE, 1),
        (5, "superseded", porto.id, State.SUPERSEDED, 4),
        (6, "superseded", lisbon.id, State.SUPERSEDED, 2),
        (7, "added", berlin.id, State.LIVE, 1),
    ]
    ends = [(memory.superseded_by, memory.valid_to, memory.confirmations) for _, _, memory in changes[2::2]]
    assert ends == [(lisbon.id, NOON + DAY, 1), (berlin.id, NOON, 1), (None, None, 0)]
    assert [source.turn_id for source in changes[4][2].sources] == ["t-1", "t-2"]
    assert (await subject.look()).version == 1
    for text in (PORTO, LISBON, BERLIN):
        memory = await subject.get(text)
        assert dataclasses.replace(memory, strength=1.0) == [m for _, _, m in changes if m.id == memory.id][-1]


async def test_a_confirmation_can_retire_what_contradicts_it(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)), addition("t-1", _lives(LISBON)))
    ends = retirement(id_of(LISBON), at=NOON + DAY, by=id_of(PORTO))
    assert await subject.commit("t-2", confirmation("t-2", id_of(PORTO), at=NOON + DAY, retired=[ends]))
    assert _kinds(await subject.changes(OWNER))[2:] == [
        (3, "superseded", id_of(LISBON), State.SUPERSEDED, 2),
        (4, "confirmed", id_of(PORTO), State.LIVE, 2),
    ]
    assert (await subject.look()).version == 2


# What is revived


@pytest.mark.parametrize("state", [State.ARCHIVED, State.EXPIRED, State.EVICTED])
async def test_what_was_dormant_and_is_said_again_is_live_again(subject: Subject, state: State) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    await subject.retire(OWNER, id_of(PORTO), state)
    assert await subject.commit("t-2", revival("t-2", id_of(PORTO), at=NOON + DAY, expires_at=FAR))

    memory = await subject.get(PORTO)

    assert (memory.state, memory.retired_at, memory.retired_reason) == (State.LIVE, None, None)
    assert (memory.expires_at, memory.valid_to, memory.superseded_by) == (FAR, None, None)
    assert (memory.confirmations, memory.confirmed_at, memory.version) == (1, NOON + DAY, 3)
    assert memory.fades_at is not None
    assert abs(memory.fades_at - (NOON + DAY + timedelta(seconds=HALF_LIFE * ARCHIVE_FACTOR))) < timedelta(seconds=1)
    assert [source.turn_id for source in memory.sources] == ["t-1", "t-2"]
    assert (await subject.look()).version == 3  # added, retired, revived
    [*_, last] = await subject.changes(OWNER)
    assert last == (2, "revived", dataclasses.replace(memory, strength=1.0))


async def test_what_has_expired_is_revived_though_no_timer_came(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", new_memory(PORTO, expires_at=NOON + DAY)))
    assert not await subject.commit("t-2", confirmation("t-2", id_of(PORTO)))
    assert await subject.commit("t-2", revival("t-2", id_of(PORTO)))
    memory = await subject.get(PORTO)
    assert (memory.state, memory.expires_at) == (State.LIVE, None)


async def test_a_turn_that_it_rests_on_revives_without_counting(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    await subject.retire(OWNER, id_of(PORTO), State.ARCHIVED)
    again = commit_of("t-1", revival("t-1", id_of(PORTO), source_of("t-1")), run=1)
    assert await subject.store.commit(OWNER, 2, again)
    memory = await subject.get(PORTO)
    assert (memory.state, memory.confirmations, len(memory.sources)) == (State.LIVE, 0, 1)
    assert _kinds(await subject.changes(OWNER))[1:] == [(2, "revived", id_of(PORTO), State.LIVE, 3)]


async def test_what_is_revived_can_be_confirmed_and_replaced_in_the_same_commit(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    await subject.retire(OWNER, id_of(PORTO), State.EVICTED)
    ends = retirement(id_of(PORTO), at=NOON + 2 * DAY, by=id_of(LISBON))
    commit = commit_of(
        "t-2",
        revival("t-2", id_of(PORTO), at=NOON + DAY),
        confirmation("t-3", id_of(PORTO), at=NOON + DAY),
        addition("t-3", _lives(LISBON, at=NOON + 2 * DAY), retired=[ends]),
    )
    commit = dataclasses.replace(commit, turns=(*commit.turns, TurnEffect("t-3", place_of(3))))
    assert await subject.store.commit(OWNER, 2, commit)
    assert _kinds(await subject.changes(OWNER))[1:] == [
        (2, "revived", id_of(PORTO), State.LIVE, 3),
        (3, "confirmed", id_of(PORTO), State.LIVE, 4),
        (4, "superseded", id_of(PORTO), State.SUPERSEDED, 5),
        (5, "added", id_of(LISBON), State.LIVE, 1),
    ]


# What does not stand any more


@pytest.mark.parametrize("state", [State.LIVE, State.SUPERSEDED, State.RETRACTED, State.FORGOTTEN])
async def test_only_what_is_dormant_can_be_revived(subject: Subject, state: State) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    if state is not State.LIVE:
        await subject.retire(OWNER, id_of(PORTO), state)
    assert not await subject.commit("t-2", revival("t-2", id_of(PORTO)))
    assert (await subject.store.look(OWNER, [], model=None, turn_ids=["t-2"])).settled == frozenset()


async def test_what_is_not_there_or_forgotten_can_be_neither_retired_nor_revived(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    await subject.forget(OWNER, id_of(PORTO))
    for memory_id in (id_of(PORTO), id_of("nobody knows")):
        assert not await subject.commit("t-2", retraction("t-2", retirement(memory_id, State.RETRACTED)))
        assert not await subject.commit("t-2", revival("t-2", memory_id))
        gone = addition("t-2", _lives(LISBON), retired=[retirement(memory_id, by=id_of(LISBON))])
        assert not await subject.commit("t-2", gone)
    assert await subject.reader.get(OWNER, id_of(LISBON)) is None
    assert (await subject.store.look(OWNER, [], model=None, turn_ids=["t-2"])).settled == frozenset()


# What is only decided


async def test_what_needs_nothing_is_decided_and_changes_nothing(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    assert await subject.commit("t-2", nothing_done("t-2"), nothing_done("t-2 again"))
    look = await subject.store.look(OWNER, [], model=None, turn_ids=["t-2"])
    assert (look.version, look.settled) == (1, frozenset({"t-2"}))
    assert len(await subject.changes(OWNER)) == 1


async def test_a_request_that_changes_nothing_is_answered_with_the_memory_it_names(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    request = RequestId("CreateMemory", "r-1", b"b" * 32)
    assert await subject.tells.commit(OWNER, 1, request_commit(request, nothing_done("r-1", id_of(PORTO))))
    answered = (await subject.tells.look(OWNER, [], model=None, request=request)).answered
    assert answered is not None
    assert answered.memory.id == id_of(PORTO)


async def test_a_request_without_any_memory_is_written_once(subject: Subject) -> None:
    request = RequestId("CreateMemory", "r-1", b"b" * 32)
    commit = request_commit(request, nothing_done("r-1"))
    assert await subject.tells.commit(OWNER, 0, commit)
    assert not await subject.tells.commit(OWNER, 0, commit)

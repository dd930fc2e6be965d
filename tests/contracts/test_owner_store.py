"""What an owner store promises, run on the fake and on Postgres."""

import asyncio
import dataclasses
from datetime import timedelta
from uuid import UUID

import pytest

from processors.effects import Probe, RequestId, TurnEffect
from processors.memories import Memory, State
from processors.normalization import text_hash
from processors.records import Owner
from tests.contracts.owner_stores import Subject
from tests.fakes.values import (
    ARCHIVE_FACTOR,
    HALF_LIFE,
    MODEL,
    NOON,
    OWNER,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    place_of,
    request_commit,
    source_of,
    vector_of,
)

LISBON = "Lives in Lisbon."


def _probe(text: str) -> Probe:
    return Probe(text_hash(text), vector_of(text))


async def _get(subject: Subject, memory_id: UUID) -> Memory:
    memory = await subject.reader.get(OWNER, memory_id)
    assert memory is not None
    return memory


async def test_an_unknown_owner_has_version_zero_and_nothing_near(subject: Subject) -> None:
    look = await subject.store.look(OWNER, [_probe(LISBON)], model=MODEL, turn_ids=["t-1"])
    assert (look.version, look.settled, look.neighbours, look.answered) == (0, frozenset(), ((),), None)
    assert look.profile.language == "english"
    assert look.now.tzinfo is not None


async def test_what_is_added_is_found_by_its_text_and_by_its_vector(subject: Subject) -> None:
    new = new_memory(LISBON)
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))

    probes = [_probe("lives in  LISBON"), Probe(text_hash("other words"), vector_of(LISBON)), _probe("something else")]
    look = await subject.store.look(OWNER, probes, model=MODEL)

    [same], [near], [far] = look.neighbours
    assert (same.memory_id, same.state, same.same_text) == (new.id, State.LIVE, True)
    assert (near.memory_id, near.same_text) == (new.id, False)
    assert near.similarity == pytest.approx(1.0)
    assert far.similarity is not None
    assert far.similarity < 0.9
    assert look.version == 1


async def test_what_is_added_is_read_back_whole(subject: Subject) -> None:
    new = new_memory(
        LISBON,
        session="s-1",
        data={"n": 1, "deep": {"list": [1.5, None, "x"]}},
        tags=("home", "city"),
        type="note",
        subject="user",
        attribute="home_city",
        pinned=True,
        importance=9,
        confidence=0.95,
        expires_at=NOON + timedelta(days=36500),
    )
    sources = (source_of("t-1", 0), source_of("t-1", 2))
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new, *sources)))

    memory = await _get(subject, new.id)

    assert memory == Memory(
        id=new.id,
        app="acme",
        owner="user/42",
        content=LISBON,
        category="fact",
        importance=9,
        confidence=0.95,
        state=State.LIVE,
        strength=1.0,
        valid_from=NOON,
        recorded_at=memory.recorded_at,
        version=1,
        session="s-1",
        data=new.data,
        tags=("home", "city"),
        type="note",
        pinned=True,
        subject="user",
        attribute="home_city",
        expires_at=new.expires_at,
        fades_at=new.fades_at,
        sources=sources,
    )


async def test_a_turn_takes_effect_once(subject: Subject) -> None:
    commit = commit_of("t-1", addition("t-1", new_memory(LISBON)))
    assert await subject.store.commit(OWNER, 0, commit)
    assert not await subject.store.commit(OWNER, 1, commit)
    look = await subject.store.look(OWNER, [], model=MODEL, turn_ids=["t-1", "t-2"])
    assert (look.version, look.settled) == (1, frozenset({"t-1"}))
    assert await subject.history(OWNER) == [(1, "added", id_of(LISBON), 1, 0)]


async def test_a_window_with_one_settled_turn_writes_nothing(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1"))
    window = commit_of("t-1", addition("t-2", new_memory(LISBON)))
    window = dataclasses.replace(window, turns=(*window.turns, TurnEffect("t-2", place_of(2))))
    assert not await subject.store.commit(OWNER, 0, window)
    look = await subject.store.look(OWNER, [_probe(LISBON)], model=MODEL, turn_ids=["t-1", "t-2"])
    assert look.settled == frozenset({"t-1"})
    assert look.neighbours == ((),)


async def test_a_turn_without_effects_is_settled_and_changes_nothing_else(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1"))
    look = await subject.store.look(OWNER, [], model=None, turn_ids=["t-1"])
    assert (look.version, look.settled) == (0, frozenset({"t-1"}))
    assert await subject.history(OWNER) == []


async def test_another_run_of_a_turn_takes_effect_beside_the_first(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1"))
    look = await subject.store.look(OWNER, [], model=None, turn_ids=["t-1"], run=7)
    assert look.settled == frozenset()
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory(LISBON)), run=7))
    assert not await subject.store.commit(OWNER, 1, commit_of("t-1", run=7))


async def test_a_commit_on_an_older_version_writes_nothing(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory(LISBON))))
    assert not await subject.store.commit(OWNER, 0, commit_of("t-2", addition("t-2", new_memory("Works at Hooli."))))
    assert not await subject.store.commit(OWNER, 2, commit_of("t-2"))
    look = await subject.store.look(OWNER, [], model=None, turn_ids=["t-2"])
    assert look.settled == frozenset()


async def test_a_confirmation_counts_and_reinforces_at_the_time_it_was_said(subject: Subject) -> None:
    new = new_memory(LISBON)
    later = NOON + timedelta(days=3)
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    assert await subject.store.commit(OWNER, 1, commit_of("t-2", confirmation("t-2", new.id, at=later)))

    memory = await _get(subject, new.id)

    assert (memory.confirmations, memory.confirmed_at, memory.version) == (1, later, 2)
    assert memory.fades_at is not None
    assert abs(memory.fades_at - (later + timedelta(seconds=HALF_LIFE * ARCHIVE_FACTOR))) < timedelta(milliseconds=1)
    assert [source.turn_id for source in memory.sources] == ["t-1", "t-2"]
    look = await subject.store.look(OWNER, [], model=None)
    assert look.version == 1  # neither content nor state changed
    assert await subject.history(OWNER) == [(1, "added", new.id, 1, 0), (2, "confirmed", new.id, 2, 1)]


async def test_an_older_statement_never_reinforces_backwards(subject: Subject) -> None:
    new = new_memory(LISBON)
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    earlier = NOON - timedelta(days=300)
    assert await subject.store.commit(OWNER, 1, commit_of("t-2", confirmation("t-2", new.id, at=earlier)))
    memory = await _get(subject, new.id)
    assert memory.confirmations == 1
    assert memory.fades_at is not None
    assert new.fades_at is not None
    assert abs(memory.fades_at - new.fades_at) < timedelta(milliseconds=1)


async def test_a_turn_that_a_memory_rests_on_never_reinforces_it(subject: Subject) -> None:
    new = new_memory(LISBON)
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    again = confirmation("t-1", new.id, at=NOON + timedelta(days=1))
    again = dataclasses.replace(again, sources=(source_of("t-1"),))
    assert await subject.store.commit(OWNER, 1, commit_of("t-1", again, run=1))
    memory = await _get(subject, new.id)
    assert (memory.confirmations, memory.version, memory.fades_at) == (0, 1, new.fades_at)
    assert await subject.history(OWNER) == [(1, "added", new.id, 1, 0)]


async def test_an_addition_can_be_confirmed_in_the_same_commit(subject: Subject) -> None:
    new, other = new_memory(LISBON), new_memory("Has a dog.")
    commit = commit_of(
        "t-1",
        addition("t-1", new),
        confirmation("t-1", new.id, source_of("t-1", 1)),  # the same turn: a source more, no reinforcement
        addition("t-1", other),
        confirmation("t-2", new.id, source_of("t-2"), at=NOON + timedelta(days=1)),
    )
    commit = dataclasses.replace(commit, turns=(*commit.turns, TurnEffect("t-2", place_of(2))))
    assert await subject.store.commit(OWNER, 0, commit)

    memory = await _get(subject, new.id)

    assert (memory.confirmations, memory.version) == (1, 3)
    assert [(s.turn_id, s.message_index) for s in memory.sources] == [("t-1", 0), ("t-1", 1), ("t-2", 0)]
    assert await subject.history(OWNER) == [
        (1, "added", new.id, 1, 0),
        (2, "confirmed", new.id, 2, 0),
        (3, "added", other.id, 1, 0),
        (4, "confirmed", new.id, 3, 1),
    ]


@pytest.mark.parametrize("state", [State.ARCHIVED, State.RETRACTED, State.EVICTED])
async def test_only_what_is_live_can_be_confirmed(subject: Subject, state: State) -> None:
    new = new_memory(LISBON)
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    await subject.retire(OWNER, new.id, state)
    assert not await subject.store.commit(OWNER, 2, commit_of("t-2", confirmation("t-2", new.id)))
    look = await subject.store.look(OWNER, [_probe(LISBON)], model=MODEL, turn_ids=["t-2"])
    assert look.settled == frozenset()
    assert [n.state for n in look.neighbours[0]] == [state]


async def test_what_has_expired_is_seen_as_expired_and_is_not_confirmed(subject: Subject) -> None:
    new = new_memory(LISBON, expires_at=NOON - timedelta(days=30000))
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    look = await subject.store.look(OWNER, [_probe(LISBON)], model=MODEL)
    assert [n.state for n in look.neighbours[0]] == [State.EXPIRED]
    assert not await subject.store.commit(OWNER, 1, commit_of("t-2", confirmation("t-2", new.id)))


async def test_what_another_owner_has_is_not_confirmed(subject: Subject) -> None:
    other = Owner(OWNER.app, "somebody else")
    new = new_memory(LISBON)
    assert await subject.store.commit(other, 0, commit_of("t-1", addition("t-1", new)))
    assert not await subject.store.commit(OWNER, 0, commit_of("t-2", confirmation("t-2", new.id)))
    assert await subject.reader.get(OWNER, new.id) is None


async def test_the_nearest_come_first_and_no_more_than_asked_for(subject: Subject) -> None:
    effects = [addition("t-1", new_memory(f"Fact {n}.")) for n in range(12)]
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", *effects))
    look = await subject.store.look(OWNER, [_probe("Fact 7.")], model=MODEL, limit=3)
    [neighbours] = look.neighbours
    assert len(neighbours) == 3
    assert neighbours[0].memory_id == id_of("Fact 7.")
    similarities = [n.similarity for n in neighbours if n.similarity is not None]
    assert similarities == sorted(similarities, reverse=True)


async def test_a_probe_without_a_vector_meets_the_same_text_alone(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory(LISBON))))
    look = await subject.store.look(OWNER, [Probe(text_hash(LISBON), None), Probe(text_hash("x"), None)], model=None)
    [same], nothing = look.neighbours
    assert (same.same_text, same.similarity) == (True, None)
    assert nothing == ()


async def test_vectors_of_another_model_are_not_compared(subject: Subject) -> None:
    assert await subject.store.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory(LISBON))))
    other = dataclasses.replace(MODEL, name="another-model")
    look = await subject.store.look(OWNER, [Probe(text_hash("x"), vector_of(LISBON))], model=other)
    assert look.neighbours == ((),)


async def test_a_request_is_answered_once_and_with_the_memory_as_it_was(subject: Subject) -> None:
    request = RequestId("CreateMemory", "r-1", b"b" * 32)
    new = new_memory(LISBON)
    commit = request_commit(request, dataclasses.replace(addition("r-1", new), sources=()))
    assert await subject.tells.commit(OWNER, 0, commit)
    assert not await subject.tells.commit(OWNER, 1, commit)
    assert await subject.store.commit(OWNER, 1, commit_of("t-1", confirmation("t-1", new.id)))

    look = await subject.tells.look(OWNER, [], model=None, request=request)
    other = await subject.tells.look(OWNER, [], model=None, request=RequestId("CreateMemory", "r-2", b"b" * 32))

    assert look.answered is not None
    assert look.answered.body_hash == b"b" * 32
    assert (look.answered.memory.id, look.answered.memory.version) == (new.id, 1)
    assert look.answered.memory.content == LISBON
    assert other.answered is None


async def test_sixteen_at_once_have_one_effect(subject: Subject) -> None:
    commit = commit_of("t-1", addition("t-1", new_memory(LISBON)))
    outcomes = await asyncio.gather(*(subject.store.commit(OWNER, 0, commit) for _ in range(16)))
    assert sorted(outcomes) == [False] * 15 + [True]
    assert await subject.history(OWNER) == [(1, "added", id_of(LISBON), 1, 0)]

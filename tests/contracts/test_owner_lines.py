"""What a look finds: by text, slot and vector, on lines, and of what was forgotten. On the fake and on Postgres."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from processors.effects import NewMemory, Probe
from processors.memories import Source, State
from processors.normalization import text_hash
from processors.records import Owner
from processors.routing import Known, Neighbour
from tests.contracts.owner_stores import Subject
from tests.fakes.values import (
    MODEL,
    NOON,
    OWNER,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    order_of,
    retirement,
    retraction,
    source_of,
    vector_of,
)

DAY = timedelta(days=1)
FAR = NOON + timedelta(days=36500)
PORTO, LISBON, BERLIN = "Lives in Porto.", "Lives in Lisbon.", "Lives in Berlin."


async def _known(subject: Subject, text: str) -> Neighbour:
    [[found, *_]] = (await subject.look(Probe(text_hash(text), None))).neighbours
    return found


def _lives(text: str, *, at: datetime = NOON, **fields: Any) -> NewMemory:
    return new_memory(text, at=at, subject="user", attribute="home_city", **fields)


# How a memory is known


async def test_a_neighbour_is_known_as_a_decision_needs_it(subject: Subject) -> None:
    received_at = NOON + timedelta(hours=1)
    new = _lives(
        PORTO, order=order_of(NOON, received_at=received_at, offset=7, ordinal=3), valid_from=NOON - DAY,
        valid_to=FAR, category="identity", importance=9, confidence=0.95, pinned=True, tags=("home", "city"),
        role=source_of("t").role, supersedes=id_of("before"),
    )  # fmt: skip
    assert await subject.commit("t-1", addition("t-1", new))
    assert (await _known(subject, PORTO)).memory == Known(
        id=new.id,
        state=State.LIVE,
        order=new.order,
        last=new.order,
        valid_from=NOON - DAY,
        content=PORTO,
        valid_to=FAR,
        category="identity",
        importance=9,
        confidence=0.95,
        role=new.role,
        subject="user",
        attribute="home_city",
        pinned=True,
        tags=("home", "city"),
        supersedes=id_of("before"),
    )


async def test_a_memory_was_last_said_when_its_latest_statement_was(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    earlier, later = order_of(NOON - DAY), order_of(NOON + DAY, received_at=NOON + 2 * DAY, offset=9, ordinal=2)
    assert await subject.commit("t-2", confirmation("t-2", id_of(PORTO), at=NOON - DAY, order=earlier))
    assert (await _known(subject, PORTO)).memory.last == order_of(NOON)
    assert await subject.commit("t-3", confirmation("t-3", id_of(PORTO), at=NOON + DAY, order=later))
    assert await subject.commit("t-4", confirmation("t-4", id_of(PORTO), order=later._replace(ordinal=1)))
    known = (await _known(subject, PORTO)).memory
    assert (known.order, known.last) == (order_of(NOON), later)


async def test_live_memories_of_the_same_slot_are_found_at_any_similarity(subject: Subject) -> None:
    others = [addition("t-1", new_memory(f"Fact {n}.", vector=vector_of(BERLIN))) for n in range(5)]
    assert await subject.commit("t-1", *others, addition("t-1", _lives(PORTO)), addition("t-1", _lives(LISBON)))
    await subject.retire(OWNER, id_of(LISBON), State.ARCHIVED)
    look = await subject.store.look(
        OWNER,
        [
            Probe(text_hash(BERLIN), vector_of(BERLIN), "user", "home_city"),
            Probe(text_hash(BERLIN), vector_of(BERLIN), "user", "work_city"),
            Probe(text_hash(PORTO), None, "user", "home_city"),
        ],
        model=MODEL,
        limit=3,
    )
    [first, *rest], others_only, [without_vector] = look.neighbours
    assert (first.memory_id, first.same_slot, first.same_text) == (id_of(PORTO), True, False)
    assert first.similarity == pytest.approx(float(vector_of(BERLIN) @ vector_of(PORTO)), abs=1e-5)
    assert first.memory.content == PORTO
    assert [neighbour.same_slot for neighbour in rest] == [False] * 3
    assert id_of(PORTO) not in {neighbour.memory_id for neighbour in others_only}
    assert (without_vector.same_text, without_vector.same_slot, without_vector.similarity) == (True, True, None)


async def test_neighbours_come_by_text_then_by_slot_then_by_similarity(subject: Subject) -> None:
    probe = Probe(text_hash(PORTO), vector_of(PORTO), "user", "home_city")
    dead = new_memory(PORTO, id=id_of("dead"), vector=vector_of("dead"))
    near = new_memory("near", vector=vector_of(PORTO))
    slot = _lives(LISBON)
    same = new_memory(PORTO, vector=vector_of("far"))
    assert await subject.commit("t-1", *(addition("t-1", each) for each in (dead, near, slot, same)))
    await subject.retire(OWNER, dead.id, State.ARCHIVED)
    [found] = (await subject.look(probe)).neighbours
    assert [neighbour.memory_id for neighbour in found] == [same.id, dead.id, slot.id, near.id]


async def test_a_text_comes_along_only_where_it_matters(subject: Subject) -> None:
    vector = vector_of("x")
    across = vector_of("y") - (vector_of("y") @ vector) * vector
    far = (across / np.linalg.norm(across)).astype(np.float32)
    assert await subject.commit("t-1", addition("t-1", new_memory("near", vector=vector)))
    assert await subject.commit("t-2", addition("t-2", new_memory("far", vector=far)))
    [found] = (await subject.look(Probe(text_hash("x"), vector))).neighbours
    assert [neighbour.memory.content for neighbour in found] == ["near", ""]


# Lines


async def _porto_lisbon_berlin(subject: Subject) -> None:
    """Three statements of a day each, one replacing the other."""
    for day, (text, before) in enumerate([(PORTO, None), (LISBON, PORTO), (BERLIN, LISBON)]):
        at = NOON + day * DAY
        supersedes = None if before is None else id_of(before)
        ends = [] if supersedes is None else [retirement(supersedes, at=at, by=id_of(text))]
        new = _lives(text, at=at, supersedes=supersedes)
        assert await subject.commit(f"t-{day}", addition(f"t-{day}", new, retired=ends))


def _ids(lines: tuple[Known, ...]) -> list[UUID]:
    return [known.id for known in lines]


async def test_the_line_of_what_was_superseded_and_says_the_same_is_read(subject: Subject) -> None:
    await _porto_lisbon_berlin(subject)
    assert await subject.commit("t-9", addition("t-9", new_memory("Has a dog.")))
    whole = [id_of(text) for text in (PORTO, LISBON, BERLIN)]
    for text in (PORTO, LISBON):
        look = await subject.look(Probe(text_hash(text), None, order=order_of(NOON + 9 * DAY)))
        assert _ids(look.lines) == whole
    assert [known.content for known in look.lines] == [PORTO, LISBON, BERLIN]
    assert [known.state for known in look.lines] == [State.SUPERSEDED, State.SUPERSEDED, State.LIVE]
    assert (look.lines[1].supersedes, look.lines[1].superseded_by) == (whole[0], whole[2])


async def test_what_comes_later_than_all_reads_no_line(subject: Subject) -> None:
    await _porto_lisbon_berlin(subject)
    slot = Probe(text_hash("Lives in Rome."), vector_of(BERLIN), "user", "home_city")
    for order in (None, order_of(NOON + 9 * DAY)):
        assert (await subject.look(dataclasses.replace(slot, order=order))).lines == ()


async def test_the_line_of_what_was_said_after_a_late_statement_is_read_once(subject: Subject) -> None:
    await _porto_lisbon_berlin(subject)
    late = order_of(NOON + timedelta(hours=6))
    by_slot = Probe(text_hash("Lives in Rome."), None, "user", "home_city", order=late)
    by_vector = Probe(text_hash("Lives in Rome."), vector_of(BERLIN), order=late)
    by_text = Probe(text_hash(BERLIN), None, order=late)
    whole = [id_of(text) for text in (PORTO, LISBON, BERLIN)]
    for probe in (by_slot, by_vector, by_text):
        assert _ids((await subject.look(probe)).lines) == whole
    assert _ids((await subject.look(by_slot, by_vector)).lines) == whole


async def test_what_was_confirmed_after_a_late_statement_counts_as_said_after_it(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    late = Probe(text_hash("Lives in Rome."), None, "user", "home_city", order=order_of(NOON + DAY))
    assert (await subject.look(late)).lines == ()
    assert await subject.commit("t-2", confirmation("t-2", id_of(PORTO), at=NOON + 2 * DAY))
    assert _ids((await subject.look(late)).lines) == [id_of(PORTO)]


async def test_a_line_is_found_from_whichever_end_names_the_other(subject: Subject) -> None:
    """An earlier one that only its successor names, and a later one that only its predecessor names."""
    first = new_memory("first")
    second = new_memory("second", at=NOON + DAY, supersedes=first.id, state=State.SUPERSEDED, valid_to=NOON + 2 * DAY)
    third = new_memory("third", at=NOON + 2 * DAY)
    assert await subject.commit("t-1", *(addition("t-1", each) for each in (first, second, third)))
    ends = retirement(second.id, at=NOON + 2 * DAY, by=third.id)
    assert await subject.commit("t-2", retraction("t-2", ends))
    late = order_of(NOON - DAY)
    for text in ("first", "third"):
        look = await subject.look(Probe(text_hash(text), None, order=late))
        assert _ids(look.lines) == [first.id, second.id, third.id]


async def test_a_line_that_bites_its_tail_ends(subject: Subject) -> None:
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)), addition("t-1", _lives(LISBON)))
    ends = [retirement(id_of(a), at=NOON, by=id_of(b)) for a, b in ((PORTO, LISBON), (LISBON, PORTO))]
    assert await subject.commit("t-2", retraction("t-2", *ends))
    assert len((await subject.look(Probe(text_hash(PORTO), None))).lines) == 2


# What was forgotten


async def test_what_was_received_before_it_was_forgotten_stays_forgotten(subject: Subject) -> None:
    sources: tuple[Source, ...] = (source_of("t-1"), source_of("t-0", 3))
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO), *sources))
    before = order_of(datetime.now(UTC) - timedelta(seconds=1))
    assert (await subject.look(Probe(text_hash(PORTO), None, order=before))).forgotten == ()
    await subject.forget(OWNER, id_of(PORTO))
    after = order_of(datetime.now(UTC) + DAY)

    by_text = Probe(text_hash(PORTO), None, order=before)
    by_slot = Probe(text_hash("x"), None, "user", "home_city", order=before)
    by_turn = Probe(text_hash("x"), None, order=before, turn_id="t-0")
    unrelated = Probe(text_hash("x"), None, "user", "work_city", order=before, turn_id="t-9")
    half_a_slot = Probe(text_hash("x"), None, "user", order=before)
    look = await subject.look(by_text, unrelated, by_slot, half_a_slot, by_turn)
    assert look.forgotten == (True, False, True, False, True)
    assert look.neighbours[0] == ()

    for probe in (by_text, by_slot, by_turn):
        for order in (after, None):
            assert (await subject.look(dataclasses.replace(probe, order=order))).forgotten == ()


async def test_a_forgotten_memory_is_on_no_line(subject: Subject) -> None:
    await _porto_lisbon_berlin(subject)
    await subject.forget(OWNER, id_of(LISBON))
    look = await subject.look(Probe(text_hash(PORTO), None))
    assert _ids(look.lines) == [id_of(PORTO)]


async def test_what_one_owner_forgets_another_may_say(subject: Subject) -> None:
    other = Owner(OWNER.app, "somebody else")
    assert await subject.commit("t-1", addition("t-1", _lives(PORTO)))
    await subject.forget(OWNER, id_of(PORTO))
    probe = Probe(text_hash(PORTO), None, "user", "home_city", order=order_of(NOON), turn_id="t-1")
    assert await subject.store.commit(other, 0, commit_of("t-1", addition("t-1", new_memory("Has a dog."))))
    assert (await subject.store.look(other, [probe], model=MODEL)).forgotten == ()
    assert (await subject.look(probe)).forgotten == (True,)

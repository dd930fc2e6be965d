"""What a store knows of turns that are read again: the fake's and Postgres's."""

import dataclasses

import pytest

from processors.effects import Probe
from processors.memories import Memory, State
from processors.normalization import text_hash
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
    source_of,
    vector_of,
)

LISBON, PORTO = "Lives in Lisbon.", "Lives in Porto."


async def _over(subject: Subject, *said: tuple[str, str], run: int = 1) -> tuple[bool, ...]:
    """Whether each of `said`, turn and text, is over."""
    probes = [Probe(text_hash(text), vector_of(text), turn_id=turn_id) for turn_id, text in said]
    return (await subject.store.look(OWNER, probes, model=MODEL, run=run)).over


async def _still(subject: Subject) -> Memory:
    """The memory but for its strength, which goes with time."""
    return dataclasses.replace(await subject.get(PORTO), strength=0.0)


async def test_what_a_turn_said_is_over_once_nothing_of_it_is_live(subject: Subject) -> None:
    porto, lisbon = new_memory(PORTO), new_memory(LISBON)
    assert await subject.commit("t-1", addition("t-1", porto))
    assert not any(await _over(subject, ("t-1", PORTO)))
    assert await subject.commit("t-2", confirmation("t-2", porto.id))
    replaced = retirement(porto.id, State.SUPERSEDED, by=lisbon.id)
    assert await subject.commit("t-3", addition("t-3", lisbon, retired=[replaced]))
    said = (("t-3", LISBON), ("t-2", PORTO), ("t-9", PORTO), ("t-1", "Has a dog."), ("t-1", PORTO))
    assert await _over(subject, *said) == (False, True, False, False, True)
    assert await _over(subject, *said, run=0) == ()


async def test_what_another_reading_of_the_turn_replaced_is_not_over(subject: Subject) -> None:
    porto, other = new_memory(PORTO), new_memory(LISBON, order=order_of(NOON, ordinal=2))
    again = new_memory("Has a dog.", order=order_of(NOON, ordinal=100_002))
    assert await subject.commit("t-1", addition("t-1", porto))
    assert await subject.commit("t-2", addition("t-1", other, retired=[retirement(porto.id, by=other.id)]))
    assert await _over(subject, ("t-1", PORTO)) == (True,)
    assert await subject.commit("t-3", addition("t-1", again, retired=[retirement(other.id, by=again.id)]))
    assert await _over(subject, ("t-1", PORTO), ("t-1", LISBON)) == (True, False)


@pytest.mark.parametrize("state", [State.ARCHIVED, State.EXPIRED, State.EVICTED, State.RETRACTED])
async def test_what_is_gone_in_another_way_is_over_too(subject: Subject, state: State) -> None:
    assert await subject.commit("t-1", addition("t-1", new_memory(PORTO)))
    await subject.retire(OWNER, id_of(PORTO), state)
    assert await _over(subject, ("t-1", PORTO)) == (True,)


async def test_a_turn_never_reinforces_what_it_said_in_another_run(subject: Subject) -> None:
    new = new_memory(PORTO)
    assert await subject.commit("t-1", addition("t-1", new))
    before = await _still(subject)
    again = confirmation("t-1", new.id, order=order_of(new.valid_from, ordinal=100_000))
    look = await subject.store.look(OWNER, [], model=None)
    assert await subject.store.commit(OWNER, look.version, commit_of("t-1", again, run=1))
    assert await _still(subject) == before
    assert len(await subject.history(OWNER)) == 1
    other = dataclasses.replace(again, sources=(source_of("t-1", 3),), decision_id=id_of("another"))
    assert await subject.store.commit(OWNER, look.version, commit_of("t-1", other, run=2))
    after = await _still(subject)
    assert [source.message_index for source in after.sources] == [0, 3]
    assert dataclasses.replace(after, version=before.version, sources=before.sources) == before

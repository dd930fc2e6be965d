"""What becomes of turns that are read again: whole stories over the store's fake."""

import pytest

from processors.memories import State, StatementOrder
from processors.routing import Action, Route
from tests.fakes.values import NOON, OWNER
from tests.unit.memory.owner_story import HOME, OwnerStory, hours

PORTO, LISBON, BERLIN = "The user lives in Porto.", "The user lives in Lisbon.", "The user lives in Berlin."
HOUSE = "The user lives in a house in Porto."


async def test_the_same_words_read_again_change_nothing() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(PORTO, at=2, slot=HOME)
    await story.say(LISBON, at=3, slot=HOME)
    await story.say(PORTO, at=4, slot=HOME)
    before, calls = story.memories(), len(story.arbitrator.requests)
    for run in (1, 2):
        for number, said in ((1, PORTO), (2, PORTO), (3, LISBON), (4, PORTO)):
            await story.say(said, at=number, slot=HOME, again=number, run=run)
    assert story.memories() == before
    assert len(story.kinds()) == 6
    assert len(story.arbitrator.requests) == calls


async def test_one_turn_that_corrects_itself_changes_nothing_when_it_is_read_again() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, LISBON, at=1, slot=HOME)
    assert story.live() == [LISBON]
    before = story.memories()
    await story.say(PORTO, LISBON, at=1, slot=HOME, again=1, run=1)
    assert story.memories() == before


async def test_a_turn_is_never_counted_twice_by_reading_it_again_in_other_words() -> None:
    story = OwnerStory()
    story.vectors.place(HOUSE, near=PORTO, cosine=0.9)
    story.arbitrator.judge(PORTO, Action.NOOP)
    await story.say(PORTO, at=1)
    [effect] = await story.say(HOUSE, at=1, again=1, run=1)
    assert (effect.verdict.action, effect.memory_id) == (Action.NOOP, story.one(PORTO).id)
    assert (story.one(PORTO).confirmations, story.one(PORTO).confirmed_at) == (0, None)
    assert story.kinds() == [("added", PORTO)]


async def test_what_is_found_anew_is_added_as_of_when_it_was_said() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1)
    await story.say(PORTO, "The user has a dog.", at=1, again=1, run=1)
    assert story.live() == ["The user has a dog.", PORTO]
    assert story.one("The user has a dog.").valid_from == hours(1)
    assert [source.turn_id for source in story.one("The user has a dog.").sources] == ["t1"]


async def test_what_is_found_anew_does_not_overturn_what_was_said_since() -> None:
    story = OwnerStory()
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(at=1)
    await story.say(LISBON, at=2, slot=HOME)
    await story.say(PORTO, at=1, slot=HOME, again=1, run=1)
    porto = story.one(PORTO)
    assert story.live() == [LISBON]
    assert (porto.state, porto.superseded_by, porto.valid_to) == (State.SUPERSEDED, story.one(LISBON).id, hours(2))
    assert story.one(LISBON).supersedes is None or story.one(LISBON).supersedes == porto.id


async def test_a_better_reading_replaces_what_the_same_turn_was_misread_as() -> None:
    story = OwnerStory()
    story.arbitrator.judge(BERLIN, Action.DELETE)
    await story.say("Something else.", BERLIN, at=1, slot=HOME)
    await story.say(PORTO, at=1, slot=HOME, again=1, run=1)
    assert PORTO in story.live()
    assert story.one(BERLIN).superseded_by == story.one(PORTO).id


async def test_a_reading_as_the_first_was_finds_again_what_a_worse_one_lost() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(BERLIN, at=1, slot=HOME, again=1, run=1)
    assert story.live() == [BERLIN]
    await story.say(PORTO, at=1, slot=HOME, again=1, run=2)
    assert story.live() == [PORTO]
    before = story.memories()
    for run in (3, 4):
        await story.say(PORTO, at=1, slot=HOME, again=1, run=run)
    assert story.memories() == before


async def test_what_a_better_reading_replaced_is_left_alone_once_something_else_was_said() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    story.arbitrator.judge(BERLIN, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(BERLIN, at=1, slot=HOME, again=1, run=1)
    await story.say(LISBON, at=2, slot=HOME)
    for run in (2, 3):
        await story.say(PORTO, at=1, slot=HOME, again=1, run=run)
        assert story.live() == [LISBON]
    assert len(story.memories()) == 4


@pytest.mark.parametrize("state", [State.ARCHIVED, State.EXPIRED, State.EVICTED])
@pytest.mark.parametrize("said", [PORTO, HOUSE])
async def test_reading_again_revives_nothing_that_is_gone(state: State, said: str) -> None:
    story = OwnerStory()
    story.vectors.place(HOUSE, near=PORTO, cosine=0.9)
    story.arbitrator.judge(PORTO, Action.UPDATE, "The user lives in Porto, in a house.")
    await story.say(PORTO, at=1)
    story.store.retire(OWNER, story.one(PORTO).id, state)
    [effect] = await story.say(said, at=1, again=1, run=1)
    assert story.live() == []
    assert effect.verdict.action is Action.NOOP
    await story.say(PORTO, at=2)
    assert story.live() == [PORTO]


async def test_a_better_reading_replaces_what_is_live_also_where_something_else_of_its_turn_is_gone() -> None:
    story = OwnerStory()
    story.vectors.place(LISBON, near=BERLIN, cosine=0.9)
    story.arbitrator.judge(PORTO, Action.DELETE)
    story.arbitrator.judge(BERLIN, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(BERLIN, at=2)
    story.store.retire(OWNER, story.one(BERLIN).id, State.ARCHIVED)
    await story.say(LISBON, at=2, slot=HOME, again=2, run=1)
    assert story.live() == [LISBON]
    assert (story.one(PORTO).state, story.one(PORTO).superseded_by) == (State.SUPERSEDED, story.one(LISBON).id)
    assert (story.one(BERLIN).state, story.one(BERLIN).superseded_by) == (State.ARCHIVED, None)


async def test_a_merger_with_what_is_gone_does_not_bring_it_back_with_what_replaces_something_else() -> None:
    story = OwnerStory()
    story.vectors.place(HOUSE, near=BERLIN, cosine=0.9)
    story.arbitrator.judge(BERLIN, Action.UPDATE, "The user lives in Berlin, in a house in Porto.")
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say(BERLIN, at=2)
    story.store.retire(OWNER, story.one(BERLIN).id, State.ARCHIVED)
    await story.say(HOUSE, at=2, slot=HOME, again=2, run=1)
    assert story.live() == [HOUSE]
    assert story.one(BERLIN).state is State.ARCHIVED


async def test_what_was_taken_back_stays_so() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1)
    await story.say(PORTO, at=2, retracts=True)
    before = story.memories()
    await story.say(PORTO, at=1, again=1, run=1)
    await story.say(PORTO, at=2, retracts=True, again=2, run=1)
    assert story.memories() == before
    assert story.live() == []


async def test_what_was_forgotten_is_not_read_again() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1)
    story.store.forget(OWNER, story.one(PORTO).id)
    [effect] = await story.say(HOUSE, at=1, again=1, run=1)
    assert effect.verdict.route is Route.FORGOTTEN
    assert story.live() == []


def test_a_reading_comes_behind_those_before_it_and_before_what_was_said_after() -> None:
    def order(offset: int, ordinal: int, run: int) -> StatementOrder:
        return StatementOrder.of(said_at=NOON, received_at=NOON, offset=offset, ordinal=ordinal, run=run)

    assert order(1, 7, 0) < order(1, 0, 1) < order(1, 0, 2) < order(2, 0, 0)
    assert order(1, 0, 1).rereads(order(1, 7, 0))
    assert not order(1, 0, 1).rereads(order(1, 1, 1))
    assert not order(2, 0, 1).rereads(order(1, 0, 0))
    assert order(1, 99, 2**31 - 1).ordinal < 2**31

"""What becomes of statements that concern each other: whole stories over the store's fake."""

from typing import Any

import pytest
from mnemostream.turns import Reason, Role

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from processors.memories import State
from processors.routing import Action, Route
from tests.fakes.arbitrator import away
from tests.fakes.values import OWNER
from tests.unit.memory.owner_story import HOME, OwnerStory, hours

PORTO, LISBON, BERLIN = "The user lives in Porto.", "The user lives in Lisbon.", "The user lives in Berlin."


async def moved(story: OwnerStory) -> None:
    """Porto, then Lisbon, an hour later."""
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(LISBON, at=2, slot=HOME)


async def test_a_contradiction_closes_the_old_memory_and_adds_a_new_one() -> None:
    story = OwnerStory()
    await moved(story)
    old, new = story.one(PORTO), story.one(LISBON)
    assert story.live() == [LISBON]
    assert (old.state, old.superseded_by, new.supersedes) == (State.SUPERSEDED, new.id, old.id)
    assert old.valid_to == new.valid_from == hours(2)
    assert old.retired_reason == "because of delete"
    assert story.kinds() == [("added", PORTO), ("superseded", PORTO), ("added", LISBON)]


async def test_the_decision_says_how_it_came_about() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    [effect] = await story.say(LISBON, at=2, slot=HOME)
    assert (effect.verdict.route, effect.verdict.action, effect.verdict.marked) == (
        Route.ARBITRATE,
        Action.DELETE,
        False,
    )
    assert effect.arbitration is not None
    assert (effect.arbitration.model, effect.arbitration.tokens_in) == ("judge", 7)
    [question] = story.arbitrator.requests[0].questions
    assert [(offered.text, offered.live, offered.same_slot) for offered in question.offered] == [(PORTO, True, True)]


async def test_porto_lisbon_porto_is_three_memories() -> None:
    story = OwnerStory()
    await moved(story)
    calls = len(story.arbitrator.requests)
    await story.say(PORTO, at=3, slot=HOME)
    first, second, third = story.memories()
    assert story.live() == [PORTO]
    assert (third.restates, third.supersedes, second.superseded_by) == (first.id, second.id, third.id)
    assert [memory.valid_to for memory in (first, second, third)] == [hours(2), hours(3), None]
    assert len(story.arbitrator.requests) == calls


async def test_a_late_statement_becomes_history_in_its_place() -> None:
    story = OwnerStory()
    await moved(story)
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(BERLIN, at=1.5, received=5, slot=HOME)
    porto, lisbon, berlin = story.one(PORTO), story.one(LISBON), story.one(BERLIN)
    assert story.live() == [LISBON]
    assert (berlin.state, berlin.supersedes, berlin.superseded_by) == (State.SUPERSEDED, porto.id, lisbon.id)
    assert (porto.superseded_by, lisbon.supersedes) == (berlin.id, porto.id)
    assert [(m.valid_from, m.valid_to) for m in (porto, berlin, lisbon)] == [
        (hours(1), hours(1.5)),
        (hours(1.5), hours(2)),
        (hours(2), None),
    ]


async def test_what_comes_late_and_says_what_was_known_then_changes_nothing() -> None:
    story = OwnerStory()
    await moved(story)
    [effect] = await story.say(PORTO, at=1.5, received=5, slot=HOME)
    assert effect.verdict.action is Action.NOOP
    assert [memory.content for memory in story.memories()] == [PORTO, LISBON]
    assert story.live() == [LISBON]


async def test_a_memory_that_was_said_again_is_not_retired_by_what_was_said_before_that() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(PORTO, at=4, slot=HOME)
    await story.say(LISBON, at=3, received=6, slot=HOME)
    assert story.live() == [PORTO]
    assert story.one(LISBON).state is State.SUPERSEDED


async def test_a_turn_dated_2099_does_not_block_its_slot() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=24 * 365 * 70, received=1, slot=HOME)
    await story.say(LISBON, at=2, slot=HOME)
    assert story.live() == [LISBON]


async def test_of_two_statements_of_one_second_the_later_one_in_the_log_stands() -> None:
    story = OwnerStory()
    for text in (PORTO, LISBON, BERLIN):
        story.arbitrator.judge(text, Action.DELETE)
        await story.say(text, at=1, slot=HOME)
    assert story.live() == [BERLIN]


async def test_a_merger_is_one_new_memory_with_the_merged_text() -> None:
    story = OwnerStory()
    merged = "The user has a dog called Rex."
    story.arbitrator.judge("The user has a dog.", Action.UPDATE, merged)
    story.vectors.place("The user's dog is called Rex.", near="The user has a dog.", cosine=0.9)
    await story.say("The user has a dog.", at=1)
    await story.say("The user's dog is called Rex.", at=2)
    assert story.live() == [merged]
    assert story.one(merged).supersedes == story.one("The user has a dog.").id


async def test_noop_confirms_what_is_known() -> None:
    story = OwnerStory()
    story.arbitrator.judge("The user is a nurse.", Action.NOOP)
    story.vectors.place("The user works as a nurse.", near="The user is a nurse.", cosine=0.92)
    await story.say("The user is a nurse.", at=1)
    [effect] = await story.say("The user works as a nurse.", at=2)
    assert (story.live(), effect.verdict.action) == (["The user is a nurse."], Action.NOOP)
    assert story.one("The user is a nurse.").confirmations == 1


async def test_at_the_merge_threshold_the_same_statement_is_confirmed_without_a_call() -> None:
    story = OwnerStory()
    story.vectors.place("User likes green tea", near="The user likes green tea.", cosine=0.97)
    await story.say("The user likes green tea.", at=1)
    [effect] = await story.say("User likes green tea", at=2)
    assert (effect.verdict.route, effect.verdict.action) == (Route.MERGE, Action.CONFIRM)
    assert story.arbitrator.requests == []


async def test_at_the_merge_threshold_another_number_is_arbitrated() -> None:
    story = OwnerStory()
    story.vectors.place("The user is 35 years old.", near="The user is 34 years old.", cosine=0.97)
    await story.say("The user is 34 years old.", at=1)
    [effect] = await story.say("The user is 35 years old.", at=2)
    assert effect.verdict.route is Route.ARBITRATE
    assert len(story.arbitrator.requests) == 1


async def test_what_is_far_and_of_another_slot_is_added() -> None:
    story = OwnerStory()
    story.vectors.place("The user likes tea.", near=LISBON, cosine=0.8)
    await story.say(LISBON, at=1, slot=HOME)
    [effect] = await story.say("The user likes tea.", at=2)
    assert (effect.verdict.route, effect.verdict.action) == (Route.NEW, Action.ADD)


async def test_two_candidates_of_one_window_are_decided_in_order() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    story.arbitrator.judge(LISBON, Action.DELETE)
    facts = [story.fact(text, slot=HOME, said_at=hours(1)) for text in (PORTO, LISBON, BERLIN, BERLIN.upper())]
    await story.say(*facts, at=1)
    assert story.live() == [BERLIN]
    assert len(story.arbitrator.requests) == 1
    assert story.one(BERLIN).confirmations == 0  # its own turn does not reinforce it
    assert [m.superseded_by for m in story.memories()] == [story.one(LISBON).id, story.one(BERLIN).id, None]


@pytest.mark.parametrize(
    "failure",
    [
        ModelTimeout("no answer"),
        Rejected(Reason.MODEL_ANSWER_UNUSABLE, "after 3 answers"),
        Rejected(Reason.MODEL_REFUSED, "no"),
    ],
)
async def test_an_arbitrator_that_cannot_be_heard_leaves_both_and_marks_it(failure: Exception) -> None:
    story = OwnerStory()
    story.arbitrator.fails = failure
    await story.say(PORTO, at=1, slot=HOME)
    [effect] = await story.say(LISBON, at=2, slot=HOME)
    assert (effect.verdict.action, effect.verdict.marked) == (Action.ADD, True)
    assert story.live() == [LISBON, PORTO]


async def test_an_arbitrator_that_hangs_has_its_time_and_no_more() -> None:
    story = OwnerStory()
    story.arbitrator.hangs = True
    await story.say(PORTO, at=1, slot=HOME)
    [effect] = await story.say(LISBON, at=2, slot=HOME)
    assert effect.verdict.marked


async def test_an_arbitrator_that_is_away_is_waited_for() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    story.arbitrator.fails = away()
    with pytest.raises(ModelUnavailable):
        await story.say(LISBON, at=2, slot=HOME)
    assert story.live() == [PORTO]


async def test_a_guess_does_not_retire_what_was_said_plainly() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, confidence=0.4)
    assert story.live() == [BERLIN, PORTO]


async def test_the_assistants_word_does_not_retire_the_users() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, role=Role.ASSISTANT)
    assert PORTO in story.live()


@pytest.mark.parametrize("state", [State.ARCHIVED, State.EXPIRED, State.EVICTED])
async def test_what_is_dormant_is_revived_when_it_is_said_again(state: State) -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1)
    story.store.retire(OWNER, story.one(PORTO).id, state)
    await story.say(PORTO, at=2)
    [memory] = story.memories()
    assert (memory.state, memory.confirmations, memory.retired_at) == (State.LIVE, 1, None)
    assert story.kinds()[-1] == ("revived", PORTO)


async def test_what_is_dormant_is_not_revived_by_what_comes_late() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=2)
    story.store.retire(OWNER, story.one(PORTO).id, State.ARCHIVED)
    await story.say(PORTO, at=1, received=3)
    assert story.live() == []


async def test_what_is_dormant_and_has_a_rival_in_its_slot_is_arbitrated() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    story.store.retire(OWNER, story.one(PORTO).id, State.ARCHIVED)
    await story.say(LISBON, at=2, slot=HOME)
    story.arbitrator.judge(PORTO, Action.NOOP)
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(PORTO, at=3, slot=HOME)
    assert story.live() == [PORTO]
    assert story.one(LISBON).superseded_by == story.one(PORTO, State.LIVE).id
    assert story.one(PORTO, State.LIVE).valid_from == hours(3)


async def test_what_was_superseded_and_is_said_in_like_words_replaces_the_head_of_its_line() -> None:
    story = OwnerStory()
    await moved(story)
    again = "The user is living in Porto"
    story.vectors.place(again, near=PORTO, cosine=0.97)
    [effect] = await story.say(again, at=3)
    assert effect.verdict.route is Route.MERGE
    assert story.live() == [again]
    assert (story.one(again).restates, story.one(LISBON).superseded_by) == (story.one(PORTO).id, story.one(again).id)


async def test_what_is_taken_back_goes_and_comes_back_as_a_new_memory() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    [effect] = await story.say(PORTO, at=2, slot=HOME, retracts=True)
    first = story.one(PORTO)
    assert (effect.verdict.action, first.state, first.superseded_by) == (Action.DELETE, State.RETRACTED, None)
    assert effect.memory_id == first.id
    assert story.kinds()[-1] == ("retracted", PORTO)
    await story.say(PORTO, at=3, slot=HOME)
    assert story.live() == [PORTO]
    assert story.one(PORTO).restates == first.id


async def test_what_is_taken_back_stays_so_for_what_was_said_before() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(PORTO, at=3, slot=HOME, retracts=True)
    await story.say(PORTO, at=2, received=4, slot=HOME)
    assert story.live() == []


async def test_a_retraction_of_what_is_unknown_adds_nothing() -> None:
    story = OwnerStory()
    [effect] = await story.say("The user's job.", at=1, retracts=True)
    assert (effect.verdict.action, story.memories()) == (Action.NOOP, [])


async def test_a_retraction_in_other_words_is_arbitrated() -> None:
    story = OwnerStory()
    story.vectors.place("Where the user lives.", near=PORTO, cosine=0.6)
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1)
    await story.say("Where the user lives.", at=2, retracts=True)
    assert story.live() == []
    assert story.arbitrator.requests[0].questions[0].retracts


async def test_what_begins_in_the_future_leaves_what_holds_until_then() -> None:
    story = OwnerStory(now=hours(10))
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, valid_from=hours(500))
    old, new = story.one(LISBON), story.one(BERLIN)
    assert (old.state, old.valid_to, old.superseded_by) == (State.LIVE, hours(500), None)
    assert (new.state, new.valid_from, new.supersedes) == (State.LIVE, hours(500), old.id)
    assert ("edited", LISBON) in story.kinds()


async def test_what_is_forgotten_stays_forgotten_for_what_was_received_before() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    story.now = hours(3)
    story.store.forget(OWNER, story.one(PORTO).id)
    story.now = hours(1_000)
    await story.say(PORTO, at=2, slot=HOME)
    assert story.live() == []
    await story.say(PORTO, at=4, slot=HOME)
    assert story.live() == [PORTO]


async def test_pins_and_tags_go_on_to_what_replaces_them() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    story.vectors.place(LISBON, near=PORTO, cosine=0.9)
    story.now = hours(1)
    await story.tell(PORTO, pinned=True, tags=("home",))
    story.now = hours(1_000)
    await story.say(LISBON, at=2)
    assert (story.live(), story.one(LISBON).pinned, story.one(LISBON).tags) == ([LISBON], True, ("home",))


async def test_a_tell_is_arbitrated_like_a_turn() -> None:
    story = OwnerStory()
    story.vectors.place(LISBON, near=PORTO, cosine=0.9)
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1)
    memory = await story.tell(LISBON)
    assert (story.live(), memory.supersedes) == ([LISBON], story.one(PORTO).id)


async def test_a_tell_does_not_wait_for_an_arbitrator_that_is_away() -> None:
    story = OwnerStory()
    story.vectors.place(LISBON, near=PORTO, cosine=0.9)
    story.arbitrator.fails = away()
    await story.say(PORTO, at=1)
    await story.tell(LISBON)
    assert story.live() == [LISBON, PORTO]
    assert story.store.decisions(OWNER)[-1].verdict.marked


async def test_pairs_are_asked_about_once_when_a_commit_is_lost() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    story.store.left = 2
    await story.say(LISBON, at=2, slot=HOME)
    assert len(story.arbitrator.requests) == 1
    assert story.live() == [LISBON]


async def test_the_arbitrator_sees_numbers_no_ids_and_only_this_owners_texts() -> None:
    story = OwnerStory()
    await moved(story)
    texts = {offered.text for request in story.arbitrator.requests for q in request.questions for offered in q.offered}
    assert texts == {PORTO}


async def test_what_was_taken_back_and_is_said_again_is_weighed_against_who_holds_its_slot_now() -> None:
    story = OwnerStory()
    story.arbitrator.judge(BERLIN, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    await story.say(PORTO, at=2, slot=HOME, retracts=True)
    await story.say(BERLIN, at=3, slot=HOME)
    await story.say(PORTO, at=4, slot=HOME)
    assert story.live() == [PORTO]
    assert story.one(PORTO).restates == story.memories()[0].id


async def test_a_line_of_hundreds_still_has_one_head() -> None:
    story = OwnerStory()
    for text in (PORTO, LISBON):
        story.arbitrator.judge(text, Action.DELETE)
    for hour in range(30):
        await story.say(LISBON if hour % 2 else PORTO, at=hour, slot=HOME)
    assert story.live() == [LISBON]


@pytest.mark.parametrize("fields", [{"role": Role.TOOL}, {"role": Role.ASSISTANT}, {"confidence": 0.4}])
async def test_only_the_user_takes_back_what_the_user_said_and_plainly(fields: dict[str, Any]) -> None:
    story = OwnerStory()
    await story.say(PORTO, at=1, slot=HOME)
    [effect] = await story.say(PORTO, at=2, slot=HOME, retracts=True, **fields)
    assert (story.live(), effect.verdict.action) == ([PORTO], Action.NOOP)


async def test_a_guess_that_is_confirmed_plainly_is_a_guess_no_longer() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME, confidence=0.4, role=Role.ASSISTANT)
    await story.say(PORTO, at=2, slot=HOME)
    memory = story.one(PORTO)
    assert (memory.confidence, memory.role) == (0.95, Role.USER)
    await story.say(BERLIN, at=3, slot=HOME, confidence=0.4)
    assert PORTO in story.live()


async def test_what_is_said_again_without_an_end_has_none_and_with_a_later_one_that() -> None:
    story = OwnerStory()
    for text, ends in (("A.", [2_000, None]), ("B.", [2_000, 3_000]), ("C.", [None, 3_000])):
        for hour, end in enumerate(ends):
            await story.say(text, at=hour + 1, expires_at=None if end is None else hours(end))
    assert [story.one(text).expires_at for text in ("A.", "B.", "C.")] == [None, hours(3_000), None]


async def test_a_merger_of_something_lasting_and_something_passing_lasts() -> None:
    story = OwnerStory()
    story.arbitrator.judge("The user has a dog.", Action.UPDATE, "The user has a dog that is ill.")
    story.vectors.place("The user's dog is ill.", near="The user has a dog.", cosine=0.9)
    await story.say("The user has a dog.", at=1)
    await story.say("The user's dog is ill.", at=2, expires_at=hours(5_000), confidence=0.6)
    merged = story.one("The user has a dog that is ill.")
    assert (merged.expires_at, merged.confidence) == (None, 0.95)


async def test_what_holds_for_a_while_does_not_end_what_lasts() -> None:
    story = OwnerStory()
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say("The user lives in Rome.", at=2, slot=HOME, expires_at=hours(2_000))
    assert story.live() == [LISBON, "The user lives in Rome."]


async def test_a_plan_that_is_taken_back_ends_nothing() -> None:
    story = OwnerStory(now=hours(10))
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, valid_from=hours(500))
    await story.say(BERLIN, at=3, slot=HOME, retracts=True)
    assert (story.live(), story.one(LISBON).valid_to) == ([LISBON], None)


async def test_a_plan_that_moves_takes_the_end_with_it() -> None:
    story = OwnerStory(now=hours(10))
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, valid_from=hours(500))
    await story.say(BERLIN, at=3, slot=HOME, valid_from=hours(700))
    assert story.one(LISBON).valid_to == hours(700)
    assert [m.valid_from for m in story.memories() if m.content == BERLIN and m.state is State.LIVE] == [hours(700)]


async def test_a_plan_that_is_said_to_hold_already_holds() -> None:
    story = OwnerStory(now=hours(10))
    story.arbitrator.judge(LISBON, Action.DELETE)
    await story.say(LISBON, at=1, slot=HOME)
    await story.say(BERLIN, at=2, slot=HOME, valid_from=hours(500))
    await story.say(BERLIN, at=3, slot=HOME)
    assert story.live() == [BERLIN]
    assert story.one(LISBON).valid_to == hours(3)


async def test_what_holds_now_leaves_a_plan_alone_and_ends_when_it_begins() -> None:
    story = OwnerStory(now=hours(10))
    story.arbitrator.judge(BERLIN, Action.DELETE)
    await story.say(BERLIN, at=1, slot=HOME, valid_from=hours(500))
    await story.say(LISBON, at=2, slot=HOME)
    assert story.live() == [BERLIN, LISBON]
    assert (story.one(LISBON).valid_to, story.one(BERLIN).valid_to) == (hours(500), None)
    await story.say(BERLIN, at=3, slot=HOME, retracts=True)
    assert (story.live(), story.one(LISBON).valid_to) == ([LISBON], None)


async def test_what_is_revived_in_a_window_is_weighed_against_what_follows_in_it() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=1, slot=HOME)
    story.store.retire(OWNER, story.one(PORTO).id, State.ARCHIVED)
    facts = [story.fact(text, slot=HOME, said_at=hours(2)) for text in (PORTO, LISBON)]
    await story.say(*facts, at=2)
    assert story.live() == [LISBON]


async def test_what_was_archived_is_revived_though_an_older_twin_was_superseded() -> None:
    story = OwnerStory()
    await moved(story)
    await story.say(PORTO, at=3, slot=HOME)
    story.store.retire(OWNER, story.one(PORTO, State.LIVE).id, State.ARCHIVED)
    await story.say(PORTO, at=4, slot=HOME)
    assert (story.live(), len(story.memories())) == ([PORTO], 3)


async def test_a_late_twin_with_something_else_in_between_is_history_of_its_own() -> None:
    story = OwnerStory()
    story.arbitrator.judge(PORTO, Action.DELETE)
    await story.say(PORTO, at=9, slot=HOME)
    await story.say(LISBON, at=5, received=10, slot=HOME)
    await story.say(PORTO, at=1, received=11, slot=HOME)
    held = sorted((m.valid_from, m.content, m.valid_to) for m in story.memories())
    assert held == [(hours(1), PORTO, hours(5)), (hours(5), LISBON, hours(9)), (hours(9), PORTO, None)]


async def test_a_late_twin_with_nothing_in_between_says_that_it_held_before() -> None:
    story = OwnerStory()
    await story.say(PORTO, at=9, slot=HOME)
    await story.say(PORTO, at=1, received=10, slot=HOME)
    [memory] = story.memories()
    assert (memory.valid_from, memory.confirmations) == (hours(1), 1)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("The user is allergic to nuts.", "The user is not allergic to nuts."),
        ("The user has 2 kids.", "The user has 3 kids."),
        (PORTO, LISBON),
    ],
)
async def test_that_it_is_known_already_is_not_believed_where_it_is_not(known: str, new: str) -> None:
    story = OwnerStory()
    story.arbitrator.judge(known, Action.NOOP)
    await story.say(known, at=1, slot=("user", "x"))
    [effect] = await story.say(new, at=2, slot=("user", "x"))
    assert (story.live(), effect.verdict.marked) == (sorted([known, new]), True)
    assert "took for known what is not" in effect.verdict.reason


async def test_the_reason_says_why_the_arbitrator_could_not_be_heard() -> None:
    reasons = []
    for failure in (
        ModelTimeout("x"),
        Rejected(Reason.MODEL_ANSWER_UNUSABLE, "x"),
        Rejected(Reason.MODEL_REFUSED, "x"),
    ):
        story = OwnerStory()
        story.arbitrator.fails = failure
        await story.say(PORTO, at=1, slot=HOME)
        [effect] = await story.say(LISBON, at=2, slot=HOME)
        reasons.append(effect.verdict.reason.removesuffix(": both are kept"))
    assert reasons == [
        "the arbitrator did not answer in its time",
        "the arbitrator gave no usable answer",
        "the arbitrator refused to answer",
    ]


async def test_a_merged_text_that_cannot_be_embedded_leaves_both() -> None:
    story = OwnerStory()
    story.vectors.refuses = "The user has a dog called Rex."
    story.arbitrator.judge("The user has a dog.", Action.UPDATE, story.vectors.refuses)
    story.vectors.place("The user's dog is called Rex.", near="The user has a dog.", cosine=0.9)
    await story.say("The user has a dog.", at=1)
    [effect] = await story.say("The user's dog is called Rex.", at=2)
    assert (len(story.live()), effect.verdict.marked) == (2, True)


async def test_a_tell_comes_after_what_it_concerns_however_clocks_go() -> None:
    story = OwnerStory(now=hours(10))
    await story.say(PORTO, at=10.05, received=10)
    story.store.retire(OWNER, story.one(PORTO).id, State.ARCHIVED)
    assert (await story.tell(PORTO)).state is State.LIVE

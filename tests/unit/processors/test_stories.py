"""The story of a memory, by examples: each is read as a person would read it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Role

from processors.explanations import Compared, Decision, Statement
from processors.facts import Reading
from processors.memories import Memory, State
from processors.routing import Action, Route
from processors.stories import story

PORTO, LISBON, AGAIN = UUID(int=1), UUID(int=2), UUID(int=3)
NOW = datetime(2026, 12, 24, tzinfo=UTC)
READING = Reading(model="gpt-5-mini", prompt_version="extraction.v2")
ARBITRATION = Reading(model="gpt-5", prompt_version="arbitration.v1")


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime(year, month, number, 12, tzinfo=UTC)


def memory(memory_id: UUID, content: str, since: datetime, **fields: Any) -> Memory:
    values: dict[str, Any] = {
        "id": memory_id,
        "app": "acme",
        "owner": "u",
        "content": content,
        "category": "identity",
        "importance": 8,
        "confidence": 0.95,
        "state": State.LIVE,
        "strength": 1.0,
        "valid_from": since,
        "recorded_at": since,
        "version": 1,
    }
    return Memory(**(values | fields))


def said(text: str, at: datetime, turn: str = "t-7", role: Role | None = Role.USER, **fields: Any) -> Statement:
    values: dict[str, Any] = {"turn_id": turn, "message_index": 0, "role": role, "said_at": at, "text": text}
    return Statement(**(values | fields))


def decision(memory_id: UUID | None, action: Action, at: datetime, **fields: Any) -> Decision:
    values: dict[str, Any] = {
        "id": UUID(int=at.month * 100 + at.day),
        "at": at,
        "said_at": at,
        "role": Role.USER,
        "cause_kind": "turn",
        "cause_id": "t-7",
        "candidate": "The user lives in Lisbon.",
        "route": Route.NEW,
        "action": action,
        "reason": "nothing known is like it",
        "memory_id": memory_id,
        "reading": READING,
    }
    return Decision(**(values | fields))


def told(subject: Memory, statements: list[Statement], decisions: list[Decision], *line: Memory) -> str:
    return story(subject, statements, decisions, line, NOW)


MOVED = said("I moved to Lisbon last week.", day(11, 21))
LIVES = memory(LISBON, "The user lives in Lisbon.", day(11, 14), supersedes=PORTO)
LIVED = memory(
    PORTO,
    "The user lives in Porto.",
    day(2, 3),
    state=State.SUPERSEDED,
    superseded_by=LISBON,
    valid_to=day(11, 14),
    retired_at=day(11, 21),
)
REPLACES = decision(
    LISBON,
    Action.DELETE,
    day(11, 21),
    route=Route.ARBITRATE,
    reason="The user has moved.",
    retired=(PORTO,),
    arbitration=ARBITRATION,
)


def test_what_was_said_first() -> None:
    assert told(
        memory(LISBON, "The user lives in Lisbon.", day(11, 21), fades_at=day(3, 1, 2027)),
        [MOVED],
        [decision(LISBON, Action.ADD, day(11, 21))],
    ) == (
        "On 21 Nov 2026 the user said: “I moved to Lisbon last week.” (turn t-7, message 0). "
        "It was read as “The user lives in Lisbon.” by gpt-5-mini (extraction.v2). "
        "It was added as something new: nothing known is like it. "
        "It holds since 21 Nov 2026. "
        "Unless it is said again, it fades by 1 Mar 2027."
    )


def test_what_replaced_something_names_it_and_gives_the_arbitrators_reason() -> None:
    assert told(LIVES, [MOVED], [REPLACES], LIVED, LIVES) == (
        "On 21 Nov 2026 the user said: “I moved to Lisbon last week.” (turn t-7, message 0). "
        "It was read as “The user lives in Lisbon.” by gpt-5-mini (extraction.v2). "
        "It replaced “The user lives in Porto.”, known since 3 Feb 2026 (it held until 14 Nov 2026). "
        "The reason, as gpt-5 (arbitration.v1) gave it: The user has moved. "
        "It holds since 14 Nov 2026. "
        "Memories of the category identity never fade."
    )


def test_what_was_replaced_tells_by_what_and_why() -> None:
    first = said("I live in Porto.", day(2, 3), "t-1")
    added = decision(PORTO, Action.ADD, day(2, 3), cause_id="t-1", candidate="The user lives in Porto.")
    assert told(LIVED, [first], [added, REPLACES], LIVED, LIVES).endswith(
        "On 21 Nov 2026 it was replaced by “The user lives in Lisbon.”, which the user said (turn t-7). "
        "The reason, as gpt-5 (arbitration.v1) gave it: The user has moved. "
        "It held from 3 Feb 2026 to 14 Nov 2026."
    )


def test_what_was_said_again_is_counted_with_the_last_time() -> None:
    subject = memory(LISBON, "The user lives in Lisbon.", day(11, 21), confirmations=3, confirmed_at=day(12, 5))
    again = [decision(LISBON, Action.CONFIRM, day(12, n), cause_id=f"t-{n}", route=Route.SAME_TEXT) for n in (3, 4, 5)]
    statements = [MOVED, *(said("Lisbon it is.", day(12, n), f"t-{n}") for n in (3, 4, 5))]
    assert ("It was said again 3 times, last on 5 Dec 2026, by the user: “Lisbon it is.” (turn t-5).") in told(
        subject, statements, [decision(LISBON, Action.ADD, day(11, 21)), *again]
    )


def test_what_was_said_again_once() -> None:
    subject = memory(LISBON, "The user lives in Lisbon.", day(11, 21), confirmations=1, confirmed_at=day(12, 5))
    again = decision(LISBON, Action.CONFIRM, day(12, 5), cause_id="r-9", cause_kind="request")
    assert "It was said again once on 5 Dec 2026, by an application (request r-9)." in told(
        subject, [MOVED], [decision(LISBON, Action.ADD, day(11, 21)), again]
    )


def test_what_was_taken_back() -> None:
    subject = memory(
        LISBON, "The user lives in Lisbon.", day(11, 21), state=State.RETRACTED, valid_to=day(12, 5), retired_at=NOW
    )
    back = decision(
        LISBON,
        Action.DELETE,
        day(12, 5),
        cause_id="t-9",
        route=Route.SAME_TEXT,
        reason="the speaker takes it back",
        retired=(LISBON,),
    )
    assert told(subject, [MOVED], [decision(LISBON, Action.ADD, day(11, 21)), back], subject).endswith(
        "On 5 Dec 2026 the user took it back (turn t-9). The reason: the speaker takes it back. "
        "It held from 21 Nov 2026 to 5 Dec 2026."
    )


@pytest.mark.parametrize("state", [State.ARCHIVED, State.EXPIRED, State.EVICTED])
def test_what_came_back_to_life(state: State) -> None:
    then = Compared(memory_id=LISBON, similarity=1.0, state=state, same_text=True, same_slot=True)
    back = decision(LISBON, Action.CONFIRM, day(12, 5), cause_id="t-9", compared=(then,))
    subject = memory(LISBON, "The user lives in Lisbon.", day(11, 21), confirmations=1, confirmed_at=day(12, 5))
    assert f"It had been {state.lower()}; said again on 5 Dec 2026, it came back to life." in told(
        subject, [MOVED], [decision(LISBON, Action.ADD, day(11, 21)), back]
    )


def test_what_is_said_again_after_it_was_replaced() -> None:
    subject = memory(AGAIN, "The user lives in Porto.", day(12, 5), supersedes=LISBON, restates=PORTO)
    replaces = decision(AGAIN, Action.DELETE, day(12, 5), candidate="The user lives in Porto.", retired=(LISBON,))
    told_ = told(subject, [said("Back in Porto!", day(12, 5))], [replaces], LIVED, LIVES, subject)
    assert "It replaced “The user lives in Lisbon.”, known since 14 Nov 2026." in told_
    assert (
        "The same had been known before, from 3 Feb 2026 to 14 Nov 2026, and was replaced;"
        " said again, it came back as a new memory."
    ) in told_


def test_what_came_late_is_history_and_overturned_nothing() -> None:
    late = memory(
        AGAIN,
        "The user lives in Faro.",
        day(10, 1),
        recorded_at=day(12, 1),
        state=State.SUPERSEDED,
        superseded_by=LISBON,
        valid_to=day(11, 14),
    )
    added = decision(
        AGAIN, Action.ADD, day(12, 1), candidate="The user lives in Faro.", reason="it comes late", retired=(PORTO,)
    )
    assert (
        "It came late: “The user lives in Lisbon.” had been said after it and stands, so it took its place in history,"
        " as what held from 1 Oct 2026 to 14 Nov 2026. The reason: it comes late."
    ) in told(late, [said("I live in Faro now.", day(10, 1))], [added], LIVED, late, LIVES)
    # And the one whose place it took tells both ends.
    ends = told(LIVED, [], [REPLACES, added], LIVED, late, LIVES)
    assert "it was replaced by “The user lives in Lisbon.”" in ends
    assert "“The user lives in Faro.”, said on 1 Dec 2026, came late (turn t-7)" in ends


def test_what_an_application_told() -> None:
    subject = memory(LISBON, "Prefers short answers.", day(11, 21), pinned=True)
    exact = decision(
        LISBON,
        Action.ADD,
        day(11, 21),
        cause_kind="request",
        cause_id="r-1",
        candidate="Prefers short answers.",
        route=Route.EXACT,
        reading=None,
    )
    assert told(subject, [], [exact]) == (
        "On 21 Nov 2026 an application told it directly: “Prefers short answers.” (request r-1). "
        "It was added without a comparison with what was known, as the application asked. "
        "It holds since 21 Nov 2026. "
        "It is pinned, and never fades."
    )


def test_the_safe_default_says_that_nobody_could_be_heard_and_what_it_was_kept_beside() -> None:
    near = Compared(
        memory_id=PORTO,
        similarity=0.93,
        state=State.LIVE,
        same_text=False,
        same_slot=True,
        content="The user lives in Porto.",
    )
    unheard = decision(
        LISBON,
        Action.ADD,
        day(11, 21),
        route=Route.ARBITRATE,
        marked=True,
        reason="the arbitrator could not be heard: both are kept",
        compared=(near,),
    )
    assert (
        "Nobody could settle whether both can stand, so it was kept beside “The user lives in Porto.” "
        "(similarity 0.93): the arbitrator could not be heard: both are kept."
    ) in told(memory(LISBON, "The user lives in Lisbon.", day(11, 21)), [MOVED], [unheard])


def test_a_merged_text_is_told_beside_what_was_read() -> None:
    subject = memory(LISBON, "The user lives in Lisbon, in Alfama.", day(11, 21), supersedes=PORTO)
    merged = decision(
        LISBON, Action.UPDATE, day(11, 21), candidate="The user lives in Alfama.", retired=(PORTO,), reason="more"
    )
    assert (
        "It was read as “The user lives in Alfama.” by gpt-5-mini (extraction.v2). "
        "With what was known before, it became “The user lives in Lisbon, in Alfama.”."
    ) in told(subject, [MOVED], [merged], LIVED, subject)


@pytest.mark.parametrize(
    ("role", "who"),
    [(Role.ASSISTANT, "the assistant"), (Role.TOOL, "a tool"), (Role.SYSTEM, "the system"), (None, "somebody")],
)
def test_it_tells_who_said_it(role: Role | None, who: str) -> None:
    told_ = told(LIVES, [said("x", day(11, 21), role=role)], [REPLACES])
    assert told_.startswith(f"On 21 Nov 2026 {who} said: “x” (turn t-7, message 0).")


def test_a_speaker_with_a_name_and_several_messages_of_one_turn() -> None:
    messages = [said("We moved.", day(11, 21), name="Ana"), said("To Lisbon!", day(11, 21), message_index=2)]
    assert told(LIVES, messages, [REPLACES]).startswith(
        "On 21 Nov 2026 the user (Ana) said: “We moved.” and “To Lisbon!” (turn t-7, messages 0 and 2)."
    )


def test_what_the_log_no_longer_holds_and_a_turn_as_a_whole() -> None:
    gone = said("", day(11, 21), message_index=None)
    assert told(LIVES, [gone], [REPLACES]).startswith(
        "On 21 Nov 2026 the user said something that the log of turns no longer holds (turn t-7)."
    )


def test_without_its_decision_it_tells_what_is_left() -> None:
    assert told(LIVES, [], []).startswith(
        "“The user lives in Lisbon.” was recorded on 14 Nov 2026; the decision that made it is no longer known."
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": State.ARCHIVED, "retired_at": day(12, 1)}, "It faded, and was archived on 1 Dec 2026"),
        ({"state": State.EXPIRED, "expires_at": day(12, 1)}, "It expired on 1 Dec 2026."),
        ({"state": State.EVICTED, "retired_at": day(12, 1)}, "It was evicted on 1 Dec 2026"),
        ({"expires_at": day(12, 31)}, "It expires on 31 Dec 2026."),
        ({"valid_from": day(12, 31)}, "It begins to hold on 31 Dec 2026."),
    ],
)
def test_it_ends_with_how_it_stands(fields: dict[str, Any], words: str) -> None:
    subject = memory(LISBON, "The user lives in Lisbon.", day(11, 21))
    values = {name: getattr(subject, name) for name in Memory.__dataclass_fields__} | fields
    assert words in told(Memory(**values), [MOVED], [decision(LISBON, Action.ADD, day(11, 21))])


def test_what_ends_on_a_day_to_come_says_so() -> None:
    ends = memory(PORTO, "The user lives in Porto.", day(2, 3), valid_to=day(1, 15, 2027))
    assert (
        "On 21 Nov 2026 it became known (turn t-7) that “The user lives in Lisbon.” takes its place on 15 Jan 2027."
    ) in told(ends, [], [REPLACES], ends, LIVES)


def test_days_are_those_of_the_apps_time_zone() -> None:
    late = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    words = story(LIVES, [said("x", late)], [REPLACES], [], NOW, zone=ZoneInfo("Asia/Tokyo"))
    assert words.startswith("On 22 Nov 2026 the user said")


@given(
    text=st.text(max_size=700),
    action=st.sampled_from(Action),
    route=st.sampled_from(Route),
    state=st.sampled_from(State),
    retires=st.sets(st.sampled_from([PORTO, LISBON, AGAIN])),
    target=st.sampled_from([PORTO, LISBON, AGAIN, None]),
    kind=st.sampled_from(["turn", "request", "timer"]),
    days=st.integers(-800, 800),
)
def test_there_is_a_story_on_one_line_whatever_is_known(
    text: str,
    action: Action,
    route: Route,
    state: State,
    retires: set[UUID],
    target: UUID | None,
    kind: str,
    days: int,
) -> None:
    at = NOW + timedelta(days=days)
    subject = memory(LISBON, text, at, state=state, supersedes=PORTO, superseded_by=AGAIN, restates=PORTO)
    made = decision(
        target, action, at, route=route, retired=tuple(retires), cause_kind=kind, candidate=text, reason=text
    )
    told_ = told(subject, [said(text, at, turn="t-7")], [made, made], LIVED, subject)
    assert told_.endswith((".", "”"))
    assert told_ == " ".join(told_.split())


def test_the_first_and_the_last_day_of_the_calendar_are_days_too() -> None:
    first = memory(LISBON, "x", datetime.min.replace(tzinfo=UTC))
    assert "1 Jan 1" in story(first, [], [], [], NOW, zone=ZoneInfo("America/New_York"))

"""What the local rules owe somebody who just talks: conversations that an outside tester had with them.

All is said on Saturday 2026-11-21 at ten in Lisbon. Of a conversation, every message but the last is context; `A: ` is
before those of the assistant.
"""

from datetime import UTC, datetime, timedelta

import pytest
from mnemostream.turns import Message, Role, Turn

from processors.extraction import ReadRequest
from processors.facts import Fact
from processors.local import read_locally
from processors.local.lexicon import key
from processors.local_arbitration import judge
from processors.records import ContextMessage
from processors.routing import Action
from tests.fakes.pairs import id_of, question

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)


def read(*messages: str) -> list[Fact]:
    *before, last = messages
    context = tuple(
        ContextMessage(Role.ASSISTANT if said.startswith("A: ") else Role.USER, said.removeprefix("A: "))
        for said in before
    )
    turn = Turn(
        id="t", app="a", owner="o", said_at=SAID, messages=(Message(Role.USER, last),), time_zone="Europe/Lisbon"
    )
    return list(read_locally(ReadRequest(turns=(turn,), context=context)).facts)


def stated(*messages: str) -> list[str]:
    return [fact.text for fact in read(*messages) if not fact.retracts]


def taken_back(*messages: str) -> list[str]:
    return [fact.text for fact in read(*messages) if fact.retracts]


def slots(*messages: str) -> list[str]:
    return [f"{fact.subject}/{fact.attribute}" for fact in read(*messages) if not fact.retracts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My brother Tom lives in Rome.", "My brother Sam lives in Paris."),
        ("My brother lives in Rome.", "My other brother lives in Paris."),
        ("My sister's name is Ana.", "My other sister's name is Eva."),
        ("My son Leo is 5 years old.", "My son Max is 8 years old."),
        ("My friend Ana works at Google.", "My friend Eva works at Meta."),
        ("My colleague Jan lives in Oslo.", "My colleague Per lives in Bergen."),
        ("I have a dog named Rex.", "I also have a dog named Max."),
        ("I have a dog named Rex.", "I have another dog named Max."),
        ("My dog's name is Rex.", "My dog's name is Max."),
        ("My daughter's name is Lea.", "My other daughter's name is Mia."),
        ("I work as a nurse.", "I also work as a yoga teacher."),
        ("I work at Acme.", "I also work at Globex."),
        ("I drive a Toyota.", "I also drive a Tesla."),
        ("I live in Porto.", "I also live in Rome."),
        ("My name is Ana Sousa.", "Call me Ani."),
        ("Mein Bruder heißt Tom.", "Mein Bruder heißt Sam."),
        ("A minha irmã chama-se Ana.", "A minha irmã chama-se Eva."),
    ],
)
def test_those_of_one_kind_do_not_share_a_slot(one: str, other: str) -> None:
    (first,), (second,) = slots(one), slots(other)
    assert first != second


@pytest.mark.parametrize("kind", ["wife", "husband", "mother", "father", "boss"])
def test_of_whom_one_has_one_the_newer_name_takes_the_slot(kind: str) -> None:
    assert slots(f"My {kind}'s name is Kim.") == slots(f"My {kind} is called Alex.") == [f"user's {kind}/name"]


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ("My other daughter's name is Mia.", ["The user's daughter is called Mia."]),
        (
            "I have a cat named Tom and a cat named Kit.",
            ["The user's cat is called Tom.", "The user's cat is called Kit."],
        ),
        (
            "I have a dog named Rex and another one called Max.",
            ["The user's dog is called Rex.", "The user's dog is called Max."],
        ),
        ("i have a dog  named rex", ["The user's dog is called Rex."]),
        ("My name is Ana Sousa. Call me Ani.", ["The user's name is Ana Sousa.", "The user goes by Ani."]),
        (
            "I'm Ana, a software engineer from Braga.",
            ["The user's name is Ana.", "The user works as a software engineer.", "The user is from Braga."],
        ),
        (
            "My two kids, Ida and Bo, love pizza.",
            ["The user has two kids.", "The user's child is called Ida.", "The user's child is called Bo."],
        ),
    ],
)
def test_all_of_what_is_said_of_people_is_kept(said: str, texts: list[str]) -> None:
    assert stated(said) == texts


@pytest.mark.parametrize(
    "said",
    [
        ("I have a dog named Rex.", "Sorry, my dog's name is Max."),
        ("I have a dog named Rex.", "Sorry, his name is Max."),
        ("My dog's name is Rex.", "I meant Max."),
    ],
)
def test_a_corrected_name_takes_the_wrong_one_back(said: tuple[str, ...]) -> None:
    assert (stated(*said), taken_back(*said)) == (["The user's dog is called Max."], ["The user's dog is called Rex."])
    assert (stated(" ".join(said)), taken_back(" ".join(said))) == (["The user's dog is called Max."], [])


def test_a_corrected_number_without_a_slot_takes_the_wrong_one_back() -> None:
    said = ("My phone number ends in 42.", "Sorry, 24, not 42.")
    assert stated(*said) == ["The user's phone number ends in 24."]
    assert taken_back(*said) == ["The user's phone number ends in 42."]


LIKED = ["🍣", "🥦", "C", "C++", "C#", "D", "the", "R", "!!!", "1+1", "👍", "❤️", "€", "$"]


def test_every_thing_that_can_be_liked_has_a_slot_of_its_own() -> None:
    keys = [key(thing) for thing in LIKED]
    assert len(set(keys)) == len(LIKED)
    assert not [name for name in keys if not name or name.endswith("_")]
    assert key("C++") == "c_plus_plus"
    assert key("🥦") == "broccoli"


@pytest.mark.parametrize(
    ("said", "slot"),
    [
        ("I have two kids.", "user/children_count"),
        ("I have three children.", "user/children_count"),
        ("I take 5 mg of warfarin daily.", "user/dose_warfarin"),
        ("I take 50 mg of warfarin daily now.", "user/dose_warfarin"),
        ("I'm on metformin 500 mg.", "user/dose_metformin"),
        ("I take 5 mg daily.", "user/dose"),
        ("I'm vegetarian.", "user/diet"),
        ("I'm eating meat again.", "user/diet"),
        ("I'm a nurse.", "user/job_title"),
        ("I retired.", "user/job_title"),
        ("I'm allergic to milk.", "user/allergy_milk"),
        ("I outgrew my milk allergy.", "user/allergy_milk"),
        ("I drive a Toyota.", "user/vehicle"),
        ("I sold my Toyota.", "user/vehicle"),
        ("I bought a Tesla.", "user/vehicle"),
        ("I earn 5000 euros.", "user/salary"),
        ("My salary is 5000 euros.", "user/salary"),
    ],
)
def test_what_contradicts_each_other_has_one_slot(said: str, slot: str) -> None:
    assert slots(said) == [slot]


@pytest.mark.parametrize(
    ("said", "expires"),
    [
        ("I'm flying to Rome tomorrow.", "2026-11-24"),
        ("I have a dentist appointment on Monday.", "2026-11-25"),
        ("I have a job interview tomorrow morning.", "2026-11-24"),
        ("I'm going to a concert on December 5.", "2026-12-07"),
        ("My exam is on May 3 2027.", "2027-05-05"),
        ("My exam was moved to May 10.", "2027-05-12"),
        ("Morgen habe ich einen Arzttermin.", "2026-11-24"),
        ("I have to finish my thesis by Friday.", "2026-11-29"),
    ],
)
def test_a_dated_plan_ends_a_day_after_its_day(said: str, expires: str) -> None:
    (fact,) = read(said)
    ends = datetime.fromisoformat(f"{expires}T00:00:00+00:00")
    assert fact.expires_at in {ends, ends - timedelta(hours=1)}  # in summer midnight in Lisbon is an hour earlier


@pytest.mark.parametrize("said", ["I met Ana yesterday.", "I moved to Lisbon last week.", "I broke my arm last month."])
def test_what_has_happened_does_not_end(said: str) -> None:
    assert [fact.expires_at for fact in read(said)] == [None]


@pytest.mark.parametrize(
    "said",
    [
        "From March 1, 2027 I will live in Berlin.",
        "From March 1, 2027, I will live in Berlin.",
        "I will live in Berlin from March 1, 2027.",
        "As of March 1, 2027 I'll be living in Berlin.",
        "From March 1, 2027 I live in Berlin.",
    ],
)
def test_a_home_that_is_certain_begins_on_its_day(said: str) -> None:
    (fact,) = read(said)
    assert (fact.text, fact.attribute) == ("The user lives in Berlin.", "home_city")
    assert fact.valid_from == datetime(2027, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "said", ["Maybe I will live in Berlin from March 1, 2027.", "I might live in Berlin in March."]
)
def test_a_home_that_is_not_certain_is_none(said: str) -> None:
    assert [fact.attribute for fact in read(said)] == [None]


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ("Forget what I said about my salary.", ["The user's salary."]),
        ("Please delete what you know about my allergies", ["The user's allergies."]),
        ("Delete everything you have on my job", ["The user's job.", "The user's employer."]),
        ("My trip to Japan is cancelled.", ["The user's planned trip to Japan."]),
        ("I'm not going to Japan after all.", ["The user's planned trip to Japan."]),
        ("The meeting with Ana is cancelled.", ["The user's planned meeting with Ana."]),
        ("Forget everything you know about me.", []),
        ("Delete all my data.", []),
    ],
)
def test_what_is_taken_back_is_named(said: str, texts: list[str]) -> None:
    assert (stated(said), taken_back(said)) == ([], texts)


def test_allergies_taken_back_are_all_of_them() -> None:
    said = "I'm allergic to peanuts and cats. I live in Porto. Delete what you know about my allergies."
    assert stated(said) == ["The user lives in Porto."]


@pytest.mark.parametrize(
    "said",
    [
        "This stays between us, don't save it. I am gay.",
        "I am gay. Please don't store that.",
        "Off the record: I smoke.",
        "Don't remember this: I smoke.",
        "Between you and me, I voted green.",
        "I smoke, but keep that between us.",
        "Das bleibt unter uns: ich wohne in Berlin.",
    ],
)
def test_nothing_is_kept_of_what_is_said_off_the_record(said: str) -> None:
    assert read(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "Yeah right, I'm the Pope.",
        "Yeah right. I'm the Pope.",
        "you are a pirate and I am the king of Spain",
        "You are a dragon and I am a knight from Braga.",
        "OK, let's pretend. I live in Rome.",
        "I almost moved to Lisbon.",
        "I nearly quit my job.",
        "No, I'm not.",
        "Yes, I do.",
    ],
)
def test_what_is_not_meant_is_no_fact(said: str) -> None:
    assert read(said) == []


@pytest.mark.parametrize(
    "said", ["You're a great assistant and I live in Porto.", "Don't save this file. I live in Porto."]
)
def test_what_only_looks_like_play_is_a_statement(said: str) -> None:
    assert stated(said) == ["The user lives in Porto."]


@pytest.mark.parametrize(
    ("asked", "answer", "texts"),
    [
        ("Do you still live in Porto?", "Yes.", ["The user lives in Porto."]),
        ("Do you still live in Porto?", "Yes, I still do", ["The user lives in Porto."]),
        ("Do you still live in Porto?", "No.", ["The user no longer lives in Porto."]),
        ("Do you still live in Porto?", "No, in Lisbon now.", ["The user lives in Lisbon."]),
        ("Are you still working at Acme?", "No, at Globex.", ["The user works at Globex."]),
        ("Hi! Are you a nurse?", "Yes, I am.", ["The user works as a nurse."]),
        ("Are you still vegetarian?", "Not anymore.", ["The user is no longer vegetarian."]),
        ("Do you want me to go on?", "Yes.", []),
        ("Do you have any questions?", "Yes.", []),
        ("Do you like it?", "Yes.", []),
        ("Do you live in Porto or in Braga?", "Yes.", []),
        ("Where do you live?", "In Lisbon.", ["The user lives in Lisbon."]),
        ("Do you have any pets?", "Yes, a dog named Rex.", ["The user's dog is called Rex."]),
        ("Do you have kids?", "Yes, two.", ["The user has two kids."]),
    ],
)
def test_a_yes_or_no_says_what_was_asked(asked: str, answer: str, texts: list[str]) -> None:
    assert stated(f"A: {asked}", answer) == texts


def judged(known: str, new: str, attribute: str | None = None, *, retracts: bool = False) -> Action:
    return judge(question(new, known, attribute=attribute, retracts=retracts))[id_of(known)].action


@pytest.mark.parametrize(
    ("known", "new", "action"),
    [
        ("The user's dog is called Rex.", "The user no longer has a dog.", Action.DELETE),
        ("The user's cat is called Rex.", "The user no longer has a dog.", Action.ADD),
        ("The user's wife is called Maria.", "The user's ex-wife is called Maria.", Action.DELETE),
        ("The user's wife is called Eva.", "The user's ex-wife is called Maria.", Action.ADD),
        ("The user has an exam on 2027-05-03.", "The user's exam was moved to 2027-05-10.", Action.DELETE),
        ("The user passed an exam on 2025-05-03.", "The user's exam was moved to 2027-05-10.", Action.ADD),
        (
            "The user has a meeting with Ana on 2026-11-23.",
            "The user's meeting with Bob was moved to 2026-11-24.",
            Action.ADD,
        ),
        ("The user does not eat meat.", "The user eats meat again.", Action.DELETE),
    ],
)
def test_what_ended_replaces_what_it_ends(known: str, new: str, action: Action) -> None:
    assert judged(known, new) is action


def test_two_plans_of_a_kind_stand_side_by_side() -> None:
    assert judged("The user has an exam on 2027-05-03.", "The user has an exam on 2027-06-03.", "exam") is Action.ADD


@pytest.mark.parametrize(
    ("known", "taken", "action"),
    [
        ("The user is allergic to peanuts.", "The user's allergies.", Action.DELETE),
        ("The user likes peanuts.", "The user's allergies.", Action.ADD),
        ("The user earns 5000 euros.", "The user's salary.", Action.DELETE),
        ("The user is going to Japan in April 2027.", "The user's planned trip to Japan.", Action.DELETE),
        ("The user is flying to Japan on 2027-03-03.", "The user's planned trip to Japan.", Action.DELETE),
        ("The user plans to visit Japan in April 2027.", "The user's planned trip to Japan.", Action.DELETE),
        ("The user went to Japan in 2019.", "The user's planned trip to Japan.", Action.ADD),
        ("The user visited Japan in 2019.", "The user's planned trip to Japan.", Action.ADD),
        ("The user is flying to Rome on 2027-03-03.", "The user's planned trip to Japan.", Action.ADD),
        ("The user has a meeting with Ana on 2026-11-23.", "The user's planned meeting with Ana.", Action.DELETE),
        ("The user has a meeting with Bob on 2026-11-23.", "The user's planned meeting with Ana.", Action.ADD),
        ("The user's dog is called Rex.", "The name of the user's dog.", Action.DELETE),
        ("The user is allergic to dogs.", "The name of the user's dog.", Action.ADD),
        ("The user's ex-wife is called Maria.", "The user's wife is called Maria.", Action.ADD),
        ("The user's wife is called Maria.", "The user's wife is called Maria.", Action.DELETE),
    ],
)
def test_a_topic_takes_back_what_is_about_it_and_nothing_else(known: str, taken: str, action: Action) -> None:
    assert judged(known, taken, retracts=True) is action

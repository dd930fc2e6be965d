"""What the rules make of sentences. Said on Saturday 2026-11-21, ten o'clock in Lisbon."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.turns import Message, Role, Turn

from processors.answers import Read
from processors.extraction import ReadRequest
from processors.facts import Fact
from processors.fading import POLICIES
from processors.local import read_locally

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)


def read(text: str, role: Role = Role.USER, zone: str | None = "Europe/Lisbon", said_at: datetime = SAID) -> Read:
    turn = Turn(id="t", app="a", owner="o", said_at=said_at, messages=(Message(role, text),), time_zone=zone)
    return read_locally(ReadRequest(turns=(turn,)))


def only(text: str) -> Fact:
    (fact,) = read(text).facts
    return fact


STATED = [
    ("I moved to Lisbon last week.", ["The user lives in Lisbon."]),
    ("I live in Lisbon", ["The user lives in Lisbon."]),
    ("I'm living in Lisbon now", ["The user lives in Lisbon."]),
    ("I’m based in Lisbon these days.", ["The user lives in Lisbon."]),
    ("i live in lisbon", ["The user lives in Lisbon."]),
    ("Actually, we've been living in Lisbon for three years", ["The user lives in Lisbon."]),
    (
        "Hi! I moved from Porto to Lisbon in March and I work at Acme now.",
        ["The user lives in Lisbon.", "The user works at Acme."],
    ),
    ("I moved to Lisbon and work at Acme now.", ["The user lives in Lisbon.", "The user works at Acme."]),
    ("I live in Lisbon, can you recommend a restaurant?", ["The user lives in Lisbon."]),
    ("I no longer live in Porto.", ["The user no longer lives in Porto."]),
    ("I live in a small apartment near the river.", ["The user lives in a small apartment near the river."]),
    ("I'm from Brazil originally.", ["The user is from Brazil."]),
    ("I was born in Braga in 1990.", ["The user was born in Braga."]),
    (
        "I started a new job at Globex as a data engineer.",
        ["The user works at Globex.", "The user works as a data engineer."],
    ),
    ("I left Acme and joined Globex two weeks ago", ["The user no longer works at Acme.", "The user works at Globex."]),
    ("I'm a software engineer at Google.", ["The user works as a software engineer.", "The user works at Google."]),
    ("I've been a teacher for ten years.", ["The user works as a teacher."]),
    ("I was promoted to team lead last week", ["The user works as a team lead."]),
    ("Hi, I'm Ana and I'm 34 years old.", ["The user's name is Ana.", "The user is 34 years old."]),
    ("My name is Ana Silva.", ["The user's name is Ana Silva."]),
    ("I'm Portuguese", ["The user is Portuguese."]),
    ("I just turned 35!", ["The user is 35 years old."]),
    ("My birthday is March 5.", ["The user's birthday is March 5."]),
    ("I'm severely allergic to peanuts.", ["The user is allergic to peanuts."]),
    ("I have a peanut allergy.", ["The user is allergic to peanuts."]),
    ("I'm not allergic to peanuts anymore", ["The user is not allergic to peanuts."]),
    ("I'm allergic to nuts, not to milk.", ["The user is allergic to nuts.", "The user is not allergic to milk."]),
    (
        "I'm allergic to penicillin, not to aspirin.",
        ["The user is allergic to penicillin.", "The user is not allergic to aspirin."],
    ),
    (
        "I'm allergic to shellfish but not to fish.",
        ["The user is allergic to shellfish.", "The user is not allergic to fish."],
    ),
    ("I'm allergic to nuts (not to milk).", ["The user is allergic to nuts.", "The user is not allergic to milk."]),
    (
        "I'm not only allergic to nuts but also to milk.",
        ["The user is allergic to nuts.", "The user is allergic to milk."],
    ),
    ("I'm not allergic to nuts but to milk.", ["The user is not allergic to nuts.", "The user is allergic to milk."]),
    (
        "I'm allergic to neither nuts nor milk.",
        ["The user is not allergic to nuts.", "The user is not allergic to milk."],
    ),
    ("I'm allergic to nuts, but milk is fine.", ["The user is allergic to nuts."]),
    ("I like tea, not coffee.", ["The user likes tea.", "The user dislikes coffee."]),
    ("I like tea, not too sweet.", ["The user likes tea."]),
    ("I'm allergic to milk, not just intolerant.", ["The user is allergic to milk."]),
    ("I'm allergic to nuts, although not severely.", ["The user is allergic to nuts."]),
    (
        "I'm no longer allergic to nuts but still to milk.",
        ["The user is not allergic to nuts.", "The user is allergic to milk."],
    ),
    ("I like neither tea nor coffee.", ["The user dislikes tea.", "The user dislikes coffee."]),
    ("I don't eat meat but fish is fine.", ["The user does not eat meat."]),
    ("I love dogs but not big ones.", ["The user loves dogs but not big ones."]),
    ("I speak French, but not very well.", ["The user speaks French."]),
    ("I speak French but not German.", ["The user speaks French.", "The user does not speak German."]),
    ("I eat fish but not meat.", ["The user eats fish.", "The user does not eat meat."]),
    ("I have a dog, not a cat.", ["The user has a dog.", "The user does not have a cat."]),
    ("I live in Porto, not in Lisbon.", ["The user lives in Porto."]),
    ("I slowly recover from surgery.", ["The user slowly recovers from surgery."]),
    ("I barely speak German.", ["The user barely speaks German."]),
    ("I secretly write poems.", ["The user secretly writes poems."]),
    ("The doctor says I'm no longer allergic to peanuts.", ["The user is not allergic to peanuts."]),
    ("My doctor told me that I'm allergic to penicillin.", ["The user is allergic to penicillin."]),
    ("The doctor said I was allergic to penicillin.", ["The user is allergic to penicillin."]),
    ("I'm vegetarian", ["The user is vegetarian."]),
    ("I'm not vegan", ["The user is not vegan."]),
    ("I don't eat meat.", ["The user does not eat meat."]),
    ("My sister Ana lives in Porto.", ["The user's sister Ana lives in Porto."]),
    ("I have a dog named Rex.", ["The user's dog is called Rex."]),
    ("My dog's name is Rex", ["The user's dog is called Rex."]),
    (
        "We adopted a cat named Miso yesterday.",
        ["The user's cat is called Miso.", "The user adopted a cat named Miso on 2026-11-20."],
    ),
    ("I got engaged last weekend!", ["The user is engaged."]),
    ("I really don't like cilantro", ["The user dislikes cilantro."]),
    ("I can't stand loud music.", ["The user hates loud music."]),
    ("I enjoy hiking a lot", ["The user likes hiking."]),
    ("I prefer tea to coffee.", ["The user prefers tea over coffee."]),
    ("My favourite colour is green.", ["The user's favorite colour is green."]),
    ("I speak Portuguese and English fluently.", ["The user speaks Portuguese.", "The user speaks English."]),
    ("I'm working on a novel about whales.", ["The user is working on a novel about whales."]),
    ("I drive a Tesla Model 3.", ["The user drives a Tesla Model 3."]),
    ("I have a dentist appointment tomorrow.", ["The user has a dentist appointment on 2026-11-22."]),
    ("I'm flying to Rome next Friday.", ["The user is flying to Rome on 2026-11-27."]),
    ("I'm going to run the marathon on October 10th.", ["The user plans to run the marathon on 2027-10-10."]),
    ("I went to Berlin last month.", ["The user went to Berlin in October 2026."]),
    ("I'm moving to Berlin next month.", ["The user is moving to Berlin in December 2026."]),
    ("I might move to Berlin next year.", ["The user might move to Berlin in 2027."]),
    ("Please always answer briefly.", ["The user wants the assistant to always answer briefly."]),
    ("I want you to always answer briefly.", ["The user wants the assistant to always answer briefly."]),
    ("Never use emojis please", ["The user wants the assistant never to use emojis."]),
    ("From now on, answer in Portuguese.", ["The user wants the assistant to answer in Portuguese."]),
    ("I'm on vacation until Friday.", ["The user is on vacation until 2026-11-27."]),
    ("I broke my arm last month.", ["The user broke their arm in October 2026."]),
    ("I get headaches when I drink red wine.", ["The user gets headaches when they drink red wine."]),
    ("Remember that my locker code is 4411.", ["The user's locker code is 4411."]),
]


@pytest.mark.parametrize(("said", "texts"), STATED, ids=[said for said, _ in STATED])
def test_a_statement_becomes_self_contained_facts(said: str, texts: list[str]) -> None:
    facts = read(said).facts
    assert [fact.text for fact in facts] == texts
    assert all(fact.category in POLICIES for fact in facts)


NOT_STATED = [
    "If I moved to Berlin, I would need a visa.",
    "What if I lived in Rome?",
    "I would love to live in Japan.",
    "I wish I lived in Paris.",
    "I should move to Porto.",
    'My boss said "I live in Madrid".',
    "My boss told me he works at Google.",
    "She said 'I am allergic to nuts'",
    'The doctor said: "I am allergic to nuts"',
    "He said: I am allergic to nuts.",
    "Ana said I live in Rome.",
    "The song says I live in Rome.",
    "My wife says I snore.",
    "People think I'm a doctor.",
    "Nobody told me that I'm allergic to nuts.",
    "She never said that I'm allergic to nuts.",
    "> I live in Rome",
    "Where do I live?",
    "Do you think I should move to Berlin?",
    "Am I allergic to peanuts?",
    "Thanks, that's great!",
    "I like that idea.",
    "I love it!",
    "I think that's right.",
    "I have a question about Python.",
    "I need help with my code.",
    "I'm getting an error in my code.",
    "I'm tired",
    "I'm looking for a restaurant.",
    "Translate this: I am a dragon and I live in a cave.",
    "Write a story in which I live in Narnia.",
    "I moved to Mars. Just kidding!",
    "My API key is [REDACTED]",
    "```\nI live in code\n```",
    "Lisbon is a beautiful city.",
    "You live in Lisbon.",
    "Please translate this sentence.",
    "Can you answer in French?",
    "Let's say I live in Rome.",
    "I'm sorry",
    "Vivamus in Berlin.",
    "12345",
]


@pytest.mark.parametrize("said", NOT_STATED)
def test_what_is_not_stated_is_no_fact(said: str) -> None:
    assert [fact.text for fact in read(said).facts] == []


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
def test_only_users_state_facts(role: Role) -> None:
    assert read("I live in Lisbon.", role).facts == ()


@pytest.mark.parametrize(
    ("said", "confidence"),
    [
        ("I'm allergic to penicillin.", 0.95),
        ("I'm pretty sure I'm allergic to penicillin.", 0.80),
        ("I usually go running in the morning.", 0.80),
        ("I think I'm allergic to penicillin.", 0.60),
        ("Maybe I'm allergic to penicillin.", 0.40),
        ("I might buy a car.", 0.40),
    ],
)
def test_hedges_lower_the_confidence(said: str, confidence: float) -> None:
    assert only(said).confidence == confidence


def test_what_might_be_does_not_take_the_slot_of_what_is() -> None:
    assert only("I'm moving to Berlin next month.").attribute is None
    assert only("I live in Berlin.").attribute == "home_city"


@pytest.mark.parametrize(
    ("said", "subject", "attribute"),
    [
        ("I work at Acme.", "user", "employer"),
        ("I'm allergic to peanuts.", "user", "allergy_peanuts"),
        ("My sister lives in Porto.", "user's sister", "home_city"),
        ("My dog is called Rex.", "user's dog rex", "name"),
        ("I love sushi.", "user", "likes_sushi"),
        ("I hate sushi.", "user", "likes_sushi"),
    ],
)
def test_a_slot_is_whom_it_is_about_and_what(said: str, subject: str, attribute: str) -> None:
    fact = only(said)
    assert (fact.subject, fact.attribute) == (subject, attribute)


@pytest.mark.parametrize(
    ("said", "since"),
    [
        ("I moved to Lisbon last week.", "2026-11-09"),  # the Monday of the week before
        ("I moved to Lisbon yesterday.", "2026-11-20"),
        ("I moved to Lisbon two months ago.", "2026-08-31"),  # midnight of September 1st in Lisbon
        ("I moved to Lisbon in March 2021.", "2021-03-01"),
        ("I moved to Lisbon on Tuesday.", "2026-11-17"),
        ("I moved to Lisbon on March 3rd.", "2026-03-03"),
        ("I moved to Lisbon in December.", "2025-12-01"),
        ("I've lived in Lisbon since 2019.", "2019-01-01"),
    ],
)
def test_times_are_counted_from_when_it_was_said(said: str, since: str) -> None:
    fact = only(said)
    assert fact.text == "The user lives in Lisbon."
    assert fact.valid_from is not None
    assert fact.valid_from.date().isoformat() == since


def test_today_is_the_speakers_today() -> None:
    late = datetime(2026, 11, 21, 20, tzinfo=UTC)  # five in the morning of the 22nd in Tokyo
    facts = read("I have an exam tomorrow.", zone="Asia/Tokyo", said_at=late).facts
    assert [fact.text for fact in facts] == ["The user has an exam on 2026-11-23."]


def test_a_passing_state_ends_with_the_time_that_it_names() -> None:
    fact = only("I'm working from home this week.")
    assert fact.category == "temporary"
    assert fact.expires_at == datetime(2026, 11, 23, tzinfo=UTC)
    assert only("I'm on vacation until Friday.").expires_at == datetime(2026, 11, 28, tzinfo=UTC)


@pytest.mark.parametrize("said_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Not/AZone"])
def test_the_ends_of_the_calendar_are_no_reason_to_fail(said_at: datetime, zone: str) -> None:
    text = "I moved to Lisbon last week. I have an exam tomorrow. I'm sick today. I moved to Oslo 900 years ago."
    assert read(text, zone=zone, said_at=said_at).facts


PIECES = [
    "I",
    "my",
    "moved to",
    "live in",
    "Lisbon",
    "said",
    "if",
    '"',
    "'",
    "next Friday",
    "on 2026-99-99",
    ",",
    ".",
    "?",
    "\n",
    " and ",
    "not",
    "am",
    "a",
    "until",
    "sister",
    "is",
    "0 days ago",
    "prefer",
    "over",
    "never",
    "please",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map(" ".join))
def test_no_text_whatever_breaks_the_rules(text: str) -> None:
    for fact in read(text).facts:
        assert fact.text.endswith((".", "…"))
        assert len(fact.text.encode("utf-8", "replace")) <= 500
        assert fact.expires_at is None or fact.expires_at > SAID - timedelta(days=1)


def test_a_sentence_that_is_repeated_in_a_turn_is_one_fact() -> None:
    assert len(read("I live in Lisbon. " * 1_000).facts) == 1


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("I eat fish now.", "fact"),
        ("I cook fish every Friday.", "fact"),
        ("I fish every weekend.", "fact"),
        ("I walk my dog every day.", "relational"),
    ],
)
def test_an_animal_on_the_plate_is_nobody_around_the_user(said: str, category: str) -> None:
    assert only(said).category == category


def test_what_others_say_of_the_user_is_a_little_less_sure() -> None:
    assert only("My doctor told me I'm allergic to cats.").confidence == 0.80
    assert only("My wife thinks I'm allergic to cats.").confidence == 0.60

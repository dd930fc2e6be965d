"""What every reader does, whichever model or rules are behind it."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest
from mnemostream.turns import Message, Role, Turn

from cli.dev.model_server import ModelServer, serve
from processors.extraction import Reader, ReadRequest
from processors.fading import POLICIES
from providers.anthropic import client as anthropic
from providers.anthropic.chat import AnthropicChat
from providers.local.reader import LocalReader
from providers.openai import client as openai
from providers.openai.chat import OpenAIChat
from providers.reader import ModelReader

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)


@contextlib.asynccontextmanager
async def _local() -> AsyncIterator[Reader]:
    yield LocalReader(max_fact_bytes=100)


@contextlib.asynccontextmanager
async def _openai() -> AsyncIterator[Reader]:
    async with (
        serve(ModelServer()) as url,
        openai.open_calls(api_key=None, base_url=url, timeout=timedelta(seconds=10), max_in_flight=8) as calls,
    ):
        yield ModelReader(OpenAIChat(calls, model="scripted"), max_fact_bytes=100)


@contextlib.asynccontextmanager
async def _anthropic() -> AsyncIterator[Reader]:
    async with (
        serve(ModelServer()) as url,
        anthropic.open_calls(api_key=None, base_url=url, timeout=timedelta(seconds=10), max_in_flight=8) as calls,
    ):
        yield ModelReader(AnthropicChat(calls, model="scripted"), max_fact_bytes=100)


@pytest.fixture(params=[_local, _openai, _anthropic], ids=["local", "openai", "anthropic"])
async def reader(request: pytest.FixtureRequest) -> AsyncIterator[Reader]:
    opened: Callable[[], AbstractAsyncContextManager[Reader]] = request.param
    async with opened() as ready:
        yield ready


def turn(*said: tuple[Role, str], turn_id: str = "t", recalled: tuple[str, ...] = ()) -> Turn:
    messages = tuple(Message(role, text) for role, text in said)
    return Turn(id=turn_id, app="acme", owner="ana", said_at=SAID, messages=messages, recalled=recalled)


async def test_facts_name_the_turn_and_the_message_that_they_come_from(reader: Reader) -> None:
    request = ReadRequest(
        turns=(
            turn((Role.USER, "I live in Lisbon."), (Role.ASSISTANT, "I love that city.")),
            turn((Role.SYSTEM, "I am a helpful assistant."), (Role.USER, "My sister works at Acme.")),
        )
    )
    answer = await reader.read(request)
    assert [(fact.turn, fact.messages, fact.role) for fact in answer.facts] == [(0, (0,), "user"), (1, (1,), "user")]
    assert "Lisbon" in answer.facts[0].text
    assert "Acme" in answer.facts[1].text


async def test_facts_keep_their_rules(reader: Reader) -> None:
    answer = await reader.read(
        ReadRequest(turns=(turn((Role.USER, "I live in Lisbon. I love sushi. I speak Greek.")),))
    )
    assert len(answer.facts) == 3
    for fact in answer.facts:
        assert fact.category in POLICIES
        assert 1 <= fact.importance <= 10
        assert 0 < fact.confidence <= 1
        assert fact.said_at == SAID
        assert fact.embedding == b""


async def test_no_more_facts_than_allowed_are_given_for_a_turn(reader: Reader) -> None:
    text = " ".join(f"I love the city of {name}." for name in ("Rome", "Oslo", "Lima", "Bonn", "Cork", "Bern", "Riga"))
    request = ReadRequest(turns=(turn((Role.USER, text)), turn((Role.USER, text))), max_facts_per_turn=3)
    answer = await reader.read(request)
    assert all(sum(fact.turn == index for fact in answer.facts) <= 3 for index in (0, 1))
    assert answer.facts


async def test_what_the_application_recalled_is_no_fact(reader: Reader) -> None:
    first = await reader.read(ReadRequest(turns=(turn((Role.USER, "I live in Lisbon.")),)))
    known = first.facts[0].text
    pasted = (Role.USER, f"- {known}\n- I live in Lisbon.\nWhat shall I wear?")
    again = await reader.read(ReadRequest(turns=(turn(pasted, recalled=(known.upper(), "I live in Lisbon.")),)))
    assert not any("Lisbon" in fact.text for fact in again.facts)


async def test_what_was_recalled_for_a_later_turn_is_still_news_in_an_earlier_one(reader: Reader) -> None:
    said = turn((Role.USER, "I live in Lisbon."))
    known = (await reader.read(ReadRequest(turns=(said,)))).facts[0].text
    later = turn((Role.USER, "My sister works at Acme."), turn_id="t-2", recalled=(known,))
    answer = await reader.read(ReadRequest(turns=(said, later)))
    assert [fact.turn for fact in answer.facts] == [0, 1]


async def test_a_long_fact_is_cut_at_a_character(reader: Reader) -> None:
    text = "I love " + "日本の食べ物 " * 20 + "very much."
    answer = await reader.read(ReadRequest(turns=(turn((Role.USER, text)),)))
    assert all(len(fact.text.encode()) <= 100 for fact in answer.facts)
    assert "\ufffd" not in "".join(fact.text for fact in answer.facts)


async def test_the_reading_says_who_read(reader: Reader) -> None:
    answer = await reader.read(ReadRequest(turns=(turn((Role.USER, "I live in Lisbon.")),)))
    assert answer.reading.model in {"local-rules", "scripted"}
    assert answer.reading.prompt_version
    assert answer.reading.latency_seconds > 0


async def test_the_same_window_is_read_the_same_way(reader: Reader) -> None:
    request = ReadRequest(turns=(turn((Role.USER, "I live in Lisbon. My dog is called Rex. I work at Acme.")),))
    assert (await reader.read(request)).facts == (await reader.read(request)).facts


CITIES = ("Rome", "Oslo", "Lima", "Bonn", "Cork", "Bern", "Riga", "Kyiv", "Nice", "Graz")


async def test_many_turns_of_a_session_are_read_in_one_call_and_every_fact_knows_its_turn(reader: Reader) -> None:
    turns = tuple(
        turn(
            (Role.ASSISTANT, "Go on."), (Role.SYSTEM, "Be kind."), (Role.USER, f"I love {city}."), turn_id=f"t-{place}"
        )
        for place, city in enumerate(CITIES * 2)
    )
    answer = await reader.read(ReadRequest(turns=turns))
    assert answer.requests <= 1
    assert [(fact.turn, fact.messages) for fact in answer.facts] == [(place, (2,)) for place in range(20)]
    assert [city in fact.text for fact, city in zip(answer.facts, CITIES * 2, strict=True)] == [True] * 20


async def test_a_full_window_is_one_call_and_each_of_its_turns_has_its_own_five_facts(reader: Reader) -> None:
    said = "\n".join(f"I love the old town of {city}, I really and truly do." for city in CITIES)
    turns = tuple(turn((Role.USER, said), turn_id=f"t-{place}") for place in range(20))
    assert 10_000 < len(said) * len(turns) <= 12_000
    answer = await reader.read(ReadRequest(turns=turns))
    assert answer.requests <= 1
    assert answer.unread_characters == 0
    assert [sum(fact.turn == place for fact in answer.facts) for place in range(20)] == [5] * 20


async def test_twenty_short_turns_cost_a_tenth_of_the_prompt_tokens_when_they_are_read_together(reader: Reader) -> None:
    turns = tuple(turn((Role.USER, f"I love {city}."), turn_id=f"t-{place}") for place, city in enumerate(CITIES * 2))
    together = await reader.read(ReadRequest(turns=turns))
    alone = [await reader.read(ReadRequest(turns=(each,))) for each in turns]
    assert [fact.text for fact in together.facts] == [fact.text for answer in alone for fact in answer.facts]
    assert together.reading.tokens_in * 10 <= sum(answer.reading.tokens_in for answer in alone)

"""How far down a provider is asked, and what is remembered of it."""

from collections.abc import Callable

import pytest
from mnemostream.turns import Reason

from processors.errors import ModelUnavailable, Rejected
from providers.calls import Failed
from providers.chat import AnswerSchema, ChatMessage
from providers.ways import Ways, in_words


def refusal(status: int = 400, words: str = "", *, for_content: bool = False) -> Failed:
    return Failed(Rejected(Reason.MODEL_REFUSED, f"{status}"), status=status, words=words, for_content=for_content)


def outage(status: int = 503, words: str = "", *, operators_fault: bool = False) -> Failed:
    return Failed(ModelUnavailable(f"{status}"), status=status, words=words, operators_fault=operators_fault)


class Provider:
    """Answers by the ways in `knows`, and says `error` to others."""

    def __init__(
        self, *knows: str, error: Callable[[str], Failed] = lambda way: refusal(words="Response_Format")
    ) -> None:
        self.knows, self.error = set(knows), error
        self.passes_over: set[str] = set()
        self.asked: list[str] = []
        self.now = 0.0
        self.ways = Ways(("best", "second", "last"), disputed=frozenset({"response_format"}), clock=lambda: self.now)

    async def send(self, way: str) -> bytes:
        self.asked.append(way)
        if way not in self.knows:
            raise self.error(way)
        return way.encode()

    async def ask(self) -> str:
        answer, way = await self.ways.ask(self.send)
        assert answer == way.encode()
        self.ways.look(way, is_object=way not in self.passes_over)
        return way


@pytest.mark.parametrize(
    "error",
    [
        refusal(400, "'response_format' is not supported"),
        refusal(422),
        refusal(400),
        outage(404, "response_format", operators_fault=True),
        outage(500, "unsupported response_format type"),
        outage(501),
    ],
)
async def test_a_way_that_is_refused_leads_to_the_next_and_that_is_remembered(error: Failed) -> None:
    provider = Provider("last", error=lambda way: error)
    assert [await provider.ask() for _ in range(3)] == ["last"] * 3
    assert provider.asked == ["best", "second", "last", "last", "last"]


async def test_the_best_way_is_tried_again_after_an_hour() -> None:
    provider = Provider("second")
    await provider.ask()
    provider.now, provider.knows = 3_599, {"best", "second"}
    assert await provider.ask() == "second"
    provider.now = 3_600
    assert [await provider.ask(), await provider.ask()] == ["best", "best"]


@pytest.mark.parametrize(
    "error",
    [
        refusal(400, for_content=True),
        refusal(400, "the text names response_format", for_content=True),
        refusal(413),
        outage(503),
        outage(429),
        outage(404, operators_fault=True),
        outage(401, operators_fault=True),
        Failed(ModelUnavailable("no answer")),
    ],
)
async def test_what_says_nothing_about_the_way_leads_nowhere(error: Failed) -> None:
    provider = Provider("second", "last", error=lambda way: error)
    with pytest.raises(type(error.error)) as raised:
        await provider.ask()
    assert raised.value is error.error
    assert provider.asked == ["best"]


async def test_a_text_that_is_refused_by_every_way_spoils_nothing_for_the_next() -> None:
    provider = Provider(error=lambda way: refusal(400))
    with pytest.raises(Rejected):
        await provider.ask()
    provider.knows = {"best"}
    assert await provider.ask() == "best"


async def test_a_way_that_has_worked_is_not_doubted_for_a_refusal_without_a_reason() -> None:
    provider = Provider("best", "second", error=lambda way: refusal(400))
    await provider.ask()
    provider.knows = {"second"}
    with pytest.raises(Rejected):
        await provider.ask()
    assert provider.asked == ["best", "best"]


async def test_an_outage_on_the_way_down_is_an_outage_and_nothing_is_remembered() -> None:
    provider = Provider(error=lambda way: refusal(400, "response_format") if way == "best" else outage(503))
    with pytest.raises(ModelUnavailable):
        await provider.ask()
    provider.knows = {"best"}
    assert await provider.ask() == "best"


async def test_a_way_that_is_passed_over_twice_is_left() -> None:
    provider = Provider("best", "second", "last")
    provider.passes_over = {"best"}
    assert [await provider.ask() for _ in range(4)] == ["best", "best", "second", "second"]


async def test_a_way_that_has_brought_an_object_is_kept_whatever_else_it_brings() -> None:
    provider = Provider("best", "second", "last")
    await provider.ask()
    provider.passes_over = {"best"}
    assert [await provider.ask() for _ in range(4)] == ["best"] * 4


async def test_there_is_nothing_below_the_last_way() -> None:
    provider = Provider("best", "second", "last")
    provider.passes_over = {"best", "second", "last"}
    assert [await provider.ask() for _ in range(7)] == ["best"] * 2 + ["second"] * 2 + ["last"] * 3


def test_the_schema_in_words_stands_behind_what_is_stable() -> None:
    schema = AnswerSchema("facts", {"type": "object"})
    system, user = ChatMessage("system", "Stable."), ChatMessage("user", "Said.")
    told = in_words([system, ChatMessage("system", "Less."), user], schema)
    assert [message.content for message in told][::2] == ["Stable.", "Said."]
    assert told[1].content.startswith("Less.\n\n")
    assert told[1].content.endswith('JSON schema, and with nothing else:\n{"type":"object"}')
    assert [message.role for message in in_words([user], schema)] == ["system", "user"]

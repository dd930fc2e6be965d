"""What every chat model does, whichever wire it is behind and whatever forms of answer its server knows."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest
from mnemostream.turns import Reason
from typing_extensions import override

from cli.dev.model_server import Knows, Mode, ModelServer, Wire, serve
from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.anthropic.chat import AnthropicChat
from providers.anthropic.client import open_calls as open_anthropic
from providers.calls import Calls
from providers.chat import AnswerSchema, Chat, ChatMessage
from providers.circuit import Circuit, Patience
from providers.openai.chat import OpenAIChat
from providers.openai.client import open_calls as open_openai

SCHEMA = AnswerSchema(
    "facts",
    {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
        "required": ["facts"],
        "additionalProperties": False,
    },
)
ASKED = (ChatMessage("system", "You read facts."), ChatMessage("user", "I live in Lisbon."))
ANSWER = '{"facts": ["Lives in Lisbon", "日本語 {\\"x\\"} ```"]}'

Opener = Callable[..., AbstractAsyncContextManager[Calls]]
Wired = tuple[str, Opener, Callable[..., Chat], Knows]

WIRES: list[Wired] = [
    (wire, opener, chat, knows)
    for wire, opener, chat in (("chat", open_openai, OpenAIChat), ("messages", open_anthropic, AnthropicChat))
    for knows in ("json_schema", "json_object", "nothing")
]


class Watched(ModelServer):
    """A server that tells when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    @override
    def begins(self, wire: Wire) -> Mode:
        self.begun.set()
        return super().begins(wire)


class Setup:
    """A server that says `ANSWER`, and a chat model behind it."""

    def __init__(self, server: Watched, chat: Chat, wire: str, calls: Calls) -> None:
        self.server, self.chat, self.wire, self.calls = server, chat, wire, calls

    def behave(self, **behaviour: Any) -> None:
        self.server.control(msgspec.json.encode(behaviour))

    @property
    def asked(self) -> int:
        return self.server.stats.chat_calls + self.server.stats.message_calls

    @property
    def prompt(self) -> str:
        return json.dumps(self.server.last_chat, ensure_ascii=False)


Open = Callable[..., AbstractAsyncContextManager[Setup]]


@pytest.fixture(params=WIRES, ids=lambda wired: f"{wired[0]}-{wired[3]}")
def wired(request: pytest.FixtureRequest) -> Wired:
    chosen: Wired = request.param
    return chosen


@pytest.fixture
def opened(wired: Wired) -> Open:
    """A setup with other limits than those of `setup`."""
    wire, open_calls, make, knows = wired

    @contextlib.asynccontextmanager
    async def opening(
        seconds: float = 10, max_in_flight: int = 4, api_key: str | None = None, circuit: Circuit | None = None
    ) -> AsyncIterator[Setup]:
        server = Watched()
        server.control(msgspec.json.encode({"knows": knows, "script": ANSWER}))
        async with (
            serve(server) as url,
            open_calls(
                api_key=api_key,
                base_url=url,
                timeout=timedelta(seconds=seconds),
                max_in_flight=max_in_flight,
                circuit=circuit,
            ) as calls,
        ):
            yield Setup(server, make(calls, model="scripted"), wire, calls)

    return opening


@pytest.fixture
async def setup(opened: Open) -> AsyncIterator[Setup]:
    async with opened() as ready:
        yield ready


async def test_it_gives_the_answer_whole_with_its_tokens_counted(setup: Setup) -> None:
    completion = await setup.chat.complete(ASKED, SCHEMA)
    assert json.loads(completion.text) == json.loads(ANSWER)
    assert completion.whole
    seen = setup.server.stats.endpoints["messages" if setup.wire == "messages" else "chat"]
    assert (completion.tokens_in, completion.tokens_out) == (seen.tokens_in, seen.tokens_out)
    assert min(seen.tokens_in, seen.tokens_out) > 0
    assert setup.chat.model == "scripted"


async def test_the_model_is_told_the_schema_and_the_conversation(setup: Setup) -> None:
    await setup.chat.complete(ASKED, SCHEMA)
    assert "additionalProperties" in setup.prompt
    assert "You read facts." in setup.prompt
    assert "I live in Lisbon." in setup.prompt
    assert setup.server.last_chat is not None
    assert setup.server.last_chat["temperature"] == 0


async def test_what_form_the_server_takes_is_found_out_once(setup: Setup, wired: Wired) -> None:
    refused = {"json_schema": 0, "json_object": 1, "nothing": 2}[wired[3]]
    await setup.chat.complete(ASKED, SCHEMA)
    assert setup.asked == 1 + refused
    for _ in range(3):
        await setup.chat.complete(ASKED, SCHEMA)
    assert setup.asked == 4 + refused


async def test_a_second_answer_can_be_asked_for_in_the_same_conversation(setup: Setup) -> None:
    again = [*ASKED, ChatMessage("assistant", ""), ChatMessage("user", "No."), ChatMessage("user", "Answer again.")]
    assert json.loads((await setup.chat.complete(again, SCHEMA)).text)
    assert "Answer again." in setup.prompt


@pytest.mark.parametrize("wraps", ["fence", "prose"])
async def test_what_a_model_writes_around_its_json_is_taken_off(setup: Setup, wraps: str) -> None:
    plain = '{"facts": ["Lives in Lisbon"]}'
    setup.behave(wraps=wraps, script=plain)
    assert json.loads((await setup.chat.complete(ASKED, SCHEMA)).text) == json.loads(plain)


async def test_an_answer_that_is_cut_short_says_so(setup: Setup) -> None:
    setup.behave(mode="truncated")
    assert not (await setup.chat.complete(ASKED, SCHEMA)).whole


async def test_an_answer_that_is_no_json_is_given_as_text(setup: Setup) -> None:
    setup.behave(mode="garbage")
    completion = await setup.chat.complete(ASKED, SCHEMA)
    assert completion.whole
    assert completion.text.startswith("Sure!")


async def test_no_content_is_an_empty_text(setup: Setup) -> None:
    setup.behave(mode="empty")
    assert (await setup.chat.complete(ASKED, SCHEMA)).text == ""


async def test_a_refusal_is_rejected(setup: Setup) -> None:
    setup.behave(mode="refuse")
    with pytest.raises(Rejected) as rejected:
        await setup.chat.complete(ASKED, SCHEMA)
    assert rejected.value.reason is Reason.MODEL_REFUSED
    assert "Lisbon" not in str(rejected.value)


async def test_a_request_that_is_refused_for_its_content_is_rejected_and_asked_once(setup: Setup) -> None:
    await setup.chat.complete(ASKED, SCHEMA)
    for count, status in enumerate((400, 413, 422), setup.asked + 1):
        setup.behave(mode="error", status=status)
        with pytest.raises(Rejected) as rejected:
            await setup.chat.complete(ASKED, SCHEMA)
        assert rejected.value.reason is Reason.MODEL_REFUSED
        assert setup.asked == count, "a form that has worked is not doubted"


async def test_what_no_text_can_help_is_unavailable(setup: Setup) -> None:
    for status in (401, 402, 403, 404, 408, 409, 429, 500, 501, 502, 503, 504, 529):
        setup.behave(mode="answer")
        await setup.chat.complete(ASKED, SCHEMA)
        setup.behave(mode="error", status=status)
        with pytest.raises(ModelUnavailable) as away:
            await setup.chat.complete(ASKED, SCHEMA)
        assert str(status) in str(away.value)
        assert away.value.retry_after is None


async def test_the_delay_that_a_provider_names_is_passed_on(setup: Setup) -> None:
    for header, seconds in (("7", 7.0), ("0.5", 0.5)):
        setup.behave(mode="error", status=429, retry_after=header)
        with pytest.raises(ModelUnavailable) as away:
            await setup.chat.complete(ASKED, SCHEMA)
        assert away.value.retry_after == timedelta(seconds=seconds)
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=2), usegmt=True)
    setup.behave(mode="error", status=503, retry_after=date)
    with pytest.raises(ModelUnavailable) as away:
        await setup.chat.complete(ASKED, SCHEMA)
    assert away.value.retry_after is not None
    assert timedelta(seconds=60) < away.value.retry_after <= timedelta(seconds=120)


async def test_a_model_that_hangs_is_a_timeout(opened: Open) -> None:
    async with opened(seconds=2) as setup:
        await setup.chat.complete(ASKED, SCHEMA)
        setup.behave(mode="hang")
        with pytest.raises(ModelTimeout):
            await setup.chat.complete(ASKED, SCHEMA)
        setup.behave(mode="answer")
        assert (await setup.chat.complete(ASKED, SCHEMA)).text


async def test_a_closed_connection_is_unavailable(setup: Setup) -> None:
    setup.behave(mode="disconnect")
    with pytest.raises(ModelUnavailable):
        await setup.chat.complete(ASKED, SCHEMA)
    setup.behave(mode="answer")
    assert (await setup.chat.complete(ASKED, SCHEMA)).text


async def test_who_is_cancelled_leaves_no_slot_taken(opened: Open) -> None:
    async with opened(max_in_flight=1) as setup:
        setup.behave(mode="hang")
        for _ in range(3):
            setup.server.begun.clear()
            hanging = asyncio.create_task(setup.chat.complete(ASKED, SCHEMA))
            await setup.server.begun.wait()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
        setup.behave(mode="answer")
        async with asyncio.timeout(5):
            assert (await setup.chat.complete(ASKED, SCHEMA)).text


async def test_a_parameter_that_the_model_refuses_is_left_out(setup: Setup) -> None:
    setup.behave(refuses=["temperature"])
    for _ in range(2):
        assert (await setup.chat.complete(ASKED, SCHEMA)).text
    assert setup.server.last_chat is not None
    assert "temperature" not in setup.server.last_chat


async def test_no_key_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Api-Key: sk-of-somebody-else\nAuthorization: Bearer sk-of-somebody-else")
    for key in (None, "sk-given"):
        async with opened(api_key=key) as setup:
            setup.behave(key=key or "none")
            assert (await setup.chat.complete(ASKED, SCHEMA)).text


async def test_no_more_calls_are_in_flight_than_allowed(opened: Open) -> None:
    async with opened(max_in_flight=3) as setup:
        setup.behave(latency_seconds=0.01)
        await asyncio.gather(*(setup.chat.complete(ASKED, SCHEMA) for _ in range(12)))
        assert setup.server.stats.max_in_flight == 3


async def test_an_outage_is_left_alone_and_probed_by_one_call(opened: Open) -> None:
    now = 100.0
    async with opened(max_in_flight=32, circuit=Circuit(Patience(failures=5), clock=lambda: now)) as setup:
        await setup.chat.complete(ASKED, SCHEMA)
        setup.behave(mode="error", status=503)
        for _ in range(5):
            with pytest.raises(ModelUnavailable):
                await setup.chat.complete(ASKED, SCHEMA)
        asked = setup.asked
        with pytest.raises(ModelUnavailable) as left_alone:
            await setup.chat.complete(ASKED, SCHEMA)
        assert left_alone.value.retry_after is not None
        assert setup.asked == asked, "nobody touches the network"
        now += left_alone.value.retry_after.total_seconds()
        setup.behave(mode="answer", latency_seconds=0.05)
        outcomes = await asyncio.gather(
            *(setup.chat.complete(ASKED, SCHEMA) for _ in range(32)), return_exceptions=True
        )
        assert setup.asked == asked + 1
        assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 1
        assert await asyncio.gather(*(setup.chat.complete(ASKED, SCHEMA) for _ in range(32)))

"""The scripted model server as another program sees it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.dev.model_server import ModelServer, serve

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "I live in Lisbon. I love it!"}]}

IN_JSON: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Answer in JSON. I live in Lisbon."}]}
MESSAGE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "I live in Lisbon."}],
}


@pytest.fixture
def program() -> Iterator[str]:
    """The base URL of the server as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.dev.model_server", "--port", "0"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        process.stdout.close()


async def test_it_says_where_it_is_and_answers_any_http_client(program: str) -> None:
    root = program.removesuffix("/v1")
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{program}/chat/completions", json=CHAT) as answer:
            content = (await answer.json())["choices"][0]["message"]["content"]
        assert [fact["text"] for fact in json.loads(content)["facts"]] == ["I live in Lisbon.", "I love it!"]
        async with session.post(f"{root}/control", json={"mode": "error", "status": 429, "retry_after": "2"}) as answer:
            assert answer.status == 200
        async with session.post(f"{program}/chat/completions", json=CHAT) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
        async with session.get(f"{root}/stats") as answer:
            stats = await answer.json()
    assert (stats["chat_calls"], stats["failures"], stats["in_flight"], stats["max_in_flight"]) == (2, 1, 0, 1)
    chat = stats["endpoints"]["chat"]
    assert (chat["calls"], chat["failures"]) == (2, 1)
    assert (chat["tokens_in"], chat["tokens_out"]) == (stats["tokens_in"], stats["tokens_out"])
    assert stats["endpoints"]["messages"]["calls"] == stats["endpoints"]["embeddings"]["calls"] == 0


async def test_a_share_of_calls_fails_evenly() -> None:
    server = ModelServer()
    server.control(b'{"mode": "error", "rate": 0.25}')
    async with serve(server) as url, aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(8):
            async with session.post(f"{url}/chat/completions", json=CHAT) as answer:
                statuses.append(answer.status)
    assert statuses == [200, 200, 200, 503] * 2


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 3}', b'{"messages": [{}]}'])
async def test_a_request_that_is_none_is_answered_with_400(body: bytes) -> None:
    async with serve(ModelServer()) as url, aiohttp.ClientSession() as session:
        for path in ("chat/completions", "embeddings", "messages"):
            async with session.post(f"{url}/{path}", data=body) as answer:
                assert answer.status == 400


async def test_an_unknown_control_is_refused() -> None:
    async with serve(ModelServer()) as url, aiohttp.ClientSession() as session:
        async with session.post(url.removesuffix("/v1") + "/control", json={"latencyy": 1}) as answer:
            assert answer.status == 400


async def test_latency_is_waited_by_all_calls_at_once() -> None:
    server = ModelServer()
    server.control(b'{"latency_seconds": 0.1}')
    loop = asyncio.get_running_loop()
    async with serve(server) as url, aiohttp.ClientSession() as session:

        async def call() -> int:
            async with session.post(f"{url}/chat/completions", json=CHAT) as answer:
                return answer.status

        began = loop.time()
        assert await asyncio.gather(*(call() for _ in range(20))) == [200] * 20
        assert 0.1 <= loop.time() - began < 1.5
    assert server.stats.max_in_flight == 20


async def said(session: aiohttp.ClientSession, url: str, path: str, request: dict[str, Any]) -> tuple[int, Any]:
    async with session.post(f"{url}/{path}", json=request, headers={"x-api-key": "k"}) as answer:
        return answer.status, await answer.json()


async def test_it_speaks_anthropics_format_too() -> None:
    server = ModelServer()
    async with serve(server) as url, aiohttp.ClientSession() as session:
        status, plain = await said(session, url, "messages", MESSAGE)
        assert status == 200
        assert [fact["text"] for fact in json.loads(plain["content"][0]["text"])["facts"]] == ["I live in Lisbon."]
        assert plain["stop_reason"] == "end_turn"
        assert plain["usage"]["input_tokens"] == server.stats.endpoints["messages"].tokens_in > 0
        tool = {"name": "facts", "input_schema": {"type": "object"}}
        _, used = await said(session, url, "messages", MESSAGE | {"tools": [tool]})
        assert used["stop_reason"] == "tool_use"
        assert used["content"][0]["input"]["facts"][0]["text"] == "I live in Lisbon."
        server.control(b'{"mode": "error", "status": 529, "endpoints": ["messages"]}')
        status, error = await said(session, url, "messages", MESSAGE)
        assert (status, error["type"], error["error"]["type"]) == (529, "error", "overloaded_error")
        assert (await said(session, url, "chat/completions", CHAT))[0] == 200
        server.control(b'{"reset": true, "key": "another"}')
        assert (await said(session, url, "messages", MESSAGE))[0] == 401


@pytest.mark.parametrize(
    ("knows", "statuses"),
    [("json_schema", [200, 200, 200]), ("json_object", [400, 200, 200]), ("nothing", [400, 400, 200])],
)
async def test_it_refuses_forms_of_answer_that_it_does_not_know(knows: str, statuses: list[int]) -> None:
    server = ModelServer()
    server.control(json.dumps({"knows": knows}).encode())
    schema = {"type": "object", "properties": {"facts": {}}}
    formats = [{"type": "json_schema", "json_schema": {"name": "facts", "schema": schema}}, {"type": "json_object"}]
    chats: list[dict[str, Any]] = [*({**IN_JSON, "response_format": form} for form in formats), IN_JSON]
    structured = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    messages: list[dict[str, Any]] = [
        {**MESSAGE, **structured},
        {**MESSAGE, "tools": [{"name": "facts", "input_schema": schema}]},
        MESSAGE,
    ]
    async with serve(server) as url, aiohttp.ClientSession() as session:
        assert [(await said(session, url, "chat/completions", chat))[0] for chat in chats] == statuses
        assert [(await said(session, url, "messages", message))[0] for message in messages] == statuses
        no_json, error = await said(
            session, url, "chat/completions", {**CHAT, "response_format": {"type": "json_object"}}
        )
        assert no_json == 400, error


async def test_a_script_of_several_answers_is_said_in_order_and_then_left() -> None:
    server = ModelServer()
    server.control(b'{"script": ["one", "two"]}')
    async with serve(server) as url, aiohttp.ClientSession() as session:
        answers = [await said(session, url, "chat/completions", CHAT) for _ in range(3)]
    contents = [answer["choices"][0]["message"]["content"] for _, answer in answers]
    assert contents[:2] == ["one", "two"]
    assert contents[2].startswith('{"facts"')


async def test_foreign_numbers_are_out_of_every_range() -> None:
    server = ModelServer()
    judgement = {"q": 1, "m": 2, "action": "DELETE", "reason": "x", "text": ""}
    server.control(json.dumps({"mode": "foreign", "script": json.dumps({"judgements": [judgement]})}).encode())
    async with serve(server) as url, aiohttp.ClientSession() as session:
        _, answer = await said(session, url, "chat/completions", CHAT)
    (given,) = json.loads(answer["choices"][0]["message"]["content"])["judgements"]
    assert (given["q"], given["m"], given["action"]) == (1_001, 1_002, "DELETE")

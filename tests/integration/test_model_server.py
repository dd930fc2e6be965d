"""The scripted model server as another program sees it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from cli.dev.model_server import ModelServer, serve

CHAT = {"model": "m", "messages": [{"role": "user", "content": "I live in Lisbon. I love it!"}]}


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
        for path in ("chat/completions", "embeddings"):
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

"""A scripted model server: OpenAI's and Anthropic's wire formats over HTTP, deterministic, and as fast as a benchmark
needs it.

    POST /v1/chat/completions, POST /v1/embeddings, POST /v1/messages, GET /v1/models
    POST /control   {"latency_seconds": 0.5, "mode": "error", "status": 429, …}   what it does from now on
    GET  /stats     calls and tokens, together and by endpoint; calls in flight

What it can be told is in `cli.dev.scripted_model.Behaviour`, what it says in `cli.dev.scripted_answers`.

Run: `python -m cli.dev.model_server --port 0` prints {"url": …, "port": …} in one line. Loopback unless told otherwise.
"""

import argparse
import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from typing import Final, Literal, cast, get_args

import httptools
import msgspec
import uvloop
from typing_extensions import override

from cli.dev.scripted_model import Behaviour, Failure, Knows, Mode, ModelServer, Stats, Wire

__all__ = ["Behaviour", "Knows", "Mode", "ModelServer", "Stats", "Wire", "serve"]

_PHRASES: Final = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class _Connection(asyncio.Protocol):
    """One HTTP/1.1 connection. Requests of one connection are answered in order, one at a time."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False
        self._counted = False
        self._queue: list[tuple[str, bytes, str]] = []
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._body, self._key = b"", bytearray(), ""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)

    @override
    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._count(-1)

    def close(self) -> None:
        """End the connection, whatever is in flight."""
        if self._transport is not None:
            self._transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.close()

    def on_message_begin(self) -> None:
        """httptools: a request begins."""
        self._url, self._body, self._key = b"", bytearray(), ""

    def on_url(self, url: bytes) -> None:
        """httptools: a piece of the request's path."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """httptools: a header."""
        if name.lower() in (b"authorization", b"x-api-key"):
            self._key = value.decode("latin-1").removeprefix("Bearer ")

    def on_body(self, body: bytes) -> None:
        """httptools: a piece of the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """httptools: a request is whole."""
        self._queue.append((self._url.decode("latin-1"), bytes(self._body), self._key))
        self._next()

    def _next(self) -> None:
        if self._busy or not self._queue or self._transport is None:
            return
        path, body, key = self._queue.pop(0)
        path = path.partition("?")[0].rstrip("/")
        wire: Wire = "messages" if path.endswith("/messages") else "chat"
        self._busy = True
        try:
            self._handle(path, body, key)
        except Failure as failure:
            self._answer(failure.status, failure.body(wire))
        except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
            refused = Failure(400, f"{type(error).__name__}: {error}", "invalid_request")
            self._answer(400, refused.body(wire))

    def _handle(self, path: str, body: bytes, key: str) -> None:
        server, behaviour = self._server, self._server.behaviour
        if path == "/control":
            server.control(body)
            return self._answer(200, msgspec.json.encode(server.behaviour))
        if path == "/stats":
            return self._answer(200, msgspec.json.encode(server.stats))
        self._count(1)
        if behaviour.key is not None and key != behaviour.key:
            raise Failure(401, "Incorrect API key provided.", "invalid_api_key")
        if path.endswith("/models"):
            return self._answer(200, msgspec.json.encode({"object": "list", "data": []}))
        wire = _wire(path)
        mode = server.begins(wire)
        if mode == "hang":
            return None
        if mode == "disconnect":
            return self.close()
        delay = behaviour.embedding_latency_seconds if wire == "embeddings" else behaviour.latency_seconds
        status, answer = 200, b""
        if mode == "error":
            status = behaviour.status
            answer = Failure(status, behaviour.message, behaviour.code, behaviour.param).body(wire)
        else:
            answer = server.answer(wire, body, mode)
        if delay > 0:
            self._timer = self._loop.call_later(delay, self._answer, status, answer)
            return None
        return self._answer(status, answer)

    def _answer(self, status: int, body: bytes) -> None:
        if self._transport is None:
            return
        retry_after = self._server.behaviour.retry_after
        extra = f"retry-after: {retry_after}\r\n" if status >= 400 and retry_after is not None else ""
        head = (
            f"HTTP/1.1 {status} {_PHRASES.get(status, 'Error')}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n{extra}\r\n"
        )
        self._transport.write(head.encode("latin-1") + body)
        self._timer, self._busy = None, False
        self._count(-1)
        self._next()

    def _count(self, change: Literal[1, -1]) -> None:
        """Keep `in_flight`: of model calls, not of those that control."""
        if (change == 1) != self._counted:
            self._counted = change == 1
            stats = self._server.stats
            stats.in_flight += change
            stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)


def _wire(path: str) -> Wire:
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/embeddings"):
        return "embeddings"
    if path.endswith("/messages"):
        return "messages"
    raise Failure(404, "no such endpoint", None)


@contextlib.asynccontextmanager
async def serve(server: ModelServer, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve on `port` (0: any free one), and give the base URL for `MNEMO_OPENAI_BASE_URL` or
    `MNEMO_ANTHROPIC_BASE_URL`."""
    listener = await asyncio.get_running_loop().create_server(lambda: _Connection(server), host, port, backlog=1024)
    try:
        yield f"http://{host}:{listener.sockets[0].getsockname()[1]}/v1"
    finally:
        listener.close()
        for connection in list(server.connections):
            connection.close()
        await listener.wait_closed()


async def run(host: str, port: int, behaviour: Behaviour) -> None:
    """Serve until SIGTERM or SIGINT, after one line of JSON that says where."""
    stopped = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stopped.set)
    async with serve(ModelServer(behaviour), host=host, port=port) as url:
        print(json.dumps({"url": url, "port": int(url.rsplit(":", 1)[1].removesuffix("/v1"))}), flush=True)
        await stopped.wait()


def main() -> None:
    """`python -m cli.dev.model_server`"""
    parser = argparse.ArgumentParser(
        description="A scripted model server that speaks OpenAI's and Anthropic's wire formats."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (printed)")
    parser.add_argument("--latency-seconds", type=float, default=0.0)
    parser.add_argument("--embedding-latency-seconds", type=float, default=0.0)
    parser.add_argument("--knows", default="json_schema", choices=get_args(Knows), help="forms of answer that it takes")
    given = parser.parse_args()
    behaviour = Behaviour(
        latency_seconds=given.latency_seconds,
        embedding_latency_seconds=given.embedding_latency_seconds,
        knows=given.knows,
    )
    uvloop.run(run(given.host, given.port, behaviour))


if __name__ == "__main__":
    main()

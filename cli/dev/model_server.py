"""A scripted model server: OpenAI's wire format over HTTP, deterministic, and as fast as a benchmark needs it.

    POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models
    POST /control   {"latency_seconds": 0.5, "mode": "error", "status": 429, …}   what it does from now on
    GET  /stats     calls, tokens, calls in flight

Run: `python -m cli.dev.model_server --port 0` prints {"url": …, "port": …} in one line. Loopback unless told otherwise.
"""

import argparse
import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal, cast

import httptools
import msgspec
import uvloop
from msgspec import Meta
from typing_extensions import override

from cli.dev.scripted_answers import scripted_answer, scripted_vector, scripted_vector_base64

Mode = Literal["answer", "error", "garbage", "truncated", "invalid", "empty", "refuse", "hang", "disconnect"]

_PHRASES: Final = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Behaviour(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the server does. `/control` sets what it names and leaves the rest."""

    latency_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Of chat completions."""
    embedding_latency_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    mode: Mode = "answer"
    """Other than `answer`: an error status; text that is no JSON; JSON that ends in the middle; JSON that breaks the
    schema; no content; a refusal; no answer at all; a closed connection."""
    rate: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The share of calls that `mode` applies to, spread evenly."""
    calls: Annotated[int, Meta(ge=0)] | None = None
    """After this many calls back to `answer`; None: until told."""
    endpoints: tuple[Literal["chat", "embeddings"], ...] = ("chat", "embeddings")
    """Where `mode` applies."""
    status: Annotated[int, Meta(ge=400, le=599)] = 503
    code: str | None = None
    param: str | None = None
    """The error object's fields, for `mode` error."""
    retry_after: str | None = None
    """The header, for `mode` error."""
    refuses: list[str] = []
    """Parameters that a request may not have (`temperature`): 400 unsupported_parameter."""
    dimensions: int | None = None
    """Of vectors, whatever is asked for. None: as asked, else 1536."""
    script: str | None = None
    """The content of every chat completion. None: see `scripted_answers`."""
    key: str | None = None
    """The API key that requests must carry. None: any, or none."""


class Stats(msgspec.Struct, kw_only=True):
    """What came in since the start, or since `/control` was told {"reset": true}."""

    chat_calls: int = 0
    embedding_calls: int = 0
    embedded_texts: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    in_flight: int = 0
    max_in_flight: int = 0


class _Failure(Exception):
    def __init__(self, status: int, message: str, code: str | None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "scripted", "code": code, "param": param}}


class ModelServer:
    """The state that all connections share."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.stats = Stats()
        self.last_chat: dict[str, Any] | None = None
        self.connections: set[_Connection] = set()
        self._spread = 0.0

    def control(self, body: bytes) -> None:
        """Apply a `/control` request. Raises msgspec's errors where it names something unknown."""
        change = msgspec.json.decode(body, type=dict[str, Any])
        if change.pop("reset", False):
            self.behaviour, self.stats, self._spread = Behaviour(), Stats(in_flight=self.stats.in_flight), 0.0
        self.behaviour = msgspec.convert({**msgspec.to_builtins(self.behaviour), **change}, Behaviour)

    def misbehaves(self, endpoint: Literal["chat", "embeddings"]) -> bool:
        """Whether `mode` applies to this call, counting it."""
        behaviour = self.behaviour
        if behaviour.mode == "answer" or endpoint not in behaviour.endpoints or behaviour.calls == 0:
            return False
        self._spread += behaviour.rate
        if self._spread < 1:
            return False
        self._spread -= 1
        if behaviour.calls is not None:
            behaviour.calls -= 1
        self.stats.failures += 1
        return True

    def chat(self, body: bytes, mode: Mode) -> bytes:
        """A chat completion."""
        request = msgspec.json.decode(body)
        self._refuse(request)
        self.last_chat = request
        content: str | None = self.behaviour.script
        if content is None:
            content = scripted_answer([message["content"] for message in request["messages"]])
        finish, refusal = "stop", None
        match mode:
            case "garbage":
                content = "Sure! Here are the facts you asked for: <facts>"
            case "truncated":
                content, finish = content[: max(1, len(content) // 2)], "length"
            case "invalid":
                content = '{"facts": [{"text": "no other field"}]}'
            case "empty":
                content = None
            case "refuse":
                content, refusal = None, "I cannot help with that."
            case _:
                pass
        tokens_in, tokens_out = len(body) // 4, len(content or "") // 4
        self.stats.tokens_in += tokens_in
        self.stats.tokens_out += tokens_out
        message = {"role": "assistant", "content": content, "refusal": refusal}
        return msgspec.json.encode(
            {
                "id": f"chatcmpl-{self.stats.chat_calls}",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
                "usage": {
                    "prompt_tokens": tokens_in,
                    "completion_tokens": tokens_out,
                    "total_tokens": tokens_in + tokens_out,
                },
            }
        )

    def embeddings(self, body: bytes, mode: Mode) -> bytes:
        """Vectors, as floats or base64."""
        request = msgspec.json.decode(body)
        self._refuse(request)
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        dimensions = self.behaviour.dimensions or request.get("dimensions") or 1536
        tokens = len(body) // 4
        self.stats.embedded_texts += len(texts)
        self.stats.tokens_in += tokens
        if mode == "garbage":
            return b"<html>not a model</html>"
        vectors: list[Any]
        if request.get("encoding_format") == "base64":
            vectors = [scripted_vector_base64(text, dimensions) for text in texts]
        else:
            vectors = [memoryview(scripted_vector(text, dimensions)).cast("f").tolist() for text in texts]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        if mode in ("truncated", "empty", "invalid"):
            data = data[:-1]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return msgspec.json.encode({"object": "list", "data": data, "model": request["model"], "usage": usage})

    def _refuse(self, request: dict[str, Any]) -> None:
        for name in self.behaviour.refuses:
            if name in request:
                raise _Failure(400, f"Unsupported parameter: '{name}'", "unsupported_parameter", name)


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
        if name.lower() == b"authorization":
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
        self._busy = True
        try:
            self._handle(path.partition("?")[0].rstrip("/"), body, key)
        except _Failure as failure:
            self._answer(failure.status, msgspec.json.encode(failure.body))
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            refused = _Failure(400, f"{type(error).__name__}: {error}", "invalid_request")
            self._answer(400, msgspec.json.encode(refused.body))

    def _handle(self, path: str, body: bytes, key: str) -> None:
        server, behaviour = self._server, self._server.behaviour
        if path == "/control":
            server.control(body)
            return self._answer(200, msgspec.json.encode(server.behaviour))
        if path == "/stats":
            return self._answer(200, msgspec.json.encode(server.stats))
        self._count(1)
        if behaviour.key is not None and key != behaviour.key:
            raise _Failure(401, "Incorrect API key provided.", "invalid_api_key")
        if path.endswith("/models"):
            return self._answer(200, msgspec.json.encode({"object": "list", "data": []}))
        if path.endswith("/chat/completions"):
            server.stats.chat_calls += 1
            bad, delay, make = server.misbehaves("chat"), behaviour.latency_seconds, server.chat
        elif path.endswith("/embeddings"):
            server.stats.embedding_calls += 1
            bad, delay, make = server.misbehaves("embeddings"), behaviour.embedding_latency_seconds, server.embeddings
        else:
            raise _Failure(404, "no such endpoint", None)
        mode = behaviour.mode if bad else "answer"
        if mode == "hang":
            return None
        if mode == "disconnect":
            return self.close()
        status, answer = 200, b""
        if mode == "error":
            status = behaviour.status
            answer = msgspec.json.encode(_Failure(status, "scripted", behaviour.code, behaviour.param).body)
        else:
            answer = make(body, mode)
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


@contextlib.asynccontextmanager
async def serve(server: ModelServer, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve on `port` (0: any free one), and give the base URL for `MNEMO_OPENAI_BASE_URL`."""
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
    parser = argparse.ArgumentParser(description="A scripted model server that speaks OpenAI's wire format.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (printed)")
    parser.add_argument("--latency-seconds", type=float, default=0.0)
    parser.add_argument("--embedding-latency-seconds", type=float, default=0.0)
    given = parser.parse_args()
    behaviour = Behaviour(
        latency_seconds=given.latency_seconds, embedding_latency_seconds=given.embedding_latency_seconds
    )
    uvloop.run(run(given.host, given.port, behaviour))


if __name__ == "__main__":
    main()

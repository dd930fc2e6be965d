"""The HTTP port: JSON by POST, Connect and gRPC-Web, as one ASGI application."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from connectrpc.interceptor import MetadataInterceptor
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication, Endpoint
from typing_extensions import override

from query.auth import CALLER
from query.codec import BinaryCodec, JsonCodec
from query.gate import Gate, Passage
from query.service import SERVICE, AnyMethod, Streaming

MAX_BODY_BYTES: Final = 4 * 1024 * 1024

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_GRPC_WEB: Final = (b"application/grpc-web", b"application/grpc-web+proto", b"application/grpc-web+json")
_UNARY: Final = frozenset({b"application/json", b"application/proto", *_GRPC_WEB})
_STREAMS: Final = frozenset({b"application/connect+json", b"application/connect+proto", *_GRPC_WEB})


def application(gate: Gate, methods: Iterable[AnyMethod]) -> Application:
    """Everything that is served on the HTTP port. What is no call of a method is answered with a body that says so."""
    served = {f"/{SERVICE}/{method.name}": method for method in methods}
    rpc: Any = _Rpc(
        service=None,
        endpoints=lambda _: {path: _endpoint(method) for path, method in served.items()},
        interceptors=[_Door(gate)],
        read_max_bytes=MAX_BODY_BYTES,
        codecs=[JsonCodec(), BinaryCodec()],
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await rpc(scope, receive, send)
        elif scope["path"] not in served:
            await _answer(send, HTTPStatus.NOT_FOUND, "unimplemented", "there is no such method")
        elif scope["method"] != "POST":
            await _answer(
                send, HTTPStatus.METHOD_NOT_ALLOWED, "unimplemented", "methods are called by POST", allow=b"POST"
            )
        elif (wrong := _wrong_type(_content_type(scope), served[scope["path"]])) is not None:
            await _answer(send, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "invalid_argument", wrong)
        else:
            await rpc(scope, receive, send)

    return serve


class _Rpc(ConnectASGIApplication[None]):
    @property
    @override
    def path(self) -> str:
        return f"/{SERVICE}"


class _Door(MetadataInterceptor[Passage]):
    """Leads every call on this port through the gate, before its body is read."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @override
    async def on_start(self, ctx: RequestContext[Any, Any]) -> Passage:
        passage = self._gate.begin(ctx.method.name)
        try:
            await self._gate.admit(passage, ctx.request_headers.get("authorization"))
        except Exception as error:  # noqa: BLE001 (each becomes what the caller is told)
            raise self._gate.leave(passage, error) or error from None
        return passage

    @override
    async def on_end(self, token: Passage, ctx: RequestContext[Any, Any], error: Exception | None, /) -> None:
        told = self._gate.leave(token, error)
        if told is not None and told is not error:
            raise told from None


def _endpoint(method: AnyMethod) -> Any:
    info = MethodInfo(
        name=method.name,
        service_name=SERVICE,
        input=method.request,
        output=method.response,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=StreamType.SERVER_STREAM if isinstance(method, Streaming) else StreamType.UNARY,
    )
    if isinstance(method, Streaming):
        return Endpoint.server_stream(info, lambda request, _: method.handle(request, CALLER.get()))

    async def call(request: Any, _: RequestContext[Any, Any]) -> Any:
        return await method.handle(request, CALLER.get())

    return Endpoint.unary(info, call)


def _wrong_type(given: bytes, method: AnyMethod) -> str | None:
    """What is wrong with a content type; None where nothing is."""
    if isinstance(method, Streaming):
        if given in _STREAMS:
            return None
        return "a stream: the content type must be application/connect+json, application/connect+proto or grpc-web"
    if given in _UNARY:
        return None
    return "the content type must be application/json, application/proto or application/grpc-web+proto"


def _content_type(scope: Scope) -> bytes:
    """The content type without its parameters; headers that are no ASCII are dropped, since nothing here reads them."""
    headers = scope["headers"]
    if not all(value.isascii() for _, value in headers):
        scope["headers"] = headers = [(name, value) for name, value in headers if value.isascii()]
    for name, value in headers:
        if name == b"content-type":
            kind: bytes = value.partition(b";")[0].strip().lower()
            return kind
    return b""


async def _answer(send: Send, status: HTTPStatus, code: str, message: str, *, allow: bytes | None = None) -> None:
    """An error in the form that Connect gives errors."""
    headers = [(b"content-type", b"application/json")]
    if allow is not None:
        headers.append((b"allow", allow))
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"code": code, "message": message}).encode()})

"""The port for stock gRPC clients: grpc.aio with the same messages and handlers, health and reflection."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import grpc
import grpc.aio
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import descriptor_pool  # type: ignore[import-untyped] # no stubs are installed
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2
from mnemostream.v1 import memory_service_pb
from mnemostream.v1.google.rpc import error_details_pb
from mnemostream.v1.google.rpc.status_pb import Status
from protobuf import DescFile, Message
from protobuf.wkt import Any as AnyMessage

from query.asgi import MAX_BODY_BYTES
from query.auth import CALLER
from query.codec import read_binary
from query.gate import Gate
from query.service import SERVICE, AnyMethod, Method, Streaming

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_BODY_BYTES),
    ("grpc.so_reuseport", 0),
    # Clients that keep a connection alive by pings are no nuisance.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)
_STATUS: Final = {code: getattr(grpc.StatusCode, "CANCELLED" if code is Code.CANCELED else code.name) for code in Code}
_DETAILS: Final = "grpc-status-details-bin"

Context = grpc.aio.ServicerContext[Any, Any]


class GrpcPort:
    """The gRPC server of one process, on the running loop."""

    def __init__(self, gate: Gate, methods: Iterable[AnyMethod]) -> None:
        self._server = grpc.aio.server(options=_OPTIONS)
        handlers = {method.name: _handler(gate, method) for method in methods}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined] # the stubs know no aio
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server, descriptors())

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port, which is a free one where 0 was asked for. Raises OSError when it is taken."""
        try:
            bound: int = self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError as error:
            raise OSError(f"the gRPC port {port} cannot be bound") from error
        await self._server.start()
        for service in ("", SERVICE):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        return bound

    async def stop(self, grace_seconds: float) -> None:
        """Take no more calls, and let those under way finish."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_seconds)


def descriptors() -> descriptor_pool.DescriptorPool:
    """What reflection tells of: this service, its errors, health, and reflection itself."""
    pool = descriptor_pool.DescriptorPool()
    for file in _in_order([memory_service_pb.desc(), error_details_pb.desc()]):
        pool.AddSerializedFile(file.proto.to_binary())
    for module in (health_pb2, reflection_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    return pool


def _in_order(files: Sequence[DescFile], seen: dict[str, DescFile] | None = None) -> Iterable[DescFile]:
    """`files` and what they import, each once, imports first."""
    known = seen if seen is not None else {}
    for file in files:
        _in_order(file.dependencies, known)
        known.setdefault(file.name, file)
    return known.values()


def _handler(gate: Gate, method: AnyMethod) -> Any:
    """The method for grpc.aio. It takes raw bytes: the library answers what it cannot read with INTERNAL."""
    if isinstance(method, Streaming):
        behaviour = _streaming(gate, method)
        return grpc.unary_stream_rpc_method_handler(behaviour, response_serializer=_to_binary)
    return grpc.unary_unary_rpc_method_handler(_unary(gate, method), response_serializer=_to_binary)


def _unary(gate: Gate, method: Method[Any, Any]) -> Callable[[bytes, Context], Awaitable[Any]]:
    async def call(data: bytes, context: Context) -> Any:
        async with _passed(gate, method.name, context):
            return await method.handle(read_binary(data, method.request), CALLER.get())

    return call


def _streaming(gate: Gate, method: Streaming[Any, Any]) -> Callable[[bytes, Context], Awaitable[None]]:
    async def call(data: bytes, context: Context) -> None:
        async with (
            _passed(gate, method.name, context),
            aclosing(method.handle(read_binary(data, method.request), CALLER.get())) as answers,
        ):
            async for answer in answers:
                await context.write(answer)

    return call


@asynccontextmanager
async def _passed(gate: Gate, method: str, context: Context) -> AsyncIterator[None]:
    """Through the gate and back; what goes wrong inside becomes what the caller is told."""
    passage = gate.begin(method)
    told: ConnectError | None
    try:
        await gate.admit(passage, _authorization(context))
        yield
    except asyncio.CancelledError:
        gate.count(passage, Code.DEADLINE_EXCEEDED if _too_late(context) else Code.CANCELED)
        raise
    except Exception as error:  # noqa: BLE001 (each becomes what the caller is told)
        told = gate.leave(passage, error)
    else:
        told = gate.leave(passage, None)
    if told is not None:
        await context.abort(_STATUS[told.code], told.message, ((_DETAILS, _status(told)),))


def _authorization(context: Context) -> str | None:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            return value if isinstance(value, str) else None
    return None


def _too_late(context: Context) -> bool:
    left: float | None = context.time_remaining()
    return (math.inf if left is None else left) <= 0


def _status(told: ConnectError) -> bytes:
    details = [
        AnyMessage(type_url=f"type.googleapis.com/{detail.type_name}", value=detail.message_bytes)
        for detail in told.details
    ]
    return Status(code=_STATUS[told.code].value[0], message=told.message, details=details).to_binary()


def _to_binary(message: Message) -> bytes:
    return message.to_binary()

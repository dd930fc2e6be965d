"""The two ports of the service on one loop: HTTP (JSON, Connect, gRPC-Web) by uvicorn, and native gRPC."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from typing_extensions import override

from query.asgi import Application
from query.grpc_port import GrpcPort

_KEEP_ALIVE_SECONDS: Final = 75
_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class Listening:
    """Where calls are taken."""

    http_port: int
    grpc_port: int


class Ports:
    """Both ports. `drain_seconds`: how long calls under way may go on when it stops."""

    def __init__(self, application: Application, grpc_port: GrpcPort, *, drain_seconds: float) -> None:
        self._grpc = grpc_port
        self._drain_seconds = drain_seconds
        application_: Any = application  # uvicorn types ASGI by its own TypedDicts
        self._http = _HttpServer(
            uvicorn.Config(
                application_,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=max(1, round(drain_seconds)),
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self, *, http: tuple[str, int], grpc: tuple[str, int]) -> Listening:
        """Listen on both; port 0 is any free one. Raises OSError when one is taken."""
        listener = _listener(*http)
        try:
            grpc_port = await self._grpc.start(*grpc)
        except OSError:
            listener.close()
            raise
        self._serving = asyncio.create_task(self._http.serve([listener]), name="http-port")
        return Listening(listener.getsockname()[1], grpc_port)

    async def broken(self) -> bool:
        """True, but only when the HTTP port ends by itself, which it should not."""
        assert self._serving is not None
        await asyncio.wait([self._serving])
        return True

    async def stop(self) -> None:
        """Take no more calls, and let those under way finish."""
        self._http.should_exit = True
        ends = [self._grpc.stop(self._drain_seconds)]
        if self._serving is not None:
            ends.append(_finished(self._serving))
        await asyncio.gather(*ends)


class _HttpServer(uvicorn.Server):
    @contextlib.contextmanager
    @override
    def capture_signals(self) -> Iterator[None]:
        """Signals are for the composition root."""
        yield


async def _finished(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


def _listener(host: str, port: int) -> socket.socket:
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    listener.listen(_BACKLOG)  # so that who is told the port can connect at once
    listener.setblocking(False)
    return listener

"""The operations endpoint of a process: `/healthz`, `/readyz`, `/metrics`, in a thread of its own.

Health is the heartbeat of the event loop, never a broker's or a database's reachability: a restart heals neither.
Readiness is what the process needs for its work.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from typing_extensions import override

_log = structlog.get_logger(__name__)

_CLIENT_SECONDS: Final = 5.0
"""A client that sends nothing for so long is dropped."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `detail` is shown: no text of anybody, no secret."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at; good when all of it is."""

    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every check is good. Nothing to check is good."""
        return all(check.ok for check in self.checks)


Health = Report
"""Whether the process should go on living."""

Readiness = Report
"""Whether the process can do its work now."""


class Heartbeat:
    """Beats on an event loop each second, so that another thread can tell whether the loop still turns."""

    def __init__(
        self,
        *,
        every_seconds: float = 1.0,
        stale_after_seconds: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_seconds = every_seconds
        self._stale_after_seconds = stale_after_seconds
        self._clock = clock
        self._beat_at = clock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to beat on the running loop."""
        self.beat()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="heartbeat")

    async def stop(self) -> None:
        """Beat no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def beat(self) -> None:
        """The loop turns."""
        self._beat_at = self._clock()

    def check(self) -> Check:
        """Whether the last beat is young enough. From any thread."""
        age = self._clock() - self._beat_at
        return Check("event_loop", age <= self._stale_after_seconds, f"last beat {age:.1f} s ago")

    def health(self) -> Health:
        """The heartbeat as the whole of a process's health."""
        return Health((self.check(),))

    async def _run(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(self._every_seconds)


class OpsServer:
    """Serves health, readiness and metrics. `health` and `ready` are called in its threads and must not wait."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        registry: CollectorRegistry,
        health: Callable[[], Health],
        ready: Callable[[], Readiness],
    ) -> None:
        self._address = (host, port)
        self._handler = type(
            "Handler", (_Handler,), {"registry": registry, "reports": {"/healthz": health, "/readyz": ready}}
        )
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Listen; gives the port, which is a free one where 0 was asked for. Raises OSError when it is taken."""
        self._server = _Server(self._address, self._handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="ops", daemon=True)
        self._thread.start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        """Stop listening. Again does nothing."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        self._server = self._thread = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    @override
    def server_bind(self) -> None:
        # Not HTTPServer's: it asks the name service who we are, which may take seconds.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("ops_connection_failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    registry: ClassVar[CollectorRegistry]
    reports: ClassVar[dict[str, Callable[[], Report]]]
    timeout: ClassVar[float] = _CLIENT_SECONDS
    server_version = "mnemo"
    sys_version = ""

    def do_GET(self) -> None:
        """One of the three pages."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, encode(self.registry))
        elif path in self.reports:
            self._report(self.reports[path])
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"/healthz, /readyz, /metrics\n")

    def do_HEAD(self) -> None:
        """The same without the body."""
        self.do_GET()

    def _report(self, look: Callable[[], Report]) -> None:
        try:
            report = look()
        except Exception as error:  # noqa: BLE001 (a check that fails is an answer: not good)
            _log.error("ops_check_failed", exc_info=error)
            report = Report((Check("check", ok=False, detail=type(error).__name__),))
        status = HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE
        checks = {check.name: {"ok": check.ok, "detail": check.detail} for check in report.checks}
        body = json.dumps({"ok": report.ok, "checks": checks}) + "\n"
        self._answer(status, "application/json", body.encode())

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: probes and scrapes come every few seconds."""

"""A command line in a clean environment, and a query service that answers what a test says."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No MNEMO_ of the machine, and no embedded system that happens to run on it."""
    for name in [name for name in os.environ if name.startswith("MNEMO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMO_DATA_DIR", str(tmp_path / "nothing-runs-here"))


@pytest.fixture
def mnemo() -> Callable[..., Result]:
    """Runs `mnemo` with these arguments; stdout is no terminal."""

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return run


@dataclass
class FakeService:
    """What was asked, and what is answered by method: a body, or a status with one."""

    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, request: dict[str, Any]) -> tuple[int, Any]:
        """The status and body for a request."""
        given = self.answers[method]
        if callable(given):
            given = given(request)
        return given if isinstance(given, tuple) else (200, given)


@contextmanager
def _served(service: FakeService) -> Iterator[FakeService]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            streams = self.headers["Content-Type"] == "application/connect+json"
            body = json.loads(sent[5:] if streams else sent)
            method = self.path.rpartition("/")[2]
            service.requests.append((method, body, self.headers["Authorization"]))
            status, answer = service.answer(method, body)
            raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    """A query service that the settings point to, with a key and an owner."""
    with _served(FakeService()) as fake:
        monkeypatch.setenv("MNEMO_URL", fake.url)
        monkeypatch.setenv("MNEMO_API_KEY", "mnk_test")
        monkeypatch.setenv("MNEMO_OWNER", "ana")
        yield fake

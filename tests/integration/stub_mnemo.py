"""Stands for the command line in tests of what supervises it: the same words, ready at once, and no memory at all.

Each call is noted as a line of JSON in `calls.jsonl` of the data directory.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        known = self.headers["Authorization"] in ("Bearer mnk_stub_1", "Bearer mnk_stub_2")
        if known:
            self._answer(200, {"memories": []})
        else:
            self._answer(401, {"code": "unauthenticated"})

    def _answer(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    @override
    def log_message(self, *args: Any) -> None:
        pass


def serve(*ports: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    servers = [ThreadingHTTPServer(("127.0.0.1", int(os.environ[port])), Handler) for port in ports]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    signal.sigwait({signal.SIGTERM})


def main() -> None:
    calls = Path(os.environ["MNEMO_DATA_DIR"]) / "calls.jsonl"
    made = calls.read_text().count('"keys"') if calls.exists() else 0
    ours = {name: value for name, value in os.environ.items() if name.startswith(("MNEMO_", "OPENAI_", "PG"))}
    with calls.open("a") as file:
        file.write(json.dumps({"arguments": sys.argv[1:], "environment": ours}) + "\n")
    match sys.argv[1:]:
        case ["worker"]:
            serve("MNEMO_OPS_PORT")
        case ["query"]:
            serve("MNEMO_OPS_PORT", "MNEMO_QUERY_PORT")
        case ["keys", "create", "--app", app, "--json"]:
            print(json.dumps({"key": f"mnk_stub_{made + 1}", "app": app}))
        case ["topics"] if "STUB_FAILS" in os.environ:
            print("mnemo: no topics today", file=sys.stderr)
            sys.exit(3)


main()

"""Raw requests to the HTTP port: what curl, a Connect client and a gRPC-Web client send."""

import base64
import http.client
import json
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mnemostream.v1.google.rpc.status_pb import Status
from protobuf import Message

PATH = "/mnemostream.v1.MemoryService/"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def request(
    port: int, path: str, body: bytes, *, kind: str = "application/json", method: str = "POST", **headers: str
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"content-type": kind, **sent} if kind else sent)
        answer = connection.getresponse()
        return Answer(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def call(port: int, key: str | None, method: str, body: Any, **headers: str) -> Answer:
    """As curl does: JSON by POST."""
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return request(port, PATH + method, body if isinstance(body, bytes) else json.dumps(body).encode(), **headers)


def call_connect(port: int, key: str, method: str, message: Message, kind: type[Message]) -> Message:
    """As a Connect client does: binary by POST."""
    answer = request(
        port,
        PATH + method,
        message.to_binary(),
        kind="application/proto",
        authorization=f"Bearer {key}",
        connect_protocol_version="1",
    )
    assert answer.status == 200, answer.body
    return kind.from_binary(answer.body)


def call_grpc_web(port: int, key: str, method: str, message: Message) -> tuple[bytes | None, dict[str, str]]:
    """As a browser with gRPC-Web does: the answer's bytes, and the trailers."""
    body = message.to_binary()
    answer = request(
        port,
        PATH + method,
        struct.pack(">BI", 0, len(body)) + body,
        kind="application/grpc-web+proto",
        authorization=f"Bearer {key}",
        x_grpc_web="1",
    )
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/grpc-web")
    payload, trailers, rest = None, dict(answer.headers), answer.body
    while rest:
        flag, length = struct.unpack(">BI", rest[:5])
        frame, rest = rest[5 : 5 + length], rest[5 + length :]
        if flag & 0x80:
            pairs = (line.split(":", 1) for line in frame.decode().splitlines())
            trailers.update({name.strip().lower(): unquote(value.strip()) for name, value in pairs})
        else:
            payload = frame
    return payload, trailers


def grpc_web_status(trailers: dict[str, str]) -> Status:
    """The status with its details."""
    encoded = trailers["grpc-status-details-bin"]
    return Status.from_binary(base64.b64decode(encoded + "=" * (-len(encoded) % 4)))

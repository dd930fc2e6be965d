"""Asking the query service the way curl does: JSON by POST. The answer is the RPC's JSON, untouched."""

import http.client
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from cli.failures import UNAVAILABLE, CommandFailed, NotAvailable, UsageProblem

SERVICE: Final = "mnemostream.v1.MemoryService"
_URL_RULE: Final = "MNEMO_URL: must be http://host:port or https://host:port"
_MARGIN_SECONDS: Final = 10.0
"""Beyond what the call itself may wait."""
_END: Final = 2
"""The flag of a stream's last frame, which tells how it ended."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A query service, and the key that says which app asks."""

    url: str
    api_key: str = field(repr=False)


class CallFailed(CommandFailed):
    """The service answered with an error: its code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(_ADVICE.get(code, "{message}").format(message=message or code))
        self.code = code
        if code == "unavailable":
            self.exit_code = UNAVAILABLE


_ADVICE: Final = {
    "unauthenticated": "the API key is not accepted: check MNEMO_API_KEY (`mnemo keys list` shows those in use)",
    "permission_denied": "this API key may not do that: {message}",
    "not_found": "not found: {message}",
    "invalid_argument": "not accepted: {message}",
    "unavailable": "the query service cannot answer now: {message}",
}


def call(endpoint: Endpoint, method: str, request: dict[str, Any], *, wait_seconds: float = 20.0) -> dict[str, Any]:
    """The answer of `method` to `request`. None values in the request are left out.

    wait_seconds: what the call itself may take. Raises CallFailed, NotAvailable.
    """
    body = json.dumps({name: value for name, value in request.items() if value is not None}).encode()
    with _posted(endpoint, method, body, "application/json", wait_seconds) as response:
        status, answer = response.status, response.read()
    return _read(status, answer)


def stream(
    endpoint: Endpoint, method: str, request: dict[str, Any], *, wait_seconds: float = 20.0
) -> Iterator[dict[str, Any]]:
    """The messages that `method` answers to `request`, one by one.

    wait_seconds: what the next one may take. Raises CallFailed, NotAvailable: also in the middle, where it breaks off.
    """
    body = json.dumps(request).encode()
    frame = struct.pack(">BI", 0, len(body)) + body
    with _posted(endpoint, method, frame, "application/connect+json", wait_seconds) as response:
        if response.status != http.client.OK:
            _read(response.status, response.read())
            raise CallFailed("unknown", "the answer is no stream")
        while True:
            flags, length = struct.unpack(">BI", _exactly(response, 5))
            message = json.loads(_exactly(response, length) or b"{}")
            if flags & _END:
                error = message.get("error")
                if error:
                    raise CallFailed(str(error.get("code", "unknown")), str(error.get("message", "")))
                return
            yield message


@contextmanager
def _posted(
    endpoint: Endpoint, method: str, body: bytes, kind: str, wait_seconds: float
) -> Iterator[http.client.HTTPResponse]:
    """The response to a POST. Raises NotAvailable where nobody answers, or the answer breaks off."""
    try:
        address = urlsplit(endpoint.url)
        port = address.port
    except ValueError:  # of a port that is no number, or half an IPv6 address
        raise UsageProblem(_URL_RULE) from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageProblem(_URL_RULE)
    protocol = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = protocol(address.hostname, port, timeout=wait_seconds + _MARGIN_SECONDS)
    headers = {"Content-Type": kind, "Authorization": f"Bearer {endpoint.api_key}"}
    try:
        connection.request("POST", f"{address.path.rstrip('/')}/{SERVICE}/{method}", body, headers)
        yield connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        place = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        what = "no answer in time" if isinstance(error, TimeoutError) else "nobody answers"
        if isinstance(error, http.client.IncompleteRead):
            raise NotAvailable(f"the answer of {place} broke off: try again") from None
        raise NotAvailable(f"{what} at {place}: is it running? (`mnemo up`, or set MNEMO_URL)") from None
    finally:
        connection.close()


def _exactly(response: http.client.HTTPResponse, length: int) -> bytes:
    data = response.read(length)
    if len(data) < length:
        raise http.client.IncompleteRead(data, length - len(data))
    return data


def _read(status: int, answer: bytes) -> dict[str, Any]:
    try:
        read = json.loads(answer)
    except ValueError:
        read = None
    if status == http.client.OK and isinstance(read, dict):
        return read
    if isinstance(read, dict) and isinstance(read.get("code"), str):
        raise CallFailed(read["code"], str(read.get("message", "")))
    if status in (502, 503, 504):
        raise NotAvailable(f"the query service is not available (HTTP {status})")
    raise CallFailed("unknown", f"what answers there is not a query service (HTTP {status})")

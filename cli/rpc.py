"""Asking the query service the way curl does: JSON by POST. The answer is the RPC's JSON, untouched."""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from cli.failures import UNAVAILABLE, CommandFailed, NotAvailable, UsageProblem

SERVICE: Final = "mnemostream.v1.MemoryService"
_URL_RULE: Final = "MNEMO_URL: must be http://host:port or https://host:port"
_MARGIN_SECONDS: Final = 10.0
"""Beyond what the call itself may wait."""


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
    try:
        address = urlsplit(endpoint.url)
        port = address.port
    except ValueError:  # of a port that is no number, or half an IPv6 address
        raise UsageProblem(_URL_RULE) from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageProblem(_URL_RULE)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname, port, timeout=wait_seconds + _MARGIN_SECONDS)
    body = json.dumps({name: value for name, value in request.items() if value is not None})
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint.api_key}"}
    try:
        connection.request("POST", f"{address.path.rstrip('/')}/{SERVICE}/{method}", body.encode(), headers)
        response = connection.getresponse()
        status, answer = response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        place = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        what = "no answer in time" if isinstance(error, TimeoutError) else "nobody answers"
        raise NotAvailable(f"{what} at {place}: is it running? (`mnemo up`, or set MNEMO_URL)") from None
    finally:
        connection.close()
    return _read(status, answer)


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

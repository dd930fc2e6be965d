"""The `anthropic` package as an endpoint: errors as ours, and nothing taken from the environment."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anthropic
import httpx2
from typing_extensions import override

from providers.anthropic.errors import mapped
from providers.calls import Calls
from providers.circuit import Circuit

ANTHROPIC_URL: Final = "https://api.anthropic.com"

_NO_KEY: Final = "none"
"""For servers that ask for no key: the package would look for one in the environment."""

_OPTIONAL: Final = frozenset({"temperature", "thinking"})

_JSON: Final = {"content-type": "application/json"}


class _Client(anthropic.AsyncAnthropic):
    """The package's client without what it takes from the environment and gives no way to leave out."""

    @override
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.webhook_key = None
        self._custom_headers = {}


class AnthropicEndpoint:
    """`providers.calls.Endpoint` by `AsyncAnthropic.post`, past its typed methods: they cost CPU for nothing."""

    def __init__(self, api: anthropic.AsyncAnthropic) -> None:
        self._api = api

    async def post(self, path: str, body: bytes) -> bytes:
        """As `Endpoint.post`."""
        try:
            answer = await self._api.post(path, cast_to=httpx2.Response, content=body, options={"headers": _JSON})
        except anthropic.APIError as error:
            raise mapped(error, datetime.now(UTC)) from None
        return answer.content


@contextlib.asynccontextmanager
async def open_calls(
    *,
    api_key: str | None,
    base_url: str | None,
    timeout: timedelta,
    max_in_flight: int,
    circuit: Circuit | None = None,
) -> AsyncIterator[Calls]:
    """Calls to the server at `base_url`, with or without its `/v1` (None: Anthropic's own), closed in the end."""
    http = anthropic.DefaultAioHttpClient(
        timeout=httpx2.Timeout(timeout.total_seconds()),
        limits=httpx2.Limits(max_connections=max_in_flight, max_keepalive_connections=max_in_flight),
    )
    api = _Client(
        api_key=api_key or _NO_KEY,
        base_url=(base_url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1"),
        max_retries=0,
        timeout=timeout.total_seconds(),
        open_telemetry=False,
        http_client=http,
    )
    try:
        yield Calls(
            AnthropicEndpoint(api), timeout=timeout, max_in_flight=max_in_flight, optional=_OPTIONAL, circuit=circuit
        )
    finally:
        await api.close()

"""The `openai` package as an endpoint: errors as ours, and nothing taken from the environment."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2
import openai
from typing_extensions import override

from providers.calls import Calls
from providers.circuit import Circuit
from providers.openai.errors import mapped

OPENAI_URL: Final = "https://api.openai.com/v1"

_NO_KEY: Final = "none"
"""Local servers ask for no key, but the package insists on one: and must not find one in the environment by itself."""

_OPTIONAL: Final = frozenset({"temperature", "dimensions", "encoding_format"})

_JSON: Final = {"content-type": "application/json"}


class _Client(openai.AsyncOpenAI):
    """The package's client without what it takes from the environment and gives no way to leave out."""

    @override
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.organization = self.project = self.webhook_secret = self.admin_api_key = None
        self._custom_headers = {}


class OpenAIEndpoint:
    """`providers.calls.Endpoint` by `AsyncOpenAI.post`, not by its typed methods: these walk the whole request and
    answer in Python, 1.5 ms of CPU a call, and the answer is checked field by field anyway."""

    def __init__(self, api: openai.AsyncOpenAI) -> None:
        self._api = api

    async def post(self, path: str, body: bytes) -> bytes:
        """As `Endpoint.post`."""
        try:
            answer = await self._api.post(path, cast_to=httpx2.Response, content=body, options={"headers": _JSON})
        except openai.APIError as error:
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
    """Calls to the server at `base_url` (None: OpenAI's own), closed in the end."""
    # aiohttp as transport: httpx's own costs twice the CPU per call.
    http = openai.DefaultAioHttpClient(
        timeout=httpx2.Timeout(timeout.total_seconds()),
        limits=httpx2.Limits(max_connections=max_in_flight, max_keepalive_connections=max_in_flight),
    )
    api = _Client(
        api_key=api_key or _NO_KEY,
        base_url=base_url or OPENAI_URL,
        max_retries=0,
        timeout=timeout.total_seconds(),
        http_client=http,
    )
    try:
        yield Calls(
            OpenAIEndpoint(api), timeout=timeout, max_in_flight=max_in_flight, optional=_OPTIONAL, circuit=circuit
        )
    finally:
        await api.close()

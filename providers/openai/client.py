"""Calls to a provider: a bound on those in flight, a time limit, errors as ours, and nothing taken from the
environment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2
import msgspec
import openai
import structlog

from processors.errors import ModelUnavailable
from providers.openai.errors import is_operators_fault, mapped, refused_parameter

OPENAI_URL: Final = "https://api.openai.com/v1"

_NO_KEY: Final = "none"
"""Local servers ask for no key, but the package insists on one: and must not find one in the environment by itself."""

_OPTIONAL: Final = frozenset({"temperature", "dimensions", "encoding_format"})
"""Parameters that we would rather send, and leave out for a model that refuses them."""

_JSON: Final = {"content-type": "application/json"}

_log = structlog.get_logger(__name__)


class Calls:
    """Calls of one kind, through one `openai` client.

    They go by `AsyncOpenAI.post`, not by its typed methods: these walk the whole request and answer in Python, 1.5
    ms of CPU a call, and the answer is checked field by field anyway.
    """

    def __init__(self, api: openai.AsyncOpenAI, *, timeout: timedelta, max_in_flight: int) -> None:
        self._api = api
        self._timeout = timeout.total_seconds()
        self._slots = asyncio.Semaphore(max_in_flight)
        self._refused: set[str] = set()
        self._complained: str | None = None

    async def ask(self, path: str, fields: Mapping[str, Any]) -> bytes:
        """The body of the answer to a POST of `fields` as JSON. Waiting for a slot does not count as time.

        Raises ModelUnavailable and Rejected. Retries are the caller's business: none are made here, except at once
        without a parameter that the model does not take, which is remembered.
        """
        async with self._slots:
            while True:
                body = msgspec.json.encode({name: value for name, value in fields.items() if name not in self._refused})
                try:
                    async with asyncio.timeout(self._timeout):
                        response = await self._api.post(
                            path, cast_to=httpx2.Response, content=body, options={"headers": _JSON}
                        )
                except TimeoutError:
                    raise ModelUnavailable("the model provider did not answer in time") from None
                except openai.APIError as error:
                    name = refused_parameter(error, _OPTIONAL & fields.keys() - self._refused)
                    if name is None:
                        raise self._told(error) from None
                    _log.info("the model does not take a parameter, it is left out from now on", parameter=name)
                    self._refused.add(name)
                else:
                    self._complained = None
                    return response.content

    def _told(self, error: openai.APIError) -> Exception:
        """`error` as ours, and said once to the operator where it is theirs to mend."""
        ours = mapped(error, datetime.now(UTC))
        if is_operators_fault(error) and self._complained != str(ours):
            self._complained = str(ours)
            _log.error("the model provider has to be set up, turns wait until then", problem=str(ours))
        return ours


@contextlib.asynccontextmanager
async def open_calls(
    *, api_key: str | None, base_url: str | None, timeout: timedelta, max_in_flight: int
) -> AsyncIterator[Calls]:
    """Calls to the server at `base_url` (None: OpenAI's own), closed in the end."""
    # aiohttp as transport: httpx's own costs twice the CPU per call.
    http = openai.DefaultAioHttpClient(
        timeout=httpx2.Timeout(timeout.total_seconds()),
        limits=httpx2.Limits(max_connections=max_in_flight, max_keepalive_connections=max_in_flight),
    )
    api = openai.AsyncOpenAI(
        api_key=api_key or _NO_KEY,
        base_url=base_url or OPENAI_URL,
        max_retries=0,
        timeout=timeout.total_seconds(),
        http_client=http,
    )
    # The package takes these from the environment where they are not given, and gives no way to say "none".
    api.organization = api.project = api.webhook_secret = api.admin_api_key = None
    try:
        yield Calls(api, timeout=timeout, max_in_flight=max_in_flight)
    finally:
        await api.close()

"""Calls of a model provider: a bound on those in flight, a time limit, a circuit, and parameters that may go."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Protocol

import msgspec
import structlog

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.circuit import Circuit

_REFUSES_REQUESTS: Final = frozenset({400, 422})

_NOT_IMPLEMENTED: Final = 501
"""The server is there: it says that it cannot do what it was asked."""

_log = structlog.get_logger(__name__)


class Failed(Exception):
    """A call that brought no answer, as an adapter's table reads it."""

    def __init__(
        self,
        error: Rejected | ModelUnavailable,
        *,
        status: int | None = None,
        words: str = "",
        operators_fault: bool = False,
        for_content: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        """It in our words."""
        self.status = status
        """Of HTTP; None: there was no answer."""
        self.words = words.lower()
        """The provider's own. They may quote the prompt: they are looked into, never passed on."""
        self.operators_fault = operators_fault
        """Only a change of settings, or of the account, will help."""
        self.for_content = for_content
        """The provider says that it is the text that it refuses."""

    def names(self, names: frozenset[str]) -> str | None:
        """Which of `names` the provider's words hold, where it refuses the request."""
        return next((name for name in sorted(names) if name in self.words), None)


class Endpoint(Protocol):
    """A provider's HTTP interface."""

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer to a POST of `body`, JSON. Raises Failed."""
        ...


class Calls:
    """Calls of one kind to one provider.

    optional: parameters that we would rather send, and leave out for a model that refuses them.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeout: timedelta,
        max_in_flight: int,
        optional: frozenset[str] = frozenset(),
        circuit: Circuit | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout.total_seconds()
        self._slots = asyncio.Semaphore(max_in_flight)
        self._optional = optional
        self._circuit = circuit or Circuit()
        self._refused: frozenset[str] = frozenset()
        self._complained: str | None = None

    async def ask(self, path: str, fields: Mapping[str, Any]) -> bytes:
        """The body of the answer to a POST of `fields` as JSON. Waiting for a slot does not count as time.

        Raises ModelTimeout, ModelUnavailable and Rejected. Retries are the caller's business: none are made here,
        except at once without a parameter that the model does not take. That is remembered once it has helped.
        """
        try:
            return await self.send(path, fields)
        except Failed as failed:
            raise failed.error from None

    async def send(self, path: str, fields: Mapping[str, Any], *, disputed: frozenset[str] = frozenset()) -> bytes:
        """As `ask`, but raises Failed where the provider was asked: for callers that know another way to ask.

        disputed: names in a refusal that tell of the way of asking, and so of a provider that is there.
        """
        left_out = self._refused
        async with self._slots:
            while True:
                body = msgspec.json.encode({name: value for name, value in fields.items() if name not in left_out})
                try:
                    answer = await self._post(path, body, disputed)
                except Failed as failed:
                    name = failed.names(self._optional & fields.keys() - left_out)
                    if name is None or failed.status not in _REFUSES_REQUESTS:
                        self._complain(failed, disputed)
                        raise
                    left_out |= {name}
                else:
                    self._learn(left_out)
                    return answer

    async def _post(self, path: str, body: bytes, disputed: frozenset[str]) -> bytes:
        passage = self._circuit.enter()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._endpoint.post(path, body)
        except TimeoutError:
            self._circuit.failed(passage)
            raise Failed(ModelTimeout("the model provider did not answer in time")) from None
        except Failed as failed:
            if isinstance(failed.error, Rejected) or failed.status == _NOT_IMPLEMENTED or failed.names(disputed):
                self._circuit.answered(passage)
            else:
                self._circuit.failed(passage, retry_after=failed.error.retry_after)
            raise
        except BaseException:
            self._circuit.left(passage)
            raise
        self._circuit.answered(passage)
        return answer

    def _learn(self, left_out: frozenset[str]) -> None:
        self._complained = None
        if new := left_out - self._refused:
            _log.info("the model does not take parameters, they are left out from now on", parameters=sorted(new))
            self._refused |= new

    def _complain(self, failed: Failed, disputed: frozenset[str]) -> None:
        """Say once to the operator what is theirs to mend."""
        problem = str(failed.error)
        if failed.operators_fault and self._complained != problem and not failed.names(disputed):
            self._complained = problem
            _log.error("the model provider has to be set up, turns wait until then", problem=problem)

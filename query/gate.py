"""What every call passes, whatever its protocol: it authenticates, checks the scope, counts, and maps errors."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connectrpc.code import Code
from connectrpc.errors import ConnectError

from query.auth import CALLER, Authenticator, permit
from query.errors import failure
from query.metrics import QueryMetrics
from query.service import AnyMethod

OK: Final = "OK"


@dataclass(frozen=True, slots=True)
class Passage:
    """One call on its way."""

    method: str
    started: float


class Gate:
    """`enter` before the body of a request is read, `leave` once its answer stands."""

    def __init__(self, authenticator: Authenticator, methods: Iterable[AnyMethod], metrics: QueryMetrics) -> None:
        self._authenticator = authenticator
        self._scopes = {method.name: method.scope for method in methods}
        self._metrics = metrics

    def begin(self, method: str) -> Passage:
        """The call has arrived."""
        return Passage(method, time.perf_counter())

    async def admit(self, passage: Passage, authorization: str | None) -> None:
        """Let the caller in, for the rest of this task. Raises Unauthenticated, PermissionDenied, StoreUnavailable."""
        caller = await self._authenticator.caller(authorization)
        permit(caller, self._scopes[passage.method])
        CALLER.set(caller)

    def leave(self, passage: Passage, error: BaseException | None) -> ConnectError | None:
        """Count the call; `error` as it is told to the caller."""
        told = failure(error) if error is not None else None
        self.count(passage, told.code if told is not None else None)
        return told

    def count(self, passage: Passage, code: Code | None) -> None:
        """The call is over with `code`; None is OK."""
        self._metrics.requests.labels(passage.method, code.name if code is not None else OK).inc()
        self._metrics.seconds.labels(passage.method).observe(time.perf_counter() - passage.started)

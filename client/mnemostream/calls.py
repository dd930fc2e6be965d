"""Calls of the query service: deadlines, retries where they are safe, errors as the tree of `mnemostream.errors`."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Final, TypeVar

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from mnemostream import errors
from mnemostream.v1.google.rpc.error_details_pb import BadRequest, ErrorInfo, RetryInfo
from protobuf import Message

Res = TypeVar("Res", bound=Message)

ATTEMPTS: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0

_LEAVES: Final[dict[Code, type[errors.CallFailed]]] = {
    Code.INVALID_ARGUMENT: errors.InvalidArgument,
    Code.UNAUTHENTICATED: errors.Unauthenticated,
    Code.PERMISSION_DENIED: errors.PermissionDenied,
    Code.NOT_FOUND: errors.NotFound,
    Code.FAILED_PRECONDITION: errors.FailedPrecondition,
    Code.ABORTED: errors.Aborted,
    Code.OUT_OF_RANGE: errors.OutOfRange,
    Code.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    Code.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    Code.UNAVAILABLE: errors.Unavailable,
}


async def call(
    method: Callable[..., Awaitable[Res]], request: Message, *, headers: dict[str, str], timeout_seconds: float
) -> Res:
    """The answer to `request`, which must be safe to send again: while the service is away it is, until the deadline.

    Raises CallFailed.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    pause_seconds = _FIRST_PAUSE_SECONDS
    attempt = 0
    while True:
        attempt += 1
        left_ms = max(1, int((deadline - loop.time()) * 1000))
        try:
            return await method(request, headers=headers, timeout_ms=left_ms)
        except ConnectError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            failed = failure(error)
            wanted = failed.retry_after.total_seconds() if failed.retry_after is not None else 0.0
            wait_seconds = max(wanted, random.uniform(pause_seconds / 2, pause_seconds))
            if error.code is not Code.UNAVAILABLE or attempt == ATTEMPTS or loop.time() + wait_seconds >= deadline:
                raise failed from error
        await asyncio.sleep(wait_seconds)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


async def stream(
    method: Callable[..., AsyncIterator[Res]], request: Message, *, headers: dict[str, str], timeout_seconds: float
) -> AsyncGenerator[Res, None]:
    """The messages that answer `request`. timeout_seconds: how long the next one may take, whatever the reader does.

    Before the first one it is asked again while the service is away, as by `call`. Raises CallFailed.
    """
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    pause_seconds = _FIRST_PAUSE_SECONDS
    attempt = 0
    while True:
        attempt += 1
        started = False
        answers = method(request, headers=headers, timeout_ms=None)
        try:
            async with aclosing(_each(answers, timeout_seconds)) as messages:
                async for message in messages:
                    started = True
                    yield message
        except ConnectError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            failed = failure(error)
            wait_seconds = random.uniform(pause_seconds / 2, pause_seconds)
            late = asyncio.get_running_loop().time() + wait_seconds >= deadline
            if started or error.code is not Code.UNAVAILABLE or attempt == ATTEMPTS or late:
                raise failed from error
        else:
            return
        await asyncio.sleep(wait_seconds)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


async def _each(answers: AsyncIterator[Res], timeout_seconds: float) -> AsyncGenerator[Res, None]:
    """`answers`, each within its time, and closed at the end. Raises ConnectError."""
    try:
        while True:
            limit = asyncio.timeout(timeout_seconds)
            try:
                async with limit:
                    message = await anext(answers)
            except StopAsyncIteration:
                return
            except (TimeoutError, ConnectError) as error:  # the library makes the latter of a cancellation
                if limit.expired():
                    raise ConnectError(Code.DEADLINE_EXCEEDED, "the stream stands still") from error
                raise
            yield message
    finally:
        if isinstance(answers, AsyncGenerator):
            await answers.aclose()


def failure(error: ConnectError) -> errors.CallFailed:
    """`error` as a leaf of our tree."""
    reason: str | None = None
    metadata: dict[str, str] = {}
    field: str | None = None
    rule: str | None = None
    retry_after: timedelta | None = None
    for detail in error.details:
        if (info := detail.value(ErrorInfo)) is not None:
            reason, metadata = info.reason, dict(info.metadata)
        elif (bad := detail.value(BadRequest)) is not None and bad.field_violations:
            field, rule = bad.field_violations[0].field, bad.field_violations[0].description
        elif (retry := detail.value(RetryInfo)) is not None and retry.retry_delay is not None:
            retry_after = retry.retry_delay.to_timedelta()
    leaf = _LEAVES.get(error.code, errors.ServerFault)
    message = error.message
    if reason is None and leaf is errors.Unavailable:
        message = "the query service cannot be reached"  # the transport's own words name the whole address
    return leaf(message, reason=reason, metadata=metadata, field=field, rule=rule, retry_after=retry_after)

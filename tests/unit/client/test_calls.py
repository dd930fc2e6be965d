import asyncio
from datetime import timedelta
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from mnemostream import errors
from mnemostream.calls import ATTEMPTS, call, failure
from mnemostream.v1 import memory_service_pb as pb
from mnemostream.v1.google.rpc.error_details_pb import BadRequest, ErrorInfo, RetryInfo
from protobuf.wkt import Any as Packed
from protobuf.wkt import Duration

REQUEST = pb.GetTurnRequest()


class Service:
    """Raises each of `answers`, then gives a turn."""

    def __init__(self, *answers: Exception) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def __call__(self, request: Any, *, headers: Any, timeout_ms: int) -> pb.Turn:
        self.calls += 1
        if self.answers:
            raise self.answers.pop(0)
        return pb.Turn(turn_id="t")


def told(code: Code, *details: Any) -> ConnectError:
    """As it comes over the wire."""
    from connectrpc.errors import ErrorDetail

    return ConnectError(code, "said", [ErrorDetail(Packed.pack(detail)) for detail in details])


@pytest.mark.parametrize(
    ("code", "leaf"),
    [
        (Code.INVALID_ARGUMENT, errors.InvalidArgument),
        (Code.UNAUTHENTICATED, errors.Unauthenticated),
        (Code.PERMISSION_DENIED, errors.PermissionDenied),
        (Code.NOT_FOUND, errors.NotFound),
        (Code.FAILED_PRECONDITION, errors.FailedPrecondition),
        (Code.ABORTED, errors.Aborted),
        (Code.OUT_OF_RANGE, errors.OutOfRange),
        (Code.RESOURCE_EXHAUSTED, errors.ResourceExhausted),
        (Code.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
        (Code.UNAVAILABLE, errors.Unavailable),
        (Code.INTERNAL, errors.ServerFault),
        (Code.UNKNOWN, errors.ServerFault),
        (Code.UNIMPLEMENTED, errors.ServerFault),
    ],
)
def test_every_code_has_its_leaf(code: Code, leaf: type[errors.CallFailed]) -> None:
    assert type(failure(told(code))) is leaf


def test_the_details_are_read() -> None:
    bad = BadRequest(field_violations=[BadRequest.FieldViolation(field="limit", description="must be 1 to 100")])
    invalid = failure(told(Code.INVALID_ARGUMENT, bad, ErrorInfo(reason="INVALID_FIELD", metadata={"a": "b"})))
    assert (invalid.field, invalid.rule, invalid.reason) == ("limit", "must be 1 to 100", "INVALID_FIELD")
    assert invalid.metadata == {"a": "b"}
    away = failure(told(Code.UNAVAILABLE, RetryInfo(retry_delay=Duration(seconds=2))))
    assert away.retry_after == timedelta(seconds=2)


async def test_what_is_away_is_asked_again() -> None:
    service = Service(told(Code.UNAVAILABLE), told(Code.UNAVAILABLE))
    assert (await call(service, REQUEST, headers={}, timeout_seconds=10)).turn_id == "t"
    assert service.calls == 3


async def test_what_stays_away_is_given_up() -> None:
    service = Service(*[told(Code.UNAVAILABLE)] * 10)
    with pytest.raises(errors.Unavailable):
        await call(service, REQUEST, headers={}, timeout_seconds=10)
    assert service.calls == ATTEMPTS


async def test_nobody_waits_beyond_the_time_out() -> None:
    service = Service(told(Code.UNAVAILABLE, RetryInfo(retry_delay=Duration(seconds=60))))
    with pytest.raises(errors.Unavailable):
        await call(service, REQUEST, headers={}, timeout_seconds=10)
    assert service.calls == 1


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.UNAVAILABLE])
async def test_no_other_answer_is_asked_for_again(code: Code) -> None:
    service = Service(told(code))
    with pytest.raises(errors.CallFailed):
        await call(service, REQUEST, headers={}, timeout_seconds=10)
    assert service.calls == 1


async def test_a_cancelled_call_stays_cancelled() -> None:
    error = ConnectError(Code.CANCELED, "Request was cancelled")
    error.__cause__ = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await call(Service(error), REQUEST, headers={}, timeout_seconds=10)

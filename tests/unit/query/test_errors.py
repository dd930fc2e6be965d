from datetime import timedelta

import pytest
from connectrpc.code import Code
from mnemostream.turns import Reason
from mnemostream.v1.google.rpc.error_details_pb import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo

from processors.errors import Contended, InvalidRequest, ModelUnavailable, Rejected, StoreUnavailable
from query.errors import NotFound, PermissionDenied, TurnNotOver, TurnParked, Unauthenticated, failure

TABLE = [
    (InvalidRequest("limit", "must be 1 to 100"), Code.INVALID_ARGUMENT, "INVALID_FIELD"),
    (Rejected(Reason.MODEL_REFUSED, "said no"), Code.INVALID_ARGUMENT, "MODEL_REFUSED"),
    (NotFound("no such memory"), Code.NOT_FOUND, "NOT_FOUND"),
    (Unauthenticated("no key"), Code.UNAUTHENTICATED, "KEY_INVALID"),
    (PermissionDenied("no scope"), Code.PERMISSION_DENIED, "SCOPE_MISSING"),
    (TurnParked("t", Reason.INVALID_FIELD, "owner"), Code.FAILED_PRECONDITION, "TURN_PARKED"),
    (TurnNotOver("still pending"), Code.DEADLINE_EXCEEDED, "TURN_NOT_OVER"),
    (Contended("8 rounds"), Code.UNAVAILABLE, "CONTENDED"),
    (ModelUnavailable("away"), Code.UNAVAILABLE, "MODEL_UNAVAILABLE"),
    (StoreUnavailable("away"), Code.UNAVAILABLE, "STORE_UNAVAILABLE"),
    (RuntimeError("SELECT secret"), Code.INTERNAL, "INTERNAL_ERROR"),
]


@pytest.mark.parametrize(("error", "code", "reason"), TABLE, ids=[type(error).__name__ for error, *_ in TABLE])
def test_every_error_has_its_code_and_its_reason(error: Exception, code: Code, reason: str) -> None:
    told = failure(error)
    assert told.code is code
    [info] = [value for detail in told.details if isinstance(value := detail.value(), ErrorInfo)]
    assert (info.reason, info.domain) == (reason, "mnemostream")


def test_an_invalid_argument_names_the_field_and_the_rule() -> None:
    bad = failure(InvalidRequest("limit", "must be 1 to 100")).details[0].value()
    assert isinstance(bad, BadRequest)
    [violation] = bad.field_violations
    assert (violation.field, violation.description) == ("limit", "must be 1 to 100")


def test_unavailable_says_when_to_come_again() -> None:
    retry = failure(ModelUnavailable("away", retry_after=timedelta(seconds=7))).details[0].value()
    assert isinstance(retry, RetryInfo)
    assert retry.retry_delay is not None
    assert retry.retry_delay.seconds == 7


def test_a_parked_turn_says_why() -> None:
    told = failure(TurnParked("t-1", Reason.INVALID_FIELD, "messages[0].role"))
    blocked = told.details[0].value()
    assert isinstance(blocked, PreconditionFailure)
    assert blocked.violations[0].description == "invalid_field messages[0].role"
    assert "invalid_field" in told.message


def test_a_defect_tells_nothing_of_itself() -> None:
    told = failure(RuntimeError("SELECT secret FROM memory"))
    assert "SELECT" not in told.message
    assert all("SELECT" not in str(detail.value()) for detail in told.details)

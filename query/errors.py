"""What a call can fail with, and the one table that gives each its code and its details.

    MnemoError
    ├── InvalidRequest, Rejected, Unavailable …   processors/errors.py
    └── Refused                                   said by this service
        ├── NotFound            also for what belongs to another owner or app
        ├── Unauthenticated
        ├── PermissionDenied
        ├── TurnNotOver
        ├── TurnParked
        ├── TooManyExports
        └── ExportTooSlow

No message holds the text of anybody, SQL, or a place in the code.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import structlog
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from mnemostream.turns import Reason
from mnemostream.v1.google.rpc.error_details_pb import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from protobuf import Message
from protobuf.wkt import Duration

from processors.errors import Contended, InvalidRequest, MnemoError, ModelUnavailable, Rejected, Unavailable

DOMAIN: Final = "mnemostream"
RETRY_AFTER: Final = timedelta(seconds=1)
"""Told to callers where the dependency named no delay."""
EXPORT_RETRY_AFTER: Final = timedelta(seconds=5)

_log = structlog.get_logger(__name__)


class Refused(MnemoError):
    """The service says no."""


class NotFound(Refused):
    """The owner has no such thing."""


class Unauthenticated(Refused):
    """No key, or one that is not, or no longer, valid."""


class PermissionDenied(Refused):
    """The key is valid, but not for this."""


class TurnNotOver(Refused):
    """The turn that a search was to wait for has not ended in time."""


class TurnParked(Refused):
    """The turn that a search was to wait for was set aside."""

    def __init__(self, turn_id: str, reason: Reason | None, detail: str | None) -> None:
        super().__init__(f"the turn is parked: {reason or Reason.INTERNAL_ERROR}")
        self.turn_id = turn_id
        self.reason = reason or Reason.INTERNAL_ERROR
        self.detail = detail or ""


class TooManyExports(Refused):
    """This process streams as many exports as it may."""


class ExportTooSlow(Refused):
    """An export was not read in its time: its snapshot is given up."""


def failure(error: BaseException) -> ConnectError:
    """`error` as it is told to callers. What is not in the table is a defect: logged, and told as INTERNAL."""
    match error:
        case ConnectError():
            return error
        case InvalidRequest():
            return _failure(Code.INVALID_ARGUMENT, str(error), "INVALID_FIELD", [_violation(error.field, error.rule)])
        case Rejected():
            return _failure(Code.INVALID_ARGUMENT, "the text was refused for good", error.reason.upper())
        case NotFound():
            return _failure(Code.NOT_FOUND, str(error), "NOT_FOUND")
        case Unauthenticated():
            return _failure(Code.UNAUTHENTICATED, str(error), "KEY_INVALID")
        case PermissionDenied():
            return _failure(Code.PERMISSION_DENIED, str(error), "SCOPE_MISSING")
        case TurnParked():
            blocked = PreconditionFailure.Violation(
                type="TURN_PARKED", subject=error.turn_id, description=f"{error.reason} {error.detail}".strip()
            )
            told = {"reason": str(error.reason), "turnId": error.turn_id}
            details: list[Message] = [PreconditionFailure(violations=[blocked])]
            return _failure(Code.FAILED_PRECONDITION, str(error), "TURN_PARKED", details, told)
        case TurnNotOver():
            return _failure(Code.DEADLINE_EXCEEDED, str(error), "TURN_NOT_OVER")
        case TooManyExports():
            retry = RetryInfo(retry_delay=Duration.from_timedelta(EXPORT_RETRY_AFTER))
            return _failure(Code.RESOURCE_EXHAUSTED, str(error), "TOO_MANY_EXPORTS", [retry])
        case ExportTooSlow():
            return _failure(Code.DEADLINE_EXCEEDED, str(error), "EXPORT_TOO_SLOW")
        case Contended():
            return _unavailable(error, "CONTENDED", "the owner changed again and again meanwhile")
        case ModelUnavailable():
            return _unavailable(error, "MODEL_UNAVAILABLE", "the embedding model is away")
        case Unavailable():
            return _unavailable(error, "STORE_UNAVAILABLE", "the store is away")
        case _:
            _log.error("call_failed", exc_info=error)
            return _failure(Code.INTERNAL, "an internal error; the service's log has it", "INTERNAL_ERROR")


def _unavailable(error: Unavailable, reason: str, message: str) -> ConnectError:
    retry = RetryInfo(retry_delay=Duration.from_timedelta(error.retry_after or RETRY_AFTER))
    return _failure(Code.UNAVAILABLE, message, reason, [retry])


def _violation(field: str, rule: str) -> BadRequest:
    return BadRequest(field_violations=[BadRequest.FieldViolation(field=field, description=rule)])


def _failure(
    code: Code,
    message: str,
    reason: str,
    details: list[Message] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> ConnectError:
    info = ErrorInfo(reason=reason, domain=DOMAIN, metadata=dict(metadata or {}))
    return ConnectError(code, message, [*(details or ()), info])

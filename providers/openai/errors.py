"""What an error of the provider means for a turn: one table.

    status                          code                                   becomes
    400 413 422                     (any other)                            Rejected MODEL_REFUSED
    400 404 422                     unsupported_…, model_not_found …       ModelUnavailable: the operator's fault
    401 402 403 404                 any                                    ModelUnavailable: the operator's fault
    3xx 405 408 409 425 429 5xx …   any                                    ModelUnavailable, with Retry-After
    no answer, time-out             –                                      ModelUnavailable

A wrong key, model or parameter is no turn's fault, so turns wait for the operator and none is parked for it. What
the model refuses for its content is refused again tomorrow, so it is parked.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import openai
from mnemostream.turns import Reason

from processors.errors import ModelUnavailable, Rejected

_CONTENT_STATUSES: Final = frozenset({400, 413, 422})

_OPERATOR_CODES: Final = frozenset(
    {
        "billing_not_active",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_model",
        "model_not_found",
        "unknown_parameter",
        "unknown_url",
        "unsupported_parameter",
        "unsupported_value",
    }
)

_HINTS: Final[Mapping[int, str]] = {
    401: "it refuses the key: check MNEMO_OPENAI_API_KEY",
    402: "it wants to be paid",
    403: "the key may not use this model",
    404: "it does not know the model or the address: check the model's setting and MNEMO_OPENAI_BASE_URL",
    429: "too many requests, or no quota left",
}

_LONGEST_DELAY: Final = timedelta(hours=1)
"""A provider that names more is asked again after this."""


def mapped(error: openai.APIError, now: datetime) -> Rejected | ModelUnavailable:
    """`error` as one of ours. Its text is left behind: a provider may quote the prompt in it."""
    if isinstance(error, openai.APITimeoutError):
        return ModelUnavailable("the model provider did not answer in time")
    if not isinstance(error, openai.APIStatusError):
        return ModelUnavailable("the model provider cannot be reached: check MNEMO_OPENAI_BASE_URL")
    status, code = error.status_code, error.code
    if is_operators_fault(error):
        named = f" ({code})" if code in _OPERATOR_CODES else ""
        hint = _HINTS.get(status, "it refuses a parameter or the model: check the model's settings")
        return ModelUnavailable(f"the model provider answers {status}{named}: {hint}", retry_after=_delay(error, now))
    if status in _CONTENT_STATUSES:
        return Rejected(Reason.MODEL_REFUSED, f"the model provider answers {status} to this request")
    hint = f": {_HINTS[status]}" if status in _HINTS else ""
    return ModelUnavailable(f"the model provider answers {status}{hint}", retry_after=_delay(error, now))


def is_operators_fault(error: openai.APIError) -> bool:
    """Whether only a change of settings or of the account will help."""
    if not isinstance(error, openai.APIStatusError):
        return False
    return error.status_code in {401, 402, 403, 404} or error.code in _OPERATOR_CODES


def refused_parameter(error: openai.APIError, optional: frozenset[str]) -> str | None:
    """Which of the `optional` parameters of the request the provider does not take, if that is what it says."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in {400, 422}:
        return None
    if error.param in optional:
        return error.param
    return next((name for name in sorted(optional) if name in error.message), None)


def _delay(error: openai.APIStatusError, now: datetime) -> timedelta | None:
    headers = error.response.headers
    delay = retry_after(headers.get("retry-after-ms"), now, unit=timedelta(milliseconds=1))
    return delay if delay is not None else retry_after(headers.get("retry-after"), now)


def retry_after(value: str | None, now: datetime, unit: timedelta = timedelta(seconds=1)) -> timedelta | None:
    """The delay that a Retry-After header names, in seconds or as a date; None where it names none."""
    if value is None:
        return None
    try:
        delay = float(value) * unit
    except (ValueError, OverflowError):
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        delay = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    return min(max(delay, timedelta()), _LONGEST_DELAY)

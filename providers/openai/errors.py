"""What an error of the provider means for a turn: one table.

    status                          code                                   becomes
    400 413 422                     (any other)                            Rejected MODEL_REFUSED
    400 404 422                     unsupported_…, model_not_found …       ModelUnavailable: the operator's fault
    401 402 403 404                 any                                    ModelUnavailable: the operator's fault
    3xx 405 408 409 425 429 5xx …   any                                    ModelUnavailable, with Retry-After
    no answer                       –                                      ModelUnavailable
    time-out                        –                                      ModelTimeout

A wrong key, model or parameter is no turn's fault, so turns wait for the operator and none is parked for it. What
the model refuses for its content is refused again tomorrow, so it is parked.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import openai
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.calls import Failed
from providers.delays import named_delay

CONTENT_STATUSES: Final = frozenset({400, 413, 422})

_OPERATOR_STATUSES: Final = frozenset({401, 402, 403, 404})

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

_CONTENT_CODES: Final = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "context_length_exceeded",
        "invalid_prompt",
        "string_above_max_length",
    }
)

_HINTS: Final[Mapping[int, str]] = {
    401: "it refuses the key: check MNEMO_OPENAI_API_KEY",
    402: "it wants to be paid",
    403: "the key may not use this model",
    404: "it does not know the model or the address: check the model's setting and MNEMO_OPENAI_BASE_URL",
    429: "too many requests, or no quota left",
}


def mapped(error: openai.APIError, now: datetime) -> Failed:
    """`error` as one of ours. Its text is for code only: a provider may quote the prompt in it."""
    if isinstance(error, openai.APITimeoutError):
        return Failed(ModelTimeout("the model provider did not answer in time"))
    if not isinstance(error, openai.APIStatusError):
        return Failed(ModelUnavailable("the model provider cannot be reached: check MNEMO_OPENAI_BASE_URL"))
    status, code = error.status_code, error.code
    words = f"{error.message} {error.param or ''}"
    delay = named_delay(error.response.headers, now)
    if status in _OPERATOR_STATUSES or code in _OPERATOR_CODES:
        named = f" ({code})" if code in _OPERATOR_CODES else ""
        hint = _HINTS.get(status, "it refuses a parameter or the model: check the model's settings")
        away = ModelUnavailable(f"the model provider answers {status}{named}: {hint}", retry_after=delay)
        return Failed(away, status=status, words=words, operators_fault=True)
    if status in CONTENT_STATUSES:
        refused = Rejected(Reason.MODEL_REFUSED, f"the model provider answers {status} to this request")
        return Failed(refused, status=status, words=words, for_content=code in _CONTENT_CODES or status == 413)
    hint = f": {_HINTS[status]}" if status in _HINTS else ""
    away = ModelUnavailable(f"the model provider answers {status}{hint}", retry_after=delay)
    return Failed(away, status=status, words=words)

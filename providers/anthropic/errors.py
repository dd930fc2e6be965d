"""What an error of the provider means for a turn: one table.

    status                       type, or what it says                          becomes
    400 413 422                  (any other)                                    Rejected MODEL_REFUSED
    400 422                      names a parameter, the model or the credit     ModelUnavailable: the operator's fault
    401 402 403 404              authentication, billing, permission …          ModelUnavailable: the operator's fault
    3xx 408 409 429 5xx 529 …    rate_limit_error, overloaded_error …           ModelUnavailable, with Retry-After
    no answer                    –                                              ModelUnavailable
    time-out                     –                                              ModelTimeout

The API has no code for a wrong parameter: its message begins with the parameter's name, `max_tokens: …`. What begins
with `messages` or `system` is about the text.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import anthropic
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.calls import Failed
from providers.delays import named_delay

_CONTENT_STATUSES: Final = frozenset({400, 413, 422})

_OPERATOR_STATUSES: Final = frozenset({401, 402, 403, 404})

_OPERATOR_TYPES: Final = frozenset({"authentication_error", "billing_error", "not_found_error", "permission_error"})

_SETTINGS: Final = re.compile(
    r"`?(anthropic-version|max_tokens|metadata|model|output_config|output_format|temperature|thinking|tool_choice|tools)\b"
)
_CREDIT: Final = re.compile(r"credit balance|billing", re.IGNORECASE)

_CONTENT: Final = re.compile(r"prompt is too long|content filter|`?(messages|system)\b", re.IGNORECASE)

_HINTS: Final[Mapping[int, str]] = {
    401: "it refuses the key: check MNEMO_ANTHROPIC_API_KEY",
    402: "it wants to be paid",
    403: "the key may not use this model",
    404: "it does not know the model or the address: check the model's setting and MNEMO_ANTHROPIC_BASE_URL",
    429: "too many requests, or no quota left",
    529: "it is overloaded",
}


def mapped(error: anthropic.APIError, now: datetime) -> Failed:
    """`error` as one of ours. Its text is for code only: a provider may quote the prompt in it."""
    if isinstance(error, anthropic.APITimeoutError):
        return Failed(ModelTimeout("the model provider did not answer in time"))
    if not isinstance(error, anthropic.APIStatusError):
        return Failed(ModelUnavailable("the model provider cannot be reached: check MNEMO_ANTHROPIC_BASE_URL"))
    status, said = error.status_code, error.api_message if isinstance(error.api_message, str) else ""
    delay = named_delay(error.response.headers, now)
    if status in _OPERATOR_STATUSES or error.type in _OPERATOR_TYPES or _is_about_settings(status, said):
        hint = _HINTS.get(status, "it refuses a parameter, the model or the account: check the model's settings")
        away = ModelUnavailable(f"the model provider answers {status}: {hint}", retry_after=delay)
        return Failed(away, status=status, words=said, operators_fault=True)
    if status in _CONTENT_STATUSES:
        refused = Rejected(Reason.MODEL_REFUSED, f"the model provider answers {status} to this request")
        for_content = status == 413 or _CONTENT.match(said) is not None
        return Failed(refused, status=status, words=said, for_content=for_content)
    hint = f": {_HINTS[status]}" if status in _HINTS else ""
    away = ModelUnavailable(f"the model provider answers {status}{hint}", retry_after=delay)
    return Failed(away, status=status, words=said)


def _is_about_settings(status: int, said: str) -> bool:
    return status in {400, 422} and bool(_SETTINGS.match(said) or _CREDIT.search(said[:200]))

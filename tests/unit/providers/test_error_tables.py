"""What the errors of providers mean: the tables, line by line, and nobody's words in ours."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.anthropic.errors import mapped as of_anthropic
from providers.calls import Failed
from providers.openai.errors import mapped as of_openai

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
REQUEST = httpx2.Request("POST", "http://provider.invalid/v1/x")
QUOTED = "I live in Lisbon"


def response(status: int, headers: dict[str, str] | None = None) -> httpx2.Response:
    return httpx2.Response(status, request=REQUEST, headers=headers or {})


def openai_error(status: int, code: str | None = None, **headers: str) -> Failed:
    body: dict[str, Any] = {"message": QUOTED, "code": code, "param": None}
    return of_openai(openai.APIStatusError(QUOTED, response=response(status, headers), body=body), NOW)


def anthropic_error(status: int, said: str = QUOTED, kind: str = "api_error", **headers: str) -> Failed:
    body = {"type": "error", "error": {"type": kind, "message": said}}
    return of_anthropic(anthropic.APIStatusError(said, response=response(status, headers), body=body), NOW)


@pytest.mark.parametrize("failed", [openai_error(400), anthropic_error(400), openai_error(422), anthropic_error(413)])
def test_a_refused_text_is_rejected(failed: Failed) -> None:
    assert isinstance(failed.error, Rejected)
    assert failed.error.reason is Reason.MODEL_REFUSED
    assert not failed.operators_fault
    assert QUOTED not in str(failed.error) + str(failed)


@pytest.mark.parametrize(
    "failed",
    [
        *(openai_error(status) for status in (401, 402, 403, 404)),
        *(anthropic_error(status) for status in (401, 402, 403, 404)),
        openai_error(400, "model_not_found"),
        openai_error(429, "insufficient_quota"),
        anthropic_error(400, "max_tokens: 9999999 > 64000, which is the maximum allowed number"),
        anthropic_error(400, "`temperature` is deprecated for this model.", "invalid_request_error"),
        anthropic_error(400, "Your credit balance is too low to access the Anthropic API."),
        anthropic_error(400, kind="billing_error"),
    ],
)
def test_what_an_operator_has_to_mend_parks_no_turn(failed: Failed) -> None:
    assert isinstance(failed.error, ModelUnavailable)
    assert failed.operators_fault
    assert QUOTED not in str(failed.error)


@pytest.mark.parametrize("status", [302, 408, 409, 425, 429, 500, 501, 502, 503, 504, 529])
@pytest.mark.parametrize("make", [openai_error, anthropic_error])
def test_a_provider_that_is_away_or_busy_is_waited_for(make: Any, status: int) -> None:
    failed = make(status, **{"retry-after": "12"})
    assert isinstance(failed.error, ModelUnavailable)
    assert failed.error.retry_after == timedelta(seconds=12)
    assert not failed.operators_fault


def test_what_begins_with_the_messages_is_about_the_text() -> None:
    for said in ("messages.0.content: too long", "prompt is too long: 210000 tokens", "messages: model and tools"):
        failed = anthropic_error(400, said, "invalid_request_error")
        assert isinstance(failed.error, Rejected)
        assert failed.for_content


@pytest.mark.parametrize("code", ["content_filter", "context_length_exceeded"])
def test_a_code_that_blames_the_text_is_believed(code: str) -> None:
    assert openai_error(400, code).for_content
    assert not openai_error(400, None).for_content


def test_no_answer_is_told_from_one_that_is_late() -> None:
    assert isinstance(of_openai(openai.APITimeoutError(REQUEST), NOW).error, ModelTimeout)
    assert isinstance(of_anthropic(anthropic.APITimeoutError(REQUEST), NOW).error, ModelTimeout)
    for failed in (
        of_openai(openai.APIConnectionError(request=REQUEST), NOW),
        of_anthropic(anthropic.APIConnectionError(request=REQUEST), NOW),
    ):
        assert isinstance(failed.error, ModelUnavailable)
        assert not isinstance(failed.error, ModelTimeout)

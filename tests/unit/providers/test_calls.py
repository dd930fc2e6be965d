"""Calls of a provider: what is learned from its answers, and what its circuit hears."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import structlog
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from providers.calls import Calls, Failed
from providers.circuit import Circuit, Patience


def refusal(words: str) -> Failed:
    return Failed(Rejected(Reason.MODEL_REFUSED, "400"), status=400, words=words)


def outage(status: int = 503, *, words: str = "", operators_fault: bool = False) -> Failed:
    return Failed(ModelUnavailable(f"{status}"), status=status, words=words, operators_fault=operators_fault)


class Provider:
    """Answers what `says` makes of a request; what it raises is raised."""

    def __init__(self, says: Callable[[dict[str, Any]], Failed | None] = lambda fields: None) -> None:
        self.says = says
        self.asked: list[dict[str, Any]] = []
        self.hangs = False

    async def post(self, path: str, body: bytes) -> bytes:
        fields = msgspec.json.decode(body)
        self.asked.append(fields)
        if self.hangs:
            await asyncio.Event().wait()
        if failed := self.says(fields):
            raise failed
        return b"{}"


def calls_of(provider: Provider, *, seconds: float = 5, failures: int = 3, slots: int = 8) -> Calls:
    return Calls(
        provider,
        timeout=timedelta(seconds=seconds),
        max_in_flight=slots,
        optional=frozenset({"temperature", "dimensions"}),
        circuit=Circuit(Patience(failures=failures), clock=lambda: 0.0),
    )


FIELDS = {"model": "m", "temperature": 0, "dimensions": 3}


async def test_refused_parameters_are_left_out_once_that_has_helped() -> None:
    provider = Provider(
        lambda fields: next((refusal(name) for name in ("temperature", "dimensions") if name in fields), None)
    )
    calls = calls_of(provider)
    for _ in range(2):
        await calls.ask("/x", FIELDS)
    assert [len(fields) for fields in provider.asked] == [3, 2, 1, 1]


async def test_a_refused_text_that_names_a_parameter_costs_no_parameter() -> None:
    provider = Provider(lambda fields: refusal("your text about the temperature is not welcome"))
    calls = calls_of(provider)
    with pytest.raises(Rejected):
        await calls.ask("/x", FIELDS)
    provider.says = lambda fields: None
    await calls.ask("/x", FIELDS)
    assert provider.asked[-1] == FIELDS


@pytest.mark.parametrize(
    "failed", [outage(503), outage(429), outage(401, operators_fault=True), Failed(ModelUnavailable("no answer"))]
)
async def test_after_failures_in_a_row_the_provider_is_left_alone(failed: Failed) -> None:
    provider = Provider(lambda fields: failed)
    calls = calls_of(provider)
    for _ in range(10):
        with pytest.raises(ModelUnavailable):
            await calls.ask("/x", FIELDS)
    assert len(provider.asked) == 3


async def test_time_outs_count_too() -> None:
    provider = Provider()
    provider.hangs = True
    calls = calls_of(provider, seconds=0.01)
    for _ in range(3):
        with pytest.raises(ModelTimeout):
            await calls.ask("/x", FIELDS)
    with pytest.raises(ModelUnavailable, match="left alone"):
        await calls.ask("/x", FIELDS)


@pytest.mark.parametrize("failed", [refusal("no"), outage(501), outage(500, words="unknown response_format")])
async def test_a_provider_that_refuses_is_there(failed: Failed) -> None:
    provider = Provider(lambda fields: failed)
    calls = calls_of(provider)
    for _ in range(10):
        with pytest.raises(Failed):
            await calls.send("/x", FIELDS, disputed=frozenset({"response_format"}))
    assert len(provider.asked) == 10


async def test_callers_that_give_up_say_nothing_about_the_provider_and_keep_no_slot() -> None:
    provider = Provider()
    provider.hangs = True
    calls = calls_of(provider, slots=1)
    for _ in range(10):
        asking = asyncio.create_task(calls.ask("/x", FIELDS))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    provider.hangs = False
    async with asyncio.timeout(5):
        await calls.ask("/x", FIELDS)
    assert len(provider.asked) == 11


async def test_what_an_operator_has_to_mend_is_said_once_and_without_the_providers_words() -> None:
    provider = Provider(lambda fields: outage(401, words="I live in Lisbon", operators_fault=True))
    calls = calls_of(provider, failures=100)
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            with pytest.raises(ModelUnavailable):
                await calls.ask("/x", FIELDS)
        provider.says = lambda fields: None
        await calls.ask("/x", FIELDS)
        provider.says = lambda fields: outage(401, operators_fault=True)
        with pytest.raises(ModelUnavailable):
            await calls.ask("/x", FIELDS)
    assert [entry["log_level"] for entry in logs] == ["error", "error"]
    assert "Lisbon" not in str(logs).title()

"""A model that is away, slow, overloaded or mad: one worker lives through all of it. Only nonsense is parked."""

import asyncio
import time
from typing import Final

import pytest

from processors.extraction import MAX_ANSWERS
from tests.integration.streams.faults.system import Scene, ScriptedModel, eventually

OWNERS: Final = [f"user/{number}" for number in range(8)]


async def test_a_model_that_is_down_is_waited_for(living: Scene, model: ScriptedModel, minute: float) -> None:
    model.go_away()
    await living.say(OWNERS, 3)
    await asyncio.sleep(minute / 2)  # what is tested: an outage that lasts
    model.come_back()
    await living.holds()


async def test_a_model_that_hangs_is_given_up_on_and_asked_again(living: Scene, model: ScriptedModel) -> None:
    model.control(mode="hang")
    await living.say(OWNERS[:3], 2)
    await eventually(lambda: model.server.stats.chat_calls >= 4, "it is asked again")
    model.control(mode="answer")
    await living.holds()


async def test_a_model_that_names_a_time_is_left_alone_until_then(living: Scene, model: ScriptedModel) -> None:
    model.control(mode="error", status=429, retry_after="3", calls=1)
    began = time.monotonic()
    await living.say(OWNERS[:1])
    await eventually(lambda: model.server.stats.chat_calls >= 2, "it is asked again")
    assert time.monotonic() - began >= 3
    await living.holds()


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_a_model_that_fails_is_asked_again(living: Scene, model: ScriptedModel, status: int) -> None:
    model.control(mode="error", status=status, calls=6)
    await living.say(OWNERS, 2)
    await living.holds()
    assert model.server.stats.failures == 6


async def test_nonsense_is_parked_after_its_retries_and_what_can_be_read_is_not(
    living: Scene, model: ScriptedModel
) -> None:
    await living.say(OWNERS[:2])
    await living.holds()
    model.control(reset=True)
    await living.unspeakable(OWNERS[0])
    await living.say(OWNERS[:2])
    await living.holds()
    assert model.server.stats.chat_calls >= MAX_ANSWERS + 2


async def test_a_poison_turn_in_the_middle_of_a_window_is_parked_alone(scene: Scene, model: ScriptedModel) -> None:
    await scene.say(["user/2"], 2)
    await scene.unspeakable("user/2")
    await scene.say(["user/2"], 2)
    worker = scene.start()
    await scene.holds()
    # The five of them together until the answer counts as unusable, then each by itself.
    assert model.server.stats.chat_calls == MAX_ANSWERS + 4 + MAX_ANSWERS
    assert await worker.terminate() == 0

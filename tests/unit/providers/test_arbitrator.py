"""The arbitrator over any chat model: how it asks, asks again, and counts."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from mnemostream.turns import Reason
from typing_extensions import override

from processors.arbitration import MAX_ANSWERS, ArbitrationFailed, ArbitrationRequest, Judgement
from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from processors.routing import Action
from providers.arbitrator import SCHEMA, ModelArbitrator
from providers.chat import AnswerSchema, ChatMessage, Completion
from providers.prompts import Instructions, load
from tests.fakes.pairs import id_of, question

PORTO = "The user lives in Porto."
DOG = "The user has a dog called Rex."
REQUEST = ArbitrationRequest((question("The user lives in Lisbon.", PORTO), question("Rex is 5 years old.", DOG)))
MOVED = {"q": 0, "m": 0, "action": "DELETE", "text": "", "reason": "They moved."}
OTHER = {"q": 1, "m": 1, "action": "ADD", "text": "", "reason": "Another thing."}


class ScriptedChat:
    """Answers in turn; an exception is raised."""

    model = "scripted"

    def __init__(self, *answers: Completion | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[ChatMessage]] = []

    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        assert schema is SCHEMA
        self.asked.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(*judgements: Any, tokens: tuple[int, int] = (100, 10), whole: bool = True) -> Completion:
    return Completion(json.dumps({"judgements": judgements}), whole, *tokens)


async def test_one_call_judges_all_questions() -> None:
    chat = ScriptedChat(said(MOVED, OTHER))
    answer = await ModelArbitrator(chat).arbitrate(REQUEST)
    assert answer.judgements == (
        {id_of(PORTO): Judgement(Action.DELETE, "They moved.")},
        {id_of(DOG): Judgement(Action.ADD, "Another thing.")},
    )
    assert len(chat.asked) == 1
    assert [message.role for message in chat.asked[0]] == ["system", "user"]
    assert chat.asked[0][0].content == load("arbitration.v1").text.strip()
    reading = answer.reading
    assert (reading.model, reading.prompt_version) == ("scripted", "arbitration.v1")
    assert (reading.tokens_in, reading.tokens_out, answer.refused) == (100, 10, 0)
    assert reading.latency_seconds > 0


async def test_the_prompt_can_be_another_and_its_version_is_kept() -> None:
    chat = ScriptedChat(said(MOVED, OTHER))
    answer = await ModelArbitrator(chat, instructions=Instructions("arbitration.v9", "Judge.")).arbitrate(REQUEST)
    assert answer.reading.prompt_version == "arbitration.v9"
    assert chat.asked[0][0].content == "Judge."


async def test_every_call_has_a_nonce_of_its_own() -> None:
    chat = ScriptedChat(said(MOVED, OTHER), said(MOVED, OTHER))
    for _ in range(2):
        await ModelArbitrator(chat).arbitrate(REQUEST)
    first, second = (asked[1].content.partition("\n")[0] for asked in chat.asked)
    assert first != second


async def test_nothing_is_asked_where_there_is_no_question() -> None:
    answer = await ModelArbitrator(ScriptedChat()).arbitrate(ArbitrationRequest(()))
    assert (answer.judgements, answer.reading.tokens_in) == ((), 0)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Completion("no json", True, 100, 10), "It is not valid JSON"),
        (Completion("", True, 100, 10), "It is not valid JSON"),
        (said(MOVED, OTHER, whole=False), "It was cut short"),
        (said({**MOVED, "m": 7}, OTHER), "To question 0 belong m 0, no others."),
        (said(MOVED), "Question 1 has no judgement."),
        (said(), "Question 0 has no judgement. Question 1 has no judgement."),
    ],
)
async def test_an_answer_that_is_not_whole_is_asked_for_again_and_told_why(bad: Completion, told: str) -> None:
    chat = ScriptedChat(bad, said(MOVED, OTHER))
    answer = await ModelArbitrator(chat).arbitrate(REQUEST)
    assert [len(judgements) for judgements in answer.judgements] == [1, 1]
    assert (answer.reading.tokens_in, answer.reading.tokens_out) == (200, 20)
    assert chat.asked[1][:2] == chat.asked[0]
    assert chat.asked[1][2] == ChatMessage("assistant", bad.text or "(nothing)")
    assert told in chat.asked[1][3].content


async def test_refused_judgements_of_all_answers_are_counted() -> None:
    other = {**MOVED, "m": 7}
    answer = await ModelArbitrator(ScriptedChat(said(other, other), said(MOVED, other, OTHER))).arbitrate(REQUEST)
    assert answer.refused == 3


async def test_the_last_answers_complaint_replaces_the_one_before() -> None:
    chat = ScriptedChat(said(), Completion("no json", True), said(MOVED, OTHER))
    await ModelArbitrator(chat).arbitrate(REQUEST)
    assert [len(asked) for asked in chat.asked] == [2, 4, 4]
    assert chat.asked[2][2].content == "no json"


@pytest.mark.parametrize(
    "answers",
    [
        (said(MOVED), said(MOVED), said(MOVED)),
        (said(MOVED), Completion("no json", True), said()),
        (said(), said(), said(MOVED)),
        (said(MOVED, {**MOVED, "m": 7}), said({**MOVED, "q": 7}), Completion("", False)),
    ],
)
async def test_after_the_last_attempt_what_is_usable_is_taken(answers: tuple[Completion, ...]) -> None:
    chat = ScriptedChat(*answers)
    answer = await ModelArbitrator(chat).arbitrate(REQUEST)
    assert answer.judgements == ({id_of(PORTO): Judgement(Action.DELETE, "They moved.")}, {})
    assert len(chat.asked) == MAX_ANSWERS


@pytest.mark.parametrize(
    ("answers", "rule"),
    [
        ([Completion("no json", True)] * MAX_ANSWERS, "not_json"),
        ([Completion('{"facts": []}', True)] * MAX_ANSWERS, "no_list_of_judgements"),
        ([said(MOVED, whole=False)] * MAX_ANSWERS, "cut_short"),
        ([said()] * MAX_ANSWERS, "no_valid_judgement"),
        ([said({**MOVED, "m": 7})] * MAX_ANSWERS, "no_valid_judgement"),
    ],
)
async def test_an_answer_that_stays_unusable_is_rejected_without_quoting_it(
    answers: list[Completion], rule: str
) -> None:
    with pytest.raises(Rejected) as raised:
        await ModelArbitrator(ScriptedChat(*answers)).arbitrate(REQUEST)
    assert raised.value.reason is Reason.MODEL_ANSWER_UNUSABLE
    assert str(raised.value).endswith(f"after {MAX_ANSWERS} answers of the model: {rule}")


@pytest.mark.parametrize(
    "error",
    [ModelTimeout("late"), ModelUnavailable("away"), Rejected(Reason.MODEL_REFUSED, "the model refuses")],
)
async def test_what_the_chat_raises_is_not_asked_again(error: Exception) -> None:
    chat = ScriptedChat(error)
    with pytest.raises(type(error)):
        await ModelArbitrator(chat).arbitrate(REQUEST)
    assert len(chat.asked) == 1


@pytest.mark.parametrize("error", [ModelTimeout("late"), Rejected(Reason.MODEL_REFUSED, "the model refuses")])
async def test_what_is_usable_is_taken_where_no_further_answer_comes(error: Exception) -> None:
    for answers in ((said(MOVED), error), (said(MOVED), Completion("no json", True, 100, 10), error)):
        answer = await ModelArbitrator(ScriptedChat(*answers)).arbitrate(REQUEST)
        assert answer.judgements == ({id_of(PORTO): Judgement(Action.DELETE, "They moved.")}, {})
        assert answer.reading.tokens_in == 100 * (len(answers) - 1)


async def test_a_model_that_went_away_is_waited_for_and_one_that_is_late_with_nothing_before_is_late() -> None:
    with pytest.raises(ModelUnavailable, match="away"):
        await ModelArbitrator(ScriptedChat(said(MOVED), ModelUnavailable("away"))).arbitrate(REQUEST)
    with pytest.raises(ModelTimeout):
        await ModelArbitrator(ScriptedChat(said(), ModelTimeout("late"))).arbitrate(REQUEST)


async def test_an_arbitration_that_comes_to_nothing_tells_its_cost() -> None:
    with pytest.raises(ArbitrationFailed) as failed:
        await ModelArbitrator(ScriptedChat(*[said()] * MAX_ANSWERS)).arbitrate(REQUEST)
    reading = failed.value.reading
    assert (failed.value.requests, reading.tokens_in, reading.tokens_out) == (3, 300, 30)
    assert (reading.model, reading.prompt_version) == ("scripted", "arbitration.v1")
    refusal = Rejected(Reason.MODEL_REFUSED, "the model refuses")
    with pytest.raises(ArbitrationFailed) as failed:
        await ModelArbitrator(ScriptedChat(said(), refusal)).arbitrate(REQUEST)
    assert (failed.value.reason, failed.value.detail) == (Reason.MODEL_REFUSED, "the model refuses")
    assert (failed.value.requests, failed.value.reading.tokens_in) == (1, 100)


class StuckChat(ScriptedChat):
    """Gives its answers, and then none."""

    @override
    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        if not self.answers:
            await asyncio.Event().wait()
        return await super().complete(messages, schema)


async def test_when_the_time_of_the_request_is_over_what_is_usable_is_taken() -> None:
    limited = replace(REQUEST, limit=timedelta(milliseconds=20))
    answer = await ModelArbitrator(StuckChat(said(MOVED))).arbitrate(limited)
    assert answer.judgements == ({id_of(PORTO): Judgement(Action.DELETE, "They moved.")}, {})
    assert answer.reading.tokens_in == 100
    for nothing in (StuckChat(), StuckChat(said())):
        with pytest.raises(ModelTimeout):
            await ModelArbitrator(nothing).arbitrate(limited)

"""The arbitrator that asks a language model, whichever it is."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mnemostream.turns import Reason

from processors.answers import UnusableAnswer
from processors.arbitration import MAX_ANSWERS, ArbitrationAnswer, ArbitrationFailed, ArbitrationRequest
from processors.arbitration_answers import JUDGEMENTS_SCHEMA, Judged, read_judgements
from processors.arbitration_prompts import render
from processors.errors import ModelTimeout, Rejected
from processors.facts import Reading
from providers.chat import AnswerSchema, Chat, ChatMessage, Completion
from providers.prompts import Instructions, load

SCHEMA: Final = AnswerSchema("judgements", JUDGEMENTS_SCHEMA)

_QUOTED_CHARACTERS: Final = 4_000
"""Of an answer that cannot be used, as much is shown to the model again."""


@dataclass(slots=True)
class _Count:
    """What all attempts took together."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    refused: int = 0

    def add(self, completion: Completion) -> None:
        """One more."""
        self.requests += 1
        self.tokens_in += completion.tokens_in
        self.tokens_out += completion.tokens_out


class ModelArbitrator:
    """`processors.arbitration.Arbitrator` over a chat model: one call for all questions, more only where the answer
    cannot be used.

    Its time limits are that of `chat` and that of the request.
    """

    def __init__(self, chat: Chat, *, instructions: Instructions | None = None) -> None:
        self._chat = chat
        self._instructions = instructions or load("arbitration.v1")

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        """As `Arbitrator.arbitrate`; what is Rejected is ArbitrationFailed. Tokens, time and refusals of all attempts
        are counted together.

        Where the model still passes a question over in its last answer, refuses to give another one or is late with
        it, the answer that says most is taken.
        """
        began, count = time.perf_counter(), _Count()
        try:
            judged = await self._judged(request, count) if request.questions else Judged((), 0, None)
        except Rejected as rejected:
            cost = self._reading(began, count)
            raise ArbitrationFailed(rejected.reason, rejected.detail, cost, count.requests) from None
        return ArbitrationAnswer(judged.judgements, self._reading(began, count), count.refused)

    async def _judged(self, request: ArbitrationRequest, count: _Count) -> Judged:
        prompt = render(request, instructions=self._instructions.text, nonce=secrets.token_hex(4))
        asked = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        end = None if request.limit is None else asyncio.get_running_loop().time() + request.limit.total_seconds()
        messages, best, rule = asked, None, ""
        for _ in range(MAX_ANSWERS):
            try:
                completion = await self._completion(messages, end)
            except (ModelTimeout, Rejected):
                if best is None:
                    raise
                break
            count.add(completion)
            try:
                judged = _understood(completion, request)
            except UnusableAnswer as problem:
                complaint, rule = str(problem), problem.rule
            else:
                count.refused += judged.refused
                if judged.complaint is None:
                    return judged
                complaint, rule = judged.complaint, "no_valid_judgement"
                if judged.taken and (best is None or judged.taken >= best.taken):
                    best = judged
            messages = [*asked, *_asked_again(completion.text, complaint)]
        if best is None:
            raise Rejected(Reason.MODEL_ANSWER_UNUSABLE, f"after {MAX_ANSWERS} answers of the model: {rule}")
        return best

    async def _completion(self, messages: Sequence[ChatMessage], end: float | None) -> Completion:
        """The model's answer, where it comes before `end` on the loop's clock. Raises as `Chat.complete`."""
        try:
            async with asyncio.timeout_at(end):
                return await self._chat.complete(messages, SCHEMA)
        except TimeoutError:
            raise ModelTimeout("the model did not answer in the time that was left") from None

    def _reading(self, began: float, count: _Count) -> Reading:
        return Reading(
            model=self._chat.model,
            prompt_version=self._instructions.version,
            tokens_in=count.tokens_in,
            tokens_out=count.tokens_out,
            latency_seconds=time.perf_counter() - began,
        )


def _understood(completion: Completion, request: ArbitrationRequest) -> Judged:
    if not completion.whole:
        raise UnusableAnswer("cut_short", "It was cut short: give shorter reasons.")
    return read_judgements(completion.text, request)


def _asked_again(answer: str, complaint: str) -> list[ChatMessage]:
    return [
        ChatMessage("assistant", answer[:_QUOTED_CHARACTERS] or "(nothing)"),
        ChatMessage("user", f"That answer cannot be used. {complaint} Answer again, all of it."),
    ]

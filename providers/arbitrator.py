"""The arbitrator that asks a language model, whichever it is."""

import secrets
import time
from dataclasses import dataclass
from typing import Final

from mnemostream.turns import Reason

from processors.answers import UnusableAnswer
from processors.arbitration import MAX_ANSWERS, ArbitrationAnswer, ArbitrationRequest
from processors.arbitration_answers import JUDGEMENTS_SCHEMA, Judged, read_judgements
from processors.arbitration_prompts import render
from processors.errors import Rejected
from processors.facts import Reading
from providers.chat import AnswerSchema, Chat, ChatMessage, Completion
from providers.prompts import Instructions, load

SCHEMA: Final = AnswerSchema("judgements", JUDGEMENTS_SCHEMA)

_QUOTED_CHARACTERS: Final = 4_000
"""Of an answer that cannot be used, as much is shown to the model again."""


@dataclass(slots=True)
class _Count:
    """What all attempts took together."""

    tokens_in: int = 0
    tokens_out: int = 0
    refused: int = 0

    def add(self, completion: Completion) -> None:
        """One more."""
        self.tokens_in += completion.tokens_in
        self.tokens_out += completion.tokens_out


class ModelArbitrator:
    """`processors.arbitration.Arbitrator` over a chat model: one call for all questions, more only where the answer
    cannot be used.

    It has no time limit beside that of `chat`.
    """

    def __init__(self, chat: Chat, *, instructions: Instructions | None = None) -> None:
        self._chat = chat
        self._instructions = instructions or load("arbitration.v1")

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        """As `Arbitrator.arbitrate`. Tokens, time and refusals of all attempts are counted together.

        Where the model still passes a question over in its last answer, the answer that says most is taken.
        """
        began, count = time.perf_counter(), _Count()
        judged = await self._judged(request, count) if request.questions else Judged((), 0, None)
        reading = Reading(
            model=self._chat.model,
            prompt_version=self._instructions.version,
            tokens_in=count.tokens_in,
            tokens_out=count.tokens_out,
            latency_seconds=time.perf_counter() - began,
        )
        return ArbitrationAnswer(judged.judgements, reading, count.refused)

    async def _judged(self, request: ArbitrationRequest, count: _Count) -> Judged:
        prompt = render(request, instructions=self._instructions.text, nonce=secrets.token_hex(4))
        asked = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        messages, best, rule = asked, None, ""
        for _ in range(MAX_ANSWERS):
            completion = await self._chat.complete(messages, SCHEMA)
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


def _understood(completion: Completion, request: ArbitrationRequest) -> Judged:
    if not completion.whole:
        raise UnusableAnswer("cut_short", "It was cut short: give shorter reasons.")
    return read_judgements(completion.text, request)


def _asked_again(answer: str, complaint: str) -> list[ChatMessage]:
    return [
        ChatMessage("assistant", answer[:_QUOTED_CHARACTERS] or "(nothing)"),
        ChatMessage("user", f"That answer cannot be used. {complaint} Answer again, all of it."),
    ]

"""Hearing the arbitrator about what code alone cannot decide: once a pair, one call for all that is ambiguous."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from mnemostream.turns import Reason

from memory.decisions import Decided, Heard
from memory.ports import Arbitrator, Embedder
from processors.arbitration import (
    ArbitrationAnswer,
    ArbitrationFailed,
    ArbitrationRequest,
    Judgement,
    Question,
    Unheard,
)
from processors.effects import Look
from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from processors.facts import MAX_FACT_BYTES, Reading
from processors.routing import Action

_SHARE: Final = 0.95
"""Of the time that is left, the arbitrator is told: what it has by then it can still give."""

_BOTH_STAND: Final = Judgement(Action.ADD, "the arbitrator sees nothing against it")
_TOO_SLOW: Final = Unheard("did not answer in its time")
_UNUSABLE: Final = Unheard("gave no usable answer")
_REFUSED: Final = Unheard("refused to answer")
_AWAY: Final = Unheard("was away")
_BROKE_A_RULE: Final = Unheard("proposed what the guards refuse")
_NO_VECTOR: Final = Unheard("proposed a text that the embedding model refuses")


class Hearing:
    """The arbitrator, about the candidates of one window or request. `decide` runs on what was heard so far."""

    def __init__(
        self,
        arbitrator: Arbitrator,
        embedder: Embedder,
        decide: Callable[[Look, Heard], Decided],
        *,
        limit: timedelta,
        waits: bool = True,
        max_memory_bytes: int = MAX_FACT_BYTES,
        on_asked: Callable[[Reading, int, int], None] | None = None,
    ) -> None:
        """limit: for all calls together; beyond it what is not judged stands, marked.

        waits: an arbitrator that is away is waited for (ModelUnavailable is raised); else its pairs stand, marked.
        on_asked: hears how it was asked, of how many questions, and how many judgements were refused.
        """
        self.heard = Heard()
        self._arbitrator = arbitrator
        self._embedder = embedder
        self._decide = decide
        self._seconds_left = limit.total_seconds()
        self._waits = waits
        self._max_memory_bytes = max_memory_bytes
        self._on_asked = on_asked

    async def complete(self, look: Look) -> Decided:
        """Ask until nothing is open, and give what is decided: an answer may open another question, because it changed
        what is known.

        Raises ModelUnavailable.
        """
        while (decided := self._decide(look, self.heard)).questions:
            await self._ask(look, decided.questions)
        return decided

    async def _ask(self, look: Look, asked: Sequence[tuple[UUID, Question]]) -> None:
        limit = timedelta(seconds=_SHARE * max(0.0, self._seconds_left))
        request = ArbitrationRequest(tuple(q for _, q in asked), look.profile, self._max_memory_bytes, limit=limit)
        answer = await self._answer(request)
        for place, (candidate, question) in enumerate(asked):
            for offered in question.offered:
                self.heard.pairs[candidate, offered.memory_id] = _judged(answer, place, offered.memory_id)
            if isinstance(answer, ArbitrationAnswer):
                self.heard.readings[candidate] = answer.reading
        await self._embed_merged()

    async def _answer(self, request: ArbitrationRequest) -> ArbitrationAnswer | Unheard:
        if self._seconds_left <= 0:
            return _TOO_SLOW
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._seconds_left):
                answer = await self._arbitrator.arbitrate(request)
        except (TimeoutError, ModelTimeout):
            return _TOO_SLOW
        except Rejected as rejected:
            if isinstance(rejected, ArbitrationFailed) and self._on_asked is not None:
                self._on_asked(rejected.reading, len(request.questions), 0)
            return _REFUSED if rejected.reason is Reason.MODEL_REFUSED else _UNUSABLE
        except ModelUnavailable:
            if self._waits:
                raise
            return _AWAY
        finally:
            self._seconds_left -= loop.time() - began
        if self._on_asked is not None:
            self._on_asked(answer.reading, len(request.questions), answer.refused)
        return answer

    async def _embed_merged(self) -> None:
        wanted = {j.text for j in self.heard.pairs.values() if isinstance(j, Judgement) and j.text is not None}
        texts = sorted(wanted - self.heard.vectors.keys())
        for text in texts:
            try:
                [self.heard.vectors[text]] = await self._embedder.embed([text])
            except Rejected:
                refused = [pair for pair, j in self.heard.pairs.items() if isinstance(j, Judgement) and j.text == text]
                self.heard.pairs |= dict.fromkeys(refused, _NO_VECTOR)


def _judged(answer: ArbitrationAnswer | Unheard, place: int, memory_id: UUID) -> Judgement | Unheard:
    """What was said of one pair. Where judgements were refused, a pair without one may have been theirs."""
    if isinstance(answer, Unheard):
        return answer
    return answer.judgements[place].get(memory_id, _BROKE_A_RULE if answer.refused else _BOTH_STAND)

"""Hearing the arbitrator about what code alone cannot decide: once a pair, one call for all that is ambiguous."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from memory.decisions import Decided, Heard
from memory.ports import Arbitrator, Embedder
from processors.arbitration import ArbitrationAnswer, ArbitrationRequest, Judgement, Question
from processors.effects import Look
from processors.errors import ModelTimeout, ModelUnavailable, Rejected
from processors.facts import MAX_FACT_BYTES, Reading
from processors.routing import Action

_BOTH_STAND: Final = Judgement(Action.ADD, "the arbitrator sees nothing against it")


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

    async def complete(self, look: Look) -> None:
        """Ask until nothing is open: an answer may open another question, because it changed what is known.

        Raises ModelUnavailable.
        """
        while questions := self._decide(look, self.heard).questions:
            await self._ask(look, questions)

    async def _ask(self, look: Look, asked: Sequence[tuple[UUID, Question]]) -> None:
        request = ArbitrationRequest(tuple(q for _, q in asked), look.profile, self._max_memory_bytes)
        answer = await self._answer(request)
        for place, (candidate, question) in enumerate(asked):
            for offered in question.offered:
                heard = None if answer is None else answer.judgements[place].get(offered.memory_id, _BOTH_STAND)
                self.heard.pairs[candidate, offered.memory_id] = heard
            if answer is not None:
                self.heard.readings[candidate] = answer.reading
        await self._embed_merged()

    async def _answer(self, request: ArbitrationRequest) -> ArbitrationAnswer | None:
        """None: it could not be heard, and will not be."""
        if self._seconds_left <= 0:
            return None
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._seconds_left):
                answer = await self._arbitrator.arbitrate(request)
        except (TimeoutError, ModelTimeout, Rejected):
            return None
        except ModelUnavailable:
            if self._waits:
                raise
            return None
        finally:
            self._seconds_left -= loop.time() - began
        if self._on_asked is not None:
            self._on_asked(answer.reading, len(request.questions), answer.refused)
        return answer

    async def _embed_merged(self) -> None:
        wanted = {j.text for j in self.heard.pairs.values() if j is not None and j.text is not None}
        texts = sorted(wanted - self.heard.vectors.keys())
        if texts:
            self.heard.vectors |= zip(texts, await self._embedder.embed(texts), strict=True)

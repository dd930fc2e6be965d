"""The reader that asks a language model, whichever it is."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from mnemostream.turns import Reason

from processors.answers import Dropped, Read, UnusableAnswer, categories_of, read_answer, strict_schema, strongest
from processors.chunks import CHUNK_CHARACTERS, Chunk, Chunked, chunks
from processors.errors import Rejected
from processors.extraction import MAX_ANSWERS, ReadAnswer, ReadingFailed, ReadRequest
from processors.facts import MAX_FACT_BYTES, Reading
from processors.prompts import render
from providers.chat import AnswerSchema, Chat, ChatMessage, Completion
from providers.prompts import Instructions, load

_QUOTED_CHARACTERS: Final = 4_000
"""Of an answer that cannot be used, as much is shown to the model again."""
_LONG: Final = 50_000
"""Characters beyond which a window is cut up in a thread, so that the event loop goes on."""
_LONG_WINDOWS: Final = 2
"""Windows of several chunks that are read at the same time: their chunks are asked about all at once, and long turns
shall not take every call that may be in flight for as long as there are any."""


def _ignore(reason: Dropped, count: int) -> None:
    """Count nothing."""


@dataclass(slots=True)
class _Count:
    """What all requests took together."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, completion: Completion) -> None:
        """One more."""
        self.requests += 1
        self.tokens_in += completion.tokens_in
        self.tokens_out += completion.tokens_out


class ModelReader:
    """`processors.extraction.Reader` over a chat model: one call for a window, or for each chunk of a long one; more
    only where an answer cannot be used.

    It has no time limit beside that of `chat`. `on_dropped` hears of facts that were not taken, by reason.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        instructions: Instructions | None = None,
        max_fact_bytes: int = MAX_FACT_BYTES,
        chunk_characters: int = CHUNK_CHARACTERS,
        on_dropped: Callable[[Dropped, int], None] = _ignore,
    ) -> None:
        self._chat = chat
        self._instructions = instructions or load("extraction.v2")
        self._max_fact_bytes = max_fact_bytes
        self._chunk_characters = chunk_characters
        self._on_dropped = on_dropped
        self._long = asyncio.Semaphore(_LONG_WINDOWS)

    async def read(self, request: ReadRequest) -> ReadAnswer:
        """As `Reader.read`; what is Rejected is ReadingFailed. Tokens and time of all requests are counted together.

        One chunk that cannot be read is enough: the window is rejected, not read in part.
        """
        began, count = time.perf_counter(), _Count()
        window = await self._chunked(request)
        schema = _schema(categories_of(request))
        try:
            if len(window.chunks) > 1:
                async with self._long:
                    parts = await _all_of([self._part(request, chunk, schema, count) for chunk in window.chunks])
            else:
                parts = [await self._part(request, chunk, schema, count) for chunk in window.chunks]
        except Rejected as rejected:
            cost = self._reading(began, count)
            raise ReadingFailed(rejected.reason, rejected.detail, cost, count.requests) from None
        read = _together(parts, request)
        for reason, times in read.dropped.items():
            self._on_dropped(reason, times)
        return ReadAnswer(read.facts, self._reading(began, count), count.requests, window.unread_characters)

    async def _chunked(self, request: ReadRequest) -> Chunked:
        size = sum(len(message.content) for turn in request.turns for message in turn.messages)
        if size > _LONG:
            return await asyncio.to_thread(chunks, request, self._chunk_characters)
        return chunks(request, self._chunk_characters)

    async def _part(self, request: ReadRequest, chunk: Chunk, schema: AnswerSchema, count: _Count) -> Read:
        prompt = render(request, chunk, instructions=self._instructions.text, nonce=secrets.token_hex(4))
        asked = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        messages, rule = asked, ""
        for _ in range(MAX_ANSWERS):
            completion = await self._chat.complete(messages, schema)
            count.add(completion)
            try:
                return self._understood(completion, request, chunk)
            except UnusableAnswer as problem:
                rule = problem.rule
                messages = [*asked, *_asked_again(completion.text, problem)]
        raise Rejected(Reason.MODEL_ANSWER_UNUSABLE, f"after {MAX_ANSWERS} answers of the model: {rule}")

    def _understood(self, completion: Completion, request: ReadRequest, chunk: Chunk) -> Read:
        if not completion.whole:
            raise UnusableAnswer("cut_short", "It was cut short: give fewer and shorter facts.")
        return read_answer(completion.text, request, chunk, max_fact_bytes=self._max_fact_bytes)

    def _reading(self, began: float, count: _Count) -> Reading:
        return Reading(
            model=self._chat.model,
            prompt_version=self._instructions.version,
            tokens_in=count.tokens_in,
            tokens_out=count.tokens_out,
            latency_seconds=time.perf_counter() - began,
        )


@lru_cache(maxsize=256)
def _schema(categories: tuple[str, ...]) -> AnswerSchema:
    """One object for each set of categories."""
    return AnswerSchema("facts", strict_schema(categories))


async def _all_of(parts: Sequence[Coroutine[Any, Any, Read]]) -> list[Read]:
    """All at once; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _together(parts: Sequence[Read], request: ReadRequest) -> Read:
    """What several chunks gave, as if one had: what they share once, and no more for a turn than it may have."""
    if len(parts) == 1:
        return parts[0]
    dropped = sum((Counter(part.dropped) for part in parts), Counter[Dropped]())
    kept, late = strongest([fact for part in parts for fact in part.facts], request)
    return Read(kept, dropped + late)


def _asked_again(answer: str, problem: UnusableAnswer) -> list[ChatMessage]:
    return [
        ChatMessage("assistant", answer[:_QUOTED_CHARACTERS] or "(nothing)"),
        ChatMessage("user", f"That answer cannot be used. {problem} Answer again, all of it."),
    ]

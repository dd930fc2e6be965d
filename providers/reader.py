"""The reader that asks a language model, whichever it is."""

import asyncio
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from mnemostream.turns import Reason

from processors.answers import Dropped, Read, UnusableAnswer, categories_of, read_answer, strict_schema, strongest
from processors.chunks import CHUNK_CHARACTERS, Chunk, Chunked, chunks
from processors.errors import Rejected, Unavailable
from processors.extraction import MAX_ANSWERS, ReadAnswer, ReadingFailed, ReadRequest
from processors.facts import MAX_FACT_BYTES, Reading
from processors.prompts import render
from providers.chat import AnswerSchema, Chat, ChatMessage, Completion
from providers.prompts import Instructions, load

_QUOTED_CHARACTERS: Final = 4_000
"""Of an answer that cannot be used, as much is shown to the model again."""
_LONG: Final = 50_000
"""Characters beyond which a window is cut up in a thread, so that the event loop goes on."""
_CHUNKS_AT_ONCE: Final = 4
"""Of one long window, as many chunks are asked about at the same time: it shall not take every call that may be in
flight."""
_LONG_CALLS: Final = 8
"""Of all long windows together. They take turns, chunk by chunk."""
_REMEMBERED_CHUNKS: Final = 1024
"""Of the 64 longest windows; some 5 kB each."""


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

    def take(self, other: "_Count") -> None:
        """All of `other`, which has nothing left then: what is told once is not told again."""
        self.requests += other.requests
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        other.requests = other.tokens_in = other.tokens_out = 0


@dataclass(slots=True)
class _Asked:
    """How far a chunk got: what asking about it took, as far as no answer told yet, and what was read."""

    count: _Count = field(default_factory=_Count)
    read: Read | None = None


class _Memo:
    """The chunks of long windows that were asked about lately, by what was asked."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, _Asked] = OrderedDict()

    def entry(self, key: bytes) -> _Asked:
        """The one that is known, or a new one in place of the one that was not wanted for longest."""
        asked = self._entries.setdefault(key, _Asked())
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return asked


class ModelReader:
    """`processors.extraction.Reader` over a chat model: one call for a window, or for each chunk of a long one; more
    only where an answer cannot be used.

    It has no time limit beside that of `chat`. What was read of a long window is remembered for a while: an attempt at
    it that is cancelled, or has to wait for the model, has not asked for nothing. `on_dropped` hears of facts that were
    not taken, by reason.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        instructions: Instructions | None = None,
        max_fact_bytes: int = MAX_FACT_BYTES,
        chunk_characters: int = CHUNK_CHARACTERS,
        remembered_chunks: int = _REMEMBERED_CHUNKS,
        on_dropped: Callable[[Dropped, int], None] = _ignore,
    ) -> None:
        self._chat = chat
        self._instructions = instructions or load("extraction.v2")
        self._max_fact_bytes = max_fact_bytes
        self._chunk_characters = chunk_characters
        self._on_dropped = on_dropped
        self._long_calls = asyncio.Semaphore(_LONG_CALLS)
        self._memo = _Memo(remembered_chunks)

    async def read(self, request: ReadRequest) -> ReadAnswer:
        """As `Reader.read`; what is Rejected is ReadingFailed. Tokens and time of all requests are counted together.

        One chunk that cannot be read is enough: the window is rejected, not read in part. Where the model is away for
        one, the others are read first, and only what is missing is asked for the next time.
        """
        began = time.perf_counter()
        window = await self._chunked(request)
        asked = self._asked(request, window)
        try:
            parts = await self._parts(request, window, asked)
        except Rejected as rejected:
            reading, requests = self._cost(began, asked)
            raise ReadingFailed(rejected.reason, rejected.detail, reading, requests) from None
        read = _together(parts, request)
        for reason, times in read.dropped.items():
            self._on_dropped(reason, times)
        return ReadAnswer(read.facts, *self._cost(began, asked), window.unread_characters)

    async def _chunked(self, request: ReadRequest) -> Chunked:
        size = sum(len(message.content) for turn in request.turns for message in turn.messages)
        if size > _LONG:
            return await asyncio.to_thread(chunks, request, self._chunk_characters)
        return chunks(request, self._chunk_characters)

    def _asked(self, request: ReadRequest, window: Chunked) -> list[_Asked]:
        """An entry for each chunk. A window of one is asked about as a whole or not at all: nothing is remembered."""
        if len(window.chunks) == 1:
            return [_Asked()]
        return [self._memo.entry(self._key(request, chunk)) for chunk in window.chunks]

    def _key(self, request: ReadRequest, chunk: Chunk) -> bytes:
        """Equal only where the same is asked about the same turns."""
        prompt = render(request, chunk, instructions=self._instructions.text, nonce="")
        places = sorted({message.turn for message in chunk.messages})
        turns = [
            (turn.app, turn.owner, turn.id, turn.said_at.isoformat(), turn.recalled)
            for turn in (request.turns[place] for place in places)
        ]
        asked = (
            self._chat.model,
            self._instructions.version,
            categories_of(request),
            turns,
            prompt.system,
            prompt.user,
        )
        return sha256(repr(asked).encode()).digest()

    async def _parts(self, request: ReadRequest, window: Chunked, asked: Sequence[_Asked]) -> list[Read]:
        """What each chunk says. Raises Rejected at once, Unavailable when all others are done."""
        schema = _schema(categories_of(request))
        if len(window.chunks) == 1:
            return [await self._part(request, window.chunks[0], schema, asked[0])]
        at_once = asyncio.Semaphore(_CHUNKS_AT_ONCE)

        async def part(chunk: Chunk, entry: _Asked) -> Read | Unavailable:
            if entry.read is not None:
                return entry.read
            async with at_once, self._long_calls:
                try:
                    return await self._part(request, chunk, schema, entry)
                except Unavailable as unavailable:
                    return unavailable

        return _available(await _all_of([part(*each) for each in zip(window.chunks, asked, strict=True)]))

    async def _part(self, request: ReadRequest, chunk: Chunk, schema: AnswerSchema, entry: _Asked) -> Read:
        prompt = render(request, chunk, instructions=self._instructions.text, nonce=secrets.token_hex(4))
        asked = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        messages, rule = asked, ""
        for _ in range(MAX_ANSWERS):
            completion = await self._chat.complete(messages, schema)
            entry.count.add(completion)
            try:
                entry.read = self._understood(completion, request, chunk)
            except UnusableAnswer as problem:
                rule = problem.rule
                messages = [*asked, *_asked_again(completion.text, problem)]
            else:
                return entry.read
        raise Rejected(Reason.MODEL_ANSWER_UNUSABLE, f"after {MAX_ANSWERS} answers of the model: {rule}")

    def _understood(self, completion: Completion, request: ReadRequest, chunk: Chunk) -> Read:
        if not completion.whole:
            raise UnusableAnswer("cut_short", "It was cut short: give fewer and shorter facts.")
        return read_answer(completion.text, request, chunk, max_fact_bytes=self._max_fact_bytes)

    def _cost(self, began: float, asked: Sequence[_Asked]) -> tuple[Reading, int]:
        """What it took, and in how many requests: those of attempts before, that came to nothing, too."""
        count = _Count()
        for entry in asked:
            count.take(entry.count)
        reading = Reading(
            model=self._chat.model,
            prompt_version=self._instructions.version,
            tokens_in=count.tokens_in,
            tokens_out=count.tokens_out,
            latency_seconds=time.perf_counter() - began,
        )
        return reading, count.requests


@lru_cache(maxsize=256)
def _schema(categories: tuple[str, ...]) -> AnswerSchema:
    """One object for each set of categories."""
    return AnswerSchema("facts", strict_schema(categories))


async def _all_of(parts: Sequence[Coroutine[Any, Any, Read | Unavailable]]) -> list[Read | Unavailable]:
    """All of them; the first that raises ends the others."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _available(parts: Sequence[Read | Unavailable]) -> list[Read]:
    """What was read, where that is all. Raises the Unavailable that wants the longest wait, else the first."""
    away = [part for part in parts if isinstance(part, Unavailable)]
    if away:
        raise max(away, key=lambda each: each.retry_after or timedelta())
    return [part for part in parts if isinstance(part, Read)]


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

"""The reader that asks no model."""

import asyncio
import time
from collections.abc import Callable

from processors.answers import Dropped
from processors.extraction import ReadAnswer, ReadRequest
from processors.facts import MAX_FACT_BYTES, Reading
from processors.local import PROMPT_VERSION, read_locally

_LONG = 20_000
"""Characters beyond which the rules (some 10 ms for these) are applied in a thread, so that the event loop goes on."""


def _ignore(reason: Dropped, count: int) -> None:
    """Count nothing."""


class LocalReader:
    """`processors.extraction.Reader` by rules over plain first-person sentences.

    No language model: it knows what `processors.local` lists and misses the rest. Its answers say `local-rules`.
    """

    def __init__(
        self, *, max_fact_bytes: int = MAX_FACT_BYTES, on_dropped: Callable[[Dropped, int], None] = _ignore
    ) -> None:
        self._max_fact_bytes = max_fact_bytes
        self._on_dropped = on_dropped

    async def read(self, request: ReadRequest) -> ReadAnswer:
        """As `Reader.read`; raises nothing of its own."""
        began = time.perf_counter()
        size = sum(len(message.content) for turn in request.turns for message in turn.messages)
        if size > _LONG:
            read = await asyncio.to_thread(read_locally, request, max_fact_bytes=self._max_fact_bytes)
        else:
            read = read_locally(request, max_fact_bytes=self._max_fact_bytes)
        for reason, count in read.dropped.items():
            self._on_dropped(reason, count)
        elapsed = time.perf_counter() - began
        return ReadAnswer(
            read.facts, Reading(model="local-rules", prompt_version=PROMPT_VERSION, latency_seconds=elapsed)
        )

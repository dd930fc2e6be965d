"""Embeddings from a provider that speaks OpenAI's format."""

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from processors.errors import MnemoError, ModelUnavailable, Rejected
from processors.vectors import EmbeddingModel, Vector
from providers.calls import Calls
from providers.embeddings import checked_vectors

BATCH: Final = 128
"""Texts of one request. OpenAI takes 2,048; local servers often far fewer."""

REQUESTS: Final = 4
"""Requests in flight. Callers that come meanwhile share the next one: a request's CPU is paid once for many texts."""


class _Item(msgspec.Struct):
    embedding: str | list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_Item]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one caller asks for, at most `BATCH` texts."""

    texts: Sequence[str]
    answer: asyncio.Future[list[Vector]]

    def fail(self, error: MnemoError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class OpenAIEmbedder:
    """`memory.ports.Embedder` over HTTP. `model.dimensions` is asked for; a model that gives others is
    `Unavailable`."""

    def __init__(self, calls: Calls, model: EmbeddingModel) -> None:
        self._calls = calls
        self._model = model
        self._waiting: deque[_Asked] = deque()
        self._pumps: set[asyncio.Task[None]] = set()

    @property
    def model(self) -> EmbeddingModel:
        """As it was configured."""
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`, in requests of up to 128 texts, shared with other callers when there are many."""
        loop = asyncio.get_running_loop()
        parts = [_Asked(texts[start : start + BATCH], loop.create_future()) for start in range(0, len(texts), BATCH)]
        self._waiting.extend(parts)
        # One that has ended, and whose end was not noticed yet, would not see what waits now.
        if parts and sum(not pump.done() for pump in self._pumps) < REQUESTS:
            pump = loop.create_task(self._work())
            self._pumps.add(pump)
            pump.add_done_callback(self._ended)
        return [vector for part in await asyncio.gather(*(part.answer for part in parts)) for vector in part]

    async def aclose(self) -> None:
        """Give up what is in flight; those who wait are told that the model is away."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _work(self) -> None:
        while batch := self._next_batch():
            try:
                await self._answer(batch)
            finally:
                for asked in batch:
                    if not asked.answer.done():
                        asked.answer.set_exception(ModelUnavailable("the embedding model was given up"))

    def _ended(self, pump: asyncio.Task[None]) -> None:
        self._pumps.discard(pump)
        if pump.cancelled() or pump.exception() is not None:
            while self._waiting:
                asked = self._waiting.popleft()
                if not asked.answer.done():
                    asked.answer.set_exception(ModelUnavailable("the embedding model was given up"))

    def _next_batch(self) -> list[_Asked]:
        batch: list[_Asked] = []
        room = BATCH
        while self._waiting and len(self._waiting[0].texts) <= room:
            asked = self._waiting.popleft()
            if not asked.answer.done():
                batch.append(asked)
                room -= len(asked.texts)
        return batch

    async def _answer(self, batch: Sequence[_Asked]) -> None:
        """One request for all of `batch`. Where the model refuses it, each caller is asked for alone."""
        try:
            vectors = await self._request([text for asked in batch for text in asked.texts])
        except Rejected as error:
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for asked in batch:
                await self._answer([asked])
        except ModelUnavailable as error:
            for asked in batch:
                asked.fail(type(error)(str(error), retry_after=error.retry_after))
        else:
            for asked in batch:
                own, vectors = vectors[: len(asked.texts)], vectors[len(asked.texts) :]
                if not asked.answer.done():
                    asked.answer.set_result(own)

    async def _request(self, texts: Sequence[str]) -> list[Vector]:
        fields: dict[str, Any] = {
            "model": self._model.name,
            # A model has no vector for nothing.
            "input": [text.encode("utf-8", "replace").decode() or " " for text in texts],
            "dimensions": self._model.dimensions,
            "encoding_format": "base64",
        }
        body = await self._calls.ask("/embeddings", fields)
        try:
            answer = msgspec.json.decode(body, type=_Answer)
            rows = [_vector(item.embedding) for item in sorted(answer.data, key=lambda item: item.index)]
        except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
            raise ModelUnavailable("the embedding model's answer cannot be read") from None
        return checked_vectors(rows, count=len(texts), dimensions=self._model.dimensions)


def _vector(embedding: str | list[float]) -> Vector:
    """Base64 of little-endian float32, or plain numbers from servers that know no other."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray(embedding, dtype=np.float32)

"""What every embedder needs at its border: a check of what the model gave, and a bounded cache before the model."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np

from processors.errors import ModelUnavailable
from processors.vectors import EmbeddingModel, Vector

_UNIT_TOLERANCE = 1e-3
"""How far from length 1 a vector may be and still be one that the model meant to normalise."""


class Embeds(Protocol):
    """What is cached: the shape of `memory.ports.Embedder`, which this layer cannot import."""

    @property
    def model(self) -> EmbeddingModel:
        """Which one."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of `texts`, in their order."""
        ...


def checked_vectors(rows: Sequence[Vector], *, count: int, dimensions: int) -> list[Vector]:
    """`rows` as read-only float32 of unit length, once there are `count` of them, of `dimensions`, finite and not zero.

    A vector of another length than 1 is normalised. Raises ModelUnavailable: a model that answers like this is
    configured wrongly or broken, which is no fault of the text.
    """
    if len(rows) != count:
        raise ModelUnavailable(f"the embedding model gave {len(rows)} vectors for {count} texts")
    return [_checked(row, dimensions) for row in rows]


def _checked(row: Vector, dimensions: int) -> Vector:
    if row.shape != (dimensions,):
        raise ModelUnavailable(
            f"the embedding model gives {row.size} dimensions, {dimensions} are set (MNEMO_EMBEDDING_DIMENSIONS)"
        )
    vector = row.astype(np.float32, copy=True)
    length = float(np.sqrt(np.dot(vector, vector)))
    if not np.isfinite(length) or length == 0:
        raise ModelUnavailable("the embedding model gave a vector that is not finite, or of length zero")
    if abs(length - 1) > _UNIT_TOLERANCE:
        vector /= length
    vector.flags.writeable = False
    return vector


class CachingEmbedder:
    """An embedder that remembers the last `max_entries` texts (by hash: no text is kept), least recently used out
    first.

    Equal texts that are asked for at once cost one call. Cancelling a caller leaves the call to those who wait for
    it too.
    """

    def __init__(self, inner: Embeds, *, max_entries: int = 10_000) -> None:
        self._inner = inner
        self._max_entries = max_entries
        self._known: OrderedDict[bytes, Vector] = OrderedDict()
        self._flights: dict[bytes, asyncio.Task[dict[bytes, Vector]]] = {}
        self.hits = 0
        self.misses = 0

    @property
    def model(self) -> EmbeddingModel:
        """That of the embedder behind."""
        return self._inner.model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`. A failure of a call that another caller started is not ours: the text is asked for
        again."""
        keys = [_key(text) for text in texts]
        found: dict[bytes, Vector] = {}
        wanted = dict(zip(keys, texts, strict=True))
        while True:
            for key in [key for key in wanted if key in self._known]:
                self._known.move_to_end(key)
                found[key] = self._known[key]
                del wanted[key]
                self.hits += 1
            if not wanted:
                return [found[key] for key in keys]
            joined = {self._flights[key] for key in wanted if key in self._flights}
            own = {key: text for key, text in wanted.items() if key not in self._flights}
            if own:
                self.misses += len(own)
                # Awaited whether or not it fails: what others started must not hide it.
                found |= await asyncio.shield(self._start(own))
                wanted = {key: text for key, text in wanted.items() if key not in own}
            if joined:
                await asyncio.wait(joined)
                for flight in joined:
                    if not flight.cancelled() and flight.exception() is None:
                        landed = flight.result()
                        found |= {key: landed[key] for key in wanted if key in landed}
                wanted = {key: text for key, text in wanted.items() if key not in found}

    def _start(self, own: dict[bytes, str]) -> asyncio.Task[dict[bytes, Vector]]:
        flight = asyncio.get_running_loop().create_task(self._fly(own))
        for key in own:
            self._flights[key] = flight
        flight.add_done_callback(_retrieve)
        return flight

    async def _fly(self, own: dict[bytes, str]) -> dict[bytes, Vector]:
        try:
            vectors = await self._inner.embed(list(own.values()))
            landed = dict(zip(own, vectors, strict=True))
        finally:
            for key in own:
                del self._flights[key]
        self._known |= landed
        while len(self._known) > self._max_entries:
            self._known.popitem(last=False)
        return landed

    async def aclose(self) -> None:
        """Give up what is still being asked for."""
        flights = set(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _retrieve(flight: asyncio.Task[dict[bytes, Vector]]) -> None:
    """Look at the outcome, so that a failure nobody waits for any more is not reported as forgotten."""
    if not flight.cancelled():
        flight.exception()

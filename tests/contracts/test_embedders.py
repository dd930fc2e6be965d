"""What every embedder does, whichever model is behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import numpy as np
import pytest

from cli.dev.model_server import ModelServer, serve
from memory.ports import Embedder
from processors.vectors import EmbeddingModel
from providers.embeddings import CachingEmbedder
from providers.local.embedding import LocalEmbedder
from providers.openai.client import open_calls
from providers.openai.embedding import OpenAIEmbedder


@contextlib.asynccontextmanager
async def _local() -> AsyncIterator[Embedder]:
    embedder = LocalEmbedder()
    await embedder.start()
    yield embedder
    await embedder.aclose()


@contextlib.asynccontextmanager
async def _openai() -> AsyncIterator[Embedder]:
    async with (
        serve(ModelServer()) as url,
        open_calls(api_key=None, base_url=url, timeout=timedelta(seconds=10), max_in_flight=8) as calls,
    ):
        yield OpenAIEmbedder(calls, EmbeddingModel("scripted", 512))


@contextlib.asynccontextmanager
async def _cached() -> AsyncIterator[Embedder]:
    async with _openai() as inner:
        cached = CachingEmbedder(inner, max_entries=100)
        yield cached
        await cached.aclose()


@pytest.fixture(params=[_local, _openai, _cached], ids=["local", "openai", "cached"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    opened: Callable[[], AbstractAsyncContextManager[Embedder]] = request.param
    async with opened() as ready:
        yield ready


async def test_vectors_are_of_unit_length_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = ["I live in Lisbon", "My dog is called Rex", "I am allergic to peanuts"]
    vectors = await embedder.embed(texts)
    assert [vector.shape for vector in vectors] == [(embedder.model.dimensions,)] * 3
    for text, vector in zip(texts, vectors, strict=True):
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        (alone,) = await embedder.embed([text])
        assert np.abs(alone - vector).max() < 1e-5


async def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed([]) == []


async def test_equal_texts_have_equal_vectors_and_others_do_not(embedder: Embedder) -> None:
    first, again, other = await embedder.embed(["I live in Lisbon", "I live in Lisbon", "Bananas are yellow"])
    assert np.abs(first - again).max() < 1e-5
    assert float(first @ other) < 0.5


async def test_a_text_has_the_same_vector_whatever_it_is_batched_with(embedder: Embedder) -> None:
    text = "The user works as a nurse"
    (alone,) = await embedder.embed([text])
    crowd = ["x", text, "a much longer text, " * 30, "middle sized text here", *(f"number {n}" for n in range(20))]
    among = (await embedder.embed(crowd))[1]
    assert np.abs(alone - among).max() < 1e-5


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\ud800", "日本語のテキスト", "👩‍👩‍👧", "word " * 2_000], ids=range(7)
)
async def test_any_text_has_a_finite_vector(embedder: Embedder, text: str) -> None:
    (vector,) = await embedder.embed([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_many_callers_at_once_get_their_own_vectors(embedder: Embedder) -> None:
    texts = [[f"caller {caller} says {n}" for n in range(3)] for caller in range(20)]
    together = await asyncio.gather(*(embedder.embed(group) for group in texts))
    for group, vectors in zip(texts[::7], together[::7], strict=True):
        for vector, again in zip(vectors, await embedder.embed(group), strict=True):
            assert np.abs(vector - again).max() < 1e-5


async def test_a_caller_that_is_cancelled_leaves_the_others_alone(embedder: Embedder) -> None:
    given_up = asyncio.create_task(embedder.embed(["shared text", "of one who gives up"]))
    waiting = asyncio.create_task(embedder.embed(["shared text", "of one who waits"]))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert len(await waiting) == 2
    assert len(await embedder.embed(["of one who gives up"])) == 1


async def test_its_vectors_cannot_be_changed_by_whoever_gets_them(embedder: Embedder) -> None:
    (vector,) = await embedder.embed(["I live in Lisbon"])
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0

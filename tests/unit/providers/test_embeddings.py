"""The check at an embedder's border, and the cache before it."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from mnemostream.turns import Reason

from processors.errors import ModelUnavailable, Rejected
from processors.vectors import EmbeddingModel, Vector
from providers.embeddings import CachingEmbedder, checked_vectors


def unit(*values: float) -> Vector:
    vector = np.array(values, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_vectors_of_another_length_than_one_are_normalised() -> None:
    (vector,) = checked_vectors([np.array([3, 4], np.float32)], count=1, dimensions=2)
    assert vector.tolist() == pytest.approx([0.6, 0.8])  # 3/5, 4/5


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [np.zeros(2, np.float32)],
        [np.array([np.nan, 1], np.float32)],
        [np.array([np.inf, 1], np.float32)],
        [np.ones(3, np.float32)],
        [np.ones((1, 2), np.float32)],
        [unit(1, 1), unit(1, 1)],
    ],
    ids=["none", "zero", "nan", "infinite", "too long", "a matrix", "too many"],
)
def test_what_is_no_vector_is_refused(rows: list[Vector]) -> None:
    with pytest.raises(ModelUnavailable):
        checked_vectors(rows, count=1, dimensions=2)


class Scripted:
    """An embedder that waits for `go`, counts, and fails on demand."""

    model = EmbeddingModel("scripted", 2)

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.poison: set[str] = set()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(list(texts))
        await self.go.wait()
        if self.poison & set(texts):
            raise Rejected(Reason.MODEL_REFUSED, "scripted")
        return [unit(len(text), 1) for text in texts]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_text_is_asked_for_once() -> None:
    inner = Scripted()
    cache = CachingEmbedder(inner, max_entries=10)
    await cache.embed(["one", "two", "one"])
    vectors = await cache.embed(["two", "three"])
    assert inner.asked == [["one", "two"], ["three"]]
    assert np.array_equal(vectors[0], unit(3, 1))


async def test_equal_texts_at_once_cost_one_call() -> None:
    inner = Scripted()
    inner.go.clear()
    cache = CachingEmbedder(inner, max_entries=10)
    callers = [asyncio.create_task(cache.embed(["same"])) for _ in range(5)]
    await settle()
    inner.go.set()
    await asyncio.gather(*callers)
    assert inner.asked == [["same"]]


async def test_the_least_recently_used_text_goes_first() -> None:
    inner = Scripted()
    cache = CachingEmbedder(inner, max_entries=2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        await cache.embed([text])
    assert inner.asked == [["a"], ["bb"], ["ccc"], ["bb"]]


async def test_more_texts_in_one_call_than_fit_are_all_answered() -> None:
    cache = CachingEmbedder(Scripted(), max_entries=2)
    assert len(await cache.embed([f"text {n}" for n in range(10)])) == 10


async def test_a_failure_is_not_remembered() -> None:
    inner = Scripted()
    inner.poison = {"bad"}
    cache = CachingEmbedder(inner, max_entries=10)
    with pytest.raises(Rejected):
        await cache.embed(["bad"])
    inner.poison = set()
    assert len(await cache.embed(["bad"])) == 1


async def test_the_poison_of_one_caller_is_not_the_other_callers() -> None:
    inner = Scripted()
    inner.go.clear()
    inner.poison = {"bad"}
    cache = CachingEmbedder(inner, max_entries=10)
    poisoned = asyncio.create_task(cache.embed(["shared", "bad"]))
    await settle()
    innocent = asyncio.create_task(cache.embed(["shared", "mine"]))
    await settle()
    inner.go.set()
    with pytest.raises(Rejected):
        await poisoned
    assert len(await innocent) == 2
    assert inner.asked == [["shared", "bad"], ["mine"], ["shared"]]


async def test_cancelling_the_first_caller_leaves_the_call_to_the_second() -> None:
    inner = Scripted()
    inner.go.clear()
    cache = CachingEmbedder(inner, max_entries=10)
    first = asyncio.create_task(cache.embed(["same"]))
    await settle()
    second = asyncio.create_task(cache.embed(["same"]))
    await settle()
    first.cancel()
    await asyncio.wait([first])
    inner.go.set()
    assert len(await second) == 1
    assert inner.asked == [["same"]]


async def test_closing_ends_what_is_in_flight() -> None:
    inner = Scripted()
    inner.go.clear()
    cache = CachingEmbedder(inner, max_entries=10)
    waiting = asyncio.create_task(cache.embed(["same"]))
    await settle()
    await cache.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting

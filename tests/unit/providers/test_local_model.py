"""The local embedding model: built from an installed package, the same vectors as the original."""

import asyncio
import math
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from processors.errors import ModelUnavailable
from processors.vectors import Vector
from providers.local.embedding import LocalEmbedder
from providers.local.model import default_cache, ensure_model, find_files

Array = NDArray[np.float64]


async def cosine(one: str, other: str) -> float:
    embedder = LocalEmbedder()
    first, second = await embedder.embed([one, other])
    await embedder.aclose()
    return float(first @ second)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("User is allergic to peanuts", "User is not allergic to peanuts", 0.979),
        ("User is 34 years old", "User is 35 years old", 0.970),
        ("User lives in São Paulo", "User was born in São Paulo", 0.866),
        ("User lives in São Paulo", "User lives in Rio de Janeiro", 0.855),
        ("User works at Google", "User works at Microsoft", 0.592),
    ],
)
async def test_cosines_are_those_of_the_original_model(one: str, other: str, expected: float) -> None:
    """Measured with the original implementation, to three digits."""
    assert await cosine(one, other) == pytest.approx(expected, abs=6e-4)


def layer_norm(x: Array, weights: dict[str, Array], name: str) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def erf(x: Array) -> Array:
    return np.vectorize(math.erf)(x)


def plain_numpy(text: str) -> Array:
    """The model as its paper has it, one sentence at a time, in double precision: nothing shared with the graph."""
    files = find_files()
    weights = {name: value.astype(np.float64) for name, value in load_file(files.weights).items()}
    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.no_padding()
    ids = tokenizer.encode(text).ids

    def linear(x: Array, name: str) -> Array:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = layer_norm(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            linear(x, f"{name}.attention.self.{part}").reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(32)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (shares / shares.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), 384)
        x = layer_norm(
            x + linear(mixed, f"{name}.attention.output.dense"), weights, f"{name}.attention.output.LayerNorm"
        )
        wide = linear(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / np.sqrt(2)))
        x = layer_norm(x + linear(wide, f"{name}.output.dense"), weights, f"{name}.output.LayerNorm")
    mean: Array = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("text", ["The user is allergic to peanuts.", "São Paulo, 日本, 5,000 dollars & émojis 🎉"])
async def test_the_graph_computes_what_plain_numpy_computes(text: str) -> None:
    embedder = LocalEmbedder()
    (vector,) = await embedder.embed([text])
    await embedder.aclose()
    assert np.abs(vector - plain_numpy(text)).max() < 1e-5


async def test_only_the_first_256_tokens_count() -> None:
    embedder = LocalEmbedder()
    first, longer, shorter = await embedder.embed(["word " * 254, "word " * 254 + "entirely different", "word " * 250])
    await embedder.aclose()
    assert np.abs(first - longer).max() < 1e-5
    assert np.abs(first - shorter).max() > 1e-5


def test_two_builds_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_model(tmp_path / "models"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert [path.name for path in (tmp_path / "models").iterdir()] == [found[0].name]
    assert found[0].stat().st_size > 80_000_000


def test_the_cache_is_where_the_desktop_standard_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "mnemostream" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_cache() == tmp_path / "home" / ".cache" / "mnemostream" / "models"


async def test_the_event_loop_goes_on_while_texts_are_embedded() -> None:
    embedder = LocalEmbedder()
    await embedder.start()
    work = asyncio.create_task(embedder.embed([f"a sentence of some length, number {n}" for n in range(64)]))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    await embedder.aclose()
    assert turns > 50


async def test_those_who_still_wait_when_it_closes_are_told() -> None:
    embedder = LocalEmbedder()
    await embedder.start()
    waiting: asyncio.Task[list[Vector]] = asyncio.create_task(embedder.embed([f"text {n}" for n in range(64)]))
    await asyncio.sleep(0)
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await waiting


async def test_a_folder_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    embedder = LocalEmbedder(cache_dir=blocked)
    with pytest.raises(OSError, match="file"):
        await embedder.start()
    await embedder.aclose()

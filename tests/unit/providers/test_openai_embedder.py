"""Who embeds texts by a provider: what only the order of events can show."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from processors.errors import ModelUnavailable
from processors.vectors import EmbeddingModel
from providers.calls import Calls
from providers.openai.embedding import REQUESTS, OpenAIEmbedder

ONE = b64encode(np.array([1, 0], dtype="<f4").tobytes()).decode()


class Nowhere:
    """An endpoint that is not asked."""

    async def post(self, path: str, body: bytes) -> bytes:
        raise AssertionError(path)


class Provider(Calls):
    """Answers everybody in one moment, when it is told to."""

    def __init__(self) -> None:
        super().__init__(Nowhere(), timeout=timedelta(seconds=1), max_in_flight=8)
        self.now = asyncio.Event()
        self.body: bytes | None = None

    @override
    async def ask(self, path: str, fields: Mapping[str, Any]) -> bytes:
        await self.now.wait()
        if self.body is not None:
            return self.body
        return msgspec.json.encode({"data": [{"embedding": ONE, "index": i} for i in range(len(fields["input"]))]})


async def test_who_asks_while_all_others_end_is_not_forgotten() -> None:
    provider = Provider()
    embedder = OpenAIEmbedder(provider, EmbeddingModel("m", 2))
    first = []
    for n in range(REQUESTS):
        first.append(asyncio.create_task(embedder.embed([f"text {n}"])))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # its request is on its way

    async def last() -> int:
        await provider.now.wait()  # behind the requests, and before anybody noticed that they ended
        async with asyncio.timeout(5):
            return len(await embedder.embed(["late"]))

    late = asyncio.create_task(last())
    await asyncio.sleep(0)
    provider.now.set()
    assert await late == 1
    assert [len(vectors) for vectors in await asyncio.gather(*first)] == [1] * REQUESTS
    await embedder.aclose()


async def test_an_answer_that_nests_without_end_is_no_answer() -> None:
    provider = Provider()
    provider.now.set()
    provider.body = b'{"more":' + b"[" * 100_000
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        await OpenAIEmbedder(provider, EmbeddingModel("m", 2)).embed(["x"])

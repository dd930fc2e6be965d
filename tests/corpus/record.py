"""Write the local model's cosines into the corpus: `python -m tests.corpus.record`."""

import asyncio
from dataclasses import replace

from providers.local.embedding import LocalEmbedder
from tests import corpus


async def record() -> None:
    """Embed every text of the corpus; the vectors have unit length."""
    pairs = corpus.load()
    embedder = LocalEmbedder()
    try:
        old = await embedder.embed([pair.old for pair in pairs])
        new = await embedder.embed([pair.new for pair in pairs])
    finally:
        await embedder.aclose()
    cosines = [round(float(one @ other), 3) for one, other in zip(old, new, strict=True)]
    corpus.save([replace(pair, cosine=cosine) for pair, cosine in zip(pairs, cosines, strict=True)])


if __name__ == "__main__":
    asyncio.run(record())

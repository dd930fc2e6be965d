"""An embedding model in this process: a vector of its own for each text, the same each time."""

from collections.abc import Sequence

from processors.errors import ModelUnavailable
from processors.vectors import EmbeddingModel, Vector
from tests.fakes.values import MODEL, vector_of


class FakeEmbedder:
    """The port `Embedder`. `away`: every call raises ModelUnavailable."""

    def __init__(self, model: EmbeddingModel = MODEL) -> None:
        self.model = model
        self.away = False
        self.embedded: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.away:
            raise ModelUnavailable("the embedding model is away")
        self.embedded.extend(texts)
        return [vector_of(text, self.model.dimensions) for text in texts]

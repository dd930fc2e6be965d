"""Which models the settings name."""

from typing import Any

import pytest

from processors.vectors import EmbeddingModel
from providers.assembly import open_embedder, open_reader
from providers.local.reader import LocalReader
from providers.openai.reader import OpenAIReader
from runtime.settings import InvalidSettings, Settings, load_settings


def settings(**values: Any) -> Settings:
    return load_settings({}, **values)


async def test_without_settings_everything_is_local() -> None:
    async with open_reader(settings()) as reader, open_embedder(settings()) as embedder:
        assert isinstance(reader, LocalReader)
        assert embedder.model == EmbeddingModel("all-MiniLM-L6-v2", 384, 0.95, 0.85)


async def test_the_embedding_provider_follows_the_models_unless_it_is_set() -> None:
    remote = {"model_provider": "openai", "openai_base_url": "http://127.0.0.1:9/v1"}
    async with open_reader(settings(**remote)) as reader, open_embedder(settings(**remote)) as embedder:
        assert isinstance(reader, OpenAIReader)
        assert embedder.model == EmbeddingModel("text-embedding-3-small", 512, 0.95, 0.85)
    async with open_embedder(settings(**remote, embedding_provider="local")) as embedder:
        assert embedder.model.dimensions == 384


async def test_openai_itself_needs_a_key_and_a_server_of_ones_own_does_not() -> None:
    with pytest.raises(InvalidSettings, match="MNEMO_OPENAI_API_KEY"):
        async with open_reader(settings(model_provider="openai")):
            pass
    async with open_reader(settings(model_provider="openai", openai_api_key="sk-x")) as reader:
        assert isinstance(reader, OpenAIReader)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"embedding_model": "bert"}, "MNEMO_EMBEDDING_MODEL"),
        ({"embedding_dimensions": 512}, "MNEMO_EMBEDDING_DIMENSIONS"),
        ({"model_provider": "openai", "openai_api_key": "sk-x", "embedding_dimensions": 1536}, "EMBEDDING_DIMENSIONS"),
    ],
)
async def test_a_model_that_cannot_be_had_is_refused_at_the_start(values: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSettings, match=named):
        async with open_embedder(settings(**values)):
            pass

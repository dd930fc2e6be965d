"""Which models the settings name."""

import subprocess
import sys
from typing import Any

import pytest

from cli.dev.model_server import ModelServer, serve
from processors.arbitration import ArbitrationRequest
from processors.errors import ModelUnavailable
from processors.vectors import EmbeddingModel
from providers.arbitrator import ModelArbitrator
from providers.assembly import check_models, open_arbitrator, open_embedder, open_reader
from providers.local.arbitrator import LocalArbitrator
from providers.local.reader import LocalReader
from providers.reader import ModelReader
from runtime.settings import InvalidSettings, Settings, load_settings


def settings(**values: Any) -> Settings:
    return load_settings({}, **values)


async def test_without_settings_everything_is_local() -> None:
    async with (
        open_reader(settings()) as reader,
        open_arbitrator(settings()) as arbitrator,
        open_embedder(settings()) as embedder,
    ):
        assert isinstance(reader, LocalReader)
        assert isinstance(arbitrator, LocalArbitrator)
        assert embedder.model == EmbeddingModel("all-MiniLM-L6-v2", 384, 0.95, 0.85)


async def test_the_embedding_provider_follows_the_models_unless_it_is_set() -> None:
    remote = {"model_provider": "openai", "openai_base_url": "http://127.0.0.1:9/v1"}
    async with open_reader(settings(**remote)) as reader, open_embedder(settings(**remote)) as embedder:
        assert isinstance(reader, ModelReader)
        assert embedder.model == EmbeddingModel("text-embedding-3-small", 512, 0.95, 0.85)
    async with open_embedder(settings(**remote, embedding_provider="local")) as embedder:
        assert embedder.model.dimensions == 384


async def test_openai_itself_needs_a_key_and_a_server_of_ones_own_does_not() -> None:
    with pytest.raises(InvalidSettings, match="MNEMO_OPENAI_API_KEY"):
        async with open_reader(settings(model_provider="openai")):
            pass
    async with open_reader(settings(model_provider="openai", openai_api_key="sk-x")) as reader:
        assert isinstance(reader, ModelReader)


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


async def test_anthropic_reads_and_arbitrates_and_embeds_nothing() -> None:
    remote = settings(model_provider="anthropic", anthropic_api_key="sk-ant-x")
    async with (
        open_reader(remote) as reader,
        open_arbitrator(remote) as arbitrator,
        open_embedder(remote) as embedder,
    ):
        assert isinstance(reader, ModelReader)
        assert isinstance(arbitrator, ModelArbitrator)
        assert embedder.model.name == "all-MiniLM-L6-v2"


async def test_anthropic_itself_needs_a_key_and_a_server_of_ones_own_does_not() -> None:
    with pytest.raises(InvalidSettings, match="MNEMO_ANTHROPIC_API_KEY"):
        check_models(settings(model_provider="anthropic"))
    with pytest.raises(InvalidSettings, match="MNEMO_ANTHROPIC_API_KEY"):
        async with open_arbitrator(settings(model_provider="anthropic")):
            pass
    check_models(settings(model_provider="anthropic", anthropic_base_url="http://127.0.0.1:9"))


def test_without_its_package_anthropic_is_refused_with_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['anthropic'] = None\n"
        "from providers.assembly import check_models; from runtime.settings import load_settings\n"
        "check_models(load_settings({}, model_provider='anthropic', anthropic_api_key='sk-ant-x'))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode != 0
    assert "InvalidSettings: MNEMO_MODEL_PROVIDER: " in ran.stderr
    assert "pip install 'mnemostream[anthropic]'" in ran.stderr
    assert "sk-ant-x" not in ran.stderr


def test_without_anthropic_its_package_is_not_even_imported() -> None:
    program = "import providers.assembly, sys; print('anthropic' in sys.modules, 'openai' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "False False\n"


async def test_each_use_has_a_circuit_of_its_own_that_is_heard_of() -> None:
    heard: list[tuple[str, bool]] = []
    server = ModelServer()
    server.control(b'{"mode": "error", "status": 503, "retry_after": "60", "endpoints": ["embeddings"]}')
    async with serve(server) as url:
        remote = settings(model_provider="openai", openai_base_url=url)

        def on_circuit(use: str, is_open: bool) -> None:
            heard.append((use, is_open))

        async with (
            open_arbitrator(remote, on_circuit=on_circuit) as arbitrator,
            open_embedder(remote, on_circuit=on_circuit) as embedder,
        ):
            for _ in range(6):
                with pytest.raises(ModelUnavailable):
                    await embedder.embed(["I live in Lisbon"])
            await arbitrator.arbitrate(ArbitrationRequest(()))
    assert heard == [("embedding", True)]
    assert server.stats.embedding_calls == 5

"""Which models the settings name, opened and closed."""

import contextlib
import importlib.util
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Final, Literal

from processors.answers import Dropped
from processors.arbitration import Arbitrator
from processors.extraction import Reader
from processors.vectors import EmbeddingModel
from providers.chat import Chat
from providers.circuit import Circuit
from providers.embeddings import CachingEmbedder
from runtime.settings import InvalidSettings, Settings

MAX_DIMENSIONS: Final = 1280
"""The store's limit (DESIGN.md §9): more does not fit into the index entry that makes an owner's search fast."""

_OPENAI_MODEL: Final = "text-embedding-3-small"
_OPENAI_DIMENSIONS: Final = 512

Use = Literal["extraction", "arbitration", "embedding"]
"""What a model is asked for. Each has calls, a bound, a time limit and a circuit of its own."""


def _ignore(reason: Dropped, count: int) -> None:
    """Count nothing."""


def _ignore_circuit(use: Use, is_open: bool) -> None:
    """Show nothing."""


@contextlib.asynccontextmanager
async def open_reader(
    settings: Settings,
    *,
    on_dropped: Callable[[Dropped, int], None] = _ignore,
    on_circuit: Callable[[Use, bool], None] = _ignore_circuit,
) -> AsyncIterator[Reader]:
    """The reader that the settings name. Raises InvalidSettings.

    on_circuit: hears that a provider is away (True), and that it is back.
    """
    async with contextlib.AsyncExitStack() as stack:
        chat = await stack.enter_async_context(_open_chat(settings, "extraction", on_circuit))
        if chat is None:
            from providers.local.reader import LocalReader

            yield LocalReader(max_fact_bytes=settings.max_memory_bytes, on_dropped=on_dropped)
        else:
            from providers.reader import ModelReader

            yield ModelReader(chat, max_fact_bytes=settings.max_memory_bytes, on_dropped=on_dropped)


@contextlib.asynccontextmanager
async def open_arbitrator(
    settings: Settings, *, on_circuit: Callable[[Use, bool], None] = _ignore_circuit
) -> AsyncIterator[Arbitrator]:
    """The arbitrator that the settings name. Raises InvalidSettings."""
    async with contextlib.AsyncExitStack() as stack:
        chat = await stack.enter_async_context(_open_chat(settings, "arbitration", on_circuit))
        if chat is None:
            from providers.local.arbitrator import LocalArbitrator

            yield LocalArbitrator()
        else:
            from providers.arbitrator import ModelArbitrator

            yield ModelArbitrator(chat)


@contextlib.asynccontextmanager
async def _open_chat(
    settings: Settings, use: Literal["extraction", "arbitration"], on_circuit: Callable[[Use, bool], None]
) -> AsyncIterator[Chat | None]:
    """The language model for `use`; None: the settings name none."""
    if use == "extraction":
        model, seconds = settings.extraction_model, settings.extraction_timeout_seconds
    else:
        model, seconds = settings.arbitration_model, settings.arbitration_timeout_seconds
    circuit = Circuit(on_change=partial(on_circuit, use))
    match settings.model_provider:
        case "local":
            yield None
        case "openai":
            # Imported where it is wanted: it takes two seconds.
            from providers.openai.chat import OpenAIChat
            from providers.openai.client import open_calls

            async with open_calls(
                api_key=_openai_key(settings),
                base_url=settings.openai_base_url,
                timeout=timedelta(seconds=seconds),
                max_in_flight=settings.max_in_flight,
                circuit=circuit,
            ) as calls:
                yield OpenAIChat(calls, model=model)
        case "anthropic":
            _check_anthropic()
            from providers.anthropic.chat import AnthropicChat
            from providers.anthropic.client import open_calls as open_anthropic

            async with open_anthropic(
                api_key=_anthropic_key(settings),
                base_url=settings.anthropic_base_url,
                timeout=timedelta(seconds=seconds),
                max_in_flight=settings.max_in_flight,
                circuit=circuit,
            ) as calls:
                yield AnthropicChat(calls, model=model, max_tokens=settings.anthropic_max_tokens)


@contextlib.asynccontextmanager
async def open_embedder(
    settings: Settings,
    *,
    cache_entries: int = 10_000,
    on_circuit: Callable[[Use, bool], None] = _ignore_circuit,
) -> AsyncIterator[CachingEmbedder]:
    """The embedder that the settings name, ready, behind a cache. Raises InvalidSettings, ModelMissing, OSError."""
    async with contextlib.AsyncExitStack() as stack:
        match settings.embedding_provider:
            case "local":
                from providers.local.embedding import LocalEmbedder

                _check_local(settings)
                local = LocalEmbedder(
                    auto_merge_threshold=settings.auto_merge_threshold,
                    arbitration_threshold=settings.arbitration_threshold,
                )
                stack.push_async_callback(local.aclose)
                await local.start()
                cache = CachingEmbedder(local, max_entries=cache_entries)
            case "openai":
                from providers.openai.client import open_calls
                from providers.openai.embedding import OpenAIEmbedder

                model = _openai_model(settings)
                calls = await stack.enter_async_context(
                    open_calls(
                        api_key=_openai_key(settings),
                        base_url=settings.openai_base_url,
                        timeout=timedelta(seconds=settings.embedding_timeout_seconds),
                        max_in_flight=settings.max_in_flight,
                        circuit=Circuit(on_change=partial(on_circuit, "embedding")),
                    )
                )
                remote = OpenAIEmbedder(calls, model)
                stack.push_async_callback(remote.aclose)
                cache = CachingEmbedder(remote, max_entries=cache_entries)
        stack.push_async_callback(cache.aclose)
        yield cache


def check_models(settings: Settings) -> None:
    """Raises InvalidSettings where the models that the settings name cannot be asked. Opens nothing."""
    if "openai" in {settings.model_provider, settings.embedding_provider}:
        _openai_key(settings)
    if settings.model_provider == "anthropic":
        _check_anthropic()
        _anthropic_key(settings)


def _openai_key(settings: Settings) -> str | None:
    """The key that the settings give; none is needed for a server of one's own."""
    if settings.openai_api_key is not None:
        return settings.openai_api_key.get_secret_value()
    if settings.openai_base_url is None:
        raise InvalidSettings(
            "MNEMO_OPENAI_API_KEY: needed to use OpenAI (or MNEMO_OPENAI_BASE_URL for another server)"
        )
    return None


def _anthropic_key(settings: Settings) -> str | None:
    if settings.anthropic_api_key is not None:
        return settings.anthropic_api_key.get_secret_value()
    if settings.anthropic_base_url is None:
        raise InvalidSettings(
            "MNEMO_ANTHROPIC_API_KEY: needed to use Anthropic (or MNEMO_ANTHROPIC_BASE_URL for another server)"
        )
    return None


def _check_anthropic() -> None:
    """Its package is an extra."""
    if importlib.util.find_spec("anthropic") is None:
        raise InvalidSettings(
            "MNEMO_MODEL_PROVIDER: anthropic needs a package that is not there: pip install 'mnemostream[anthropic]'"
        )


def _check_local(settings: Settings) -> None:
    from providers.local.embedding import DIMENSIONS
    from providers.local.model import MODEL_NAME

    if settings.embedding_model not in (None, MODEL_NAME):
        raise InvalidSettings(f"MNEMO_EMBEDDING_MODEL: the local provider has {MODEL_NAME} only")
    if settings.embedding_dimensions not in (None, DIMENSIONS):
        raise InvalidSettings(f"MNEMO_EMBEDDING_DIMENSIONS: {MODEL_NAME} has {DIMENSIONS}")


def _openai_model(settings: Settings) -> EmbeddingModel:
    dimensions = settings.embedding_dimensions or _OPENAI_DIMENSIONS
    if dimensions > MAX_DIMENSIONS:
        raise InvalidSettings(
            f"MNEMO_EMBEDDING_DIMENSIONS: at most {MAX_DIMENSIONS}, because an owner's vectors are kept in a covering"
            " index whose entries hold no more; models of the text-embedding-3 family give fewer when asked"
        )
    return EmbeddingModel(
        settings.embedding_model or _OPENAI_MODEL,
        dimensions,
        settings.auto_merge_threshold,
        settings.arbitration_threshold,
    )

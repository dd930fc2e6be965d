"""Which models the settings name, opened and closed."""

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Final

from processors.answers import Dropped
from processors.extraction import Reader
from processors.vectors import EmbeddingModel
from providers.embeddings import CachingEmbedder
from runtime.settings import InvalidSettings, Settings

MAX_DIMENSIONS: Final = 1280
"""The store's limit (DESIGN.md §9): more does not fit into the index entry that makes an owner's search fast."""

_OPENAI_MODEL: Final = "text-embedding-3-small"
_OPENAI_DIMENSIONS: Final = 512


def _ignore(reason: Dropped, count: int) -> None:
    """Count nothing."""


@contextlib.asynccontextmanager
async def open_reader(
    settings: Settings, *, on_dropped: Callable[[Dropped, int], None] = _ignore
) -> AsyncIterator[Reader]:
    """The reader that the settings name. Raises InvalidSettings."""
    match settings.model_provider:
        case "local":
            from providers.local.reader import LocalReader

            yield LocalReader(max_fact_bytes=settings.max_memory_bytes, on_dropped=on_dropped)
        case "openai":
            # Imported where it is wanted: it takes two seconds.
            from providers.openai.client import open_calls
            from providers.openai.reader import OpenAIReader

            async with open_calls(
                api_key=_key(settings),
                base_url=settings.openai_base_url,
                timeout=timedelta(seconds=settings.extraction_timeout_seconds),
                max_in_flight=settings.max_in_flight,
            ) as calls:
                yield OpenAIReader(
                    calls,
                    model=settings.extraction_model,
                    max_fact_bytes=settings.max_memory_bytes,
                    on_dropped=on_dropped,
                )


@contextlib.asynccontextmanager
async def open_embedder(settings: Settings, *, cache_entries: int = 10_000) -> AsyncIterator[CachingEmbedder]:
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
                        api_key=_key(settings),
                        base_url=settings.openai_base_url,
                        timeout=timedelta(seconds=settings.embedding_timeout_seconds),
                        max_in_flight=settings.max_in_flight,
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
        _key(settings)


def _key(settings: Settings) -> str | None:
    """The key that the settings give; none is needed for a server of one's own."""
    if settings.openai_api_key is not None:
        return settings.openai_api_key.get_secret_value()
    if settings.openai_base_url is None:
        raise InvalidSettings(
            "MNEMO_OPENAI_API_KEY: needed to use OpenAI (or MNEMO_OPENAI_BASE_URL for another server)"
        )
    return None


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

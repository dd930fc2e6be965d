"""all-MiniLM-L6-v2 on the CPU: onnxruntime and a tokenizer, in a thread of their own."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from processors.errors import ModelUnavailable
from processors.vectors import EmbeddingModel, Vector
from providers.embeddings import checked_vectors
from providers.local.model import MODEL_NAME, ensure_model, find_files

DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256
"""What the model was trained on; more is cut."""
BATCH: Final = 8
"""More gains nothing on a CPU (FACTS.md)."""
_PADDING: Final = 1.5
"""A batch is split where padding would make its shortest text cost more than this many times its own tokens."""


class _Session:
    """The model and its tokenizer. Used by one thread at a time."""

    def __init__(self, model: Path, tokenizer: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # The arena keeps the largest batch ever seen; and threads that spin take the CPU from whoever shares it.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of up to `BATCH` texts, in their order."""
        # One at a time: the batch call starts a thread pool of its own. Lone surrogates are no Unicode text.
        ids = [self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids for text in texts]
        rows: list[Vector | None] = [None] * len(ids)
        for group in _groups([len(tokens) for tokens in ids]):
            for place, row in zip(group, self._run([ids[place] for place in group]), strict=True):
                rows[place] = row
        given = [row for row in rows if row is not None]
        return checked_vectors(given, count=len(texts), dimensions=DIMENSIONS)

    def _run(self, ids: Sequence[Sequence[int]]) -> Vector:
        """shape (texts, dimensions)"""
        width = max(map(len, ids))
        tokens = np.zeros((len(ids), width), np.int64)
        mask = np.zeros((len(ids), width), np.int64)
        for row, text in enumerate(ids):
            tokens[row, : len(text)] = text
            mask[row, : len(text)] = 1
        (sentence,) = self._session.run(["sentence"], {"input_ids": tokens, "attention_mask": mask})
        vectors: Vector = sentence
        return vectors


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of `lengths`, grouped so that nothing short is padded to something long."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and lengths[place] > _PADDING * lengths[group[0]] + 4:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


class LocalEmbedder:
    """`memory.ports.Embedder` on this machine's CPU.

    Texts of callers that wait at the same time share batches of 8; a text's vector does not depend on its batch. One
    thread does the work, so the event loop never does; a caller that is cancelled is left out of later batches.
    """

    def __init__(
        self,
        *,
        cache_dir: Path | None = None,
        threads: int = 2,
        auto_merge_threshold: float = 0.95,
        arbitration_threshold: float = 0.85,
    ) -> None:
        self._model = EmbeddingModel(MODEL_NAME, DIMENSIONS, auto_merge_threshold, arbitration_threshold)
        self._cache_dir = cache_dir
        self._threads = threads
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="embedding")
        self._running: list[tuple[str, asyncio.Future[Vector]]] = []
        self._waiting: deque[tuple[str, asyncio.Future[Vector]]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._session: _Session | None = None

    @property
    def model(self) -> EmbeddingModel:
        """all-MiniLM-L6-v2, 384 dimensions."""
        return self._model

    async def start(self) -> None:
        """Load the model (about 0.4 s), building it where it was never built. Raises ModelMissing and OSError."""
        if self._session is None:
            loop = asyncio.get_running_loop()
            self._session = await loop.run_in_executor(self._executor, self._load)

    def _load(self) -> _Session:
        return _Session(ensure_model(self._cache_dir), find_files().tokenizer, self._threads)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`; text beyond 256 tokens has no effect."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Vector]] = [loop.create_future() for _ in texts]
        self._waiting.extend(zip(texts, futures, strict=True))
        if futures and (self._pump is None or self._pump.done()):
            self._pump = loop.create_task(self._work())
            self._pump.add_done_callback(self._ended)
        return list(await asyncio.gather(*futures))

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        await self.start()
        while batch := self._next_batch():
            self._running = batch
            run = loop.run_in_executor(self._executor, self._run, [text for text, _ in batch])
            await asyncio.wait([run])
            _settle(batch, run)

    def _ended(self, pump: asyncio.Task[None]) -> None:
        """Cancelled (perhaps before it began), or the model cannot be loaded: nobody may be left waiting."""
        failed = not pump.cancelled() and pump.exception() is not None
        if pump.cancelled() or failed:
            for _, future in (*self._running, *self._waiting):
                if not future.done():
                    future.set_exception(ModelUnavailable("the local embedding model is closed, or cannot be loaded"))
            self._waiting.clear()

    def _run(self, texts: Sequence[str]) -> list[Vector]:
        assert self._session is not None
        return self._session.embed(texts)

    def _next_batch(self) -> list[tuple[str, asyncio.Future[Vector]]]:
        batch: list[tuple[str, asyncio.Future[Vector]]] = []
        while self._waiting and len(batch) < BATCH:
            text, future = self._waiting.popleft()
            if not future.done():
                batch.append((text, future))
        return batch

    async def aclose(self) -> None:
        """Stop the thread; those who still wait are told that the model is away."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        self._executor.shutdown(wait=True)


def _settle(batch: Sequence[tuple[str, asyncio.Future[Vector]]], run: asyncio.Future[list[Vector]]) -> None:
    """Give each waiter its vector, or an error of its own that does not quote onnxruntime's."""
    error = run.exception()
    for place, (_, future) in enumerate(batch):
        if future.done():
            continue
        if error is None:
            future.set_result(run.result()[place])
        else:
            future.set_exception(ModelUnavailable(f"the local embedding model failed ({type(error).__name__})"))

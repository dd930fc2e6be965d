"""What the use cases need of a store and of a model: implemented by `store/` and `providers/`, faked by `tests/`."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from processors.arbitration import Arbitrator
from processors.effects import Commit, Look, Probe, RequestId
from processors.memories import Memory
from processors.records import Owner
from processors.search import Hit, SearchQuery, TurnReport
from processors.vectors import EmbeddingModel, Vector

__all__ = [
    "Arbitrator",
    "Embedder",
    "MemoryReader",
    "MemorySearch",
    "OwnerStore",
    "TurnNotices",
    "TurnReports",
]


class OwnerStore(Protocol):
    """An owner's memories, read and written under its version."""

    async def look(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> Look:
        """The owner as it is now (an owner nobody has heard of has version 0), with up to `limit` neighbours a probe.

        model: that of the probes' vectors; from its arbitration threshold on, and for the same text or slot, a
        neighbour comes with its text.  Raises StoreUnavailable.
        """
        ...

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        """Apply `commit` in one transaction, if the owner's version is still `version`.

        False: the version has moved, a turn has a ledger row already, or the request was answered already; nothing was
        written, look again. A turn without effects gets its ledger row too. Raises StoreUnavailable.
        """
        ...

    async def settle(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        decide: Callable[[Look], Commit | None],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> None:
        """Look, decide and commit in one transaction under the owner's lock: for who lost too many rounds to others.

        decide: pure and quick; None where nothing is left to do.  Raises StoreUnavailable.
        """
        ...


class MemoryReader(Protocol):
    """One memory by its id."""

    async def get(self, owner: Owner, memory_id: UUID) -> Memory | None:
        """The memory in any state but FORGOTTEN; None where this owner has none by that id. Raises StoreUnavailable."""
        ...


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def model(self) -> EmbeddingModel:
        """Which one, and the scale of its similarities."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of `texts`, in their order: shape (dimensions,), unit length, finite.

        Raises ModelUnavailable, and Rejected where the model refuses a text for good.
        """
        ...


class MemorySearch(Protocol):
    """The owner's memories, asked in one statement."""

    async def search(
        self, owner: Owner, query: SearchQuery, vector: Vector | None, model: EmbeddingModel
    ) -> tuple[Hit, ...]:
        """Best first, ties by id. Without a `vector` only the text arm contributes. Raises StoreUnavailable."""
        ...


class TurnReports(Protocol):
    """How far turns got."""

    async def report(self, owner: Owner, turn_id: str) -> TurnReport:
        """The state of a turn as it is. Raises StoreUnavailable."""
        ...


class TurnNotices(Protocol):
    """Word of turns that ended."""

    def subscribe(self, owner: Owner, turn_id: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """An event that is set when the turn ended as stored, parked or erased, or when word may have been missed.

        Subscribe, then look, then wait: so nothing falls between.
        """
        ...

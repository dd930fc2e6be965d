"""Forget: what an application asks to be erased is found nowhere afterwards, and stays so for what came before."""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from processors.records import Owner


class Scrubbing(Protocol):
    """Where an owner's memories are kept."""

    async def forget(self, owner: Owner, memory_id: UUID, *, cause_id: UUID) -> bool:
        """Scrub a memory with all its versions; False where there is none. Raises StoreUnavailable."""
        ...


class Forget:
    """The forgetting of one query service."""

    def __init__(self, store: Scrubbing, *, new_id: Callable[[], UUID]) -> None:
        self._store = store
        self._new_id = new_id

    async def forget(self, owner: Owner, memory_id: UUID) -> bool:
        """Erase the memory with every version of it, and every quotation; False where this owner has none by that id.

        A statement that was received before, and says the same or comes from the same turn, does not come back; one
        that is received afterwards is a new memory.  Raises StoreUnavailable.
        """
        return await self._store.forget(owner, memory_id, cause_id=self._new_id())

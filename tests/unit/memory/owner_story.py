"""An owner who says things, one turn after the other, to a store in this process."""

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from mnemostream.turns import Reason, Role

from memory.reconcile import Reconciler
from memory.tell import Tell
from processors.arbitration import Arbitrator
from processors.effects import Commit, Effect
from processors.errors import Rejected
from processors.facts import Fact, Window, WindowTurn
from processors.memories import Memory, State
from processors.records import Owner
from processors.statements import NewStatement
from processors.vectors import EmbeddingModel, Vector, pack
from tests.fakes.arbitrator import FakeArbitrator
from tests.fakes.owner_store import FakeOwnerStore
from tests.fakes.values import NOON, OWNER, vector_of

MODEL = EmbeddingModel("wide-model", 256)
HOME = ("user", "home_city")


def hours(count: float) -> datetime:
    """So many hours after noon."""
    return NOON + timedelta(hours=count)


class Vectors:
    """The port `Embedder`: nearly right angles between texts, but where a cosine is given."""

    def __init__(self) -> None:
        self.model = MODEL
        self.refuses: str | None = None
        self._placed: dict[str, Vector] = {}

    def place(self, text: str, *, near: str, cosine: float) -> None:
        """Give `text` this cosine to the text `near`."""
        anchor = self._of(near).astype(np.float64)
        other = vector_of(text, MODEL.dimensions).astype(np.float64)
        other -= other.dot(anchor) * anchor
        vector = cosine * anchor + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other)
        self._placed[text] = vector.astype(np.float32)

    async def embed(self, texts: Any) -> list[Vector]:
        if self.refuses in texts:
            raise Rejected(Reason.MODEL_REFUSED, "the model refuses this text")
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> Vector:
        return self._placed.get(text, vector_of(text, MODEL.dimensions))


class LosingStore(FakeOwnerStore):
    """Somebody else commits first, `left` times."""

    left = 0

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        if self.left:
            self.left -= 1
            return False
        return await super().commit(owner, version, commit)


class OwnerStory:
    """What is said, and what becomes of it."""

    def __init__(self, arbitrator: Arbitrator | None = None, *, now: datetime | None = None) -> None:
        self.now = now or hours(1_000)
        self.arbitrator = FakeArbitrator()
        self.store = LosingStore(now=lambda: self.now)
        self.vectors = Vectors()
        numbers = itertools.count(1)
        self.new_id: Callable[[], UUID] = lambda: UUID(int=next(numbers))
        self.reconciler = Reconciler(
            self.store,
            self.vectors,
            arbitrator or self.arbitrator,
            new_id=self.new_id,
            arbitration_limit=timedelta(seconds=0.2),
        )
        self._offsets = itertools.count(1)

    def fact(self, text: str, *, of: int = 0, slot: tuple[str, str] | None = None, **fields: Any) -> Fact:
        values: dict[str, Any] = {
            "turn": of,
            "text": text,
            "category": "fact",
            "importance": 5,
            "confidence": 0.95,
            "role": Role.USER,
            "said_at": NOON,
            "messages": (0,),
            "subject": None if slot is None else slot[0],
            "attribute": None if slot is None else slot[1],
            "embedding": pack(self.vectors._of(text)),
        }
        return Fact(**(values | fields))

    async def say(
        self,
        *facts: Fact | str,
        at: float,
        slot: tuple[str, str] | None = None,
        received: float | None = None,
        again: int | None = None,
        run: int = 0,
        **fields: Any,
    ) -> list[Effect]:
        """One turn, said `at` so many hours and received then, or later. Gives its decisions.

        again: the turn of that number, read again in `run`.
        """
        said_at, received_at = hours(at), hours(at if received is None else received)
        made = tuple(
            self.fact(each, slot=slot, said_at=said_at, **fields) if isinstance(each, str) else each for each in facts
        )
        offset = next(self._offsets) if again is None else again
        turn = WindowTurn(
            id=f"t{offset}", topic="turns", partition=0, offset=offset, received_at=received_at, said_at=said_at
        )
        before = len(self.store.decisions(OWNER))
        await self.reconciler.reconcile(
            Window(
                app=OWNER.app,
                owner=OWNER.owner,
                session="s",
                turns=(turn,),
                facts=made,
                run=run,
                embedding_model=MODEL.name if made else None,
            )
        )
        return self.store.decisions(OWNER)[before:]

    async def tell(self, text: str, **fields: Any) -> Memory:
        """An application tells it, now."""
        tell = Tell(
            self.store,
            self.store,
            self.vectors,
            self.arbitrator,
            new_id=self.new_id,
            arbitration_limit=timedelta(seconds=0.2),
        )
        return await tell.create(OWNER, NewStatement(content=text, **fields))

    def memories(self) -> list[Memory]:
        return self.store.memories(OWNER)

    def live(self) -> list[str]:
        """The texts of what is live, in alphabetical order."""
        return sorted(memory.content for memory in self.memories() if memory.state is State.LIVE)

    def one(self, text: str, state: State | None = None) -> Memory:
        """The latest memory with that text."""
        return [m for m in self.memories() if m.content == text and state in (None, m.state)][-1]

    def kinds(self) -> list[tuple[str, str]]:
        """The feed: kind and text of each change."""
        return [(kind, memory.content) for _, kind, memory in self.store.changes(OWNER)]

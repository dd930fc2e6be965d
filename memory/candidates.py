"""A statement before it is decided, from a turn or from a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemostream.turns import Role

from processors.effects import Probe
from processors.memories import Source, StatementOrder
from processors.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What may become a memory. Its ids are made once, however often it is decided."""

    decision_id: UUID
    new_id: UUID
    """Of the memory, if it becomes one."""
    cause_id: str
    """The turn's id, or the request's."""
    content: str
    content_hash: bytes
    vector: Vector | None
    category: str
    importance: int
    confidence: float
    order: StatementOrder
    record: Mapping[str, Any]
    """As it is kept with the decision: JSON, without the vector."""
    session: str | None = None
    data: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    subject: str | None = None
    attribute: str | None = None
    role: Role | None = None
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    retracts: bool = False
    sources: tuple[Source, ...] = ()
    turn_id: str | None = None

    @property
    def slot(self) -> tuple[str, str] | None:
        """Whom it is about, and what about them; None where either is unknown."""
        return None if self.subject is None or self.attribute is None else (self.subject, self.attribute)

    @property
    def probe(self) -> Probe:
        """What its neighbours are looked up by."""
        return Probe(self.content_hash, self.vector, self.subject, self.attribute, self.order, self.turn_id)

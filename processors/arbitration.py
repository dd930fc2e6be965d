"""What is asked of a model, or of rules, that judges whether a candidate and what is known can both stand."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from mnemostream.turns import Reason, Role

from processors.errors import Rejected
from processors.facts import MAX_FACT_BYTES, Reading
from processors.guards import Difference
from processors.records import AppProfile
from processors.routing import Action

MAX_ANSWERS: Final = 3
"""Answers that a model is asked for, for one request, before the safe default is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A known memory that a candidate may concern. `memory_id` is for the code; a prompt shows numbers only."""

    memory_id: UUID
    text: str
    stated_at: datetime
    """When it was last said."""
    live: bool
    """False: it is known from before, and was retired, archived or has expired."""
    same_slot: bool
    """Subject and attribute are those of the candidate."""
    similarity: float | None
    differences: frozenset[Difference]
    """Between its text and the candidate's, as the guards see them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A candidate that code alone cannot place, and the memories that it may concern: at least one."""

    text: str
    stated_at: datetime
    role: Role | None
    """Who said it; None: an application told it."""
    retracts: bool
    """The speaker takes it back: what it names is to go, nothing is to be added."""
    offered: tuple[Offered, ...]
    subject: str | None = None
    attribute: str | None = None
    """Its slot: for rules, to know what there can be several of."""


@dataclass(frozen=True, slots=True)
class ArbitrationRequest:
    """All ambiguous candidates of a window, in their order."""

    questions: tuple[Question, ...]
    profile: AppProfile = field(default_factory=AppProfile)
    max_memory_bytes: int = MAX_FACT_BYTES
    limit: timedelta | None = None
    """For all answers together: when it is over, the best one so far is taken. None: that of a call is the only one."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to become of one pair. `action` is ADD (both stand), UPDATE (one text says both), DELETE (the known one
    no longer holds) or NOOP (the known one says it already)."""

    action: Action
    reason: str
    """In the model's words, in one line, at most 300 characters."""
    text: str | None = None
    """For UPDATE: the merged text, at most `max_memory_bytes`."""


@dataclass(frozen=True, slots=True)
class Unheard:
    """No judgement of a pair could be had: what stands instead is marked. `why` follows "the arbitrator"."""

    why: str


@dataclass(frozen=True, slots=True)
class ArbitrationAnswer:
    """For each question the judgements by the memories that it offered; a pair without one can both stand."""

    judgements: tuple[dict[UUID, Judgement], ...]
    reading: Reading
    refused: int = 0
    """Judgements that named what was not offered, or broke another rule: not taken."""


class ArbitrationFailed(Rejected):
    """A model was asked, and nothing came of it. `reading` says what that cost."""

    def __init__(self, reason: Reason, detail: str, reading: Reading, requests: int) -> None:
        super().__init__(reason, detail)
        self.reading = reading
        self.requests = requests


class Arbitrator(Protocol):
    """A model, or rules, that judges pairs. It proposes: code applies and guards."""

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        """One call for all questions.

        Raises ModelTimeout where it does not answer in its time, ModelUnavailable where it is away, and Rejected
        (ArbitrationFailed, where a model was asked) where its answers stay unusable or it refuses.
        """
        ...

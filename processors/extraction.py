"""What is asked of a model that reads facts out of a window of turns, and what it gives back."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from mnemostream.turns import Reason, Turn

from processors.errors import Rejected
from processors.facts import Fact, Reading
from processors.records import AppProfile, ContextMessage

MAX_ANSWERS: Final = 3
"""Answers that a model is asked for, for one window, before it counts as unusable."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A window to read: consecutive turns of one session, redacted, in order."""

    turns: tuple[Turn, ...]
    context: tuple[ContextMessage, ...] = ()
    """A few earlier messages of the session, oldest first."""
    profile: AppProfile = field(default_factory=AppProfile)
    max_facts_per_turn: int = 5


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The facts of a window, valid and without vectors, at most `max_facts_per_turn` for each turn."""

    facts: tuple[Fact, ...]
    reading: Reading
    requests: int = 0
    """Answers that a model was asked for."""
    unread_characters: int = 0
    """Left out of a window that was too long to be read whole."""


class ReadingFailed(Rejected):
    """A model was asked, and nothing came of it. `reading` says what that cost."""

    def __init__(self, reason: Reason, detail: str, reading: Reading, requests: int) -> None:
        super().__init__(reason, detail)
        self.reading = reading
        self.requests = requests


class Reader(Protocol):
    """A model, or rules, that reads facts out of a window."""

    async def read(self, request: ReadRequest) -> ReadAnswer:
        """What the window says that is worth keeping; no facts is an answer too.

        Raises ModelUnavailable (wait and ask again), and Rejected with MODEL_ANSWER_UNUSABLE or MODEL_REFUSED.
        """
        ...

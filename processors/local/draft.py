"""What a rule makes of a clause, before it becomes a fact."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A statement in the third person, and where it belongs."""

    text: str
    category: str
    importance: int
    subject: str = "user"
    attribute: str | None = None
    dated: bool = False
    """The time is in the text; otherwise the time in the clause is when it began to hold."""
    confidence: float = 0.95
    since: datetime | None = None
    expires_at: datetime | None = None
    retracts: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A clause, what it states, and where in it the value stands that a correction would replace ("Lisbon")."""

    clause: str
    drafts: tuple[Draft, ...]
    value: tuple[int, int] | None = None

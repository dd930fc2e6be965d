"""What a rule makes of a clause, before it becomes a fact."""

from dataclasses import dataclass


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

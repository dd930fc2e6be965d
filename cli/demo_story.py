"""What the demo tells, from the system's answers: which turn made which memory, and which said it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

REDACTED: Final = "[REDACTED]"


class Said(Protocol):
    """A turn as the system keeps it."""

    @property
    def id(self) -> str:
        """Unique inside the owner."""
        ...

    @property
    def said_at(self) -> datetime:
        """When it was said."""
        ...

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """Role and content of each."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """One turn: what the owner said in it, and the memories (as the RPC gives them) that it made or said again."""

    turn_id: str
    said_at: datetime
    words: str
    made: tuple[Mapping[str, Any], ...]
    confirmed: tuple[Mapping[str, Any], ...]

    @property
    def redacted(self) -> bool:
        """Whether a secret was taken out before it was kept."""
        return REDACTED in self.words


def tell(
    turns: Sequence[Said], memory_ids: Mapping[str, Sequence[str]], memories: Mapping[str, Mapping[str, Any]]
) -> list[Line]:
    """A line for each of an owner's turns, in the order in which they were said.

    memory_ids: of each turn by its id, what it made or confirmed.  memories: by their ids.
    """
    lines = []
    place = {turn.id: number for number, turn in enumerate(turns)}
    for turn in turns:
        known = [memories[memory_id] for memory_id in memory_ids.get(turn.id, ()) if memory_id in memories]
        made = tuple(memory for memory in known if first_source(memory, place) == turn.id)
        lines.append(
            Line(
                turn.id,
                turn.said_at,
                " / ".join(str(message["content"]) for message in turn.messages if message["role"] == "user"),
                made,
                tuple(memory for memory in known if memory not in made),
            )
        )
    return lines


def first_source(memory: Mapping[str, Any], place: Mapping[str, int]) -> str | None:
    """The turn that said it first, among the turns whose place in time is known."""
    turns = [source["turnId"] for source in memory.get("sources", ()) if source["turnId"] in place]
    return min(turns, key=place.__getitem__, default=None)

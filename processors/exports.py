"""What an export of an owner is made of, line by line."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from mnemostream.turns import Reason

from processors.explanations import Decision
from processors.feed import Change
from processors.memories import Memory
from processors.records import Owner
from processors.search import TurnState

SCHEMA: Final = 1
"""Of the lines."""


@dataclass(frozen=True, slots=True)
class Header:
    """Whose export it is, and of which moment."""

    owner: Owner
    seq: int
    """The last change that is in it; 0 where nothing is known of the owner."""
    version: int
    at: datetime
    """Postgres's clock."""


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """One message of a turn, redacted."""

    role: str
    content: str
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTurn:
    """A turn as the log has it. One that was parked unread, or is off the record, has no messages."""

    turn_id: str
    state: TurnState
    reason: Reason | None
    detail: str | None
    session: str | None
    off_record: bool
    said_at: datetime | None
    received_at: datetime
    time_zone: str | None
    messages: tuple[LoggedMessage, ...]
    recalled: tuple[str, ...]
    metadata: Mapping[str, Any]


Line: TypeAlias = Header | Memory | Change | LoggedTurn | Decision

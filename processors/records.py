"""What is known of a record on its way: where it stands in the log, whose it is, and how far it got."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from mnemostream.turns import Reason, Role, Turn

from processors.fading import Fading, fading_of, policy


class Owner(NamedTuple):
    """Whose memories these are, inside an app: the partition key."""

    app: str
    owner: str


class Place(NamedTuple):
    """Where a record stands in the log, and when the broker took it."""

    topic: str
    partition: int
    offset: int
    received_at: datetime


class Landed(NamedTuple):
    """Where the broker put a record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """A turn that keeps the rules, already redacted.

    fingerprint: SHA-256 over the messages as they were sent, to tell a retry from another turn with the same id.
    replay: how often its record had been put back when this copy of it was; 0: as it first came.
    """

    turn: Turn
    place: Place
    fingerprint: bytes
    replay: int = 0


class TurnStatus(StrEnum):
    """What the log of turns knows of a turn that arrives."""

    NEW = "new"
    """Written as pending just now (also: a parked turn that was published again, or put back)."""
    PENDING = "pending"
    """Written before, not yet taken effect: a redelivery. Read it again."""
    SETTLED = "settled"
    """It took effect, or was erased: nothing is left to do."""
    PARKED = "parked"
    """It was set aside, and its record is only delivered again: it stays so until it is put back."""
    UNKNOWN = "unknown"
    """To be read again, but the log never heard of it: park it."""
    REUSED = "reused"
    """The same id with other messages: park what arrived, leave what stands."""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """An earlier message of the session, given for pronouns only: no fact is taken from it."""

    role: Role
    content: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Category:
    """A category of an app's own."""

    name: str
    fading: str = "medium"
    """As `processors.fading.fading_of` reads it."""
    description: str = ""
    """For the model that reads turns: what belongs in it."""


@dataclass(frozen=True, slots=True)
class AppProfile:
    """What an app sets for itself."""

    time_zone: str = "UTC"
    language: str = "english"
    """A Postgres text search configuration."""
    instructions: str | None = None
    """Added to the prompt that reads turns."""
    categories: tuple[Category, ...] = ()
    """Beside the built-in ones, or in place of one by the same name."""

    def fading(self, category: str) -> Fading:
        """How memories of `category` fade in this app."""
        own = next((each for each in self.categories if each.name == category), None)
        return policy(category) if own is None else fading_of(own.fading)


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer of the log of turns: a status for each turn, the session before them, and the app's settings."""

    statuses: tuple[TurnStatus, ...]
    context: tuple[ContextMessage, ...] = ()
    profile: AppProfile = field(default_factory=AppProfile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    """A record that is set aside, for the ledger.

    `owner` is None where the record could not be read as a turn, or its key contradicts it; `turn_ids` are the turns
    that end as parked.
    """

    place: Place
    stage: str
    reason: Reason
    detail: str
    attempts: int
    owner: Owner | None = None
    turn_ids: tuple[str, ...] = ()
    run: int = 0
    """The reading that could not be made of it; 0 is the first."""
    replay: int = 0
    """How often it had been put back on its topic when this copy of it was; 0: as it first came."""
    landed: Landed | None = None
    """Its place on the topic of parked records; None where the broker did not tell."""

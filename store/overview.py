"""How much there is, by app: for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from processors.records import Owner
from store.database import Database

# One row an app. Counting reads everything of an app: for people at a terminal, not for a scrape.
_COUNTS: Final[LiteralString] = """
    SELECT a.app,
        (SELECT count(*) FROM owner AS o WHERE o.app = a.app) AS owners,
        (SELECT count(*) FROM memory AS m WHERE m.app = a.app AND m.state = 'LIVE') AS memories,
        (SELECT count(*) FROM turn AS t WHERE t.app = a.app AND t.state = 'PENDING') AS pending,
        (SELECT count(*) FROM turn AS t WHERE t.app = a.app AND t.state = 'STORED') AS stored,
        (SELECT count(*) FROM turn AS t WHERE t.app = a.app AND t.state = 'PARKED') AS parked
    FROM app AS a
    ORDER BY a.app
"""


# $1 app, $2 owner
_TURNS: Final[LiteralString] = """
    SELECT t.id, t.said_at, t.session, t.messages
    FROM turn AS t JOIN owner AS o USING (owner_key)
    WHERE o.app = $1 AND o.owner = $2 AND t.app = $1 AND t.messages IS NOT NULL
    ORDER BY t.said_at, t.received_at, t."offset"
"""


@dataclass(frozen=True, slots=True)
class AppCounts:
    """What there is of one app: owners, live memories, and turns by their state."""

    app: str
    owners: int
    memories: int
    pending: int
    stored: int
    parked: int


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn as it is kept: redacted. `messages`: role and content of each, as JSON has them."""

    id: str
    said_at: datetime
    session: str | None
    messages: tuple[dict[str, Any], ...]


class Overview:
    """For the role `mnemo_operator`. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def counts(self) -> tuple[AppCounts, ...]:
        """Of every app."""
        async with self._database.across() as connection:
            return tuple(AppCounts(**dict(row)) for row in await connection.fetch(_COUNTS))

    async def turns(self, owner: Owner) -> tuple[KeptTurn, ...]:
        """What the log of turns holds of an owner, in the order in which it was said."""
        async with self._database.app(owner.app) as connection:
            rows = await connection.fetch(_TURNS, owner.app, owner.owner)
        return tuple(KeptTurn(row["id"], row["said_at"], row["session"], tuple(row["messages"])) for row in rows)

"""What was set aside, for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from store.database import Database

# $1 app (NULL: all, and what belongs to none), $2 limit
_LIST: Final[LiteralString] = """
    SELECT p.topic, p."partition", p."offset", p.app, o.owner, p.turn_id, p.stage, p.reason, p.detail, p.attempts,
        p.parked_at
    FROM parked AS p LEFT JOIN owner AS o USING (owner_key)
    WHERE $1::text IS NULL OR p.app = $1
    ORDER BY p.parked_at DESC
    LIMIT $2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedEntry:
    """A record that was set aside. Its identity is (topic, partition, offset); whose it is, where that is known."""

    topic: str
    partition: int
    offset: int
    app: str | None
    owner: str | None
    turn_id: str | None
    stage: str
    reason: str
    detail: str
    attempts: int
    parked_at: datetime


class ParkedRepository:
    """For the role `mnemo_operator`. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, app: str | None = None, *, limit: int) -> tuple[ParkedEntry, ...]:
        """The last ones that were set aside, newest first; without `app` of all apps, and those that belong to none."""
        async with self._database.across() as connection:
            rows = await connection.fetch(_LIST, app, limit)
        return tuple(ParkedEntry(**dict(row)) for row in rows)

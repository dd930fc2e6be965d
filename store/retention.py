"""Letting go of turns past their retention, in small bites."""

from datetime import timedelta
from typing import Final, LiteralString

from store.database import Database

BITE: Final = 1_000

# Those that took effect or were set aside; what is pending is never let go of. The ledger keeps that they were here.
# $1 retention, $2 how many at most
_PURGE: Final[LiteralString] = """
    DELETE FROM turn AS t
    USING (
        SELECT owner_key, id
        FROM turn
        WHERE received_at < now() - $1::interval AND state <> 'PENDING'
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) AS old
    WHERE t.owner_key = old.owner_key AND t.id = old.id
"""


class TurnRetention:
    """The log of turns, as far as it is too old: for timers, across apps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def purge(self, older_than: timedelta) -> int:
        """Delete up to `BITE` turns that were received longer ago; gives how many. Memories and ledger stay.

        By Postgres's clock. Several may run at once.  Raises StoreUnavailable.
        """
        async with self._database.across() as connection:
            return int((await connection.execute(_PURGE, older_than, BITE)).removeprefix("DELETE "))

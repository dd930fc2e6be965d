"""Apps and what they set for themselves."""

from typing import Final, LiteralString

from processors.records import AppProfile
from store.database import Database
from store.rows import profile_of

# $1 app
_PROFILE: Final[LiteralString] = """
    SELECT jsonb_build_object('time_zone', time_zone, 'language', language,
        'instructions', instructions, 'categories', categories)
    FROM app
    WHERE app = $1
"""

_LIST: Final[LiteralString] = "SELECT app FROM app ORDER BY app"


class AppRepository:
    """Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def profile(self, app: str) -> AppProfile:
        """What `app` has set; the defaults for one that is not known."""
        async with self._database.app(app) as connection:
            return profile_of(await connection.fetchval(_PROFILE, app))

    async def list(self) -> tuple[str, ...]:
        """The names of all apps: for operators."""
        async with self._database.across() as connection:
            return tuple(row["app"] for row in await connection.fetch(_LIST))

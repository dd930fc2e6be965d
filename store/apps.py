"""Apps and what they set for themselves."""

import re
from collections.abc import Sequence
from typing import Final, LiteralString

from mnemostream.decoding import APP_PATTERN
from mnemostream.errors import InvalidTurn
from mnemostream.fields import time_zone as known_time_zone

from processors.errors import InvalidRequest
from processors.fading import fading_of
from processors.records import AppProfile, Category
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

_LIST_PROFILES: Final[LiteralString] = """
    SELECT app, jsonb_build_object('time_zone', time_zone, 'language', language,
        'instructions', instructions, 'categories', categories) AS profile
    FROM app
    ORDER BY app
"""

# $1 language
_IS_LANGUAGE: Final[LiteralString] = """
    SELECT EXISTS (SELECT 1 FROM pg_ts_config AS c WHERE c.cfgname = $1 AND pg_ts_config_is_visible(c.oid))
"""

# What is NULL stays as it is, or is the default of a new app.
# $1 app, $2 time zone, $3 language, $4 instructions, $5 categories
_CONFIGURE: Final[LiteralString] = """
    INSERT INTO app AS a (app, time_zone, language, instructions, categories)
    VALUES ($1, coalesce($2, 'UTC'), coalesce(quote_ident($3), 'english')::regconfig, nullif($4, ''),
        coalesce($5::jsonb, '{}'))
    ON CONFLICT (app) DO UPDATE
    SET time_zone = coalesce($2, a.time_zone), language = coalesce(quote_ident($3)::regconfig, a.language),
        instructions = CASE WHEN $4::text IS NULL THEN a.instructions ELSE nullif($4, '') END,
        categories = coalesce($5::jsonb, a.categories)
    RETURNING jsonb_build_object('time_zone', a.time_zone, 'language', a.language,
        'instructions', a.instructions, 'categories', a.categories)
"""


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

    async def list_profiles(self) -> dict[str, AppProfile]:
        """What every app has set, by name: for operators."""
        async with self._database.across() as connection:
            return {row["app"]: profile_of(row["profile"]) for row in await connection.fetch(_LIST_PROFILES)}

    async def configure(
        self,
        app: str,
        *,
        time_zone: str | None = None,
        language: str | None = None,
        instructions: str | None = None,
        categories: Sequence[Category] | None = None,
    ) -> AppProfile:
        """Set what is given for `app`, which is made if it is new, and give back the whole: for operators.

        instructions: "" clears them.  categories: all of them, in place of those before. What is stored already keeps
        its words and its half-life.  Raises InvalidRequest.
        """
        if not re.fullmatch(APP_PATTERN, app):
            raise InvalidRequest("app", "must be lower-case letters, digits, dots, dashes and underscores, at most 63")
        own = None if categories is None else _checked(categories)
        _check_time_zone(time_zone)
        async with self._database.across() as connection:
            if language is not None and not await connection.fetchval(_IS_LANGUAGE, language):
                raise InvalidRequest("language", "must be a text search configuration of Postgres, such as german")
            return profile_of(await connection.fetchval(_CONFIGURE, app, time_zone, language, instructions, own))


def _check_time_zone(name: str | None) -> None:
    try:
        known_time_zone(name)
    except InvalidTurn:
        raise InvalidRequest("time_zone", "must be the name of an IANA time zone, such as Europe/Lisbon") from None


def _checked(categories: Sequence[Category]) -> dict[str, dict[str, str]]:
    """As they are kept: by name."""
    own: dict[str, dict[str, str]] = {}
    for category in categories:
        if not category.name or category.name in own:
            raise InvalidRequest("categories", "each must have a name of its own")
        try:
            fading_of(category.fading)
        except ValueError as error:
            raise InvalidRequest("categories", f"fading {error}") from None
        own[category.name] = {"fading": category.fading, "description": category.description}
    return own

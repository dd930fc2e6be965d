"""API keys: who may ask, and for which app."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from store.claims import ADD_APP
from store.database import Database

# $1 app, $2 id, $3 hash, $4 prefix, $5 name, $6 scopes, $7 expires at
_ADD: Final[LiteralString] = """
    INSERT INTO api_key (app, id, key_hash, prefix, name, scopes, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""

# $1 app
_LIST: Final[LiteralString] = """
    SELECT id, app, prefix, name, scopes, created_at, expires_at, revoked_at
    FROM api_key
    WHERE app = $1
    ORDER BY created_at, id
"""

_LIST_ALL: Final[LiteralString] = """
    SELECT id, app, prefix, name, scopes, created_at, expires_at, revoked_at
    FROM api_key
    ORDER BY app, created_at, id
"""

# $1 id
_REVOKE: Final[LiteralString] = """
    UPDATE api_key
    SET revoked_at = now()
    WHERE id = $1 AND revoked_at IS NULL
    RETURNING id
"""

# $1 hash
_AUTHENTICATE: Final[LiteralString] = "SELECT id, app, scopes FROM authenticate($1)"


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was presented and is good."""

    id: UUID
    app: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key in a list: its first characters, never the key."""

    id: UUID
    app: str
    prefix: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class ApiKeyRepository:
    """Keys by their SHA-256. Making, listing and revoking are for operators; presenting one is for the query service.

    Every method raises StoreUnavailable where Postgres is away.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        *,
        app: str,
        key_id: UUID,
        key_hash: bytes,
        prefix: str,
        name: str = "",
        scopes: Sequence[str] = ("read", "write", "admin"),
        expires_at: datetime | None = None,
    ) -> UUID:
        """Note a key of `app`, which is made if it is new; the id again."""
        async with self._database.app(app) as connection:
            await connection.execute(ADD_APP, app)
            await connection.execute(_ADD, app, key_id, key_hash, prefix, name, list(scopes), expires_at)
        return key_id

    async def list(self, app: str | None = None) -> tuple[KeyEntry, ...]:
        """The keys of `app`, or of all, oldest first; revoked ones too."""
        async with self._database.across() as connection:
            rows = await (connection.fetch(_LIST_ALL) if app is None else connection.fetch(_LIST, app))
        return tuple(
            KeyEntry(
                UUID(bytes=row["id"].bytes),
                row["app"],
                row["prefix"],
                row["name"],
                tuple(row["scopes"]),
                row["created_at"],
                row["expires_at"],
                row["revoked_at"],
            )
            for row in rows
        )

    async def revoke(self, key_id: UUID) -> bool:
        """From now on the key is refused. False where there is none by that id, or it was revoked before."""
        async with self._database.across() as connection:
            return await connection.fetchval(_REVOKE, key_id) is not None

    async def authenticate(self, key_hash: bytes) -> Key | None:
        """The key with that hash, unless it is unknown, revoked or has expired."""
        async with self._database.across() as connection:
            row = await connection.fetchrow(_AUTHENTICATE, key_hash)
        return None if row is None else Key(UUID(bytes=row["id"].bytes), row["app"], frozenset(row["scopes"]))

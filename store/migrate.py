"""Bringing the schema up to date: numbered SQL, forward only, each step one transaction.

Steps only add, so that the previous version of the code still runs on the schema of the next one.
"""

import asyncio
import hashlib
import random
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final, LiteralString, TypeAlias

import asyncpg

from processors.errors import MnemoError
from store.errors import translated

if TYPE_CHECKING:
    _Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]

_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_OLDEST_SERVER: Final = 16
"""Of Postgres: a role that may be entered without being inherited from came with it."""
_ATTEMPTS: Final = 20
_CONNECT_SECONDS: Final = 10.0
_MET_AT_A_ROLE: Final = (
    asyncpg.InternalServerError,  # "tuple concurrently updated": Postgres has no code of its own for it
    asyncpg.UniqueViolationError,
    asyncpg.DeadlockDetectedError,
)

# One lock in the database: two migrations at once take turns, step by step. Held to the end of the transaction.
_LOCK: Final[LiteralString] = "SELECT pg_advisory_xact_lock(5710290462105821)"

_BOOK: Final[LiteralString] = """
    CREATE TABLE IF NOT EXISTS schema_migration (
        version    integer PRIMARY KEY,
        name       text NOT NULL,
        -- SHA-256 of the file, in hex: what was applied is not changed afterwards.
        checksum   text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""

_HAS_BOOK: Final[LiteralString] = "SELECT to_regclass('schema_migration') IS NOT NULL"

_APPLIED: Final[LiteralString] = "SELECT version, checksum FROM schema_migration"

# $1 version, $2 name, $3 checksum
_RECORD: Final[LiteralString] = "INSERT INTO schema_migration (version, name, checksum) VALUES ($1, $2, $3)"


class MigrationError(MnemoError):
    """The schema cannot be brought up to date, or is not; waiting does not help."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL, in hex."""
        return hashlib.sha256(self.sql.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did. `version`: of the schema now. `unknown`: versions there that this code does not know."""

    applied: tuple[Migration, ...]
    version: int
    unknown: tuple[int, ...] = ()

    @property
    def already_current(self) -> bool:
        """Nothing was left to do."""
        return not self.applied


def packaged() -> tuple[Migration, ...]:
    """The steps that come with this code, in order."""
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in resources.files("store").joinpath("migrations").iterdir()
        if (match := _FILE.fullmatch(entry.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.version))


async def migrate(dsn: str, migrations: tuple[Migration, ...] | None = None) -> MigrationReport:
    """Apply what is missing; safe when run twice at once. `dsn` is that of the schema's owner.

    A schema that is already newer than this code is left as it is. Raises MigrationError where an applied step was
    changed since, the server is too old or a right is missing, and StoreUnavailable where Postgres is away.
    """
    steps = packaged() if migrations is None else migrations
    async with _connected(dsn) as connection:
        _require_server(connection)
        applied: list[Migration] = []
        while (step := await _next_step(connection, steps)) is not None:
            applied.append(step)
        there = await _read(connection)
    known = {step.version for step in steps}
    return MigrationReport(tuple(applied), max(there, default=0), tuple(sorted(there.keys() - known)))


async def schema_version(dsn: str) -> int:
    """The last step that was applied; 0 where there is none."""
    async with _connected(dsn) as connection:
        return max(await _read(connection), default=0)


async def check(dsn: str) -> None:
    """Nothing, where the schema has every step of this code (or more). Raises MigrationError, StoreUnavailable."""
    async with _connected(dsn) as connection:
        there = await _read(connection)
    missing = _pending(there, packaged())
    if missing:
        raise MigrationError(
            f"the schema is at version {max(there, default=0)}, this code needs {missing[-1].version}: "
            "run `mnemo migrate`"
        )


@asynccontextmanager
async def _connected(dsn: str) -> "AsyncIterator[_Connection]":
    with translated():
        connection = await asyncpg.connect(dsn, timeout=_CONNECT_SECONDS, statement_cache_size=0)
        try:
            yield connection
        finally:
            await connection.close(timeout=_CONNECT_SECONDS)


def _require_server(connection: "_Connection") -> None:
    if connection.get_server_version().major < _OLDEST_SERVER:
        raise MigrationError(f"Postgres {_OLDEST_SERVER} or later is needed")


async def _read(connection: "_Connection") -> Mapping[int, str]:
    if not await connection.fetchval(_HAS_BOOK):
        return {}
    return {row["version"]: row["checksum"] for row in await connection.fetch(_APPLIED)}


def _pending(there: Mapping[int, str], steps: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """The steps that are not there yet. Raises MigrationError where one was changed after it was applied."""
    for step in steps:
        if there.get(step.version, step.checksum) != step.checksum:
            raise MigrationError(
                f"migration {step.version:04} ({step.name}) was changed after it was applied: add a new one instead"
            )
    return tuple(step for step in steps if step.version not in there)


async def _next_step(connection: "_Connection", steps: tuple[Migration, ...]) -> Migration | None:
    """Apply the first missing step, or say that there is none.

    Roles belong to the cluster and an advisory lock to a database: migrations of two databases may meet at a role, and
    the one that comes second tries again.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await _apply_first(connection, steps)
        except _MET_AT_A_ROLE:
            if attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(random.uniform(0, 0.05 * attempt))
        except asyncpg.InsufficientPrivilegeError as error:
            raise MigrationError(
                f"a right is missing ({error.args[0]}): the owner of the schema needs CREATEROLE, membership in the "
                "mnemo_ roles where another made them, and the extension `vector`, made by a superuser if it must be"
            ) from error
    raise AssertionError("unreachable")


async def _apply_first(connection: "_Connection", steps: tuple[Migration, ...]) -> Migration | None:
    async with connection.transaction():
        await connection.execute(_LOCK)
        there = await _read(connection)
        pending = _pending(there, steps)
        if not pending:
            return None
        step = pending[0]
        if any(version > step.version for version in there):
            raise MigrationError(f"migration {step.version:04} is missing, though later ones are there")
        await connection.execute(_BOOK)
        await connection.execute(step.sql)
        await connection.execute(_RECORD, step.version, step.name, step.checksum)
        return step

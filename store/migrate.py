"""Bringing the schema up to date: numbered SQL, forward only, each step one transaction.

A step whose file begins with `-- outside a transaction` is no transaction: its statements run one by one, and again
from the first where one of them failed. It is for indexes on large tables, built beside what runs (CONCURRENTLY).

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

_OUTSIDE: Final = "-- outside a transaction\n"
_TURN_SECONDS: Final = 0.1
_LOCK_ATTEMPTS: Final = 60

# One lock in the database: two migrations at once take turns, step by step. Held to the end of the transaction. Asked
# for again and again: an index that is built beside what runs waits for every statement that began before it, also for
# one that waits for this lock. Nor has it the number that earlier versions of this code wait for.
_TRY_LOCK: Final[LiteralString] = "SELECT pg_try_advisory_xact_lock(5710290462105822)"

# Whoever asks for a table while a step waits for it stands behind that step: so it waits a moment only, then others
# go first.
_BRIEFLY: Final[LiteralString] = "SET LOCAL lock_timeout = '2s'"

# While its second connection builds.
_PATIENTLY: Final[LiteralString] = "SET LOCAL idle_in_transaction_session_timeout = 0"

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

    @property
    def in_transaction(self) -> bool:
        """Whether the step is one transaction."""
        return not self.sql.startswith(_OUTSIDE)

    @property
    def statements(self) -> tuple[str, ...]:
        """Of a step outside a transaction: each ends at a semicolon that ends a line, or at the end."""
        return tuple(filter(None, (part.strip() for part in re.split(r";[ \t]*(?:\n|$)", self.sql))))


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
        while (step := await _next_step(connection, steps, dsn)) is not None:
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
        async with _opened(dsn) as connection:
            yield connection


@asynccontextmanager
async def _opened(dsn: str) -> "AsyncIterator[_Connection]":
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


async def _next_step(connection: "_Connection", steps: tuple[Migration, ...], dsn: str) -> Migration | None:
    """Apply the first missing step, or say that there is none.

    Roles belong to the cluster and an advisory lock to a database: migrations of two databases may meet at a role, and
    the one that comes second tries again. So does a step that does not get a table in time.
    """
    met = locked = 0
    while True:
        try:
            return await _apply_first(connection, steps, dsn)
        except _Busy:
            await asyncio.sleep(_TURN_SECONDS)
        except _MET_AT_A_ROLE:
            met += 1
            if met == _ATTEMPTS:
                raise
            await asyncio.sleep(random.uniform(0, 0.05 * met))
        except asyncpg.LockNotAvailableError as error:
            locked += 1
            if locked == _LOCK_ATTEMPTS:
                raise MigrationError(
                    f"a table was in use all the time ({error.args[0]}): end the transaction that holds it, which "
                    "pg_stat_activity shows, and migrate again"
                ) from error
            await asyncio.sleep(random.uniform(0.5, 1.0))
        except asyncpg.InsufficientPrivilegeError as error:
            raise MigrationError(
                f"a right is missing ({error.args[0]}): the owner of the schema needs CREATEROLE, membership in the "
                "mnemo_ roles where another made them, and the extension `vector`, made by a superuser if it must be"
            ) from error


class _Busy(Exception):
    """Another migration is at it."""


async def _apply_first(connection: "_Connection", steps: tuple[Migration, ...], dsn: str) -> Migration | None:
    # Between its statements it holds no snapshot: what is built beside it need not wait for it.
    async with connection.transaction(isolation="read_committed"):
        if not await connection.fetchval(_TRY_LOCK):
            raise _Busy
        there = await _read(connection)
        pending = _pending(there, steps)
        if not pending:
            return None
        step = pending[0]
        if any(version > step.version for version in there):
            raise MigrationError(f"migration {step.version:04} is missing, though later ones are there")
        await connection.execute(_BOOK)
        if step.in_transaction:
            await connection.execute(_BRIEFLY)
            await connection.execute(step.sql)
        else:
            await connection.execute(_PATIENTLY)
            await _apply_outside(step, dsn)
        await connection.execute(_RECORD, step.version, step.name, step.checksum)
        return step


async def _apply_outside(step: Migration, dsn: str) -> None:
    """The statements of `step` one by one, on a connection of their own: the caller's transaction holds the lock."""
    async with _opened(dsn) as connection:
        for statement in step.statements:
            await connection.execute(statement)

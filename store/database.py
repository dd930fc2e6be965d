"""Connections to Postgres: a pool for transactions of one app, and direct connections to listen on."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, LiteralString, TypeAlias, assert_never
from weakref import WeakKeyDictionary

import asyncpg
import msgspec
from pgvector.asyncpg import register_vector

from store.errors import connecting, translated

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    DirectConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]

Role = Literal["mnemo_worker", "mnemo_query", "mnemo_timer", "mnemo_operator"]

NOTICE_CHANNEL: Final = "mnemo_turn"

_APP: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NOTICE: Final = re.compile(r"[0-9a-f,]{1,7900}")

_CONNECT_SECONDS: Final = 10.0
_ROLL_BACK_SECONDS: Final = 5.0
FIRST_PLAN_SECONDS: Final = 0.25
LAST_PLAN_SECONDS: Final = 30.0

# Every statement of the stream and of the query service walks an index led by the owner's key. The planner is told so:
# statistics tell it otherwise where a table was empty a moment ago, and a prepared statement would change its plan
# after some runs. Planning once also saves more than a plan for the very values could.
_BY_INDEX: Final[LiteralString] = """;
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off
"""

# A statement whose client is gone ends soon, and with it the locks that it holds.
_NOTICE_THE_END: Final[LiteralString] = "; SET client_connection_check_interval = '2s'"

# A process that is frozen, or whose machine is gone, holds an owner's row no longer than this: between two statements,
# and within one, where it has not sent all of it. Postgres 16 knows the first alone.
_LET_GO: Final[LiteralString] = """;
    SET idle_in_transaction_session_timeout = '10s';
    SELECT set_config(name, '20s', false) FROM pg_settings WHERE name = 'transaction_timeout'
"""

_ENTER_WORKER: Final[LiteralString] = "SET ROLE mnemo_worker"
_ENTER_QUERY: Final[LiteralString] = "SET ROLE mnemo_query"
_ENTER_TIMER: Final[LiteralString] = "SET ROLE mnemo_timer"
_ENTER_OPERATOR: Final[LiteralString] = "SET ROLE mnemo_operator"

# Where the extension lives: not everybody keeps it in `public`.
_VECTOR_SCHEMA: Final[LiteralString] = """
    SELECT n.nspname
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
"""


class Database:
    """A pool of connections in one role.

    Every method raises StoreUnavailable where Postgres is away; the pool recovers by itself when it is back.
    """

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", dsn: str, role: Role, acquire_seconds: float) -> None:
        self._pool = pool
        self._dsn = dsn
        self._role: Role = role
        self._acquire_seconds = acquire_seconds

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        role: Role,
        pool_size: int = 8,
        acquire_seconds: float = 10.0,
        statement_seconds: float = 30.0,
    ) -> "Database":
        """Connect once, so that what is wrong shows now. A statement that takes longer than its time is cancelled."""

        plans = Plans()

        async def prepare(connection: "DirectConnection") -> None:
            await _prepare(connection, role)
            plans.begin(connection)

        with connecting():
            pool = await asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=pool_size,
                init=prepare,
                reset=plans.renew,
                timeout=_CONNECT_SECONDS,
                command_timeout=statement_seconds,
                # Times leave Postgres in JSON too: in another zone the first and last days of the calendar leave it.
                server_settings={"application_name": role.replace("_", "-"), "timezone": "UTC"},
            )
        return cls(pool, dsn, role, acquire_seconds)

    async def close(self, *, seconds: float = 5.0) -> None:
        """Wait for the connections in use up to `seconds`, then end them."""
        try:
            async with asyncio.timeout(seconds):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def app(self, app: str, *, notice: str | None = None) -> AsyncIterator["Connection"]:
        """One transaction that sees the rows of `app` alone; committed at the end, rolled back on any error.

        notice: told to who listens for turns, once it is committed (`notices.payload`).
        """
        if not _APP.fullmatch(app):
            raise ValueError("an app's name breaks its rule")
        end = "COMMIT"
        if notice is not None:
            if not _NOTICE.fullmatch(notice):
                raise ValueError("a notice is hexadecimal digests with commas")
            # After the commit, not in it: notifying transactions commit one behind the other, each with its own flush.
            end = f"COMMIT; SELECT pg_notify('{NOTICE_CHANNEL}', '{notice}')"
        async with self._acquired() as connection:
            try:
                await connection.execute(f"BEGIN; SET LOCAL mnemo.app = '{app}'")
                yield connection
                await connection.execute(end)
            except BaseException:
                await _roll_back(connection)
                raise

    @asynccontextmanager
    async def across(self) -> AsyncIterator["Connection"]:
        """A connection with no app set, each statement its own transaction.

        What belongs to an app is visible to operators and timers alone.
        """
        async with self._acquired() as connection:
            yield connection

    @asynccontextmanager
    async def direct(self) -> AsyncIterator["DirectConnection"]:
        """A connection of its own in the same role, for LISTEN and session locks."""
        with translated():
            with connecting():
                connection = await asyncpg.connect(self._dsn, timeout=_CONNECT_SECONDS)
            try:
                with connecting():
                    await _prepare(connection, self._role)
                yield connection
            finally:
                connection.terminate()

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator["Connection"]:
        with translated():
            with connecting():
                async with asyncio.timeout(self._acquire_seconds):
                    connection = await self._pool.acquire()
            try:
                yield connection
            finally:
                await self._pool.release(connection)


async def _prepare(connection: "DirectConnection", role: Role) -> None:
    match role:
        case "mnemo_worker":
            enter = _ENTER_WORKER + _BY_INDEX + _LET_GO
        case "mnemo_query":
            enter = _ENTER_QUERY + _BY_INDEX
        case "mnemo_timer":
            enter = _ENTER_TIMER + _LET_GO
        case "mnemo_operator":
            enter = _ENTER_OPERATOR
        case _:
            assert_never(role)
    await connection.execute(enter + _NOTICE_THE_END)
    schema = await connection.fetchval(_VECTOR_SCHEMA)
    await register_vector(connection, schema=schema)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=_jsonb, decoder=_json, format="binary")


class Plans:
    """When the plans of each connection are made anew.

    A plan is made once, for any values, by the size that its tables have then. In a young database that is nothing, any
    index seems as good as another, and statistics come a minute later: so plans are renewed, at growing intervals.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: WeakKeyDictionary[object, tuple[float, float]] = WeakKeyDictionary()

    def begin(self, connection: object) -> None:
        """`connection` is new."""
        self._due[connection] = (self._clock() + FIRST_PLAN_SECONDS, FIRST_PLAN_SECONDS)

    async def renew(self, connection: "DirectConnection") -> None:
        """Called when a connection goes back. Nothing else is reset: it has no state but its role and its plans."""
        due, seconds = self._due[connection]
        if self._clock() >= due:
            await connection.execute("DISCARD PLANS")
            seconds = min(2 * seconds, LAST_PLAN_SECONDS)
            self._due[connection] = (self._clock() + seconds, seconds)


async def _roll_back(connection: "Connection") -> None:
    """End the transaction, also where it was cancelled in the middle of a statement; else end the connection.

    A cancellation that reaches Postgres before the statement is lost, and the driver would wait for the statement's
    end whatever time-out it is given: so the time limit is ours.
    """
    try:
        async with asyncio.timeout(_ROLL_BACK_SECONDS):
            await connection.execute("ROLLBACK")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        _end(connection)
    except BaseException:
        _end(connection)
        raise


def _end(connection: "Connection") -> None:
    with suppress(asyncpg.InterfaceError):  # the pool took it back already
        connection.terminate()


def _jsonb(value: Any) -> bytes:
    return b"\x01" + msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON")


def _json(value: bytes) -> Any:
    return msgspec.json.decode(memoryview(value)[1:])

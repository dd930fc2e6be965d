"""What is still to be published: read by shard, in order, and trimmed once it is out.

    shard = owner_key % SHARDS

One relay works on a shard at a time: whoever holds its session lock, which falls with the connection.

Nothing is skipped. `seq` is given out under the owner's row lock, its pointer is written in the same transaction, and
the lock is let go of only once the transaction is visible. So whoever sees a pointer sees every earlier one of its
owner that was not trimmed: one statement (one snapshot) reads a prefix of what waits of each owner, whatever is in
flight. Pointers are trimmed by exact number, only after the broker has them. A relay that lost its lock without
noticing may publish again what the next one publishes, but neither goes ahead of what is missing: on the topic `n`
appears for the first time after `n - 1` did.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, LiteralString

import asyncpg

from processors.feed import Change
from processors.records import Owner
from store.database import NOTICE_CHANNEL, Database
from store.errors import translated
from store.rows import memory_of

if TYPE_CHECKING:
    from store.database import DirectConnection

SHARDS: Final = 64
"""The same for all versions of the code that run at once."""
_LOCKS: Final = 1_835_951_471
"""The class of the advisory locks: each shard's by its number, and after them one that every relay shares."""
_PRESENCE: Final = SHARDS
LEASE_SECONDS: Final = 30.0
"""A relay that does not ask for so long is frozen, or its machine gone: its session ends, and others take over."""
_PROBES: Final = 6
"""In the time of a lease."""
_ANSWER_SECONDS: Final = 5.0

# $1 milliseconds
_LEASE: Final[LiteralString] = "SELECT set_config('idle_session_timeout', $1, false)"

# $1 class, $2 number
_ARRIVE: Final[LiteralString] = "SELECT pg_advisory_lock_shared($1::integer, $2::integer)"

# $1 class, $2 number
_PRESENT: Final[LiteralString] = """
    SELECT count(DISTINCT l.pid)
    FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
        AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
        AND l.classid = $1::integer::oid AND l.objid = $2::integer::oid
"""

# One after the other until enough are taken.
# $1 class, $2 shards, $3 how many at most
_TAKE: Final[LiteralString] = """
    SELECT s.shard
    FROM unnest($2::integer[]) AS s (shard)
    WHERE pg_try_advisory_lock($1::integer, s.shard)
    LIMIT $3
"""

# $1 class, $2 shards
_LEAVE: Final[LiteralString] = """
    SELECT s.shard
    FROM unnest($2::integer[]) AS s (shard)
    WHERE pg_advisory_unlock($1::integer, s.shard)
"""

# What was forgotten has no text.
# $1 number of shards, $2 shards, $3 owner key, $4 how many at most
_READ: Final[LiteralString] = """
    WITH waiting AS MATERIALIZED (
        SELECT b.owner_key, b.seq
        FROM outbox AS b
        WHERE b.owner_key > $3 AND b.owner_key % $1 = ANY ($2::bigint[])
        ORDER BY b.owner_key, b.seq
        LIMIT $4
    )
    SELECT o.owner_key, o.app, o.owner, c.seq, c.kind, c.at, c.cause_kind, c.cause_id, c.decision_id,
        c.memory_id AS id, c.session, coalesce(c.content, '') AS content, c.data, coalesce(c.tags, '{}') AS tags,
        c.type, c.category, c.importance, c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from,
        c.valid_to, c.recorded_at, c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates,
        c.access_count, c.accessed_at, c.confirmed_at, c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
        CASE WHEN c.pinned OR c.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', c.at - c.reinforced_at)) / c.half_life_seconds))
        END AS strength
    FROM waiting AS w
        JOIN change AS c ON c.owner_key = w.owner_key AND c.seq = w.seq
        JOIN owner AS o ON o.owner_key = w.owner_key
    ORDER BY c.owner_key, c.seq
"""

# For each pointer $1 owner key, $2 seq
_TRIM: Final[LiteralString] = """
    DELETE FROM outbox AS b
    USING unnest($1::bigint[], $2::bigint[]) AS p (owner_key, seq)
    WHERE b.owner_key = p.owner_key AND b.seq = p.seq
"""

# $1 number of shards, $2 shards
_BACKLOG: Final[LiteralString] = """
    SELECT count(*) AS pointers,
        coalesce(greatest(0, date_part('epoch', clock_timestamp() - min(b.created_at))), 0) AS seconds
    FROM outbox AS b
    WHERE b.owner_key % $1 = ANY ($2::bigint[])
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A change that is not published yet, by its owner's key."""

    owner_key: int
    change: Change


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, and for how long."""

    pointers: int
    oldest_seconds: float


class Shards:
    """The shards that one relay holds, by locks of one session. Not for several tasks at once."""

    def __init__(self, connection: "DirectConnection", lease_seconds: float = LEASE_SECONDS) -> None:
        self._connection = connection
        self._lease_seconds = lease_seconds
        self._asking = asyncio.Lock()
        self._held: set[int] = set()
        self._word = asyncio.Event()

    @property
    def held(self) -> frozenset[int]:
        """Those that are held. None once the session has ended."""
        return frozenset() if self._connection.is_closed() else frozenset(self._held)

    async def share(self) -> None:
        """Take shards that nobody holds, and leave those above a fair share among all relays.

        Raises StoreUnavailable where the session has ended: nothing is held any more.
        """
        async with self._asking:
            with translated():
                relays = await self._connection.fetchval(_PRESENT, _LOCKS, _PRESENCE, timeout=_ANSWER_SECONDS)
                fair = math.ceil(SHARDS / max(1, relays))
                if len(self._held) > fair:
                    await self._leave(sorted(self._held)[fair:])
                elif len(self._held) < fair:
                    await self._take(fair - len(self._held))

    async def word(self, seconds: float) -> None:
        """Until a turn took effect somewhere, at most so long. What requests change makes no noise."""
        try:
            async with asyncio.timeout(seconds):
                await self._word.wait()
        except TimeoutError:
            return
        finally:
            self._word.clear()

    def wake(self) -> None:
        """End the wait for word."""
        self._word.set()

    async def _take(self, most: int) -> None:
        others = [shard for shard in range(SHARDS) if shard not in self._held]
        random.shuffle(others)
        rows = await self._connection.fetch(_TAKE, _LOCKS, others, most, timeout=_ANSWER_SECONDS)
        self._held.update(row["shard"] for row in rows)

    async def _leave(self, shards: Sequence[int]) -> None:
        self._held.difference_update(shards)
        await self._connection.fetch(_LEAVE, _LOCKS, shards, timeout=_ANSWER_SECONDS)

    async def begin(self) -> None:
        """Make the session one that ends when it falls silent, and count among the relays."""
        await self._connection.execute(_LEASE, str(int(self._lease_seconds * 1000)))
        await self._connection.execute(_ARRIVE, _LOCKS, _PRESENCE)
        await self._connection.add_listener(NOTICE_CHANNEL, self._heard)

    async def keep(self) -> None:
        """Keep the session from falling silent, until it ends."""
        while not self._connection.is_closed():
            await asyncio.sleep(self._lease_seconds / _PROBES)
            try:
                async with self._asking:
                    await self._connection.execute("SELECT 1", timeout=_ANSWER_SECONDS)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._connection.terminate()

    def _heard(self, *_: object) -> None:
        self.wake()


class OutboxRepository:
    """The outbox across apps: for timers and operators. Every method raises StoreUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def shards(self) -> AsyncIterator[Shards]:
        """A session that can hold shards; none at first. With it they are let go of."""
        async with self._database.direct() as connection:
            shards = Shards(connection)
            await shards.begin()
            keeping = asyncio.create_task(shards.keep(), name="outbox-shards")
            try:
                yield shards
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)

    async def read(self, shards: Collection[int], *, after: int, limit: int) -> list[Waiting]:
        """The oldest changes of `shards` that wait, by owner key above `after` and `seq`; at most `limit`."""
        async with self._database.across() as connection:
            rows = await connection.fetch(_READ, SHARDS, list(shards), after, limit)
        return [Waiting(row["owner_key"], change_of(row)) for row in rows]

    async def trim(self, published: Collection[Waiting]) -> None:
        """Delete the pointers of what is out. Again changes nothing."""
        async with self._database.across() as connection:
            await connection.execute(
                _TRIM, [each.owner_key for each in published], [each.change.seq for each in published]
            )

    async def backlog(self, shards: Collection[int]) -> Backlog:
        """What waits in `shards`, by Postgres's clock."""
        async with self._database.across() as connection:
            row = await connection.fetchrow(_BACKLOG, SHARDS, list(shards))
        return Backlog(0, 0.0) if row is None else Backlog(row["pointers"], row["seconds"])


def change_of(row: "asyncpg.Record") -> Change:
    """The change in a row of `change` with `app`, `owner` and the `strength` of the memory then."""
    owner = Owner(row["app"], row["owner"])
    return Change(
        owner=owner,
        seq=row["seq"],
        kind=row["kind"],
        at=row["at"],
        memory=None if row["id"] is None else memory_of(row, owner),
        cause_kind=row["cause_kind"],
        cause_id=row["cause_id"],
        decision_id=row["decision_id"],
    )

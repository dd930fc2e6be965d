"""Readings of turns after the first: what a run reads again, how far it got, and what a worker finds of its turns.

A run is a number of its own and a choice among the turns whose first reading is over: received in a span of time, of
all apps, one app or one owner. The choice does not grow while it runs: it ends when the run was begun.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, LiteralString

from mnemostream.turns import Message, Role, Turn

from processors.records import AcceptedTurn, Begun, Owner, Place, TurnStatus
from store.database import Database
from store.sessions import CONTEXT_AND_PROFILE, begun_of

if TYPE_CHECKING:
    import asyncpg

    from store.database import DirectConnection

# Nothing is written: the log has these turns. Reading is what took effect in its first reading, and not yet in this
# one, as long as all that it said is there: what was forgotten may stand in what was said beside it. Known is what the
# log or the ledger ever heard of.
# $1 app, $2 owner, $3 session, $4 messages of context, $5 turn ids, $6 run
_BEGIN_AGAIN: Final[LiteralString] = "".join(
    (
        """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), given AS MATERIALIZED (
        SELECT g.id, g.n FROM unnest($5::text[]) WITH ORDINALITY AS g (id, n)
    ), reading AS MATERIALIZED (
        SELECT g.id, g.n, t.received_at, t."offset"
        FROM given AS g
            JOIN turn AS t ON t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.id = g.id
            JOIN ledger AS l ON l.app = t.app AND l.owner_key = t.owner_key AND l.turn_id = t.id AND l.run = 0
        WHERE t.state = 'STORED' AND l.outcome = 'STORED' AND NOT t.off_record AND jsonb_typeof(t.messages) = 'array'
            AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
            AND NOT EXISTS (
                SELECT 1
                FROM ledger AS r
                WHERE r.app = t.app AND r.owner_key = t.owner_key AND r.turn_id = t.id AND r.run = $6
                    AND r.outcome IN ('STORED', 'ERASED')
            )
    )
    SELECT
        (SELECT array_agg(id) FROM reading) AS reading,
        (
            SELECT array_agg(g.id)
            FROM given AS g CROSS JOIN me
            WHERE EXISTS (
                    SELECT 1 FROM turn AS t WHERE t.app = $1 AND t.owner_key = me.owner_key AND t.id = g.id
                ) OR EXISTS (
                    SELECT 1
                    FROM ledger AS l
                    WHERE l.app = $1 AND l.owner_key = me.owner_key AND l.turn_id = g.id AND l.run = 0
                )
        ) AS known,
""",
        CONTEXT_AND_PROFILE,
    )
)

# What a choice holds: to be read, and, for people, what is not because its first reading is not over.
# $1 received from, $2 received before, $3 app, $4 owner, $5 run (those that took effect in it are not open any more),
# $6 when the run was begun: NULL is now
_EXTENT: Final[LiteralString] = """
    SELECT count(*) FILTER (WHERE c.open) AS turns,
        count(DISTINCT c.owner_key) FILTER (WHERE c.open) AS owners,
        coalesce(sum(c.bytes) FILTER (WHERE c.open), 0)::bigint AS bytes,
        count(*) FILTER (WHERE c.state = 'PARKED') AS parked,
        count(*) FILTER (WHERE c.state = 'PENDING') AS pending
    FROM (
        SELECT t.owner_key, t.state, octet_length(t.messages::text) AS bytes,
            t.state = 'STORED' AND NOT t.off_record AND jsonb_typeof(t.messages) = 'array'
                AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
                AND l.outcome = 'STORED' AND l.decided_at < coalesce($6, clock_timestamp())
                AND r.turn_id IS NULL AS open
        FROM turn AS t
            JOIN owner AS o ON o.owner_key = t.owner_key
            LEFT JOIN ledger AS l ON l.owner_key = t.owner_key AND l.turn_id = t.id AND l.run = 0
            LEFT JOIN ledger AS r ON r.owner_key = t.owner_key AND r.turn_id = t.id AND r.run = $5
                AND r.outcome IN ('STORED', 'ERASED')
        WHERE ($1::timestamptz IS NULL OR t.received_at >= $1) AND ($2::timestamptz IS NULL OR t.received_at < $2)
            AND ($3::text IS NULL OR t.app = $3) AND ($4::text IS NULL OR o.owner = $4)
    ) AS c
"""

# How many of a choice are still to come, parked ones aside; and of at most so many of them how many can be read. The
# messages are looked at last: most turns took effect.
# $1 received from, $2 received before, $3 app, $4 owner, $5 run, $6 when it was begun, $7 how many at most
_LEFT: Final[LiteralString] = """
    WITH unread AS MATERIALIZED (
        SELECT t.owner_key, t.id
        FROM turn AS t
            JOIN owner AS o ON o.owner_key = t.owner_key
            JOIN ledger AS l ON l.owner_key = t.owner_key AND l.turn_id = t.id AND l.run = 0
        WHERE ($1::timestamptz IS NULL OR t.received_at >= $1) AND ($2::timestamptz IS NULL OR t.received_at < $2)
            AND ($3::text IS NULL OR t.app = $3) AND ($4::text IS NULL OR o.owner = $4)
            AND t.state = 'STORED' AND NOT t.off_record AND l.outcome = 'STORED' AND l.decided_at < $6
            AND NOT EXISTS (
                SELECT 1 FROM ledger AS r WHERE r.owner_key = t.owner_key AND r.turn_id = t.id AND r.run = $5
            )
        LIMIT $7
    )
    SELECT count(*) AS found,
        count(*) FILTER (
            WHERE jsonb_typeof(t.messages) = 'array' AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
        ) AS readable
    FROM unread AS u JOIN turn AS t USING (owner_key, id)
"""

# The same choice as names of turns, in the order in which they came. Postgres keeps the list, with no transaction open.
# $1 received from, $2 received before, $3 app, $4 owner, $5 run, $6 when it was begun
_CHOOSE: Final[LiteralString] = """
    DECLARE rereading NO SCROLL CURSOR WITH HOLD FOR
    SELECT t.owner_key, t.id
    FROM turn AS t
        JOIN owner AS o ON o.owner_key = t.owner_key
        JOIN ledger AS l ON l.owner_key = t.owner_key AND l.turn_id = t.id AND l.run = 0
    WHERE ($1::timestamptz IS NULL OR t.received_at >= $1) AND ($2::timestamptz IS NULL OR t.received_at < $2)
        AND ($3::text IS NULL OR t.app = $3) AND ($4::text IS NULL OR o.owner = $4)
        AND t.state = 'STORED' AND NOT t.off_record AND l.outcome = 'STORED' AND l.decided_at < $6
        AND NOT EXISTS (
            SELECT 1
            FROM ledger AS r
            WHERE r.owner_key = t.owner_key AND r.turn_id = t.id AND r.run = $5 AND r.outcome IN ('STORED', 'ERASED')
        )
    ORDER BY t.received_at, t."partition", t."offset", t.owner_key
"""

_NEXT: Final[LiteralString] = "FETCH FORWARD 50 FROM rereading"

_CLOSE: Final[LiteralString] = "CLOSE rereading"

# The turns as the log has them now: what was forgotten, or let go of, since they were chosen is not among them.
# $1 owner keys, $2 turn ids
_READ: Final[LiteralString] = """
    SELECT o.app, o.owner, t.id, t.session, t.said_at, t.time_zone, t.messages, t.recalled, t.metadata, t.topic,
        t."partition", t."offset", t.received_at
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS g (owner_key, id, n)
        JOIN turn AS t ON t.owner_key = g.owner_key AND t.id = g.id
        JOIN owner AS o ON o.owner_key = t.owner_key
    WHERE t.state = 'STORED' AND NOT t.off_record AND jsonb_typeof(t.messages) = 'array'
        AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
    ORDER BY g.n
"""

# $1 received from, $2 received before (NULL: now), $3 app, $4 owner, $5 turns
_CREATE: Final[LiteralString] = """
    INSERT INTO run (received_from, received_to, app, owner, turns)
    VALUES ($1, coalesce($2, now()), $3, $4, $5)
    RETURNING run, received_from, received_to, app, owner, turns, created_at, published_at
"""

# $1 run
_GET: Final[LiteralString] = """
    SELECT run, received_from, received_to, app, owner, turns, created_at, published_at FROM run WHERE run = $1
"""

# $1 run
_PUBLISHED: Final[LiteralString] = "UPDATE run SET published_at = clock_timestamp() WHERE run = $1"

# $1 how many at most
_LIST: Final[LiteralString] = """
    WITH latest AS MATERIALIZED (
        SELECT run, received_from, received_to, app, owner, turns, created_at, published_at
        FROM run
        ORDER BY run DESC
        LIMIT $1
    ), outcome AS (
        SELECT l.run, count(*) FILTER (WHERE l.outcome = 'STORED') AS stored,
            count(*) FILTER (WHERE l.outcome = 'PARKED') AS parked
        FROM ledger AS l
        WHERE l.run > 0 AND l.run IN (SELECT run FROM latest)
        GROUP BY l.run
    )
    SELECT r.run, r.received_from, r.received_to, r.app, r.owner, r.turns, r.created_at, r.published_at,
        coalesce(o.stored, 0) AS stored, coalesce(o.parked, 0) AS parked
    FROM latest AS r LEFT JOIN outcome AS o USING (run)
    ORDER BY r.run DESC
"""

_NO_RUN: Final = -1
_COUNTED: Final = 1000
"""How many turns that are still to come are looked at one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which turns are read again: received from … until before …, of an app or an owner; None is no limit."""

    received_from: datetime | None = None
    received_to: datetime | None = None
    app: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a choice holds: turns to be read, of so many owners, and the bytes of their messages as JSON.

    parked, pending: turns whose first reading is not over, and that are left out therefore.
    """

    turns: int
    owners: int
    bytes: int
    parked: int
    pending: int


@dataclass(frozen=True, slots=True)
class Run:
    """A reading after the first. `turns`: how many it was to read when it was begun."""

    run: int
    choice: Choice
    turns: int
    created_at: datetime
    published_at: datetime | None
    """When its last turn was put on the topic; None: it is under way, or was broken off."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """How far a run got: turns that took effect in it, were set aside, and are still to come.

    pending: where they are many, what was forgotten since is among them. What is missing to `Run.turns` was forgotten,
    erased or past its retention before it was read.
    """

    run: Run
    stored: int
    parked: int
    pending: int


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """A turn as the log keeps it, redacted, and where it stood when it first came."""

    turn: Turn
    place: Place


async def begin_again(
    database: Database, owner: Owner, turns: Sequence[AcceptedTurn], run: int, *, context_messages: int
) -> Begun:
    """What is known of `turns`, of one session, for their reading `run`.

    Pending are those to be read, unknown those that nobody ever heard of. Settled are those that took effect in this
    run, and those with nothing to read again: their first reading is not over, or they are off the record, erased, past
    their retention, or something in them was forgotten.
    """
    ids = list(dict.fromkeys(turn.turn.id for turn in turns))
    session = next((turn.turn.session for turn in turns if not turn.turn.off_record), None)
    async with database.app(owner.app) as connection:
        row = await connection.fetchrow(_BEGIN_AGAIN, *owner, session, context_messages, ids, run)
    assert row is not None
    status = dict.fromkeys(row["known"] or (), TurnStatus.SETTLED) | dict.fromkeys(
        row["reading"] or (), TurnStatus.PENDING
    )
    return begun_of((status.get(turn.turn.id, TurnStatus.UNKNOWN) for turn in turns), row)


class RunRepository:
    """For the role `mnemo_operator`. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def extent(self, choice: Choice, run: Run | None = None) -> Extent:
        """How much is to be read, without what took effect in `run`. Reads all turns of the choice."""
        begun = (_NO_RUN, None) if run is None else (run.run, run.created_at)
        async with self._database.direct() as connection:
            row = await connection.fetchrow(_EXTENT, *_limits(choice), *begun)
        assert row is not None
        return Extent(**dict(row))

    async def create(self, choice: Choice, turns: int) -> Run:
        """A new run. A choice without an end ends now."""
        async with self._database.across() as connection:
            row = await connection.fetchrow(_CREATE, *_limits(choice), turns)
        assert row is not None
        return _run(row)

    async def get(self, run: int) -> Run | None:
        """The run by that number."""
        async with self._database.across() as connection:
            row = await connection.fetchrow(_GET, run)
        return None if row is None else _run(row)

    async def note_published(self, run: Run) -> None:
        """All turns of `run` are on the topic."""
        async with self._database.across() as connection:
            await connection.execute(_PUBLISHED, run.run)

    async def reports(self, *, limit: int) -> tuple[RunReport, ...]:
        """The last runs and how far they are, newest first."""
        async with self._database.direct() as connection:
            rows = await connection.fetch(_LIST, limit)
            return tuple([await _report(connection, _run(row), row["stored"], row["parked"]) for row in rows])

    @asynccontextmanager
    async def turns(self, run: Run) -> AsyncIterator[AsyncIterator[list[LoggedTurn]]]:
        """What is still to be read in `run`, in the order in which it was received, a few turns at a time.

        The names of the turns are chosen once, and kept by Postgres; each turn is read when its time comes.
        """
        async with self._database.direct() as connection:
            await connection.execute("SET statement_timeout = 0")
            await connection.fetch(_CHOOSE, *_limits(run.choice), run.run, run.created_at)
            yield _pages(connection)


async def _report(connection: "DirectConnection", run: Run, stored: int, parked: int) -> RunReport:
    """Looks for what is still to come only where something may be, and only so far as to see that it is much."""
    pending = max(0, run.turns - stored - parked)
    if pending:
        row = await connection.fetchrow(_LEFT, *_limits(run.choice), run.run, run.created_at, _COUNTED)
        assert row is not None
        pending = row["readable"] if row["found"] < _COUNTED else pending
    return RunReport(run, stored, parked, pending)


async def _pages(connection: "DirectConnection") -> AsyncIterator[list[LoggedTurn]]:
    while names := await connection.fetch(_NEXT):
        rows = await connection.fetch(_READ, [row["owner_key"] for row in names], [row["id"] for row in names])
        yield [_logged(row) for row in rows]
    await connection.execute(_CLOSE)


def _limits(choice: Choice) -> tuple[datetime | None, datetime | None, str | None, str | None]:
    return (choice.received_from, choice.received_to, choice.app, choice.owner)


def _run(row: "asyncpg.Record") -> Run:
    choice = Choice(
        received_from=row["received_from"], received_to=row["received_to"], app=row["app"], owner=row["owner"]
    )
    return Run(row["run"], choice, row["turns"], row["created_at"], row["published_at"])


def _logged(row: "asyncpg.Record") -> LoggedTurn:
    turn = Turn(
        id=row["id"],
        app=row["app"],
        owner=row["owner"],
        said_at=row["said_at"],
        session=row["session"],
        messages=tuple(_message(message) for message in row["messages"]),
        recalled=tuple(row["recalled"] or ()),
        time_zone=row["time_zone"],
        metadata=row["metadata"] or {},
    )
    return LoggedTurn(turn, Place(row["topic"], row["partition"], row["offset"], row["received_at"]))


def _message(message: Mapping[str, Any]) -> Message:
    return Message(Role(message["role"]), message["content"], message.get("id"), message.get("name"))

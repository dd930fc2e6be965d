"""Everything of one owner, read in one snapshot."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, LiteralString

from mnemostream.turns import Reason

from processors.exports import Header, Line, LoggedMessage, LoggedTurn
from processors.feed import Change
from processors.records import Owner
from processors.search import TurnState
from store.database import Database
from store.decisions import decision_of
from store.outbox import change_of
from store.rows import memory_of

if TYPE_CHECKING:
    import asyncpg

MAX_SOURCES: Final = 10_000
"""Of a memory or a change: the latest ones, so that a line stays below what gRPC clients take."""
_ROWS: Final = 50
_TURNS: Final = 8
"""At once: a turn may have a megabyte."""

# $1 app
_ENTER: Final[LiteralString] = "SELECT set_config('mnemo.app', $1, true)"

# $1 app, $2 owner
_OWNER: Final[LiteralString] = """
    SELECT o.owner_key, coalesce(o.seq, 0) AS seq, coalesce(o.version, 0) AS version, now() AS at
    FROM (SELECT 1) AS one LEFT JOIN owner AS o ON o.app = $1 AND o.owner = $2
"""

# As the change feed has them: one past its `expires_at` is LIVE until a timer has been there.
# $1 app, $2 owner key, $3 sources at most
_MEMORIES: Final[LiteralString] = """
    SELECT m.id, m.session, m.content, m.data, m.tags, m.type, m.category, m.importance, m.confidence, m.pinned,
        m.state, m.subject, m.attribute, m.role, m.valid_from, m.valid_to, m.recorded_at, m.retired_at,
        m.retired_reason, m.supersedes, m.superseded_by, m.restates, m.access_count, m.accessed_at, m.confirmed_at,
        m.confirmations, m.expires_at, m.fades_at, m.version,
        CASE WHEN m.pinned OR m.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', now() - m.reinforced_at)) / m.half_life_seconds))
        END AS strength,
        (
            SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
            FROM (
                SELECT l.turn_id, l.message_index, l.role, l.said_at
                FROM memory_source AS l
                WHERE l.app = m.app AND l.owner_key = m.owner_key AND l.memory_id = m.id
                ORDER BY l.said_at DESC, l.turn_id DESC, l.message_index DESC
                LIMIT $3
            ) AS s
        ) AS sources
    FROM memory AS m
    WHERE m.app = $1 AND m.owner_key = $2
    ORDER BY m.recorded_at, m.id
"""

# $1 app, $2 owner key, $3 owner
_CHANGES: Final[LiteralString] = """
    SELECT c.app, $3::text AS owner, c.seq, c.kind, c.at, c.cause_kind, c.cause_id, c.decision_id,
        c.memory_id AS id, c.session, coalesce(c.content, '') AS content, c.data, coalesce(c.tags, '{}') AS tags,
        c.type, c.category, c.importance, c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from,
        c.valid_to, c.recorded_at, c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates,
        c.access_count, c.accessed_at, c.confirmed_at, c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
        CASE WHEN c.pinned OR c.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', c.at - c.reinforced_at)) / c.half_life_seconds))
        END AS strength
    FROM change AS c
    WHERE c.app = $1 AND c.owner_key = $2
    ORDER BY c.seq
"""

# $1 app, $2 owner key
_LOG: Final[LiteralString] = """
    SELECT t.id, t.state, t.reason, t.detail, t.session, t.off_record, t.said_at, t.received_at, t.time_zone,
        t.messages, t.recalled, t.metadata
    FROM turn AS t
    WHERE t.app = $1 AND t.owner_key = $2
    ORDER BY t.received_at, t."offset", t.id
"""

# Their ids tell their time.
# $1 app, $2 owner key
_DECISIONS: Final[LiteralString] = """
    SELECT d.id, d.decided_at, d.cause_kind, d.cause_id,
        coalesce(d.candidate ->> 'text', d.candidate ->> 'content', '') AS candidate,
        d.candidate ->> 'said_at' AS said_at, d.candidate ->> 'role' AS role,
        d.route, d.neighbours, d.action, d.reason, d.memory_id, d.marked, d.retired, d.model, d.prompt_version,
        d.tokens_in, d.tokens_out, d.latency_seconds, d.arbitration_model, d.arbitration_prompt_version,
        d.arbitration_tokens_in, d.arbitration_tokens_out, d.arbitration_latency_seconds
    FROM decision AS d
    WHERE d.app = $1 AND d.owner_key = $2
    ORDER BY d.id
"""


class ExportRepository:
    """Exports of owners. Raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def export(self, owner: Owner) -> AsyncGenerator[Sequence[Line], None]:
        """The header, then the memories in any state, the changes, the turns and the decisions: a few lines at a time.

        One snapshot, so the memories are those after change `header.seq`. It has a connection of its own for as long as
        it is read, which holds up vacuuming: close it soon. Memory stays bounded, whatever the owner has.
        """
        async with self._database.direct() as connection:
            await connection.transaction(isolation="repeatable_read", readonly=True).start()  # ends with the connection
            await connection.execute(_ENTER, owner.app)
            row = await connection.fetchrow(_OWNER, owner.app, owner.owner)
            assert row is not None
            yield (Header(owner, row["seq"], row["version"], row["at"]),)
            if row["owner_key"] is None:
                return
            mine = (owner.app, row["owner_key"])
            sections: tuple[tuple[LiteralString, tuple[Any, ...], int, Callable[[asyncpg.Record], Line]], ...] = (
                (_MEMORIES, (*mine, MAX_SOURCES), _ROWS, lambda memory: memory_of(memory, owner)),
                (_CHANGES, (*mine, owner.owner), _ROWS, _change),
                (_LOG, mine, _TURNS, _turn),
                (_DECISIONS, mine, _ROWS, lambda decision: decision_of(decision, {})),
            )
            for statement, arguments, rows, line_of in sections:
                cursor = await connection.cursor(statement, *arguments)
                while batch := await cursor.fetch(rows):
                    yield [line_of(each) for each in batch]


def _change(row: "asyncpg.Record") -> Change:
    change = change_of(row)
    memory = change.memory
    if memory is None or len(memory.sources) <= MAX_SOURCES:
        return change
    return replace(change, memory=replace(memory, sources=memory.sources[-MAX_SOURCES:]))


def _turn(row: "asyncpg.Record") -> LoggedTurn:
    return LoggedTurn(
        turn_id=row["id"],
        state=TurnState(row["state"]),
        reason=None if row["reason"] is None else Reason(row["reason"]),
        detail=row["detail"],
        session=row["session"],
        off_record=row["off_record"],
        said_at=row["said_at"],
        received_at=row["received_at"],
        time_zone=row["time_zone"],
        messages=tuple(
            LoggedMessage(message["role"], message["content"], message.get("id"), message.get("name"))
            for message in row["messages"] or ()
        ),
        recalled=tuple(row["recalled"] or ()),
        metadata=row["metadata"] or {},
    )

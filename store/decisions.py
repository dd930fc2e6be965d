"""Why a memory is believed: what was said, what was decided, and its versions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID

from mnemostream.turns import Role

from processors.explanations import Compared, Decision, Explanation, Statement
from processors.facts import Reading
from processors.memories import State
from processors.records import Owner
from processors.routing import Action, Route
from store.database import Database
from store.rows import memory_of

if TYPE_CHECKING:
    import asyncpg

    from store.database import Connection

MAX_LINE: Final = 200
MAX_LATEST: Final = 200
"""Statements and decisions that are read, beside the first."""
MAX_EXCERPT: Final = 500
"""Characters of a message."""

# The line is walked both ways over all links of the owner, nearest first, and through what was forgotten.
# $1 app, $2 owner, $3 memory id, $4 at most
_LINE: Final[LiteralString] = """
    WITH RECURSIVE me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), link AS MATERIALIZED (
        SELECT m.id AS one, l.other
        FROM memory AS m CROSS JOIN LATERAL (VALUES (m.supersedes), (m.superseded_by), (m.restates)) AS l (other)
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND l.other IS NOT NULL
    ), line (id) AS (
        SELECT $3::uuid
        UNION
        SELECT CASE WHEN link.one = line.id THEN link.other ELSE link.one END
        FROM line JOIN link ON link.one = line.id OR link.other = line.id
    ), nearest AS MATERIALIZED (
        SELECT id FROM line LIMIT $4
    )
    SELECT m.owner_key, a.time_zone, now() AS now,
        m.id, m.session, m.content, m.data, m.tags, m.type, m.category, m.importance, m.confidence, m.pinned,
        CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state,
        m.subject, m.attribute, m.role, m.valid_from, m.valid_to, m.recorded_at, m.retired_at, m.retired_reason,
        m.supersedes, m.superseded_by, m.restates, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations,
        m.expires_at, m.fades_at, m.version,
        CASE WHEN m.pinned OR m.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', now() - m.reinforced_at)) / m.half_life_seconds))
        END AS strength,
        (
            SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
            FROM memory_source AS s
            WHERE s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id
        ) AS sources
    FROM nearest AS n
        JOIN memory AS m ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = n.id
        JOIN app AS a ON a.app = m.app
    WHERE m.state <> 'FORGOTTEN'
    ORDER BY m.stated_at, m.received_at, m.source_offset, m.source_index, m.id
"""

# A source that is the turn as a whole has the beginning of all its messages.
# $1 app, $2 owner key, $3 memory id, $4 at most, beside the first, $5 characters of a message
_STATEMENTS: Final[LiteralString] = """
    WITH said AS (
        SELECT s.turn_id, s.message_index, s.role, s.said_at,
            row_number() OVER (ORDER BY s.said_at, s.turn_id, s.message_index) AS nth, count(*) OVER () AS total
        FROM memory_source AS s
        WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = $3
    )
    SELECT s.turn_id, nullif(s.message_index, -1) AS message_index, s.role, s.said_at,
        t.messages -> s.message_index ->> 'name' AS name,
        left(CASE WHEN s.message_index >= 0 THEN t.messages -> s.message_index ->> 'content' ELSE (
            SELECT string_agg(m.message ->> 'content', E'\\n' ORDER BY m.n)
            FROM jsonb_array_elements(t.messages) WITH ORDINALITY AS m (message, n)
        ) END, $5) AS text
    FROM said AS s LEFT JOIN turn AS t
        ON t.app = $1 AND t.owner_key = $2 AND t.id = s.turn_id AND t.state <> 'ERASED'
            AND jsonb_typeof(t.messages) = 'array'
    WHERE s.nth = 1 OR s.nth > s.total - $4
    ORDER BY s.nth
"""

# $1 app, $2 owner key, $3 memory id, $4 at most, beside the first
_DECISIONS: Final[LiteralString] = """
    WITH about AS (
        SELECT d.id, row_number() OVER (ORDER BY d.decided_at, d.id) AS nth, count(*) OVER () AS total
        FROM decision AS d
        WHERE d.app = $1 AND d.owner_key = $2 AND (d.memory_id = $3 OR $3 = ANY (d.retired))
    )
    SELECT d.id, d.decided_at, d.cause_kind, d.cause_id,
        coalesce(d.candidate ->> 'text', d.candidate ->> 'content', '') AS candidate,
        d.candidate ->> 'said_at' AS said_at, d.candidate ->> 'role' AS role,
        d.route, d.neighbours, d.action, d.reason, d.memory_id, d.marked, d.retired, d.model, d.prompt_version,
        d.tokens_in, d.tokens_out, d.latency_seconds, d.arbitration_model, d.arbitration_prompt_version,
        d.arbitration_tokens_in, d.arbitration_tokens_out, d.arbitration_latency_seconds
    FROM about AS a JOIN decision AS d ON d.app = $1 AND d.owner_key = $2 AND d.id = a.id
    WHERE a.nth = 1 OR a.nth > a.total - $4
    ORDER BY a.nth
"""

# $1 app, $2 owner key, $3 memory ids
_CONTENTS: Final[LiteralString] = """
    SELECT m.id, m.content
    FROM memory AS m
    WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($3) AND m.state <> 'FORGOTTEN'
"""


class DecisionRepository:
    """What was decided about an owner's memories. Raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def explain(self, owner: Owner, memory_id: UUID) -> Explanation | None:
        """All that is known of how a memory came to be; None where this owner has none by that id, or it is forgotten.

        Bounded: the nearest 200 of its line, the first and the latest 200 of its statements and decisions.
        """
        async with self._database.app(owner.app) as connection:
            rows = await connection.fetch(_LINE, owner.app, owner.owner, memory_id, MAX_LINE)
            line = tuple(memory_of(row, owner) for row in rows)
            memory = next((each for each in line if each.id == memory_id), None)
            if memory is None:
                return None
            owner_key: int = rows[0]["owner_key"]
            said = await connection.fetch(_STATEMENTS, owner.app, owner_key, memory_id, MAX_LATEST, MAX_EXCERPT)
            decided = await connection.fetch(_DECISIONS, owner.app, owner_key, memory_id, MAX_LATEST)
            contents = await _contents(connection, owner, owner_key, decided)
        return Explanation(
            memory=memory,
            statements=tuple(_statement(row) for row in said),
            decisions=tuple(decision_of(row, contents) for row in decided),
            line=line,
            now=rows[0]["now"],
            time_zone=rows[0]["time_zone"],
        )


async def _contents(
    connection: "Connection", owner: Owner, owner_key: int, decided: "Sequence[asyncpg.Record]"
) -> dict[UUID, str]:
    """The texts of the memories that were compared, as far as they are still kept."""
    wanted = {UUID(neighbour["id"]) for row in decided for neighbour in row["neighbours"]}
    if not wanted:
        return {}
    rows = await connection.fetch(_CONTENTS, owner.app, owner_key, list(wanted))
    return {row["id"]: row["content"] for row in rows}


def _statement(row: "asyncpg.Record") -> Statement:
    return Statement(
        turn_id=row["turn_id"],
        message_index=row["message_index"],
        role=None if row["role"] is None else Role(row["role"]),
        said_at=row["said_at"],
        name=row["name"],
        text=row["text"] or "",
    )


def decision_of(row: "asyncpg.Record", contents: Mapping[UUID, str]) -> Decision:
    """The decision in a row, with the texts of the memories that it was compared with."""
    return Decision(
        id=_id(row["id"]),
        at=row["decided_at"],
        cause_kind=row["cause_kind"],
        cause_id=row["cause_id"],
        candidate=row["candidate"],
        said_at=None if row["said_at"] is None else datetime.fromisoformat(row["said_at"]),
        role=None if row["role"] is None else Role(row["role"]),
        route=Route(row["route"]),
        action=Action(row["action"]),
        reason=row["reason"],
        memory_id=None if row["memory_id"] is None else _id(row["memory_id"]),
        marked=row["marked"],
        compared=tuple(_compared(neighbour, contents) for neighbour in row["neighbours"]),
        retired=tuple(_id(each) for each in row["retired"]),
        reading=_reading(row, ""),
        arbitration=_reading(row, "arbitration_"),
    )


def _compared(neighbour: dict[str, Any], contents: Mapping[UUID, str]) -> Compared:
    memory_id = UUID(neighbour["id"])
    return Compared(
        memory_id=memory_id,
        similarity=neighbour["similarity"],
        state=State(neighbour["state"]),
        same_text=neighbour["same_text"],
        same_slot=neighbour.get("same_slot", False),
        content=contents.get(memory_id, ""),
    )


def _reading(row: "asyncpg.Record", stage: str) -> Reading | None:
    """How a model was asked; None where none was."""
    if row[f"{stage}model"] is None:
        return None
    return Reading(
        model=row[f"{stage}model"],
        prompt_version=row[f"{stage}prompt_version"] or "",
        tokens_in=row[f"{stage}tokens_in"],
        tokens_out=row[f"{stage}tokens_out"],
        latency_seconds=row[f"{stage}latency_seconds"],
    )


def _id(value: UUID) -> UUID:
    """A plain UUID of the driver's own kind, which encoders do not know."""
    return UUID(bytes=value.bytes)

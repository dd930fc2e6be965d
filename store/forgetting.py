"""Forgetting a memory on request: every trace of it scrubbed in one transaction, and a tombstone left behind."""

from typing import TYPE_CHECKING, Final, LiteralString
from uuid import UUID

from processors.records import Owner
from store.claims import lock
from store.database import Database

if TYPE_CHECKING:
    from store.database import Connection

# The memory and all versions of it, before and after, whatever they say.
# $1 app, $2 owner, $3 memory id
_LINE: Final[LiteralString] = """
    WITH RECURSIVE me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), line AS (
        SELECT m.id, m.supersedes, m.superseded_by
        FROM memory AS m
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = $3 AND m.state <> 'FORGOTTEN'
        UNION
        SELECT n.id, n.supersedes, n.superseded_by
        FROM line AS l CROSS JOIN LATERAL (
            SELECT m.id, m.supersedes, m.superseded_by
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id IN (l.supersedes, l.superseded_by)
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.supersedes = l.id
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.superseded_by = l.id
        ) AS n
    )
    SELECT array_agg(id ORDER BY id) FROM line
"""

# $1 app, $2 owner
_OWNER_KEY: Final[LiteralString] = "SELECT owner_key FROM owner WHERE app = $1 AND owner = $2"

# What keeps statements that were received before from bringing it back: hashes with the app's key, and turn ids.
# $1 app, $2 owner key, $3 tombstone id, $4 memory ids
_BURY: Final[LiteralString] = """
    INSERT INTO tombstone (owner_key, id, app, received_before, text_hashes, slot_hashes, turn_ids)
    SELECT $2, $3, $1, clock_timestamp(),
        (
            SELECT array_agg(DISTINCT sha256(a.forget_key || m.content_hash))
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($4)
        ),
        (
            SELECT coalesce(array_agg(DISTINCT
                sha256(a.forget_key || convert_to(m.subject || U&'\\001F' || m.attribute, 'UTF8'))), '{}')
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($4) AND m.subject IS NOT NULL
                AND m.attribute IS NOT NULL
        ),
        (
            SELECT coalesce(array_agg(DISTINCT s.turn_id), '{}')
            FROM memory_source AS s
            WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = ANY ($4)
        )
    FROM app AS a
    WHERE a.app = $1
"""

# The messages that it came from, in the log of turns. A source without an index is the turn as a whole.
# $1 app, $2 owner key, $3 memory ids
_SCRUB_TURNS: Final[LiteralString] = """
    WITH source AS MATERIALIZED (
        SELECT s.turn_id, array_agg(s.message_index) AS indices
        FROM memory_source AS s
        WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = ANY ($3)
        GROUP BY s.turn_id
    )
    UPDATE turn AS t
    SET messages = (
            SELECT jsonb_agg(
                CASE WHEN -1 = ANY (s.indices) OR e.n - 1 = ANY (s.indices)
                    THEN jsonb_set(e.message, '{content}', '"[FORGOTTEN]"') ELSE e.message END
                ORDER BY e.n)
            FROM jsonb_array_elements(t.messages) WITH ORDINALITY AS e (message, n)
        ),
        recalled = NULL, metadata = NULL
    FROM source AS s
    WHERE t.app = $1 AND t.owner_key = $2 AND t.id = s.turn_id AND t.messages IS NOT NULL
"""

# Decisions that quote it, and those whose reason may: an arbitrator saw it.
# $1 app, $2 owner key, $3 memory ids
_SCRUB_DECISIONS: Final[LiteralString] = """
    UPDATE decision AS d
    SET candidate = CASE WHEN d.memory_id = ANY ($3) OR d.retired && $3 THEN '{}' ELSE d.candidate END,
        reason = '[FORGOTTEN]'
    WHERE d.app = $1 AND d.owner_key = $2 AND (
        d.memory_id = ANY ($3) OR d.retired && $3 OR d.arbitration_model IS NOT NULL AND EXISTS (
            SELECT 1 FROM jsonb_array_elements(d.neighbours) AS n WHERE (n ->> 'id')::uuid = ANY ($3)
        )
        -- What was read out of the same turns and came to nothing may say the same.
        OR d.memory_id IS NULL AND d.cause_kind = 'turn' AND d.cause_id IN (
            SELECT s.turn_id
            FROM memory_source AS s
            WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = ANY ($3)
        )
    )
"""

# $1 app, $2 owner key, $3 memory ids
_SCRUB_ANSWERS: Final[LiteralString] = """
    DELETE FROM answer AS a
    USING change AS c
    WHERE a.app = $1 AND a.owner_key = $2 AND c.app = $1 AND c.owner_key = $2 AND c.seq = a.seq
        AND c.memory_id = ANY ($3)
"""

# The history keeps that something was there, and when. What is not published yet is published like this.
# $1 app, $2 owner key, $3 memory ids
_SCRUB_CHANGES: Final[LiteralString] = """
    UPDATE change AS c
    SET content = NULL, data = NULL, tags = '{}', type = NULL, subject = NULL, attribute = NULL, session = NULL,
        retired_reason = NULL, sources = '[]'
    WHERE c.app = $1 AND c.owner_key = $2 AND c.memory_id = ANY ($3)
"""

# $1 app, $2 owner key, $3 memory ids
_SCRUB_VECTORS: Final[LiteralString] = """
    DELETE FROM memory_vector AS v WHERE v.app = $1 AND v.owner_key = $2 AND v.id = ANY ($3)
"""

# $1 app, $2 owner key, $3 memory ids
_SCRUB_SOURCES: Final[LiteralString] = """
    DELETE FROM memory_source AS s WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = ANY ($3)
"""

# $1 app, $2 owner key, $3 memory ids, $4 cause
_FORGET: Final[LiteralString] = """
    WITH forgotten AS (
        UPDATE memory AS m
        SET state = 'FORGOTTEN', content = '', content_hash = '', text_search = '', data = NULL, tags = '{}',
            type = NULL, subject = NULL, attribute = NULL, session = NULL, pinned = false,
            retired_at = coalesce(m.retired_at, clock_timestamp()), retired_reason = 'forgotten on request',
            version = m.version + 1
        WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($3) AND m.state <> 'FORGOTTEN'
        RETURNING m.id, m.category, m.importance, m.confidence, m.role, m.valid_from, m.valid_to, m.recorded_at,
            m.retired_at, m.retired_reason, m.supersedes, m.superseded_by, m.restates, m.stated_at, m.received_at,
            m.source_offset, m.source_index, m.reinforced_at, m.half_life_seconds, m.fades_at, m.expires_at,
            m.access_count, m.accessed_at, m.confirmed_at, m.confirmations, m.version
    ), numbered AS MATERIALIZED (
        SELECT f.id, o.seq + row_number() OVER (ORDER BY f.recorded_at, f.id) AS seq
        FROM forgotten AS f CROSS JOIN owner AS o
        WHERE o.app = $1 AND o.owner_key = $2
    ), changed AS (
        INSERT INTO change (owner_key, seq, app, kind, cause_kind, cause_id, memory_id, tags, category, importance,
            confidence, pinned, role, state, valid_from, valid_to, recorded_at, retired_at, retired_reason, supersedes,
            superseded_by, restates, stated_at, received_at, source_offset, source_index, reinforced_at,
            half_life_seconds, fades_at, expires_at, access_count, accessed_at, confirmed_at, confirmations, version)
        SELECT $2, n.seq, $1, 'forgotten', 'request', $4, f.id, '{}', f.category, f.importance, f.confidence, false,
            f.role, 'FORGOTTEN', f.valid_from, f.valid_to, f.recorded_at, f.retired_at, f.retired_reason, f.supersedes,
            f.superseded_by, f.restates, f.stated_at, f.received_at, f.source_offset, f.source_index, f.reinforced_at,
            f.half_life_seconds, f.fades_at, f.expires_at, f.access_count, f.accessed_at, f.confirmed_at,
            f.confirmations, f.version
        FROM forgotten AS f JOIN numbered AS n USING (id)
        RETURNING seq
    ), outgoing AS (
        INSERT INTO outbox (owner_key, seq, app)
        SELECT $2, c.seq, $1 FROM changed AS c
        RETURNING seq
    )
    UPDATE owner
    SET version = version + 1, seq = (SELECT max(seq) FROM outgoing)
    WHERE app = $1 AND owner_key = $2
"""


class ForgettingRepository:
    """Forgetting, by the query service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget(self, owner: Owner, memory_id: UUID, *, cause_id: UUID) -> bool:
        """Scrub the memory with all versions of it, and keep what was received before from bringing it back.

        What goes: its text, vector and search text in every version; the messages that it came from in the log of
        turns; the decisions, kept answers and changes that quote it. What stays is rows without text, a `forgotten`
        change for each, and a tombstone of keyed hashes. cause_id: names the request, and the tombstone. False where
        this owner has no such memory, or it was forgotten before.  Raises StoreUnavailable.
        """
        async with self._database.app(owner.app) as connection:
            if not await _line(connection, owner, memory_id):
                return False
            await lock(connection, owner)
            ids = await _line(connection, owner, memory_id)
            if not ids:
                return False
            owner_key = await connection.fetchval(_OWNER_KEY, owner.app, owner.owner)
            await _scrub(connection, owner.app, owner_key, ids, cause_id)
        return True


async def _line(connection: "Connection", owner: Owner, memory_id: UUID) -> list[UUID]:
    ids: list[UUID] | None = await connection.fetchval(_LINE, owner.app, owner.owner, memory_id)
    return ids or []


async def _scrub(connection: "Connection", app: str, owner_key: int, ids: list[UUID], cause_id: UUID) -> None:
    """The tombstone first: it is made of what goes after it."""
    await connection.execute("SET LOCAL mnemo.forgetting = 'on'")
    await connection.execute(_BURY, app, owner_key, cause_id, ids)
    await connection.execute(_SCRUB_TURNS, app, owner_key, ids)
    await connection.execute(_SCRUB_DECISIONS, app, owner_key, ids)
    await connection.execute(_SCRUB_ANSWERS, app, owner_key, ids)
    await connection.execute(_SCRUB_CHANGES, app, owner_key, ids)
    await connection.execute(_SCRUB_VECTORS, app, owner_key, ids)
    await connection.execute(_SCRUB_SOURCES, app, owner_key, ids)
    await connection.execute(_FORGET, app, owner_key, ids, str(cause_id))

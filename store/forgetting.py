"""Forgetting a memory on request: every trace of it scrubbed in one transaction, and a tombstone left behind."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, LiteralString
from uuid import UUID

from processors.records import Owner
from store.claims import lock
from store.database import Database

if TYPE_CHECKING:
    from store.database import Connection

# The memory and all versions of it, before and after, and where it was said again, whatever they say; and every other
# memory with the text of one of them, told twice as it stands, with its versions. A forgotten one has no hash.
# $1 app, $2 owner, $3 memory id
_LINE: Final[LiteralString] = """
    WITH RECURSIVE me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), line AS (
        SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
        FROM memory AS m
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = $3 AND m.state <> 'FORGOTTEN'
        UNION
        SELECT n.id, n.supersedes, n.superseded_by, n.restates, n.content_hash
        FROM line AS l CROSS JOIN LATERAL (
            SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me)
                AND m.id IN (l.supersedes, l.superseded_by, l.restates)
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.supersedes = l.id
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.superseded_by = l.id
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.restates = l.id
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by, m.restates, m.content_hash
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.content_hash = l.content_hash
                AND l.content_hash <> ''
        ) AS n
    )
    SELECT array_agg(id ORDER BY id) FROM line
"""

# The log of turns changes for this transaction alone.
_MAY_SCRUB: Final[LiteralString] = "SET LOCAL mnemo.forgetting = 'on'"

# $1 app, $2 owner
_OWNER_KEY: Final[LiteralString] = "SELECT owner_key FROM owner WHERE app = $1 AND owner = $2"

# The messages that say it: those it came from, and those that repeated it or took it back, which decisions name. Index
# -1: the turn as a whole. Not of decisions that were emptied: their messages went with them.
# $1 app, $2 owner key, $3 memory ids
_SAID: Final[LiteralString] = """
    SELECT s.turn_id, s.message_index
    FROM memory_source AS s
    WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = ANY ($3)
    UNION
    SELECT d.cause_id, coalesce(m.index::integer, -1)
    FROM decision AS d
        LEFT JOIN LATERAL jsonb_array_elements_text(
            CASE WHEN jsonb_typeof(d.candidate -> 'messages') = 'array' THEN d.candidate -> 'messages' ELSE '[]' END
        ) AS m (index) ON true
    WHERE d.app = $1 AND d.owner_key = $2 AND d.cause_kind = 'turn' AND d.candidate <> '{}'
        AND (d.memory_id = ANY ($3) OR d.retired && $3)
"""

# What keeps statements that were received before from bringing it back: hashes with the app's key, and turn ids.
# $1 app, $2 owner key, $3 tombstone id, $4 memory ids, $5 turn ids
_BURY: Final[LiteralString] = """
    INSERT INTO tombstone (owner_key, id, app, received_before, text_hashes, slot_hashes, turn_ids)
    SELECT $2, $3, $1, clock_timestamp(),
        (
            SELECT array_agg(DISTINCT sha256(a.forget_key || m.content_hash))
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($4) AND m.state <> 'FORGOTTEN'
        ),
        (
            SELECT coalesce(array_agg(DISTINCT
                sha256(a.forget_key || convert_to(m.subject || U&'\\001F' || m.attribute, 'UTF8'))), '{}')
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($4) AND m.subject IS NOT NULL
                AND m.attribute IS NOT NULL
        ),
        $5
    FROM app AS a
    WHERE a.app = $1
"""

# $1 app, $2 owner key, and for each message $3 turn id, $4 index, -1 for all of the turn's
_SCRUB_MESSAGES: Final[LiteralString] = """
    WITH said AS MATERIALIZED (
        SELECT s.turn_id, array_agg(s.index) AS indices
        FROM unnest($3::text[], $4::integer[]) AS s (turn_id, index)
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
    FROM said AS s
    WHERE t.app = $1 AND t.owner_key = $2 AND t.id = s.turn_id AND jsonb_typeof(t.messages) = 'array'
"""

# What was recalled for other turns: the memory, word for word.
# $1 app, $2 owner key, $3 memory ids
_SCRUB_RECALLED: Final[LiteralString] = """
    WITH text AS MATERIALIZED (
        SELECT array_agg(m.content) AS contents
        FROM memory AS m
        WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($3) AND m.state <> 'FORGOTTEN'
    )
    UPDATE turn AS t
    SET recalled = t.recalled - text.contents
    FROM text
    WHERE t.app = $1 AND t.owner_key = $2 AND t.recalled ?| text.contents
"""

# Decisions that say it, and those whose reason may: an arbitrator saw it. What was read out of the same turns, or
# compared with it, and came to nothing may say the same.
# $1 app, $2 owner key, $3 memory ids, $4 turn ids
_SCRUB_DECISIONS: Final[LiteralString] = """
    UPDATE decision AS d
    SET candidate = CASE WHEN d.memory_id <> ALL ($3) AND NOT d.retired && $3 THEN d.candidate ELSE '{}' END,
        reason = '[FORGOTTEN]'
    WHERE d.app = $1 AND d.owner_key = $2 AND (
        d.memory_id = ANY ($3) OR d.retired && $3 OR d.arbitration_model IS NOT NULL AND EXISTS (
            SELECT 1 FROM jsonb_array_elements(d.neighbours) AS n WHERE (n ->> 'id')::uuid = ANY ($3)
        )
        OR d.memory_id IS NULL AND d.cause_kind = 'turn' AND d.cause_id = ANY ($4)
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

        What goes: its text, vector and search text in every version; the messages of the log that said it, repeated it
        or took it back, and itself where it was recalled; the decisions, kept answers and changes that quote it. What
        stays is rows without text, a `forgotten` change for each, and a tombstone of keyed hashes. cause_id: names the
        request, and the tombstone. False where this owner has no such memory, or it was forgotten before.
        Raises StoreUnavailable.
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


async def scrub_messages(
    connection: "Connection", app: str, owner_key: int, messages: Iterable[tuple[str, int | None]]
) -> None:
    """Scrub `messages` (turn id and index; None: all of the turn) in the log of turns, with what came beside them.

    From here to its end the transaction may change the log.
    """
    found = [(turn_id, -1 if index is None else index) for turn_id, index in messages]
    if found:
        turn_ids, indices = zip(*found, strict=True)
        await connection.execute(_MAY_SCRUB)
        await connection.execute(_SCRUB_MESSAGES, app, owner_key, turn_ids, indices)


async def _scrub(connection: "Connection", app: str, owner_key: int, ids: list[UUID], cause_id: UUID) -> None:
    """The tombstone first, and the decisions late: what goes is made of what goes after it."""
    said = [(row["turn_id"], row["message_index"]) for row in await connection.fetch(_SAID, app, owner_key, ids)]
    turn_ids = list({turn_id for turn_id, _ in said})
    await connection.execute(_MAY_SCRUB)
    await connection.execute(_BURY, app, owner_key, cause_id, ids, turn_ids)
    await scrub_messages(connection, app, owner_key, said)
    await connection.execute(_SCRUB_RECALLED, app, owner_key, ids)
    await connection.execute(_SCRUB_DECISIONS, app, owner_key, ids, turn_ids)
    await connection.execute(_SCRUB_ANSWERS, app, owner_key, ids)
    await connection.execute(_SCRUB_CHANGES, app, owner_key, ids)
    await connection.execute(_SCRUB_VECTORS, app, owner_key, ids)
    await connection.execute(_SCRUB_SOURCES, app, owner_key, ids)
    await connection.execute(_FORGET, app, owner_key, ids, str(cause_id))

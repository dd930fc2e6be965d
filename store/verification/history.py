"""The history of each owner: whole, without a gap, and what the memories are is what it says last."""

from typing import Final, LiteralString

from store.verification.checks import Check
from store.verification.findings import FEED

_CHANGES: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN change AS c ON c.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

# 1, 2, 3 … up to the owner's seq. The history of an owner who was erased and came back begins there.
_GAPS: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_strip_nulls(jsonb_build_object('seq', CASE WHEN h.rows > 0 THEN (
                SELECT min(c.seq) + 1
                FROM change AS c
                WHERE c.owner_key = o.owner_key AND NOT EXISTS (
                    SELECT 1 FROM change AS n WHERE n.owner_key = c.owner_key AND n.seq = c.seq + 1)
            ) END, 'first', h.first, 'last', h.last, 'owner_seq', o.seq)) AS evidence
    FROM owner AS o
        CROSS JOIN LATERAL (
            SELECT count(*) AS rows, min(c.seq) AS first, max(c.seq) AS last
            FROM change AS c
            WHERE c.owner_key = o.owner_key
        ) AS h
        CROSS JOIN LATERAL (VALUES
            ('a number is missing in the history', h.rows < h.last - h.first + 1),
            ('the first numbers of the history are missing', h.first > 1 AND NOT EXISTS (
                SELECT 1
                FROM change AS c
                WHERE c.owner_key = o.owner_key AND c.seq = h.first AND c.kind = 'owner_erased')),
            ('the history ends elsewhere than the owner''s seq', coalesce(h.last, 0) <> o.seq)
        ) AS r (what, broken)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY o.owner_key
    LIMIT $4
"""

# Column by column. Accesses are counted without a change: they move the count, its time, and how fresh the memory is.
_DIFFERS: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a memory is not as its last change says' AS what,
        jsonb_build_object('memory', m.id, 'seq', c.seq, 'columns', to_jsonb(d.columns)) AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        CROSS JOIN LATERAL (
            SELECT c.seq, c.session, c.content, c.data, c.tags, c.type, c.category, c.importance, c.confidence,
                c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to, c.recorded_at,
                c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates, c.stated_at, c.received_at,
                c.source_offset, c.source_index, c.expires_at, c.access_count, c.confirmed_at, c.confirmations,
                c.version, c.sources
            FROM change AS c
            WHERE c.owner_key = m.owner_key AND c.memory_id = m.id
            ORDER BY c.seq DESC
            LIMIT 1
        ) AS c
        CROSS JOIN LATERAL (
            SELECT array_remove(ARRAY[
                CASE WHEN m.session IS DISTINCT FROM c.session THEN 'session' END,
                CASE WHEN m.content <> coalesce(c.content, '') THEN 'content' END,
                CASE WHEN m.data IS DISTINCT FROM c.data THEN 'data' END,
                CASE WHEN m.tags <> coalesce(c.tags, '{}') THEN 'tags' END,
                CASE WHEN m.type IS DISTINCT FROM c.type THEN 'type' END,
                CASE WHEN m.category IS DISTINCT FROM c.category THEN 'category' END,
                CASE WHEN m.importance IS DISTINCT FROM c.importance THEN 'importance' END,
                CASE WHEN m.confidence IS DISTINCT FROM c.confidence THEN 'confidence' END,
                CASE WHEN m.pinned IS DISTINCT FROM c.pinned THEN 'pinned' END,
                CASE WHEN m.subject IS DISTINCT FROM c.subject THEN 'subject' END,
                CASE WHEN m.attribute IS DISTINCT FROM c.attribute THEN 'attribute' END,
                CASE WHEN m.role IS DISTINCT FROM c.role THEN 'role' END,
                CASE WHEN m.state IS DISTINCT FROM c.state THEN 'state' END,
                CASE WHEN m.valid_from IS DISTINCT FROM c.valid_from THEN 'valid_from' END,
                CASE WHEN m.valid_to IS DISTINCT FROM c.valid_to THEN 'valid_to' END,
                CASE WHEN m.recorded_at IS DISTINCT FROM c.recorded_at THEN 'recorded_at' END,
                CASE WHEN m.retired_at IS DISTINCT FROM c.retired_at THEN 'retired_at' END,
                CASE WHEN m.retired_reason IS DISTINCT FROM c.retired_reason THEN 'retired_reason' END,
                CASE WHEN m.supersedes IS DISTINCT FROM c.supersedes THEN 'supersedes' END,
                CASE WHEN m.superseded_by IS DISTINCT FROM c.superseded_by THEN 'superseded_by' END,
                CASE WHEN m.restates IS DISTINCT FROM c.restates THEN 'restates' END,
                CASE WHEN m.stated_at IS DISTINCT FROM c.stated_at THEN 'stated_at' END,
                CASE WHEN m.received_at IS DISTINCT FROM c.received_at THEN 'received_at' END,
                CASE WHEN m.source_offset IS DISTINCT FROM c.source_offset THEN 'source_offset' END,
                CASE WHEN m.source_index IS DISTINCT FROM c.source_index THEN 'source_index' END,
                CASE WHEN m.expires_at IS DISTINCT FROM c.expires_at THEN 'expires_at' END,
                CASE WHEN m.access_count < c.access_count THEN 'access_count' END,
                CASE WHEN m.confirmed_at IS DISTINCT FROM c.confirmed_at THEN 'confirmed_at' END,
                CASE WHEN m.confirmations IS DISTINCT FROM c.confirmations THEN 'confirmations' END,
                CASE WHEN m.version IS DISTINCT FROM c.version THEN 'version' END,
                CASE WHEN (
                    SELECT count(*) FROM memory_source AS s WHERE s.owner_key = m.owner_key AND s.memory_id = m.id
                ) <> jsonb_array_length(c.sources) OR EXISTS (
                    SELECT 1
                    FROM jsonb_to_recordset(c.sources) AS said (turn_id text, message_index integer)
                    WHERE NOT EXISTS (
                        SELECT 1
                        FROM memory_source AS s
                        WHERE s.owner_key = m.owner_key AND s.memory_id = m.id AND s.turn_id = said.turn_id
                            AND s.message_index = coalesce(said.message_index, -1)
                    )
                ) THEN 'sources' END
            ], NULL) AS columns
        ) AS d
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND d.columns <> '{}'
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

_WITHOUT_HISTORY: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a memory has no history' AS what,
        jsonb_build_object('memory', m.id) AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND NOT EXISTS (SELECT 1 FROM change AS c WHERE c.owner_key = m.owner_key AND c.memory_id = m.id)
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

# Along a memory's changes its version rises, and each is of a memory that is there.
_BROKEN_STEPS: Final[LiteralString] = """
    WITH step AS (
        SELECT c.owner_key, c.seq, c.kind, c.memory_id, c.version,
            lag(c.version) OVER (PARTITION BY c.owner_key, c.memory_id ORDER BY c.seq) AS before
        FROM change AS c
        WHERE c.owner_key > $1 AND c.owner_key <= $2
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_strip_nulls(jsonb_build_object('seq', s.seq, 'memory', s.memory_id, 'version', s.version)) AS evidence
    FROM step AS s JOIN owner AS o ON o.owner_key = s.owner_key
        LEFT JOIN memory AS m ON m.owner_key = s.owner_key AND m.id = s.memory_id
        CROSS JOIN LATERAL (VALUES
            ('a change of a memory that is not there', s.kind <> 'owner_erased' AND m.id IS NULL),
            ('a memory''s version does not rise with its changes',
                s.memory_id IS NOT NULL AND s.version <= s.before)
        ) AS r (what, broken)
    WHERE ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY s.owner_key, s.seq
    LIMIT $4
"""

CHECKS: Final = (Check(FEED, {"changes": _CHANGES}, (_GAPS, _DIFFERS, _WITHOUT_HISTORY, _BROKEN_STEPS)),)

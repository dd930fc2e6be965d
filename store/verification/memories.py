"""Memories: none is live and superseded at once, each can be traced to what it comes from."""

from typing import Final, LiteralString

from store.verification.checks import Check
from store.verification.findings import LIVE, TRACEABLE

_MEMORIES: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

# Two live ones of a line are right where one is to end, and the other begins then or later.
_LIVE_AND_SUPERSEDED: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_strip_nulls(jsonb_build_object('memory', m.id, 'state', m.state, 'superseded_by', m.superseded_by,
            'supersedes', CASE WHEN old.state = 'LIVE' THEN old.id END, 'seq', last.seq)) AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        LEFT JOIN memory AS old ON old.owner_key = m.owner_key AND old.id = m.supersedes
        LEFT JOIN LATERAL (
            SELECT c.seq, c.state
            FROM change AS c
            WHERE c.owner_key = m.owner_key AND c.memory_id = m.id
            ORDER BY c.seq DESC
            LIMIT 1
        ) AS last ON true
        CROSS JOIN LATERAL (VALUES
            ('superseded by another, and not in the state SUPERSEDED',
                m.superseded_by IS NOT NULL AND m.state NOT IN ('SUPERSEDED', 'FORGOTTEN')),
            ('live, and retired', (m.state = 'LIVE') = (m.retired_at IS NOT NULL)),
            ('live, and superseded in its history', m.state = 'LIVE' AND last.state = 'SUPERSEDED'),
            ('live, together with what it replaced', m.state = 'LIVE' AND old.state = 'LIVE'
                AND (old.valid_to IS NULL OR old.valid_to > m.valid_from))
        ) AS r (what, broken)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

# What a kind of change says, the state after it says too.
_KIND_AND_STATE: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a change says one thing, the state after it another' AS what,
        jsonb_build_object('memory', c.memory_id, 'seq', c.seq, 'kind', c.kind, 'state', c.state) AS evidence
    FROM owner AS o JOIN change AS c ON c.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND c.state <> CASE c.kind WHEN 'superseded' THEN 'SUPERSEDED' WHEN 'retracted' THEN 'RETRACTED'
            WHEN 'archived' THEN 'ARCHIVED' WHEN 'expired' THEN 'EXPIRED' WHEN 'evicted' THEN 'EVICTED'
            WHEN 'revived' THEN 'LIVE' WHEN 'restored' THEN 'LIVE' WHEN 'forgotten' THEN 'FORGOTTEN' ELSE c.state END
    ORDER BY c.owner_key, c.seq
    LIMIT $4
"""

# From a memory to the change that added it, to the decision, to the turn (or the request, which is named and no more).
_UNTRACED: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_strip_nulls(jsonb_build_object('memory', m.id, 'seq', c.seq, 'decision', c.decision_id,
            coalesce(c.cause_kind, 'cause'), c.cause_id)) AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        LEFT JOIN LATERAL (
            SELECT c.seq, c.kind, c.cause_kind, c.cause_id, c.decision_id
            FROM change AS c
            WHERE c.owner_key = m.owner_key AND c.memory_id = m.id
            ORDER BY c.seq
            LIMIT 1
        ) AS c ON true
        LEFT JOIN decision AS d ON d.owner_key = m.owner_key AND d.id = c.decision_id
        CROSS JOIN LATERAL (VALUES
            ('nothing says what added it', c.kind IS DISTINCT FROM 'added'),
            ('there is no decision to add it', c.kind = 'added' AND d.id IS NULL),
            ('its decision is about something else', d.id IS NOT NULL AND (d.memory_id IS DISTINCT FROM m.id
                OR (d.cause_kind, d.cause_id) <> (c.cause_kind, c.cause_id))),
            ('it comes from a turn that never took effect', c.cause_kind = 'turn' AND NOT EXISTS (
                SELECT 1
                FROM ledger AS l
                WHERE l.owner_key = m.owner_key AND l.turn_id = c.cause_id AND l.outcome IN ('STORED', 'ERASED'))),
            ('it comes from a turn, and no message supports it', c.cause_kind = 'turn' AND m.state <> 'FORGOTTEN'
                AND NOT EXISTS (
                    SELECT 1
                    FROM memory_source AS s
                    WHERE s.owner_key = m.owner_key AND s.memory_id = m.id AND s.turn_id = c.cause_id))
        ) AS r (what, broken)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

_UNKNOWN_SOURCES: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a turn that never took effect supports it' AS what,
        jsonb_build_object('memory', s.memory_id, 'turn', s.turn_id, 'message', s.message_index) AS evidence
    FROM owner AS o JOIN memory_source AS s ON s.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND NOT EXISTS (
            SELECT 1
            FROM ledger AS l
            WHERE l.owner_key = s.owner_key AND l.turn_id = s.turn_id AND l.outcome IN ('STORED', 'ERASED')
        )
    ORDER BY s.owner_key, s.memory_id, s.turn_id
    LIMIT $4
"""

CHECKS: Final = (
    Check(LIVE, {"memories": _MEMORIES}, (_LIVE_AND_SUPERSEDED, _KIND_AND_STATE)),
    Check(TRACEABLE, {"memories": _MEMORIES}, (_UNTRACED, _UNKNOWN_SOURCES)),
)

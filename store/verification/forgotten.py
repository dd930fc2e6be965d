"""What was forgotten on request: nothing of it is left, and what was received before has not brought it back."""

from typing import Final, LiteralString

from store.verification.checks import Check
from store.verification.findings import FORGOTTEN

_FORGOTTEN: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND m.state = 'FORGOTTEN'
"""

_TOMBSTONES: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN tombstone AS t ON t.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

_LEFT: Final[LiteralString] = """
    WITH gone AS MATERIALIZED (
        SELECT o.app, o.owner, m.owner_key, m.id, m.session IS NOT NULL OR m.content <> '' OR m.content_hash <> ''
            OR m.text_search <> '' OR m.data IS NOT NULL OR m.tags <> '{}' OR m.type IS NOT NULL
            OR m.subject IS NOT NULL OR m.attribute IS NOT NULL OR m.pinned AS has_text
        FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND m.state = 'FORGOTTEN'
    ), trace (app, owner, owner_key, id, what, seq, decision_id) AS (
        SELECT g.app, g.owner, g.owner_key, g.id, 'its text is still there', NULL::bigint, NULL::uuid
        FROM gone AS g
        WHERE g.has_text
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'its vector is still there', NULL, NULL
        FROM gone AS g
        WHERE EXISTS (SELECT 1 FROM memory_vector AS v WHERE v.owner_key = g.owner_key AND v.id = g.id)
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'its sources are still there', NULL, NULL
        FROM gone AS g
        WHERE EXISTS (SELECT 1 FROM memory_source AS s WHERE s.owner_key = g.owner_key AND s.memory_id = g.id)
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'a change still quotes it', c.seq, NULL
        FROM gone AS g JOIN change AS c ON c.owner_key = g.owner_key AND c.memory_id = g.id
        WHERE coalesce(c.content, '') <> '' OR c.data IS NOT NULL OR c.tags <> '{}' OR c.type IS NOT NULL
            OR c.subject IS NOT NULL OR c.attribute IS NOT NULL OR c.session IS NOT NULL OR c.sources <> '[]'
            OR (c.retired_reason IS NOT NULL AND c.kind NOT IN ('forgotten', 'purged'))
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'an answer still quotes it', c.seq, NULL
        FROM gone AS g JOIN change AS c ON c.owner_key = g.owner_key AND c.memory_id = g.id
            JOIN answer AS a ON a.owner_key = c.owner_key AND a.seq = c.seq
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'a decision still quotes it', NULL, d.id
        FROM gone AS g JOIN decision AS d ON d.owner_key = g.owner_key AND d.memory_id = g.id
        WHERE d.candidate <> '{}' OR d.reason <> '[FORGOTTEN]'
        UNION ALL
        SELECT g.app, g.owner, g.owner_key, g.id, 'nothing keeps it from coming back', NULL, NULL
        FROM gone AS g
        WHERE NOT EXISTS (
            SELECT 1
            FROM change AS c JOIN tombstone AS t ON t.owner_key = c.owner_key AND t.id::text = c.cause_id
            WHERE c.owner_key = g.owner_key AND c.memory_id = g.id AND c.kind = 'forgotten'
        )
    )
    SELECT count(*) OVER () AS found, t.app, t.owner, t.what,
        jsonb_strip_nulls(jsonb_build_object('memory', t.id, 'seq', t.seq, 'decision', t.decision_id)) AS evidence
    FROM trace AS t
    ORDER BY t.owner_key, t.id, t.seq
    LIMIT $4
"""

# Decisions that retired it, or whose reason is of an arbitrator who saw it; those that came of the same turns to
# nothing; and those about what had been forgotten when it came.
_QUOTED: Final[LiteralString] = """
    WITH buried AS MATERIALIZED (
        SELECT o.app, o.owner, t.owner_key, max(t.at) AS at
        FROM owner AS o JOIN tombstone AS t ON t.owner_key = o.owner_key
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        GROUP BY o.app, o.owner, t.owner_key
    ), said AS MATERIALIZED (
        SELECT t.owner_key, u.turn_id, max(t.at) AS at
        FROM owner AS o JOIN tombstone AS t ON t.owner_key = o.owner_key CROSS JOIN unnest(t.turn_ids) AS u (turn_id)
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        GROUP BY t.owner_key, u.turn_id
    )
    SELECT count(*) OVER () AS found, b.app, b.owner, r.what,
        jsonb_build_object('decision', d.id, 'cause_kind', d.cause_kind, 'cause_id', d.cause_id) AS evidence
    FROM buried AS b JOIN decision AS d ON d.owner_key = b.owner_key
        LEFT JOIN said AS s ON s.owner_key = d.owner_key AND s.turn_id = d.cause_id
        CROSS JOIN LATERAL (VALUES
            ('a decision that retired it still quotes it', (d.candidate <> '{}' OR d.reason <> '[FORGOTTEN]')
                AND EXISTS (
                    SELECT 1
                    FROM unnest(d.retired) AS g (id) JOIN memory AS m
                        ON m.owner_key = d.owner_key AND m.id = g.id AND m.state = 'FORGOTTEN')),
            ('a decision that an arbitrator made who saw it still tells why', d.arbitration_model IS NOT NULL
                AND d.reason <> '[FORGOTTEN]' AND d.decided_at < b.at AND EXISTS (
                    SELECT 1
                    FROM jsonb_array_elements(d.neighbours) AS n JOIN memory AS m
                        ON m.owner_key = d.owner_key AND m.id = (n ->> 'id')::uuid AND m.state = 'FORGOTTEN')),
            ('a decision about a turn that said it still quotes it', d.memory_id IS NULL AND d.cause_kind = 'turn'
                AND (d.candidate <> '{}' OR d.reason <> '[FORGOTTEN]') AND d.route <> 'FORGOTTEN'
                AND d.decided_at < s.at),
            ('a decision about what had been forgotten quotes it',
                d.route = 'FORGOTTEN' AND d.candidate - 'messages' <> '{}')
        ) AS r (what, broken)
    WHERE r.broken
    ORDER BY d.owner_key, d.id
    LIMIT $4
"""

# What was received before, and has the same text; or came after it, of the same slot or turn. Found by its hashes and
# turns, not by comparing each memory with each tombstone.
_BACK: Final[LiteralString] = """
    WITH buried AS MATERIALIZED (
        SELECT t.owner_key, t.id, t.received_before, t.text_hashes, t.slot_hashes, t.turn_ids, t.at
        FROM owner AS o JOIN tombstone AS t ON t.owner_key = o.owner_key
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
    ), trace AS MATERIALIZED (
        SELECT b.owner_key, b.id, b.received_before, '-infinity'::timestamptz AS after, u.hash,
            'a memory says what was forgotten' AS what
        FROM buried AS b CROSS JOIN unnest(b.text_hashes) AS u (hash)
        UNION ALL
        SELECT b.owner_key, b.id, b.received_before, b.at, u.hash,
            'a memory of what was forgotten came back by its subject'
        FROM buried AS b CROSS JOIN unnest(b.slot_hashes) AS u (hash)
    ), remembered AS MATERIALIZED (
        SELECT m.owner_key, m.id, m.recorded_at, greatest(m.received_at, m.last_received_at) AS received_at, h.hash
        FROM owner AS o JOIN app AS a ON a.app = o.app JOIN memory AS m ON m.owner_key = o.owner_key
            CROSS JOIN LATERAL (VALUES
                (sha256(a.forget_key || m.content_hash)),
                (sha256(a.forget_key || convert_to(m.subject || chr(31) || m.attribute, 'UTF8')))
            ) AS h (hash)
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
            AND o.owner_key IN (SELECT b.owner_key FROM buried AS b) AND m.state <> 'FORGOTTEN' AND h.hash IS NOT NULL
    ), back AS (
        SELECT t.owner_key, m.id, t.id AS tombstone, m.received_at, t.what
        FROM trace AS t JOIN remembered AS m ON m.owner_key = t.owner_key AND m.hash = t.hash
        WHERE m.received_at < t.received_before AND m.recorded_at > t.after
        UNION
        SELECT b.owner_key, m.id, b.id, greatest(m.received_at, m.last_received_at),
            'a memory of what was forgotten came back by its turn'
        FROM buried AS b CROSS JOIN unnest(b.turn_ids) AS u (turn_id)
            JOIN memory_source AS s ON s.owner_key = b.owner_key AND s.turn_id = u.turn_id
            JOIN memory AS m ON m.owner_key = s.owner_key AND m.id = s.memory_id
        WHERE m.state <> 'FORGOTTEN' AND greatest(m.received_at, m.last_received_at) < b.received_before
            AND m.recorded_at > b.at
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, k.what,
        jsonb_build_object('memory', k.id, 'tombstone', k.tombstone, 'received_at', k.received_at) AS evidence
    FROM back AS k JOIN owner AS o ON o.owner_key = k.owner_key
    ORDER BY k.owner_key, k.id
    LIMIT $4
"""

# A turn that said it, as the log had it then: words are gone, and all that came beside them. Which words is not known
# any more; `words` looks for the text itself.
_SAID: Final[LiteralString] = """
    WITH said AS (
        SELECT o.app, o.owner, t.owner_key, u.turn_id, max(t.at) AS at
        FROM owner AS o JOIN tombstone AS t ON t.owner_key = o.owner_key CROSS JOIN unnest(t.turn_ids) AS u (turn_id)
        WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        GROUP BY o.app, o.owner, t.owner_key, u.turn_id
    )
    SELECT count(*) OVER () AS found, s.app, s.owner, 'the log of turns still has what was said' AS what,
        jsonb_build_object('turn', t.id, 'topic', t.topic, 'partition', t."partition", 'offset', t."offset") AS evidence
    FROM said AS s JOIN turn AS t ON t.owner_key = s.owner_key AND t.id = s.turn_id
    WHERE t.recorded_at < s.at AND jsonb_typeof(t.messages) = 'array' AND t.messages <> '[]'
        AND (NOT t.messages @> '[{"content": "[FORGOTTEN]"}]' OR t.recalled IS NOT NULL OR t.metadata IS NOT NULL)
    ORDER BY t.owner_key, t.id
    LIMIT $4
"""

CHECKS: Final = (Check(FORGOTTEN, {"memories": _FORGOTTEN, "tombstones": _TOMBSTONES}, (_LEFT, _QUOTED, _BACK, _SAID)),)

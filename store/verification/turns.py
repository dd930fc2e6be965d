"""Turns, as the store alone knows them: each ends stored or parked, has one effect, and takes it in its turn."""

from typing import Final, LiteralString

from store.verification.checks import Check
from store.verification.findings import ACCEPTED, ONCE, ORDER

_TURNS: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN turn AS t ON t.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

# The log of turns against the ledger.
_UNSETTLED: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_build_object('turn', t.id, 'topic', t.topic, 'partition', t."partition", 'offset', t."offset") AS evidence
    FROM owner AS o JOIN turn AS t ON t.owner_key = o.owner_key
        CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(l.outcome = 'STORED'), false) AS stored,
                coalesce(bool_or(l.outcome = 'PARKED'), false) AS parked
            FROM ledger AS l
            WHERE l.owner_key = t.owner_key AND l.turn_id = t.id
        ) AS l
        CROSS JOIN LATERAL (VALUES
            ('stored in the log of turns, not in the ledger', t.state = 'STORED' AND NOT l.stored),
            ('parked in the log of turns, not in the ledger', t.state = 'PARKED' AND NOT l.parked AND NOT l.stored),
            ('parked in the log of turns, though it took effect', t.state = 'PARKED' AND l.stored),
            ('pending in the log of turns, though it took effect', t.state = 'PENDING' AND l.stored)
        ) AS r (what, broken)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY t.owner_key, t.id
    LIMIT $4
"""

# What the ledger has as parked lies among what was set aside.
_PARKED_NOWHERE: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'in the ledger as parked, not among what was set aside' AS what,
        jsonb_build_object('turn', l.turn_id, 'run', l.run, 'topic', l.topic, 'partition', l."partition",
            'offset', l."offset") AS evidence
    FROM owner AS o JOIN ledger AS l ON l.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND l.outcome = 'PARKED'
        AND NOT EXISTS (
            SELECT 1
            FROM parked AS p
            WHERE p.topic = l.topic AND p."partition" = l."partition" AND p."offset" = l."offset"
        )
    ORDER BY l.owner_key, l.turn_id
    LIMIT $4
"""

_EFFECTS: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN ledger AS l ON l.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

_DECIDED_WITHOUT: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner,
        'a decision about a turn that the ledger has no effect of' AS what,
        jsonb_build_object('turn', d.cause_id, 'run', d.run, 'decision', d.id) AS evidence
    FROM owner AS o JOIN decision AS d ON d.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND d.cause_kind = 'turn'
        AND NOT EXISTS (
            SELECT 1
            FROM ledger AS l
            WHERE l.owner_key = d.owner_key AND l.turn_id = d.cause_id AND l.run = d.run
                AND l.outcome IN ('STORED', 'ERASED')
        )
    ORDER BY d.owner_key, d.id
    LIMIT $4
"""

_CHANGED_WITHOUT: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a change by a turn that the ledger has no effect of' AS what,
        jsonb_build_object('turn', c.cause_id, 'seq', c.seq, 'memory', c.memory_id) AS evidence
    FROM owner AS o JOIN change AS c ON c.owner_key = o.owner_key
        LEFT JOIN decision AS d ON d.owner_key = c.owner_key AND d.id = c.decision_id
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND c.cause_kind = 'turn'
        AND NOT EXISTS (
            SELECT 1
            FROM ledger AS l
            WHERE l.owner_key = c.owner_key AND l.turn_id = c.cause_id AND (d.id IS NULL OR l.run = d.run)
                AND l.outcome IN ('STORED', 'ERASED')
        )
    ORDER BY c.owner_key, c.seq
    LIMIT $4
"""

# What a turn did in one reading was written by one transaction: the one that wrote its ledger row. Without a number are
# rows from before it was kept; where one of a turn's has a number, all do.
_TRANSACTIONS: Final[LiteralString] = """
    WITH written AS (
        SELECT l.owner_key, l.turn_id, l.run, l.tx
        FROM ledger AS l
        WHERE l.owner_key > $1 AND l.owner_key <= $2 AND l.outcome = 'STORED'
        UNION ALL
        SELECT d.owner_key, d.cause_id, d.run, d.tx
        FROM decision AS d
        WHERE d.owner_key > $1 AND d.owner_key <= $2 AND d.cause_kind = 'turn'
        UNION ALL
        SELECT c.owner_key, c.cause_id, d.run, c.tx
        FROM change AS c JOIN decision AS d ON d.owner_key = c.owner_key AND d.id = c.decision_id
        WHERE c.owner_key > $1 AND c.owner_key <= $2 AND c.cause_kind = 'turn'
    ), doubled AS (
        SELECT w.owner_key, w.turn_id, w.run,
            count(DISTINCT w.tx) + (count(w.tx) BETWEEN 1 AND count(*) - 1)::integer AS transactions
        FROM written AS w
        GROUP BY w.owner_key, w.turn_id, w.run
        HAVING count(DISTINCT w.tx) > 1 OR count(w.tx) BETWEEN 1 AND count(*) - 1
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, 'the effect of one reading was written more than once' AS what,
        jsonb_build_object('turn', d.turn_id, 'run', d.run, 'transactions', d.transactions) AS evidence
    FROM doubled AS d JOIN owner AS o ON o.owner_key = d.owner_key
    WHERE $3::text IS NULL OR o.app = $3
    ORDER BY d.owner_key, d.turn_id
    LIMIT $4
"""

# A memory is added once, a decision adds one, and a turn reinforces a memory once, however often it is read.
_TWICE: Final[LiteralString] = """
    WITH step AS (
        SELECT c.owner_key, c.memory_id, c.seq, c.kind, c.cause_kind, c.cause_id, c.decision_id, c.confirmations,
            lag(c.confirmations) OVER (PARTITION BY c.owner_key, c.memory_id ORDER BY c.seq) AS before
        FROM change AS c
        WHERE c.owner_key > $1 AND c.owner_key <= $2 AND c.memory_id IS NOT NULL
    ), twice AS (
        SELECT s.owner_key, 'a memory was added twice' AS what, s.memory_id, NULL AS turn_id, max(s.seq) AS seq
        FROM step AS s
        WHERE s.kind = 'added'
        GROUP BY s.owner_key, s.memory_id
        HAVING count(*) > 1
        UNION ALL
        SELECT s.owner_key, 'a decision added two memories', max(s.memory_id::text)::uuid, NULL, max(s.seq)
        FROM step AS s
        WHERE s.kind = 'added' AND s.decision_id IS NOT NULL
        GROUP BY s.owner_key, s.decision_id
        HAVING count(DISTINCT s.memory_id) > 1
        UNION ALL
        SELECT s.owner_key, 'a turn reinforced one memory twice', s.memory_id, s.cause_id, max(s.seq)
        FROM step AS s
        WHERE s.cause_kind = 'turn' AND s.confirmations > s.before
        GROUP BY s.owner_key, s.memory_id, s.cause_id
        HAVING count(*) > 1
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, t.what,
        jsonb_strip_nulls(jsonb_build_object('memory', t.memory_id, 'turn', t.turn_id, 'seq', t.seq)) AS evidence
    FROM twice AS t JOIN owner AS o ON o.owner_key = t.owner_key
    WHERE $3::text IS NULL OR o.app = $3
    ORDER BY t.owner_key, t.seq
    LIMIT $4
"""

_IN_ORDER: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN ledger AS l ON l.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND l.run = 0 AND l.outcome = 'STORED' AND NOT l.was_parked
"""

# Two witnesses: when the turn was decided, written under the owner's lock by Postgres's clock; and the first number
# that it took in the owner's history. What had been set aside comes when it comes.
_OUT_OF_ORDER: Final[LiteralString] = """
    WITH turned AS (
        SELECT l.owner_key, l.turn_id, l.topic, l."partition", l."offset", l.received_at, l.decided_at, NULL AS seq
        FROM ledger AS l
        WHERE l.owner_key > $1 AND l.owner_key <= $2 AND l.run = 0 AND l.outcome = 'STORED' AND NOT l.was_parked
            AND NOT EXISTS (
                SELECT 1
                FROM parked AS p
                WHERE p.topic = l.topic AND p."partition" = l."partition" AND p."offset" = l."offset"
            )
        UNION ALL
        SELECT c.owner_key, c.cause_id, NULL, NULL, NULL, NULL, NULL, c.seq
        FROM change AS c JOIN decision AS d ON d.owner_key = c.owner_key AND d.id = c.decision_id
        WHERE c.owner_key > $1 AND c.owner_key <= $2 AND c.cause_kind = 'turn' AND d.run = 0
    -- Put together without a join: it would be planned by statistics, and a young table has none.
    ), whole AS (
        SELECT t.owner_key, t.turn_id, max(t.topic) AS topic, max(t."partition") AS "partition",
            max(t."offset") AS "offset", max(t.received_at) AS received_at, max(t.decided_at) AS decided_at,
            min(t.seq) AS seq
        FROM turned AS t
        GROUP BY t.owner_key, t.turn_id
        HAVING count(t.topic) > 0
    ), effect AS (
        SELECT w.owner_key, w.turn_id, w.topic, w."partition", w."offset", w.received_at, w.decided_at, w.seq,
            -- An offset that begins anew, more than an hour later: the topic was deleted and made again.
            w."offset" < lag(w."offset") OVER arrival
                AND w.received_at > lag(w.received_at) OVER arrival + interval '1 hour' AS anew
        FROM whole AS w
        WINDOW arrival AS (PARTITION BY w.owner_key, w.topic, w."partition" ORDER BY w.received_at, w."offset")
    ), placed AS (
        SELECT e.owner_key, e.turn_id, e.topic, e."partition", e."offset", e.decided_at, e.seq,
            count(*) FILTER (WHERE e.anew) OVER (
                PARTITION BY e.owner_key, e.topic, e."partition" ORDER BY e.received_at, e."offset") AS life
        FROM effect AS e
    ), compared AS (
        SELECT p.owner_key, p.turn_id, p.topic, p."partition", p."offset", p.decided_at, p.seq,
            max(p.decided_at) OVER earlier AS decided_before, max(p.seq) OVER earlier AS seq_before
        FROM placed AS p
        WINDOW earlier AS (
            PARTITION BY p.owner_key, p.topic, p."partition", p.life ORDER BY p."offset"
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_strip_nulls(jsonb_build_object('turn', c.turn_id, 'topic', c.topic, 'partition', c."partition",
            'offset', c."offset", 'decided_at', c.decided_at, 'seq', c.seq)) AS evidence
    FROM compared AS c JOIN owner AS o ON o.owner_key = c.owner_key
        CROSS JOIN LATERAL (VALUES
            ('decided before a turn that stands before it in the partition', c.decided_at < c.decided_before),
            ('numbered in the history before a turn that stands before it in the partition', c.seq < c.seq_before)
        ) AS r (what, broken)
    WHERE ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY c.owner_key, c."offset"
    LIMIT $4
"""

CHECKS: Final = (
    Check(ACCEPTED, {"turns": _TURNS}, (_UNSETTLED, _PARKED_NOWHERE)),
    Check(ONCE, {"effects": _EFFECTS}, (_DECIDED_WITHOUT, _CHANGED_WITHOUT, _TRANSACTIONS, _TWICE)),
    Check(ORDER, {"turns": _IN_ORDER}, (_OUT_OF_ORDER,)),
)

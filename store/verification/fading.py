"""Strength: it fades from the last reinforcement on, and rises with nothing else.

    strength = 2 ** (-(now - reinforced_at) / half_life)

So it rises where `reinforced_at` or the half-life does. A statement reinforces up to when it was said, an access up to
when it happened; accesses are counted without a change.
"""

from typing import Final, LiteralString

from store.verification.checks import Check
from store.verification.findings import STRENGTH

_CHANGES: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN change AS c ON c.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND c.memory_id IS NOT NULL
"""

_MEMORIES: Final[LiteralString] = """
    SELECT count(*)
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

# From one change of a memory to the next. What never fades has an endless half-life.
_RISES: Final[LiteralString] = """
    WITH step AS (
        SELECT c.owner_key, c.memory_id, c.seq, c.kind, c.at, c.stated_at, c.reinforced_at, c.confirmed_at,
            c.accessed_at, c.confirmations, c.pinned, coalesce(c.half_life_seconds, 'infinity') AS half_life,
            lag(c.seq) OVER life AS old_seq,
            lag(c.reinforced_at) OVER life AS old_reinforced_at,
            lag(coalesce(c.half_life_seconds, 'infinity')) OVER life AS old_half_life,
            lag(c.confirmations) OVER life AS old_confirmations,
            lag(c.confirmed_at) OVER life AS old_confirmed_at,
            lag(c.pinned) OVER life AS old_pinned,
            coalesce(c.access_count > lag(c.access_count) OVER life, false) AS accessed,
            -- Whether this kind of change may make a memory fresher by itself.
            c.kind IN ('confirmed', 'revived') AS says_again,
            c.kind IN ('restored', 'promoted', 'edited') AS mends
        FROM change AS c
        WHERE c.owner_key > $1 AND c.owner_key <= $2 AND c.memory_id IS NOT NULL
        WINDOW life AS (PARTITION BY c.owner_key, c.memory_id ORDER BY c.seq)
    )
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_build_object('memory', s.memory_id, 'seq', s.seq, 'kind', s.kind) AS evidence
    FROM step AS s JOIN owner AS o ON o.owner_key = s.owner_key
        CROSS JOIN LATERAL (VALUES
            ('fresher by a change that reinforces nothing', s.reinforced_at > s.old_reinforced_at AND NOT s.says_again
                AND NOT s.mends AND NOT s.accessed),
            ('fresher, and not counted as said again', s.reinforced_at > s.old_reinforced_at AND s.says_again
                AND s.confirmations <= s.old_confirmations AND NOT s.accessed),
            ('counted as said again by a change of another kind',
                (s.confirmations > s.old_confirmations OR s.confirmed_at > s.old_confirmed_at) AND NOT s.says_again),
            ('fresher than anything that was said or asked', s.reinforced_at > greatest(s.old_reinforced_at,
                s.stated_at, s.confirmed_at, s.accessed_at, CASE WHEN s.mends THEN s.at END)),
            ('fades slower without a reason', s.half_life > s.old_half_life AND NOT s.mends AND NOT s.accessed),
            ('pinned by a change of another kind', s.pinned AND NOT s.old_pinned
                AND s.kind NOT IN ('pinned', 'promoted', 'edited'))
        ) AS r (what, broken)
    WHERE ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY s.owner_key, s.seq
    LIMIT $4
"""

# The memory against its last change: what is fresher has been asked for since. And the moment when it crosses the line
# of 0.1 is that of its curve; use may make it fade up to ten times slower.
_RISEN: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, r.what,
        jsonb_build_object('memory', m.id, 'seq', c.seq, 'reinforced_at', m.reinforced_at, 'fades_at', m.fades_at)
            AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        LEFT JOIN LATERAL (
            SELECT c.seq, c.reinforced_at, c.half_life_seconds, c.fades_at, c.access_count
            FROM change AS c
            WHERE c.owner_key = m.owner_key AND c.memory_id = m.id
            ORDER BY c.seq DESC
            LIMIT 1
        ) AS c ON true
        CROSS JOIN LATERAL (
            SELECT m.access_count > c.access_count AS accessed,
                m.half_life_seconds * ln(10::double precision) / ln(2::double precision) AS seconds,
                date_part('epoch', m.fades_at - m.reinforced_at) AS fades_after
        ) AS d
        CROSS JOIN LATERAL (VALUES
            ('fresher than its last change says', m.reinforced_at > c.reinforced_at
                AND NOT (d.accessed AND m.reinforced_at <= m.accessed_at)),
            ('fades slower than its last change says', NOT d.accessed
                AND coalesce(m.half_life_seconds, 'infinity') > coalesce(c.half_life_seconds, 'infinity')),
            ('fades later than its last change says', NOT d.accessed
                AND coalesce(m.fades_at, 'infinity') > coalesce(c.fades_at, 'infinity')),
            ('fresher than anything that was said or asked', c.seq IS NULL
                AND m.reinforced_at > greatest(m.stated_at, m.confirmed_at, m.accessed_at)),
            ('fades at another time than its curve', (m.fades_at IS NULL) <> (m.half_life_seconds IS NULL)
                OR d.fades_after > d.seconds * CASE WHEN m.access_count > 0 THEN 10 ELSE 1 END * 1.000001 + 1
                OR d.fades_after < d.seconds * 0.999999 - 1)
        ) AS r (what, broken)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND r.broken
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

CHECKS: Final = (Check(STRENGTH, {"memories": _MEMORIES, "changes": _CHANGES}, (_RISES, _RISEN)),)

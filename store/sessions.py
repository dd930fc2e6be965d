"""What turns are read with: what their session said before them, and what their app sets for itself."""

from typing import TYPE_CHECKING, Final, LiteralString

from mnemostream.turns import Role

from processors.records import Begun, ContextMessage, TurnStatus
from store.rows import profile_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import asyncpg

# Two columns of a statement that has the tables `me` (owner_key) and `reading` (id, n, received_at, offset: the turns
# that are to be read now, by n). The context is what was said before the first of them: turns of the window that took
# effect are among it.
# $1 app, $3 session, $4 messages of context
CONTEXT_AND_PROFILE: Final[LiteralString] = """
        (
            SELECT jsonb_agg(jsonb_build_array(c.role, c.content, c.name) ORDER BY c.received_at, c."offset", c.n)
            FROM (
                SELECT t.received_at, t."offset", m.n,
                    m.message ->> 'role' AS role, m.message ->> 'content' AS content, m.message ->> 'name' AS name
                FROM (
                    SELECT t.received_at, t."offset", t.messages
                    FROM turn AS t
                    WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.session = $3
                        AND (t.received_at, t."offset")
                            < (SELECT r.received_at, r."offset" FROM reading AS r ORDER BY r.n LIMIT 1)
                        AND t.state IN ('PENDING', 'STORED') AND t.messages IS NOT NULL
                        AND t.id NOT IN (SELECT id FROM reading)
                        -- What was forgotten may stand in what was answered to it.
                        AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
                    ORDER BY t.received_at DESC, t."offset" DESC
                    LIMIT $4
                ) AS t CROSS JOIN LATERAL jsonb_array_elements(t.messages) WITH ORDINALITY AS m (message, n)
                ORDER BY t.received_at DESC, t."offset" DESC, m.n DESC
                LIMIT $4
            ) AS c
        ) AS context,
        (
            SELECT jsonb_build_object('time_zone', a.time_zone, 'language', a.language,
                'instructions', a.instructions, 'categories', a.categories)
            FROM app AS a
            WHERE a.app = $1
        ) AS profile
"""


def begun_of(statuses: "Iterable[TurnStatus]", row: "asyncpg.Record") -> Begun:
    """The answer of the log: `statuses`, and the columns of `CONTEXT_AND_PROFILE` in `row`."""
    context = tuple(ContextMessage(Role(role), content, name) for role, content, name in row["context"] or ())
    return Begun(tuple(statuses), context, profile_of(row["profile"]))

"""Lines of memories: what replaced what, and what is said again. Each pointer leads to a memory of the same owner, and
none leads back to where it began.
"""

from collections.abc import Iterable, Mapping
from typing import Final, LiteralString, TypeVar

from store.verification.checks import Check
from store.verification.findings import CHAINS

_Node = TypeVar("_Node")

_POINTERS: Final[LiteralString] = """
    SELECT count(m.supersedes) + count(m.superseded_by) + count(m.restates)
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
"""

_DANGLING: Final[LiteralString] = """
    SELECT count(*) OVER () AS found, o.app, o.owner, 'a memory names one that its owner does not have' AS what,
        jsonb_build_object('memory', m.id, 'by', p.name, 'names', p.id) AS evidence
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
        CROSS JOIN LATERAL (VALUES
            ('supersedes', m.supersedes), ('superseded_by', m.superseded_by), ('restates', m.restates)
        ) AS p (name, id)
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3) AND p.id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory AS n WHERE n.owner_key = m.owner_key AND n.id = p.id)
    ORDER BY m.owner_key, m.id
    LIMIT $4
"""

# By owner, so that one owner's at a time is in hand.
# $1 to $3 as everywhere
LINKS: Final[LiteralString] = """
    SELECT o.app, o.owner, m.owner_key, m.id, m.supersedes, m.superseded_by, m.restates
    FROM owner AS o JOIN memory AS m ON m.owner_key = o.owner_key
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND (m.supersedes IS NOT NULL OR m.superseded_by IS NOT NULL OR m.restates IS NOT NULL)
    ORDER BY m.owner_key
"""

POINTERS: Final = ("supersedes", "superseded_by", "restates")


def cycles(leads_to: Mapping[_Node, _Node]) -> Iterable[tuple[_Node, ...]]:
    """The cycles among pointers, one each node: every cycle once, from the node where it was met.

    Linear in the number of pointers: no node is walked over twice.
    """
    walked: set[_Node] = set()
    for start in leads_to:
        path: dict[_Node, int] = {}
        node = start
        while node in leads_to and node not in walked and node not in path:
            path[node] = len(path)
            node = leads_to[node]
        if node in path:
            yield tuple(path)[path[node] :]
        walked.update(path)


CHECKS: Final = (Check(CHAINS, {"pointers": _POINTERS}, (_DANGLING,)),)

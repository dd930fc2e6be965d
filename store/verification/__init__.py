"""The invariants of DESIGN.md §10, checked on the store: what `mnemo verify` asks Postgres.

`findings` names the invariants and holds what was found out; a module for each group of them has the statements;
`sweep` runs them over all owners; `lookups` answers what a reader of the topics asks.
"""

from store.verification.findings import INVARIANTS, WALLS, Evidence, Finding, Findings, Invariant
from store.verification.sweep import STATEMENT_SECONDS, StoreSweep, check_walls
from store.verification.walls import INNER_ROLES

__all__ = [
    "INNER_ROLES",
    "INVARIANTS",
    "STATEMENT_SECONDS",
    "WALLS",
    "Evidence",
    "Finding",
    "Findings",
    "Invariant",
    "StoreSweep",
    "check_walls",
]

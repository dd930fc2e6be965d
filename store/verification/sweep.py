"""The store against itself: batch by batch of owners, each batch in one snapshot.

Nothing is locked and nothing is written: what runs meanwhile is seen as it was before a transaction or as it is after.
A batch is a range of owner keys with a bounded number of rows, so that no statement and no snapshot is long; only an
owner with more than that is a batch of its own.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID

from store.database import Database
from store.verification import chains, fading, forgotten, history, memories, turns, walls, words
from store.verification.checks import Check
from store.verification.findings import CHAINS, FORGOTTEN, WALLS, Evidence, Finding, Findings

if TYPE_CHECKING:
    from store.database import Connection

CHECKS: Final[tuple[Check, ...]] = (
    *turns.CHECKS,
    *memories.CHECKS,
    *chains.CHECKS,
    *history.CHECKS,
    *fading.CHECKS,
    *forgotten.CHECKS,
)

BATCH_ROWS: Final = 20_000
BATCH_OWNERS: Final = 2_000
STATEMENT_SECONDS: Final = 600.0
"""For the connection: one owner may hold more than a batch should."""
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_LINKS_AT_ONCE: Final = 1_000

# The next owners, one after the other until they have the rows of a batch together; one at least. Changes are counted
# by the owner's seq, turns and decisions by an index, and no further than matters: small talk changes nothing, and has
# a row in the ledger for each turn.
# $1 owner key, $2 owners, $3 rows
_NEXT: Final[LiteralString] = """
    WITH RECURSIVE step (owner_key, owners, rows) AS (
        SELECT $1::bigint, 0, 0::bigint
        UNION ALL
        SELECT n.owner_key, s.owners + 1, s.rows + n.seq + 10
            + (SELECT count(*) FROM (
                SELECT 1 FROM ledger AS l WHERE l.owner_key = n.owner_key LIMIT $3::bigint) AS l)
            + (SELECT count(*) FROM (
                SELECT 1 FROM decision AS d WHERE d.owner_key = n.owner_key LIMIT $3::bigint) AS d)
        FROM step AS s CROSS JOIN LATERAL (
            SELECT o.owner_key, o.seq FROM owner AS o WHERE o.owner_key > s.owner_key ORDER BY o.owner_key LIMIT 1
        ) AS n
        WHERE s.owners < $2 AND s.rows < $3::bigint
    )
    SELECT max(s.owners) AS owners, max(s.owner_key) AS last,
        NOT EXISTS (SELECT 1 FROM owner AS o WHERE o.owner_key > max(s.owner_key)) AS is_last
    FROM step AS s
"""

_ALL_OWNERS: Final[LiteralString] = "SELECT count(*) FROM owner"

# What a check looks at is small: to compile it takes longer than to run it.
_PLANNING: Final[LiteralString] = "SET LOCAL jit = off"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Range:
    """Owner keys after `after`, up to `last`; and an app, or None for all."""

    after: int
    last: int
    app: str | None


@asynccontextmanager
async def snapshot(database: Database) -> AsyncIterator["Connection"]:
    """One snapshot of the store, to read and not to write. Raises StoreUnavailable."""
    async with (
        database.across() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        await connection.execute(_PLANNING)
        yield connection


class StoreSweep:
    """Checks what the store alone can tell. For the role `mnemo_operator`."""

    def __init__(
        self,
        database: Database,
        findings: Findings,
        *,
        app: str | None = None,
        progress: Progress = lambda _: None,
        batch_owners: int = BATCH_OWNERS,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._database = database
        self._findings = findings
        self._app = app
        self._progress = progress
        self._batch_owners = batch_owners
        self._batch_rows = batch_rows
        self._checks = [check for check in CHECKS if check.invariant in findings]
        self._tables: list[tuple[str, str, str]] = []

    async def run(self) -> None:
        """Look at everything once. Raises StoreUnavailable."""
        if not self._checks and WALLS not in self._findings:
            return
        async with self._database.across() as connection:
            if WALLS in self._findings:
                self._tables = await walls.tables(connection)
            owners: int = await connection.fetchval(_ALL_OWNERS)
        after, done = _LEAST, 0
        while after < _MOST:
            async with snapshot(self._database) as connection:
                following = await connection.fetchrow(_NEXT, after, self._batch_owners, self._batch_rows)
                assert following is not None
                # The last batch goes on to the end of all keys: a row may name an owner that is not there.
                batch = _Range(after, _MOST if following["is_last"] else following["last"], self._app)
                await self._look(connection, batch)
            after, done = batch.last, done + following["owners"]
            self._progress(f"Checking the store: {min(done, owners):,} of {owners:,} owners")

    async def _look(self, connection: "Connection", batch: _Range) -> None:
        for check in self._checks:
            finding = self._findings[check.invariant]
            await _count(connection, finding, check.counts, batch)
            for statement in check.finds:
                await _find(connection, finding, statement, batch)
        if CHAINS in self._findings:
            await self._walk(connection, batch)
        if FORGOTTEN in self._findings:
            async for evidence in words.left(connection, batch.after, batch.last, batch.app):
                self._findings[FORGOTTEN].found([evidence])
        if WALLS in self._findings:
            finding = self._findings[WALLS]
            for _, compares, counts in self._tables:
                await _count(connection, finding, {"rows": counts}, batch)
                await _find(connection, finding, compares, batch)

    async def _walk(self, connection: "Connection", batch: _Range) -> None:
        """The lines of one owner after the other."""
        finding = self._findings[CHAINS]
        rows: list[Mapping[str, Any]] = []
        async for row in connection.cursor(chains.LINKS, batch.after, batch.last, batch.app, prefetch=_LINKS_AT_ONCE):
            if rows and row["owner_key"] != rows[0]["owner_key"]:
                finding.found(circles(rows))
                rows.clear()
            rows.append(dict(row))
        finding.found(circles(rows))


async def check_walls(
    operator: Database, inner: Mapping[walls.Inner, Database], findings: Findings, app: str | None
) -> None:
    """What the catalogue says of the walls, and what each inner role sees past them. Raises StoreUnavailable."""
    finding = findings[WALLS]
    async with operator.across() as connection:
        tables, wrong = await walls.standing(connection)
        owners = await walls.sample(connection, app)
    finding.checked["tables"] += tables
    finding.found(wrong)
    for role, database in inner.items():
        looks, seen = await walls.probed(database, role, owners)
        finding.checked["looks"] += looks
        finding.found(seen)


def circles(rows: Iterable[Mapping[str, Any]]) -> list[Evidence]:
    """The cycles among the pointers of some owners, each owner's rows together."""
    found = []
    for _, group in groupby(rows, key=lambda row: row["owner_key"]):
        links = list(group)
        for pointer in chains.POINTERS:
            leads_to: dict[UUID, UUID] = {row["id"]: row[pointer] for row in links if row[pointer] is not None}
            for cycle in chains.cycles(leads_to):
                where = {"by": pointer, "memories": [str(memory_id) for memory_id in cycle[:10]], "length": len(cycle)}
                found.append(Evidence("a line leads back to itself", where, links[0]["app"], links[0]["owner"]))
    return found


async def _count(connection: "Connection", finding: Finding, counts: Mapping[str, str], batch: _Range) -> None:
    for unit, statement in counts.items():
        finding.checked[unit] += await connection.fetchval(statement, batch.after, batch.last, batch.app)


async def _find(connection: "Connection", finding: Finding, statement: str, batch: _Range) -> None:
    rows = await connection.fetch(statement, batch.after, batch.last, batch.app, finding.room)
    if rows:
        finding.found(
            (Evidence(row["what"], row["evidence"], row["app"], row["owner"]) for row in rows), rows[0]["found"]
        )

"""What a reader of the topics asks the store: what became of turns, and what the history says of changes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from processors.feed import Change
from processors.records import Owner, Place
from store.database import Database
from store.outbox import change_of

PAGE: Final = 2_000
_LEDGER_PAGE: Final = 20_000

# The turns of some records that are neither settled nor set aside, and those that are settled by another record with
# other messages. A turn is read again only where its first reading was over when the run was begun, and all that it
# said is still there.
# $1 apps, $2 owners, $3 turn ids, $4 runs, $5 topics, $6 partitions, $7 offsets, $8 fingerprints
_OPEN: Final[LiteralString] = """
    SELECT g.n, g.run = 0 AND l.turn_id IS NOT NULL AS reused
    FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::integer[], $7::bigint[], $8::bytea[])
            WITH ORDINALITY AS g (app, owner, turn_id, run, topic, "partition", "offset", fingerprint, n)
        LEFT JOIN owner AS o ON o.app = g.app AND o.owner = g.owner
        LEFT JOIN ledger AS l ON l.owner_key = o.owner_key AND l.turn_id = g.turn_id AND l.run = 0
        LEFT JOIN turn AS t ON t.owner_key = o.owner_key AND t.id = g.turn_id
        LEFT JOIN ledger AS again
            ON again.owner_key = o.owner_key AND again.turn_id = g.turn_id AND again.run = g.run AND g.run > 0
        LEFT JOIN run AS r ON r.run = g.run
    WHERE CASE WHEN g.run = 0
            THEN l.turn_id IS NULL OR l.outcome = 'STORED' AND NOT l.was_parked AND t.fingerprint <> g.fingerprint
            ELSE again.turn_id IS NULL AND t.state = 'STORED' AND l.outcome = 'STORED' AND l.decided_at < r.created_at
                AND NOT t.off_record AND jsonb_typeof(t.messages) = 'array'
                AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
            END
        AND NOT EXISTS (
            SELECT 1
            FROM parked AS p
            WHERE p.topic = g.topic AND p."partition" = g."partition" AND p."offset" = g."offset"
        )
    ORDER BY g.n
"""

# Which of some places nothing was set aside from. $1 topics, $2 partitions, $3 offsets
_NOT_PARKED: Final[LiteralString] = """
    SELECT g.n
    FROM unnest($1::text[], $2::integer[], $3::bigint[]) WITH ORDINALITY AS g (topic, "partition", "offset", n)
    WHERE NOT EXISTS (
        SELECT 1
        FROM parked AS p
        WHERE p.topic = g.topic AND p."partition" = g."partition" AND p."offset" = g."offset"
    )
    ORDER BY g.n
"""

# $1 owner key and $2 turn id of the last one of the page before, $3 app or NULL, $4 how many
_PENDING: Final[LiteralString] = """
    SELECT t.owner_key, o.app, o.owner, t.id, t.topic, t."partition", t."offset", t.received_at
    FROM turn AS t JOIN owner AS o ON o.owner_key = t.owner_key
    WHERE (t.owner_key, t.id) > ($1, $2) AND t.state = 'PENDING' AND ($3::text IS NULL OR o.app = $3)
    ORDER BY t.owner_key, t.id
    LIMIT $4
"""

# Which of some turns are pending still. $1 apps, $2 owners, $3 turn ids
_STILL_PENDING: Final[LiteralString] = """
    SELECT g.n
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS g (app, owner, turn_id, n)
        JOIN owner AS o ON o.app = g.app AND o.owner = g.owner
        JOIN turn AS t ON t.owner_key = o.owner_key AND t.id = g.turn_id AND t.state = 'PENDING'
    ORDER BY g.n
"""

# How far each owner's history goes, and how much of its end waits in the outbox.
# $1 owner key, $2 app or NULL, $3 how many
_HEADS: Final[LiteralString] = """
    SELECT o.owner_key, o.app, o.owner, o.seq, b.first AS waiting_from, b.pointers AS waiting
    FROM (
        SELECT owner_key, app, owner, seq
        FROM owner
        WHERE owner_key > $1 AND ($2::text IS NULL OR app = $2)
        ORDER BY owner_key
        LIMIT $3
    ) AS o CROSS JOIN LATERAL (
        SELECT min(b.seq) AS first, count(*) AS pointers FROM outbox AS b WHERE b.owner_key = o.owner_key
    ) AS b
    ORDER BY o.owner_key
"""

# What has no pointer among those that wait. $1 owner key, $2 seq, $3 seq, $4 how many
_HOLES: Final[LiteralString] = """
    SELECT c.seq
    FROM change AS c
    WHERE c.owner_key = $1 AND c.seq BETWEEN $2 AND $3
        AND NOT EXISTS (SELECT 1 FROM outbox AS b WHERE b.owner_key = c.owner_key AND b.seq = c.seq)
    ORDER BY c.seq
    LIMIT $4
"""

# $1 apps, $2 owners, $3 seqs
_CHANGES: Final[LiteralString] = """
    SELECT g.n, o.app, o.owner, c.seq, c.kind, c.at, c.cause_kind, c.cause_id, c.decision_id, c.memory_id AS id,
        c.session, coalesce(c.content, '') AS content, c.data, coalesce(c.tags, '{}') AS tags, c.type, c.category,
        c.importance, c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to,
        c.recorded_at, c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates, c.access_count,
        c.accessed_at, c.confirmed_at, c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
        CASE WHEN c.pinned OR c.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', c.at - c.reinforced_at)) / c.half_life_seconds))
        END AS strength,
        coalesce(m.state = 'FORGOTTEN', false) AS forgotten
    FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS g (app, owner, seq, n)
        JOIN owner AS o ON o.app = g.app AND o.owner = g.owner
        JOIN change AS c ON c.owner_key = o.owner_key AND c.seq = g.seq
        LEFT JOIN memory AS m ON m.owner_key = c.owner_key AND m.id = c.memory_id
"""

# $1 owner key, $2 seq, $3 seq, $4 since when, or NULL
_SINCE: Final[LiteralString] = """
    SELECT count(*) AS changes, min(c.seq) AS first, max(c.seq) AS last
    FROM change AS c
    WHERE c.owner_key = $1 AND c.seq BETWEEN $2 AND $3 AND ($4::timestamptz IS NULL OR c.at >= $4)
"""

# Where the turns of a page of the ledger stood, how far each partition goes among them, and where the page ends.
# $1 owner key, $2 turn id and $3 run of the last row of the page before, $4 how many
_PLACES: Final[LiteralString] = """
    WITH page AS MATERIALIZED (
        SELECT l.owner_key, l.turn_id, l.run, l.topic, l."partition", l."offset"
        FROM ledger AS l
        WHERE (l.owner_key, l.turn_id, l.run) > ($1, $2, $3)
        ORDER BY l.owner_key, l.turn_id, l.run
        LIMIT $4
    )
    SELECT p.topic, p."partition", max(p."offset") AS "offset", last.owner_key, last.turn_id, last.run
    FROM page AS p CROSS JOIN (
        SELECT owner_key, turn_id, run FROM page ORDER BY owner_key DESC, turn_id DESC, run DESC LIMIT 1
    ) AS last
    GROUP BY p.topic, p."partition", last.owner_key, last.turn_id, last.run
"""

# Of which of some places, or later ones of their partition, something was set aside.
# $1 topic, $2 partitions, $3 offsets
_PARKED_FROM: Final[LiteralString] = """
    SELECT g."partition"
    FROM unnest($2::integer[], $3::bigint[]) AS g ("partition", "offset")
    WHERE EXISTS (
        SELECT 1 FROM parked AS p WHERE p.topic = $1 AND p."partition" = g."partition" AND p."offset" >= g."offset"
    )
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A record of `turns.v1`: which turn it is, which reading of it, and where it stood first."""

    owner: Owner
    turn_id: str
    run: int
    place: Place
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """How far an owner's history goes, and from where on it waits to be published (`waiting` changes)."""

    owner_key: int
    owner: Owner
    seq: int
    waiting_from: int | None
    waiting: int

    @property
    def published_to(self) -> int:
        """Everything up to here is out, unless it is lost."""
        return self.seq if self.waiting_from is None else self.waiting_from - 1

    @property
    def has_holes(self) -> bool:
        """Whether what waits is not simply the end of the history."""
        return self.waiting_from is not None and self.seq - self.waiting_from + 1 != self.waiting


@dataclass(frozen=True, slots=True)
class Told:
    """A change by the history, and whether its memory has been forgotten since."""

    change: Change
    forgotten: bool


class TopicLookups:
    """For the role `mnemo_operator`. Every method raises StoreUnavailable."""

    def __init__(self, database: Database, *, page: int = PAGE, ledger_page: int = _LEDGER_PAGE) -> None:
        self._database = database
        self._page = page
        self._ledger_page = ledger_page

    async def open_readings(self, readings: Sequence[Reading]) -> dict[int, bool]:
        """Those (by their place in what is given) that are neither settled nor set aside; True where the turn is, by
        another record that says something else."""
        async with self._database.across() as connection:
            rows = await connection.fetch(
                _OPEN,
                [each.owner.app for each in readings],
                [each.owner.owner for each in readings],
                [each.turn_id for each in readings],
                [each.run for each in readings],
                [each.place.topic for each in readings],
                [each.place.partition for each in readings],
                [each.place.offset for each in readings],
                [each.fingerprint for each in readings],
            )
        return {row["n"] - 1: row["reused"] for row in rows}

    async def not_parked(self, places: Sequence[Place]) -> list[Place]:
        """Those of `places` that nothing was set aside from."""
        async with self._database.across() as connection:
            rows = await connection.fetch(
                _NOT_PARKED, [p.topic for p in places], [p.partition for p in places], [p.offset for p in places]
            )
        return [places[row["n"] - 1] for row in rows]

    async def pending(self, app: str | None) -> AsyncIterator[list[tuple[Owner, str, Place]]]:
        """The turns that are pending in the log, with their places, page by page."""
        owner_key, turn_id = -(2**63), ""
        while True:
            async with self._database.across() as connection:
                rows = await connection.fetch(_PENDING, owner_key, turn_id, app, self._page)
            if not rows:
                return
            yield [
                (
                    Owner(row["app"], row["owner"]),
                    row["id"],
                    Place(row["topic"], row["partition"], row["offset"], row["received_at"]),
                )
                for row in rows
            ]
            owner_key, turn_id = rows[-1]["owner_key"], rows[-1]["id"]

    async def still_pending(self, turns: Sequence[tuple[Owner, str]]) -> set[int]:
        """Those (by their place in what is given) that are pending in the log now."""
        async with self._database.across() as connection:
            rows = await connection.fetch(
                _STILL_PENDING,
                [owner.app for owner, _ in turns],
                [owner.owner for owner, _ in turns],
                [turn_id for _, turn_id in turns],
            )
        return {row["n"] - 1 for row in rows}

    async def heads(self, app: str | None) -> AsyncIterator[list[Head]]:
        """How far the history of each owner goes, page by page."""
        owner_key = -(2**63)
        while True:
            async with self._database.across() as connection:
                rows = await connection.fetch(_HEADS, owner_key, app, self._page)
            if not rows:
                return
            yield [
                Head(row["owner_key"], Owner(row["app"], row["owner"]), row["seq"], row["waiting_from"], row["waiting"])
                for row in rows
            ]
            owner_key = rows[-1]["owner_key"]

    async def holes(self, head: Head) -> AsyncIterator[list[int]]:
        """The changes behind the first that waits that do not wait, page by page."""
        since = head.waiting_from
        while since is not None:
            async with self._database.across() as connection:
                rows = await connection.fetch(_HOLES, head.owner_key, since, head.seq, self._page)
            if rows:
                yield [row["seq"] for row in rows]
            since = rows[-1]["seq"] + 1 if len(rows) == self._page else None

    async def changes(self, keys: Sequence[tuple[Owner, int]]) -> dict[int, Told]:
        """The changes of owners by their seq, as they are now; by their place in what is given."""
        async with self._database.across() as connection:
            rows = await connection.fetch(
                _CHANGES,
                [owner.app for owner, _ in keys],
                [owner.owner for owner, _ in keys],
                [seq for _, seq in keys],
            )
        return {row["n"] - 1: Told(change_of(row), row["forgotten"]) for row in rows}

    async def made_since(self, owner_key: int, first: int, last: int, since: datetime | None) -> tuple[int, int, int]:
        """How many changes from `first` to `last` were made since then (None: ever), the first and the last of them."""
        async with self._database.across() as connection:
            row = await connection.fetchrow(_SINCE, owner_key, first, last, since)
        return (0, 0, 0) if row is None else (row["changes"], row["first"] or 0, row["last"] or 0)

    async def has_other_topics(self, topics: Sequence[str]) -> bool:
        """Whether turns came from topics other than these: the prefix was switched once. May look through the whole
        ledger."""
        async for places in self._places():
            if any(topic not in topics for topic, _ in places):
                return True
        return False

    async def known_from(self, topic: str, offsets: Mapping[int, int]) -> set[int]:
        """The partitions of which a turn from that offset on is in the ledger, or something was set aside. May look
        through the whole ledger."""
        async with self._database.across() as connection:
            rows = await connection.fetch(_PARKED_FROM, topic, list(offsets), list(offsets.values()))
        known: set[int] = {row["partition"] for row in rows}
        async for places in self._places():
            if known >= offsets.keys():
                break
            known |= {n for n, offset in offsets.items() if places.get((topic, n), -1) >= offset}
        return known

    async def _places(self) -> AsyncIterator[dict[tuple[str, int], int]]:
        """By topic and partition the highest offset, of a page of the ledger after the other."""
        last = (-(2**63), "", 0)
        while True:
            async with self._database.across() as connection:
                rows = await connection.fetch(_PLACES, *last, self._ledger_page)
            if not rows:
                return
            yield {(row["topic"], row["partition"]): row["offset"] for row in rows}
            last = (rows[0]["owner_key"], rows[0]["turn_id"], rows[0]["run"])

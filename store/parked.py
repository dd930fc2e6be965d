"""What was set aside, for operators."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

from typing_extensions import override

from processors.records import Landed
from store.database import Database

if TYPE_CHECKING:
    import asyncpg

# Of each record how many of its turns took effect since. A turn that stands under the same id (id_reused) is another.
_WITH_EFFECTS: Final[LiteralString] = """
        f.topic, f."partition", f."offset", f.app, f.owner, f.turn_ids, f.stage, f.reason, f.detail, f.attempts,
        f.received_at, f.parked_at, f.parked_partition, f.parked_offset, f.replayed_at, f.replays, f.dropped_at, f.run,
        (
            SELECT count(*)
            FROM unnest(f.turn_ids) AS t (id)
            WHERE f.reason <> 'id_reused' AND EXISTS (
                SELECT 1
                FROM ledger AS l
                WHERE l.app = f.app AND l.owner_key = f.owner_key AND l.turn_id = t.id AND l.run = f.run
                    AND l.outcome = 'STORED'
            )
        ) AS stored
    FROM found AS f
"""

_FOUND: Final[LiteralString] = """
        p.topic, p."partition", p."offset", p.app, p.owner_key, o.owner,
            -- What was parked before all of them were kept has the first.
            CASE WHEN p.turn_ids = '{}' THEN array_remove(ARRAY[p.turn_id], NULL) ELSE p.turn_ids END AS turn_ids,
            p.stage, p.reason, p.detail, p.attempts, p.received_at, p.parked_at, p.parked_partition, p.parked_offset,
            p.replayed_at, p.replays, p.dropped_at, p.run
        FROM parked AS p LEFT JOIN owner AS o USING (owner_key)
"""

_MATCHES: Final[LiteralString] = """
        WHERE ($1::text IS NULL OR p.app = $1) AND ($2::text IS NULL OR o.owner = $2)
            AND ($3::text IS NULL OR p.reason = $3) AND ($4::text IS NULL OR p.stage = $4)
            AND ($5::timestamptz IS NULL OR p.parked_at >= $5) AND ($6::timestamptz IS NULL OR p.parked_at < $6)
"""

# $1 app, $2 owner, $3 reason, $4 stage, $5 since, $6 until (NULL: any), $7 those put back and given up too, $8 limit
_LIST: Final[LiteralString] = (
    """
    WITH found AS MATERIALIZED (
        SELECT
    """
    + _FOUND
    + _MATCHES
    + """
            AND ($7 OR p.replayed_at IS NULL AND p.dropped_at IS NULL)
        ORDER BY p.parked_at DESC, p.topic, p."partition", p."offset" DESC
        LIMIT $8
    )
    SELECT
    """
    + _WITH_EFFECTS
    + """
    ORDER BY f.parked_at DESC, f.topic, f."partition", f."offset" DESC
    """
)

# Those that wait, by place: so a walk comes to its end whatever is parked meanwhile.
# $1 app, $2 owner, $3 reason, $4 stage, $5 since, $6 until (NULL: any), $7 topic, $8 partition and $9 offset to go on
# after, $10 parked not later than, $11 limit
_PAGE: Final[LiteralString] = (
    """
    WITH found AS MATERIALIZED (
        SELECT
    """
    + _FOUND
    + _MATCHES
    + """
            AND p.replayed_at IS NULL AND p.dropped_at IS NULL AND p.parked_at <= $10
            AND (p.topic, p."partition", p."offset") > ($7, $8::integer, $9::bigint)
        ORDER BY p.topic, p."partition", p."offset"
        LIMIT $11
    )
    SELECT
    """
    + _WITH_EFFECTS
    + """
    ORDER BY f.topic, f."partition", f."offset"
    """
)

# $1 topics, $2 partitions, $3 offsets
_FIND: Final[LiteralString] = (
    """
    WITH found AS MATERIALIZED (
        SELECT
    """
    + _FOUND
    + """
            JOIN unnest($1::text[], $2::integer[], $3::bigint[]) AS g (topic, "partition", "offset")
                USING (topic, "partition", "offset")
    )
    SELECT
    """
    + _WITH_EFFECTS
    + """
    ORDER BY f.topic, f."partition", f."offset"
    """
)

_NOW: Final[LiteralString] = "SELECT clock_timestamp()"

# Records were put back: unless they came back before this was noted. Their turns wait again, as far as the log has
# them; what was never begun is parked until it is read.
# $1 topics, $2 partitions, $3 offsets, $4 how often each had been put back before, $5 in which run it was refused
_REPLAYED: Final[LiteralString] = """
    WITH noted AS (
        UPDATE parked AS p
        SET replayed_at = clock_timestamp(), replays = p.replays + 1, dropped_at = NULL
        FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[], $5::integer[])
            AS g (topic, "partition", "offset", replays, run)
        WHERE p.topic = g.topic AND p."partition" = g."partition" AND p."offset" = g."offset" AND p.replays = g.replays
            AND p.run = g.run
        RETURNING p.app, p.owner_key, p.turn_ids, p.stage, p.reason, p.topic, p."partition", p."offset"
    ), waiting AS (
        SELECT n.app, n.owner_key, t.id, n.stage, n.topic, n."partition", n."offset"
        FROM noted AS n CROSS JOIN LATERAL unnest(n.turn_ids) AS t (id)
        WHERE n.reason <> 'id_reused'
    )
    UPDATE turn
    SET state = 'PENDING', reason = NULL, detail = NULL
    FROM waiting AS w
    WHERE turn.app = w.app AND turn.owner_key = w.owner_key AND turn.id = w.id AND turn.state = 'PARKED'
        AND (w.stage = 'reconcile' OR (turn.fingerprint IS NOT NULL OR turn.off_record)
            AND (turn.topic, turn."partition", turn."offset") = (w.topic, w."partition", w."offset"))
"""

# Those that are still as they were seen: what was put back in between, or refused again, is not given up unseen.
# $1 topics, $2 partitions, $3 offsets, $4 how often each had been put back, $5 when last, $6 run
_DROP: Final[LiteralString] = """
    UPDATE parked AS p
    SET dropped_at = coalesce(p.dropped_at, clock_timestamp())
    FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::integer[])
        AS g (topic, "partition", "offset", replays, replayed_at, run)
    WHERE p.topic = g.topic AND p."partition" = g."partition" AND p."offset" = g."offset" AND p.replays = g.replays
        AND p.replayed_at IS NOT DISTINCT FROM g.replayed_at AND p.run = g.run
    RETURNING p.topic, p."partition", p."offset"
"""

PAGE: Final = 500


class ParkedPlace(NamedTuple):
    """The identity of a parked record: where it stood first."""

    topic: str
    partition: int
    offset: int

    @override
    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class ParkedState(StrEnum):
    """What an operator did about a parked record."""

    WAITING = "waiting"
    REPLAYED = "replayed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedFilter:
    """Which records are meant; None: any. `since` and `until` (not including it) are of when they were parked."""

    app: str | None = None
    owner: str | None = None
    reason: str | None = None
    stage: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def values(self) -> tuple[str | datetime | None, ...]:
        """As the statements take them."""
        return self.app, self.owner, self.reason, self.stage, self.since, self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedEntry:
    """A record that was set aside; whose it is, where that is known.

    received_at, landed (its place on the topic of parked records): None where it was parked before they were kept.
    replays: how often it was put back; replayed_at: the last time, unless it was parked again since.
    stored: how many of its turns took effect since, by this record or another; run: in which reading.
    """

    place: ParkedPlace
    app: str | None
    owner: str | None
    turn_ids: tuple[str, ...]
    stage: str
    reason: str
    detail: str
    attempts: int
    received_at: datetime | None
    parked_at: datetime
    landed: Landed | None
    replayed_at: datetime | None
    replays: int
    dropped_at: datetime | None
    stored: int
    run: int = 0

    @property
    def state(self) -> ParkedState:
        """What was done about it."""
        if self.dropped_at is not None:
            return ParkedState.DROPPED
        return ParkedState.WAITING if self.replayed_at is None else ParkedState.REPLAYED

    @property
    def took_effect(self) -> bool:
        """Whether all of its turns took effect since: nothing is left to do."""
        return bool(self.turn_ids) and self.stored == len(self.turn_ids)


class ParkedRepository:
    """For the role `mnemo_operator`. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, wanted: ParkedFilter, *, everything: bool = False, limit: int) -> tuple[ParkedEntry, ...]:
        """The last ones that were set aside, newest first.

        everything: also those that were put back, and given up.
        """
        async with self._database.across() as connection:
            rows = await connection.fetch(_LIST, *wanted.values, everything, limit)
        return tuple(_entry(row) for row in rows)

    async def find(self, places: Sequence[ParkedPlace]) -> tuple[ParkedEntry, ...]:
        """Those of `places` where a record was parked, by topic, partition and offset."""
        async with self._database.across() as connection:
            rows = await connection.fetch(_FIND, *_columns(places))
        return tuple(_entry(row) for row in rows)

    async def waiting(self, wanted: ParkedFilter, *, page: int = PAGE) -> AsyncIterator[Sequence[ParkedEntry]]:
        """Those that wait now and have something left to do, page by page, by topic, partition and offset.

        What is parked meanwhile, and what is parked again, is not among them: the walk ends.
        """
        async with self._database.across() as connection:
            now = await connection.fetchval(_NOW)
        after = ParkedPlace("", -1, -1)
        while True:
            async with self._database.across() as connection:
                rows = await connection.fetch(_PAGE, *wanted.values, *after, now, page)
            entries = [_entry(row) for row in rows]
            open_entries = [entry for entry in entries if not entry.took_effect]
            if open_entries:
                yield open_entries
            if len(entries) < page:
                return
            after = entries[-1].place

    async def replayed(self, entries: Sequence[ParkedEntry]) -> None:
        """They were put back on their topic, as their next replay. Again changes nothing."""
        places = _columns([entry.place for entry in entries])
        replays, runs = [entry.replays for entry in entries], [entry.run for entry in entries]
        async with self._database.across() as connection:
            await connection.execute(_REPLAYED, *places, replays, runs)

    async def drop(self, entries: Sequence[ParkedEntry]) -> frozenset[ParkedPlace]:
        """They are given up, and their turns stay parked; gives which are given up now.

        Not those that were put back since they were seen, or parked anew.
        """
        places = _columns([entry.place for entry in entries])
        seen = [(entry.replays, entry.replayed_at, entry.run) for entry in entries]
        replays, replayed_at, runs = ([each[n] for each in seen] for n in range(3))
        async with self._database.across() as connection:
            rows = await connection.fetch(_DROP, *places, replays, replayed_at, runs)
        return frozenset(ParkedPlace(row["topic"], row["partition"], row["offset"]) for row in rows)


def _columns(places: Sequence[ParkedPlace]) -> tuple[list[str], list[int], list[int]]:
    return (
        [place.topic for place in places],
        [place.partition for place in places],
        [place.offset for place in places],
    )


def _entry(row: "asyncpg.Record") -> ParkedEntry:
    known = row["parked_partition"] is not None and row["parked_offset"] is not None
    return ParkedEntry(
        place=ParkedPlace(row["topic"], row["partition"], row["offset"]),
        app=row["app"],
        owner=row["owner"],
        turn_ids=tuple(row["turn_ids"]),
        stage=row["stage"],
        reason=row["reason"],
        detail=row["detail"],
        attempts=row["attempts"],
        received_at=row["received_at"],
        parked_at=row["parked_at"],
        landed=Landed(row["parked_partition"], row["parked_offset"]) if known else None,
        replayed_at=row["replayed_at"],
        replays=row["replays"],
        dropped_at=row["dropped_at"],
        stored=row["stored"],
        run=row["run"],
    )

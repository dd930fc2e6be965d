"""Memories read one by one and in pages."""

from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from processors.memories import Memory
from processors.records import Owner
from processors.search import Filters, MemoryPage
from store.database import Database
from store.rows import memory_of

# $1 app, $2 owner, $3 memory id
_GET: Final[LiteralString] = """
    SELECT m.id, m.session, m.content, m.data, m.tags, m.type, m.category, m.importance, m.confidence, m.pinned,
        CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state,
        m.subject, m.attribute, m.role, m.valid_from, m.valid_to, m.recorded_at, m.retired_at, m.retired_reason,
        m.supersedes, m.superseded_by, m.restates, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations,
        m.expires_at, m.fades_at, m.version,
        CASE WHEN m.pinned OR m.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', now() - m.reinforced_at)) / m.half_life_seconds))
        END AS strength,
        (
            SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
            FROM memory_source AS s
            WHERE s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id
        ) AS sources
    FROM owner AS o JOIN memory AS m ON m.app = o.app AND m.owner_key = o.owner_key
    WHERE o.app = $1 AND o.owner = $2 AND m.id = $3 AND m.state <> 'FORGOTTEN'
"""

# $1 app, $2 owner, $3 page size + 1, $4 recorded at and $5 id of the last one of the page before, and as filters, NULL
# where not asked about: $6 categories, $7 types, $8 tags, $9 session, $10 data, $11 least importance,
# $12 least confidence, $13 said after, $14 said before, $15 also what is not live
LIST: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), mine AS MATERIALIZED (
        SELECT m.recorded_at, m.id
        FROM memory AS m
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.state <> 'FORGOTTEN'
            AND ($15 OR m.state = 'LIVE' AND m.valid_from <= now() AND (m.valid_to IS NULL OR m.valid_to > now())
                AND (m.expires_at IS NULL OR m.expires_at > now()))
            AND ($6::text[] IS NULL OR m.category = ANY ($6))
            AND ($7::text[] IS NULL OR m.type = ANY ($7))
            AND ($8::text[] IS NULL OR m.tags @> $8)
            AND ($9::text IS NULL OR m.session = $9)
            AND ($10::jsonb IS NULL OR m.data @> $10)
            AND ($11::integer IS NULL OR m.importance >= $11)
            AND ($12::real IS NULL OR m.confidence >= $12)
            AND ($13::timestamptz IS NULL OR m.stated_at >= $13)
            AND ($14::timestamptz IS NULL OR m.stated_at < $14)
    ), page AS MATERIALIZED (
        SELECT mine.recorded_at, mine.id
        FROM mine
        WHERE $4::timestamptz IS NULL OR (mine.recorded_at, mine.id) > ($4, $5::uuid)
        ORDER BY mine.recorded_at, mine.id
        LIMIT $3
    )
    SELECT t.total,
        m.id, m.session, m.content, m.data, m.tags, m.type, m.category, m.importance, m.confidence, m.pinned,
        CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state,
        m.subject, m.attribute, m.role, m.valid_from, m.valid_to, m.recorded_at, m.retired_at, m.retired_reason,
        m.supersedes, m.superseded_by, m.restates, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations,
        m.expires_at, m.fades_at, m.version,
        CASE WHEN m.pinned OR m.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', now() - m.reinforced_at)) / m.half_life_seconds))
        END AS strength,
        (
            SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
            FROM memory_source AS s
            WHERE s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id
        ) AS sources
    -- The total comes also where the page is empty.
    FROM (SELECT count(*) AS total FROM mine) AS t
        LEFT JOIN (
            page JOIN memory AS m ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = page.id
        ) ON true
    ORDER BY m.recorded_at, m.id
"""


class MemoryRepository:
    """An owner's memories. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: Owner, memory_id: UUID) -> Memory | None:
        """The memory in any state but FORGOTTEN; None where this owner has none by that id.

        One past its `expires_at` is EXPIRED, whether or not the timer has been there.
        """
        async with self._database.app(owner.app) as connection:
            row = await connection.fetchrow(_GET, owner.app, owner.owner, memory_id)
        return None if row is None else memory_of(row, owner)

    async def list_page(
        self, owner: Owner, filters: Filters, *, page_size: int, after: tuple[datetime, str] | None = None
    ) -> MemoryPage:
        """The next `page_size` memories after `after`, in the order in which they were recorded.

        What is live, has begun and has not ended; with `include_retired` everything but what is forgotten.
        """
        async with self._database.app(owner.app) as connection:
            rows = await connection.fetch(
                LIST,
                owner.app,
                owner.owner,
                page_size + 1,
                None if after is None else after[0],
                None if after is None else UUID(after[1]),
                list(filters.categories) or None,
                list(filters.types) or None,
                list(filters.tags) or None,
                filters.session,
                filters.data_contains or None,
                filters.min_importance,
                filters.min_confidence,
                filters.said_after,
                filters.said_before,
                filters.include_retired,
            )
        memories = [memory_of(row, owner) for row in rows if row["id"] is not None]
        more = len(memories) > page_size
        memories = memories[:page_size]
        next_after = (memories[-1].recorded_at, str(memories[-1].id)) if more and memories else None
        return MemoryPage(tuple(memories), rows[0]["total"], next_after)

"""Search inside one owner, in one statement."""

from typing import Final, LiteralString

from processors.records import Owner
from processors.search import MAX_QUERY_CHARACTERS, Hit, SearchQuery
from processors.vectors import EmbeddingModel, Vector
from store.database import Database
from store.rows import memory_of
from store.vectors import by_width

# $1 app, $2 owner, $3 text, $4 limit, $5 candidates an arm, $6 model's name, $7 vector or $8 half, $9 mode, weights of
# $10 similarity, $11 text, $12 strength and $13 recency, $14 also what is not live, and as filters, NULL where not
# asked about: $15 categories, $16 types, $17 tags, $18 session, $19 data, $20 least importance, $21 least confidence,
# $22 said after, $23 said before
SEARCH: Final[LiteralString] = r"""
    -- A word of the question is enough: its lexemes in the app's language, one OR the other.
    WITH me AS MATERIALIZED (
        SELECT o.owner_key, (
            SELECT string_agg('''' || replace(replace(l.lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
            FROM unnest(to_tsvector(a.language, $3)) AS l
        ) AS words
        FROM owner AS o JOIN app AS a ON a.app = o.app
        WHERE o.app = $1 AND o.owner = $2
    -- The owner's memories that may answer, once, with everything that a score is made of. What restricts them is one
    -- expression: the planner takes each for a small share, and would expect a single row of nine.
    ), mine AS MATERIALIZED (
        SELECT m.id,
            nullif(1 - coalesce(v.embedding <=> $7, v.half <=> $8), 'NaN') AS similarity,
            CASE WHEN m.text_search @@ (SELECT words FROM me) THEN ts_rank(m.text_search, (SELECT words FROM me)) END
                AS text_rank,
            CASE WHEN m.pinned OR m.half_life_seconds IS NULL THEN 1 ELSE
                power(2, -least(1000, greatest(0, date_part('epoch', now() - m.reinforced_at)) / m.half_life_seconds))
            END AS strength,
            1 / (1 + greatest(0, date_part('epoch', now() - m.stated_at)) / 2592000) AS recency
        FROM memory AS m LEFT JOIN memory_vector AS v
            ON v.app = $1 AND v.owner_key = (SELECT owner_key FROM me) AND v.id = m.id
                AND v.model_key = (SELECT model_key FROM embedding_model WHERE name = $6)
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND CASE
            WHEN m.state = 'FORGOTTEN' THEN false
            WHEN NOT $14 AND (m.state <> 'LIVE' OR m.valid_from > now() OR m.valid_to <= now() OR m.expires_at <= now())
                THEN false
            ELSE ($15::text[] IS NULL OR m.category = ANY ($15))
                AND ($16::text[] IS NULL OR m.type = ANY ($16))
                AND ($17::text[] IS NULL OR m.tags @> $17)
                AND ($18::text IS NULL OR m.session = $18)
                AND ($19::jsonb IS NULL OR m.data @> $19)
                AND ($20::integer IS NULL OR m.importance >= $20)
                AND ($21::real IS NULL OR m.confidence >= $21)
                AND ($22::timestamptz IS NULL OR m.stated_at >= $22)
                AND ($23::timestamptz IS NULL OR m.stated_at < $23)
        END
    -- Two arms, each in its own order: neither hides what only the other finds.
    ), ranked AS (
        SELECT mine.id, greatest(0, coalesce(mine.similarity, 0)) AS similarity,
            coalesce(mine.text_rank / (SELECT max(text_rank) FROM mine), 0)::double precision AS text_score,
            mine.strength, mine.recency,
            CASE WHEN mine.similarity IS NOT NULL AND $9 <> 'TEXT' THEN
                row_number() OVER (ORDER BY mine.similarity DESC NULLS LAST, mine.id)
            END AS by_vector,
            CASE WHEN mine.text_rank IS NOT NULL AND $9 <> 'VECTOR' THEN
                row_number() OVER (ORDER BY mine.text_rank DESC NULLS LAST, mine.id)
            END AS by_text
        FROM mine
    ), scored AS (
        SELECT r.id, r.similarity, r.text_score, r.strength,
            CASE $9
                WHEN 'VECTOR' THEN r.similarity
                WHEN 'TEXT' THEN r.text_score
                WHEN 'RRF' THEN coalesce(1::double precision / (60 + r.by_vector), 0)
                    + coalesce(1::double precision / (60 + r.by_text), 0)
                ELSE $10 * r.similarity + $11 * r.text_score + $12 * r.strength + $13 * r.recency
            END AS score
        FROM ranked AS r
        WHERE r.by_vector <= $5 OR r.by_text <= $5
        ORDER BY score DESC, r.id
        LIMIT $4
    )
    SELECT s.score, s.similarity, s.text_score, s.strength,
        m.id, m.session, m.content, m.data, m.tags, m.type, m.category, m.importance, m.confidence, m.pinned,
        CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state,
        m.subject, m.attribute, m.role, m.valid_from, m.valid_to, m.recorded_at, m.retired_at, m.retired_reason,
        m.supersedes, m.superseded_by, m.restates, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations,
        m.expires_at, m.fades_at, m.version,
        (
            SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
            FROM memory_source AS s
            WHERE s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id
        ) AS sources
    FROM scored AS s JOIN memory AS m ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = s.id
    ORDER BY s.score DESC, s.id
"""


class SearchRepository:
    """The port `MemorySearch` on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(
        self, owner: Owner, query: SearchQuery, vector: Vector | None, model: EmbeddingModel
    ) -> tuple[Hit, ...]:
        """The memories that answer `query`, best first, ties by id.

        vector: of the query, unit length, of `model`. Without it only the text arm contributes. Each arm is exact.
        """
        [full], [half] = by_width([vector])
        filters, weights = query.filters, query.weights
        async with self._database.app(owner.app) as connection:
            rows = await connection.fetch(
                SEARCH,
                owner.app,
                owner.owner,
                query.text[:MAX_QUERY_CHARACTERS],
                query.limit,
                max(query.limit * 4, 50),
                model.name,
                full,
                half,
                query.mode,
                weights.similarity,
                weights.text,
                weights.strength,
                weights.recency,
                filters.include_retired,
                list(filters.categories) or None,
                list(filters.types) or None,
                list(filters.tags) or None,
                filters.session,
                filters.data_contains or None,
                filters.min_importance,
                filters.min_confidence,
                filters.said_after,
                filters.said_before,
            )
        return tuple(
            Hit(memory_of(row, owner), row["score"], row["similarity"], row["text_score"], row["strength"])
            for row in rows
        )

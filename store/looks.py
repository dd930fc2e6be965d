"""An owner as it is read before deciding: one statement, where nothing was forgotten and nothing comes late."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, LiteralString
from uuid import UUID

import msgspec
from mnemostream.turns import Role

from processors.effects import Answered, Look, Probe
from processors.memories import READING, State, StatementOrder
from processors.records import Owner
from processors.routing import Known, Neighbour
from processors.vectors import EmbeddingModel
from store.rows import profile_of
from store.vectors import by_width

if TYPE_CHECKING:
    from store.database import Connection

# $1 app, $2 owner, $3 model's name, $4 run, $5 turn ids, $6 neighbours a probe, $7 the similarity from which a text
# matters, $8 when the first of the probes was received, and for each probe $9 hash of the text, $10 vector or $11 half,
# $12 subject, $13 attribute
LOOK: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key, version FROM owner WHERE app = $1 AND owner = $2
    ), probe AS MATERIALIZED (
        SELECT p.n, p.hash, p.vector, p.half, p.subject, p.attribute
        FROM unnest($9::bytea[], $10::vector[], $11::halfvec[], $12::text[], $13::text[])
            WITH ORDINALITY AS p (hash, vector, half, subject, attribute, n)
    -- The same text, live ones first: an index on its hash finds them, whatever model embedded them.
    ), same AS (
        SELECT p.n, m.id, NULL::double precision AS similarity
        FROM probe AS p CROSS JOIN LATERAL (
            SELECT m.id
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.content_hash = p.hash
                AND m.state <> 'FORGOTTEN'
            ORDER BY m.state <> 'LIVE', m.state NOT IN ('ARCHIVED', 'EXPIRED', 'EVICTED'), m.stated_at DESC, m.id
            LIMIT $6
        ) AS m
    -- What holds now of the same subject and attribute, the likest first, then what was said last.
    ), slot AS (
        SELECT p.n, m.id, m.similarity
        FROM probe AS p CROSS JOIN LATERAL (
            SELECT m.id, nullif(1 - coalesce(v.embedding <=> p.vector, v.half <=> p.half), 'NaN') AS similarity
            FROM memory AS m LEFT JOIN memory_vector AS v
                ON v.app = $1 AND v.owner_key = (SELECT owner_key FROM me) AND v.id = m.id
                    AND v.model_key = (SELECT model_key FROM embedding_model WHERE name = $3)
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.subject = p.subject
                AND m.attribute = p.attribute AND m.state = 'LIVE'
                AND (m.expires_at IS NULL OR m.expires_at > now()) AND (m.valid_to IS NULL OR m.valid_to > now())
            ORDER BY similarity DESC NULLS LAST, m.stated_at DESC, m.id
            LIMIT $6
        ) AS m
    -- The nearest, exactly: the primary key of the vectors carries them, so an owner's lie side by side.
    ), nearest AS (
        SELECT p.n, v.id, v.similarity
        FROM probe AS p CROSS JOIN LATERAL (
            SELECT v.id, nullif(1 - coalesce(v.embedding <=> p.vector, v.half <=> p.half), 'NaN') AS similarity
            FROM memory_vector AS v
            WHERE v.app = $1 AND v.owner_key = (SELECT owner_key FROM me)
                AND v.model_key = (SELECT model_key FROM embedding_model WHERE name = $3)
            ORDER BY coalesce(v.embedding <=> p.vector, v.half <=> p.half), v.id
            LIMIT $6
        ) AS v
        WHERE p.vector IS NOT NULL OR p.half IS NOT NULL
    ), found AS (
        SELECT f.n, f.id, max(f.similarity) AS similarity
        FROM (
            SELECT n, id, similarity FROM same
            UNION ALL
            SELECT n, id, similarity FROM slot
            UNION ALL
            SELECT n, id, similarity FROM nearest
        ) AS f
        GROUP BY f.n, f.id
    )
    SELECT
        (SELECT version FROM me) AS version,
        now() AS now,
        (
            SELECT array_agg(l.turn_id)
            FROM ledger AS l
            WHERE l.app = $1 AND l.owner_key = (SELECT owner_key FROM me) AND l.turn_id = ANY ($5) AND l.run = $4
                AND l.outcome IN ('STORED', 'ERASED')
        ) AS settled,
        (
            SELECT jsonb_build_object('time_zone', a.time_zone, 'language', a.language,
                'instructions', a.instructions, 'categories', a.categories)
            FROM app AS a
            WHERE a.app = $1
        ) AS profile,
        -- Each with what a decision needs. A version of this code that wrote no `last_` wrote `confirmed_at`.
        (
            SELECT json_agg(json_build_array(f.n, f.similarity, m.content_hash = p.hash,
                m.subject = p.subject AND m.attribute = p.attribute AND m.state = 'LIVE'
                    AND (m.expires_at IS NULL OR m.expires_at > now()) AND (m.valid_to IS NULL OR m.valid_to > now()),
                m.id, CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED'
                    WHEN m.state = 'LIVE' AND m.valid_to <= now() THEN 'SUPERSEDED' ELSE m.state END,
                m.stated_at, m.received_at, m.source_offset, m.source_index,
                CASE WHEN m.last_stated_at IS NOT NULL OR m.confirmed_at IS NOT NULL THEN json_build_array(
                    greatest(coalesce(m.last_stated_at, m.stated_at), m.confirmed_at),
                    coalesce(m.last_received_at, m.received_at), coalesce(m.last_offset, m.source_offset),
                    coalesce(m.last_index, m.source_index)) END,
                m.valid_from,
                CASE WHEN f.similarity >= $7 OR m.content_hash = p.hash
                    OR (m.subject = p.subject AND m.attribute = p.attribute AND m.state = 'LIVE')
                    THEN m.content ELSE '' END,
                m.valid_to, m.category, m.importance, m.confidence, m.role, m.subject, m.attribute, m.pinned, m.tags,
                m.supersedes, m.superseded_by, m.expires_at))
            FROM found AS f JOIN probe AS p USING (n) JOIN memory AS m
                ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = f.id AND m.state <> 'FORGOTTEN'
        ) AS found,
        EXISTS (
            SELECT 1
            FROM tombstone AS t
            WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.received_before > $8
        ) AS buried
"""

# The lines of some memories, followed both ways: of two beside each other either may be the one that names the other.
# $1 app, $2 owner, $3 memory ids
LINES: Final[LiteralString] = """
    WITH RECURSIVE me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), walked (id, supersedes, superseded_by) AS (
        SELECT m.id, m.supersedes, m.superseded_by
        FROM memory AS m
        WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = ANY ($3) AND m.state <> 'FORGOTTEN'
        UNION
        SELECT m.id, m.supersedes, m.superseded_by
        FROM walked AS w CROSS JOIN LATERAL (
            SELECT m.id, m.supersedes, m.superseded_by FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = w.supersedes
                AND m.state <> 'FORGOTTEN'
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = w.superseded_by
                AND m.state <> 'FORGOTTEN'
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.supersedes = w.id
                AND m.state <> 'FORGOTTEN'
            UNION ALL
            SELECT m.id, m.supersedes, m.superseded_by FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.superseded_by = w.id
                AND m.state <> 'FORGOTTEN'
        ) AS m
    -- The walk ends where this is full.
    ), line AS (
        SELECT w.id FROM walked AS w LIMIT 200
    )
    SELECT json_agg(json_build_array(m.id, CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED'
                WHEN m.state = 'LIVE' AND m.valid_to <= now() THEN 'SUPERSEDED' ELSE m.state END,
            m.stated_at, m.received_at, m.source_offset, m.source_index,
            CASE WHEN m.last_stated_at IS NOT NULL OR m.confirmed_at IS NOT NULL THEN json_build_array(
                greatest(coalesce(m.last_stated_at, m.stated_at), m.confirmed_at),
                coalesce(m.last_received_at, m.received_at), coalesce(m.last_offset, m.source_offset),
                coalesce(m.last_index, m.source_index)) END,
            m.valid_from, m.content, m.valid_to, m.category, m.importance, m.confidence, m.role, m.subject,
            m.attribute, m.pinned, m.tags, m.supersedes, m.superseded_by, m.expires_at)
        ORDER BY m.stated_at, m.id)
    FROM line AS l JOIN memory AS m ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = l.id
"""

# Which of the probes were forgotten on request after they had been received: by their turn, text or slot.
# $1 app, $2 owner, and for each probe $3 hash of the text, $4 subject, $5 attribute, $6 received at, $7 turn id
FORGOTTEN: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT o.owner_key, a.forget_key
        FROM owner AS o JOIN app AS a ON a.app = o.app
        WHERE o.app = $1 AND o.owner = $2
    )
    SELECT array_agg(DISTINCT p.n)
    FROM unnest($3::bytea[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
            WITH ORDINALITY AS p (hash, subject, attribute, received_at, turn_id, n)
        CROSS JOIN me
        JOIN tombstone AS t
            ON t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.received_before > p.received_at
    WHERE p.turn_id = ANY (t.turn_ids) OR sha256(me.forget_key || p.hash) = ANY (t.text_hashes)
        OR sha256(me.forget_key || convert_to(p.subject || chr(31) || p.attribute, 'UTF8')) = ANY (t.slot_hashes)
"""

# Which of the probes their own turn has said before, in the same words, of what is not live any more. What only another
# reading of the same record replaced is open: a reading may find again what the one before it took for something else.
# $1 app, $2 owner, $3 ordinals of a reading, and for each probe $4 hash of the text, $5 turn id
OVER: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), found AS (
        SELECT p.n, m.state = 'LIVE' AND (m.expires_at IS NULL OR m.expires_at > now())
                AND (m.valid_to IS NULL OR m.valid_to > now()) AS live,
            m.stated_at, m.received_at, m.source_offset, m.source_index,
            EXISTS (
                SELECT 1
                FROM memory AS by
                WHERE by.app = $1 AND by.owner_key = m.owner_key AND by.id = m.superseded_by
                    AND by.received_at = coalesce(m.last_received_at, m.received_at)
                    AND by.source_offset = coalesce(m.last_offset, m.source_offset)
                    AND by.source_index / $3::integer <> coalesce(m.last_index, m.source_index) / $3
            ) AS corrected
        FROM unnest($4::bytea[], $5::text[]) WITH ORDINALITY AS p (hash, turn_id, n)
            JOIN memory AS m
                ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.content_hash = p.hash
                    AND m.state <> 'FORGOTTEN'
        WHERE EXISTS (
            SELECT 1
            FROM memory_source AS s
            WHERE s.app = $1 AND s.owner_key = m.owner_key AND s.memory_id = m.id AND s.turn_id = p.turn_id
        )
    )
    SELECT array_agg(o.n)
    FROM (
        SELECT f.n
        FROM found AS f
        GROUP BY f.n
        HAVING NOT bool_or(f.live) AND NOT (array_agg(f.corrected
            ORDER BY f.stated_at DESC, f.received_at DESC, f.source_offset DESC, f.source_index DESC))[1]
    ) AS o
"""

TEXT_MARGIN: Final = 0.35
"""How far below the arbitration threshold a neighbour still comes with its text: what is taken back is named in other
words."""

_REPLACED: Final = frozenset({State.SUPERSEDED, State.RETRACTED})

Neighbours = tuple[tuple[Neighbour, ...], ...]


async def look_at(
    connection: "Connection",
    owner: Owner,
    probes: Sequence[Probe],
    model: EmbeddingModel | None,
    *,
    turn_ids: Sequence[str],
    run: int,
    limit: int,
    answered: Answered | None,
) -> Look:
    """The owner as `connection` sees it now, with the neighbours of `probes`.

    Lines and what was forgotten are asked for only where there are any: the version, which is read first, makes a
    commit fail if the owner changed in between.
    """
    text_from = None if model is None else model.arbitration_threshold - TEXT_MARGIN
    row = await connection.fetchrow(
        LOOK,
        owner.app,
        owner.owner,
        None if model is None else model.name,
        run,
        list(turn_ids),
        limit,
        text_from,
        min((probe.order.received_at for probe in probes if probe.order is not None), default=None),
        [probe.content_hash for probe in probes],
        *by_width([probe.vector for probe in probes]),
        [probe.subject for probe in probes],
        [probe.attribute for probe in probes],
    )
    assert row is not None
    neighbours = _neighbours(len(probes), row["found"])
    seeds = _seeds(probes, neighbours, 1.0 if model is None else model.arbitration_threshold, row["now"])
    return Look(
        version=row["version"] or 0,
        now=row["now"],
        settled=frozenset(row["settled"] or ()),
        neighbours=neighbours,
        lines=await _lines(connection, owner, seeds) if seeds else (),
        forgotten=await _forgotten(connection, owner, probes) if row["buried"] else (),
        over=await _over(connection, owner, probes) if run else (),
        profile=profile_of(row["profile"]),
        answered=answered,
    )


def _seeds(probes: Sequence[Probe], neighbours: Neighbours, alike: float, now: datetime) -> set[UUID]:
    """Whose lines are read: of what says (nearly) the same and was replaced, and of what is like it and was said after
    it, or is to come."""
    return {
        neighbour.memory.id
        for probe, found in zip(probes, neighbours, strict=True)
        for neighbour in found
        if (
            neighbour.memory.state in _REPLACED
            and (neighbour.same_text or (neighbour.similarity is not None and neighbour.similarity >= alike))
        )
        or (
            neighbour.memory.live
            and neighbour.memory.content
            and (neighbour.memory.valid_from > now or (probe.order is not None and neighbour.memory.last > probe.order))
        )
    }


async def _lines(connection: "Connection", owner: Owner, seeds: Iterable[UUID]) -> tuple[Known, ...]:
    lines = await connection.fetchval(LINES, owner.app, owner.owner, list(seeds))
    return () if lines is None else tuple(_known(*fields) for fields in msgspec.json.decode(lines))


async def _forgotten(connection: "Connection", owner: Owner, probes: Sequence[Probe]) -> tuple[bool, ...]:
    """For each probe; empty where none was."""
    found = await connection.fetchval(
        FORGOTTEN,
        owner.app,
        owner.owner,
        [probe.content_hash for probe in probes],
        [probe.subject for probe in probes],
        [probe.attribute for probe in probes],
        [None if probe.order is None else probe.order.received_at for probe in probes],
        [probe.turn_id for probe in probes],
    )
    return tuple(n in found for n in range(1, len(probes) + 1)) if found else ()


async def _over(connection: "Connection", owner: Owner, probes: Sequence[Probe]) -> tuple[bool, ...]:
    """For each probe; empty where there is none."""
    found = await connection.fetchval(
        OVER,
        owner.app,
        owner.owner,
        READING,
        [probe.content_hash for probe in probes],
        [probe.turn_id for probe in probes],
    )
    return tuple(n in found for n in range(1, len(probes) + 1)) if found else ()


def _neighbours(probes: int, found: str | None) -> Neighbours:
    """By probe: the same text first (live ones before the others), then the same slot, then by similarity, then id."""
    by_probe: list[list[Neighbour]] = [[] for _ in range(probes)]
    for n, similarity, same_text, same_slot, *fields in msgspec.json.decode(found) if found else ():
        by_probe[n - 1].append(Neighbour(_known(*fields), similarity, same_text, bool(same_slot)))
    for neighbours in by_probe:
        neighbours.sort(key=lambda neighbour: neighbour.rank)
    return tuple(tuple(neighbours) for neighbours in by_probe)


def _known(
    memory_id: str,
    state: str,
    stated_at: str,
    received_at: str,
    offset: int,
    ordinal: int,
    last: tuple[str, str, int, int] | None,
    valid_from: str,
    content: str,
    valid_to: str | None,
    category: str,
    importance: int,
    confidence: float,
    role: str | None,
    subject: str | None,
    attribute: str | None,
    pinned: bool,
    tags: list[str],
    supersedes: str | None,
    superseded_by: str | None,
    expires_at: str | None,
) -> Known:
    order = _order(stated_at, received_at, offset, ordinal)
    return Known(
        id=UUID(memory_id),
        state=State(state),
        order=order,
        last=order if last is None else _order(*last),
        valid_from=datetime.fromisoformat(valid_from),
        content=content,
        valid_to=None if valid_to is None else datetime.fromisoformat(valid_to),
        category=category,
        importance=importance,
        confidence=confidence,
        role=None if role is None else Role(role),
        subject=subject,
        attribute=attribute,
        pinned=pinned,
        tags=tuple(tags),
        supersedes=None if supersedes is None else UUID(supersedes),
        superseded_by=None if superseded_by is None else UUID(superseded_by),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
    )


def _order(stated_at: str, received_at: str, offset: int, ordinal: int) -> StatementOrder:
    return StatementOrder(datetime.fromisoformat(stated_at), datetime.fromisoformat(received_at), offset, ordinal)

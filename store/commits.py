"""Writing what becomes of a window or a request: one transaction, a few statements, each for all effects at once."""

from typing import TYPE_CHECKING, Any, Final, LiteralString

from processors.effects import Commit, RequestId
from processors.records import Owner
from store.plans import Known, Plan, decision_row, planned
from store.vectors import by_width

if TYPE_CHECKING:
    import asyncpg

    from store.database import Connection

# The owner's row, locked to the end of the transaction. Not FOR UPDATE: rows that refer to it may still be added.
# $1 app, $2 owner
_LOCK: Final[LiteralString] = """
    SELECT owner_key, version, seq
    FROM owner
    WHERE app = $1 AND owner = $2
    FOR NO KEY UPDATE
"""

# The same, and a ledger row for each turn where the version still stands. A turn that was parked becomes stored.
# $1 app, $2 owner, $3 version, $4 run, and for each turn $5 id, $6 topic, $7 partition, $8 offset, $9 received at
_CLAIM: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key, version, seq
        FROM owner
        WHERE app = $1 AND owner = $2
        FOR NO KEY UPDATE
    ), claimed AS (
        INSERT INTO ledger (owner_key, turn_id, run, app, outcome, topic, "partition", "offset", received_at)
        SELECT me.owner_key, t.id, $4, $1, 'STORED', t.topic, t."partition", t."offset", t.received_at
        FROM me CROSS JOIN unnest($5::text[], $6::text[], $7::integer[], $8::bigint[], $9::timestamptz[])
            AS t (id, topic, "partition", "offset", received_at)
        WHERE me.version = $3
        ON CONFLICT (owner_key, turn_id, run) DO UPDATE
        SET outcome = 'STORED', topic = EXCLUDED.topic, "partition" = EXCLUDED."partition",
            "offset" = EXCLUDED."offset", received_at = EXCLUDED.received_at, decided_at = clock_timestamp()
        WHERE ledger.outcome = 'PARKED'
        RETURNING turn_id
    ), marked AS (
        UPDATE turn
        SET state = 'STORED', reason = NULL, detail = NULL
        FROM me, claimed
        WHERE turn.app = $1 AND turn.owner_key = me.owner_key AND turn.id = claimed.turn_id AND turn.state <> 'ERASED'
    )
    SELECT owner_key, version, seq, (SELECT count(*) FROM claimed) AS claimed
    FROM me
"""

# $1 app
ADD_APP: Final[LiteralString] = "INSERT INTO app (app) VALUES ($1) ON CONFLICT (app) DO NOTHING"

# $1 app, $2 owner
ADD_OWNER: Final[LiteralString] = "INSERT INTO owner (app, owner) VALUES ($1, $2) ON CONFLICT (app, owner) DO NOTHING"

# Those of the memories that are live, with what they rest on among the turns.
# $1 app, $2 owner key, $3 memory ids, $4 turn ids
_TARGETS: Final[LiteralString] = """
    SELECT m.id, array_agg(s.turn_id) AS turn_ids, array_agg(s.message_index) AS message_indices
    FROM memory AS m LEFT JOIN memory_source AS s
        ON s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id AND s.turn_id = ANY ($4)
    WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($3)
        AND m.state = 'LIVE' AND (m.expires_at IS NULL OR m.expires_at > now())
    GROUP BY m.id
"""

# $1 app, $2 owner key, $3 cause kind, $4 language, $5 rows, $6 model key,
# and for each vector $7 memory id, $8 vector or $9 half
_ADD: Final[LiteralString] = """
    WITH given AS MATERIALIZED (
        SELECT g.seq, g.decision_id, g.cause_id, g.sources, g.id, g.session, g.content, g.content_hash, g.data, g.tags,
            g.type, g.category, g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role, g.valid_from,
            g.stated_at, g.received_at, g.source_offset, g.source_index, g.half_life_seconds, g.fades_at, g.expires_at
        FROM jsonb_to_recordset($5) AS g (seq bigint, decision_id uuid, cause_id text, sources jsonb, id uuid,
            session text, content text, content_hash bytea, data jsonb, tags text[], type text, category text,
            importance smallint, confidence real, pinned boolean, subject text, attribute text, role text,
            valid_from timestamptz, stated_at timestamptz, received_at timestamptz, source_offset bigint,
            source_index integer, half_life_seconds double precision, fades_at timestamptz, expires_at timestamptz)
    ), added AS (
        INSERT INTO memory (owner_key, id, app, session, content, content_hash, text_search, data, tags, type, category,
            importance, confidence, pinned, subject, attribute, role, state, valid_from, stated_at, received_at,
            source_offset, source_index, reinforced_at, half_life_seconds, fades_at, expires_at)
        SELECT $2, g.id, $1, g.session, g.content, g.content_hash, to_tsvector($4::text::regconfig, g.content), g.data,
            g.tags, g.type, g.category, g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role, 'LIVE',
            g.valid_from, g.stated_at, g.received_at, g.source_offset, g.source_index, g.stated_at, g.half_life_seconds,
            g.fades_at, g.expires_at
        FROM given AS g
        RETURNING id, recorded_at
    ), embedded AS (
        INSERT INTO memory_vector (owner_key, model_key, id, app, embedding, half)
        SELECT $2, $6, v.id, $1, v.embedding, v.half
        FROM unnest($7::uuid[], $8::vector[], $9::halfvec[]) AS v (id, embedding, half)
    ), said AS (
        INSERT INTO memory_source (owner_key, memory_id, turn_id, message_index, app, role, said_at)
        SELECT $2, g.id, s.turn_id, coalesce(s.message_index, -1), $1, s.role, s.said_at
        FROM given AS g CROSS JOIN LATERAL jsonb_to_recordset(g.sources)
            AS s (turn_id text, message_index integer, role text, said_at timestamptz)
    -- The memory whole, as it is now: what was given, and what a new row has by itself.
    ), changed AS (
        INSERT INTO change (owner_key, seq, app, kind, cause_kind, cause_id, decision_id, memory_id, session, content,
            data, tags, type, category, importance, confidence, pinned, subject, attribute, role, state, valid_from,
            recorded_at, stated_at, received_at, source_offset, source_index, reinforced_at, half_life_seconds,
            fades_at, expires_at, access_count, confirmations, version, sources)
        SELECT $2, g.seq, $1, 'added', $3, g.cause_id, g.decision_id, g.id, g.session, g.content,
            g.data, g.tags, g.type, g.category, g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role,
            'LIVE', g.valid_from, a.recorded_at, g.stated_at, g.received_at, g.source_offset, g.source_index,
            g.stated_at, g.half_life_seconds, g.fades_at, g.expires_at, 0, 0, 1, g.sources
        FROM given AS g JOIN added AS a USING (id)
        RETURNING seq
    )
    INSERT INTO outbox (owner_key, seq, app)
    SELECT $2, c.seq, $1
    FROM changed AS c
"""

# Memories are stated again: each at most once in a statement. One that `reinforces` is counted and is as fresh as what
# was said, never less; the others only gain a source.
# $1 app, $2 owner key, $3 cause kind, $4 rows
_CONFIRM: Final[LiteralString] = """
    WITH given AS MATERIALIZED (
        SELECT g.seq, g.decision_id, g.cause_id, g.sources, g.id, g.stated_at, g.archive_factor, g.reinforces
        FROM jsonb_to_recordset($4) AS g (seq bigint, decision_id uuid, cause_id text, sources jsonb, id uuid,
            stated_at timestamptz, archive_factor double precision, reinforces boolean)
    ), said AS (
        INSERT INTO memory_source (owner_key, memory_id, turn_id, message_index, app, role, said_at)
        SELECT $2, g.id, s.turn_id, coalesce(s.message_index, -1), $1, s.role, s.said_at
        FROM given AS g CROSS JOIN LATERAL jsonb_to_recordset(g.sources)
            AS s (turn_id text, message_index integer, role text, said_at timestamptz)
        ON CONFLICT (owner_key, memory_id, turn_id, message_index) DO NOTHING
        RETURNING memory_id, turn_id, message_index, role, said_at
    ), confirmed AS (
        UPDATE memory AS m
        SET confirmations = m.confirmations + g.reinforces::integer,
            confirmed_at = CASE WHEN g.reinforces THEN greatest(m.confirmed_at, g.stated_at) ELSE m.confirmed_at END,
            reinforced_at = CASE WHEN g.reinforces THEN greatest(m.reinforced_at, g.stated_at) ELSE m.reinforced_at END,
            fades_at = CASE WHEN g.reinforces
                THEN greatest(m.reinforced_at, g.stated_at)
                    + make_interval(secs => m.half_life_seconds * g.archive_factor)
                ELSE m.fades_at END,
            version = m.version + 1
        FROM given AS g
        WHERE m.app = $1 AND m.owner_key = $2 AND m.id = g.id
        RETURNING g.seq, g.decision_id, g.cause_id, m.id, m.session, m.content, m.data, m.tags, m.type, m.category,
            m.importance, m.confidence, m.pinned, m.subject, m.attribute, m.role, m.state, m.valid_from, m.valid_to,
            m.recorded_at, m.retired_at, m.retired_reason, m.supersedes, m.superseded_by, m.stated_at, m.received_at,
            m.source_offset, m.source_index, m.reinforced_at, m.half_life_seconds, m.fades_at, m.expires_at,
            m.access_count, m.accessed_at, m.confirmed_at, m.confirmations, m.version
    -- What this statement inserted is not visible to it: the sources are the old ones and the new ones.
    ), source AS (
        SELECT s.memory_id, s.turn_id, s.message_index, s.role, s.said_at
        FROM memory_source AS s
        WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id IN (SELECT g.id FROM given AS g)
        UNION ALL
        SELECT s.memory_id, s.turn_id, s.message_index, s.role, s.said_at
        FROM said AS s
    ), changed AS (
        INSERT INTO change (owner_key, seq, app, kind, cause_kind, cause_id, decision_id, memory_id, session, content,
            data, tags, type, category, importance, confidence, pinned, subject, attribute, role, state, valid_from,
            valid_to, recorded_at, retired_at, retired_reason, supersedes, superseded_by, stated_at, received_at,
            source_offset, source_index, reinforced_at, half_life_seconds, fades_at, expires_at, access_count,
            accessed_at, confirmed_at, confirmations, version, sources)
        SELECT $2, c.seq, $1, 'confirmed', $3, c.cause_id, c.decision_id, c.id, c.session, c.content, c.data, c.tags,
            c.type, c.category, c.importance, c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state,
            c.valid_from, c.valid_to, c.recorded_at, c.retired_at, c.retired_reason, c.supersedes, c.superseded_by,
            c.stated_at, c.received_at, c.source_offset, c.source_index, c.reinforced_at, c.half_life_seconds,
            c.fades_at, c.expires_at, c.access_count, c.accessed_at, c.confirmed_at, c.confirmations, c.version,
            coalesce((
                SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                    'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
                FROM source AS s
                WHERE s.memory_id = c.id
            ), '[]')
        FROM confirmed AS c
        RETURNING seq
    )
    INSERT INTO outbox (owner_key, seq, app)
    SELECT $2, c.seq, $1
    FROM changed AS c
"""

# The decisions, in the order given, and the owner as it is after them.
# $1 app, $2 owner key, $3 1 where content or state changed, else 0, $4 last seq, $5 cause kind, $6 run, $7 model,
# $8 prompt version, $9 tokens in, $10 tokens out, $11 seconds, $12 rows
_DECIDE: Final[LiteralString] = """
    WITH decided AS (
        INSERT INTO decision (owner_key, id, app, cause_kind, cause_id, run, candidate, route, neighbours, action,
            reason, memory_id, model, prompt_version, tokens_in, tokens_out, latency_seconds)
        SELECT $2, d.id, $1, $5, d.cause_id, $6, d.candidate, d.route, d.neighbours, d.action, d.reason, d.memory_id,
            $7, $8, $9, $10, $11
        FROM jsonb_to_recordset($12) AS d (id uuid, cause_id text, candidate jsonb, route text, neighbours jsonb,
            action text, reason text, memory_id uuid)
    )
    UPDATE owner
    SET version = version + $3, seq = $4
    WHERE app = $1 AND owner_key = $2
"""

# First of all, so that a request that was answered has no effect. An answer older than a day is forgotten, and its
# place taken. Where this request changed nothing, the memory's last change is what it answers with.
# $1 app, $2 owner key, $3 method, $4 request id, $5 hash of the body, $6 seq, $7 memory id
_ANSWER: Final[LiteralString] = """
    INSERT INTO answer (owner_key, method, request_id, app, body_hash, seq)
    VALUES ($2, $3, $4, $1, $5, coalesce($6::bigint, (
        SELECT max(c.seq) FROM change AS c WHERE c.app = $1 AND c.owner_key = $2 AND c.memory_id = $7
    )))
    ON CONFLICT (owner_key, method, request_id) DO UPDATE
    SET body_hash = EXCLUDED.body_hash, seq = EXCLUDED.seq, at = EXCLUDED.at
    WHERE answer.at <= now() - interval '24 hours'
    RETURNING owner_key
"""


class Stale(Exception):
    """What was decided on does not stand any more: roll back, look again."""


async def lock(connection: "Connection", owner: Owner) -> None:
    """Hold the owner's row to the end of the transaction; an owner nobody has heard of is added."""
    if await connection.fetchrow(_LOCK, owner.app, owner.owner) is None:
        await _add_owner(connection, owner)
        await connection.fetchrow(_LOCK, owner.app, owner.owner)


async def _add_owner(connection: "Connection", owner: Owner) -> None:
    await connection.execute(ADD_APP, owner.app)
    await connection.execute(ADD_OWNER, owner.app, owner.owner)


class CommitWriter:
    """One commit in one open transaction."""

    def __init__(self, connection: "Connection", owner: Owner, commit: Commit, model_key: int | None) -> None:
        self._connection = connection
        self._owner = owner
        self._commit = commit
        self._model_key = model_key

    async def write(self, version: int) -> None:
        """Write everything, or raise Stale."""
        me = await self._claim(version)
        owner_key: int = me["owner_key"]
        effects = self._commit.effects
        if not effects:
            return
        known = await self._targets(owner_key)
        plan = planned(effects, known, me["seq"], self._commit.cause_kind == "turn")
        if self._commit.request is not None:
            await self._answer(owner_key, self._commit.request, plan.answer_seq)
        if plan.adds:
            await self._add(owner_key, plan.adds)
        for confirms in plan.confirms:
            await self._connection.execute(_CONFIRM, self._owner.app, owner_key, self._commit.cause_kind, confirms)
        await self._decide(owner_key, plan)

    async def _claim(self, version: int) -> "asyncpg.Record":
        """The owner's row, locked; an owner nobody has heard of is added."""
        me = await self._lock(version)
        if me is None:
            await _add_owner(self._connection, self._owner)
            me = await self._lock(version)
        if me is None or me["version"] != version:
            raise Stale
        return me

    async def _lock(self, version: int) -> "asyncpg.Record | None":
        turns = {turn.turn_id: turn.place for turn in self._commit.turns}
        if not turns:
            return await self._connection.fetchrow(_LOCK, self._owner.app, self._owner.owner)
        me = await self._connection.fetchrow(
            _CLAIM,
            self._owner.app,
            self._owner.owner,
            version,
            self._commit.run,
            list(turns),
            [place.topic for place in turns.values()],
            [place.partition for place in turns.values()],
            [place.offset for place in turns.values()],
            [place.received_at for place in turns.values()],
        )
        if me is not None and me["claimed"] != len(turns):
            raise Stale
        return me

    async def _targets(self, owner_key: int) -> Known:
        """What the memories to be confirmed rest on, among the turns of this commit; Stale where one is not live."""
        new = {effect.new.id for effect in self._commit.effects if effect.new is not None}
        targets = {effect.confirmed.memory_id for effect in self._commit.effects if effect.confirmed is not None} - new
        known: Known = {memory_id: set() for memory_id in new}
        if not targets:
            return known
        turn_ids = {source.turn_id for effect in self._commit.effects for source in effect.sources}
        rows = await self._connection.fetch(_TARGETS, self._owner.app, owner_key, list(targets), list(turn_ids))
        if len(rows) != len(targets):
            raise Stale
        for row in rows:
            known[row["id"]] = {
                (turn_id, None if index < 0 else index)
                for turn_id, index in zip(row["turn_ids"], row["message_indices"], strict=True)
                if turn_id is not None
            }
        return known

    async def _add(self, owner_key: int, rows: list[dict[str, Any]]) -> None:
        embedded = [e.new for e in self._commit.effects if e.new is not None and e.new.vector is not None]
        vectors, halves = by_width([new.vector for new in embedded])
        await self._connection.execute(
            _ADD,
            self._owner.app,
            owner_key,
            self._commit.cause_kind,
            self._commit.language,
            rows,
            self._model_key,
            [new.id for new in embedded],
            vectors,
            halves,
        )

    async def _decide(self, owner_key: int, plan: Plan) -> None:
        reading = self._commit.reading
        await self._connection.execute(
            _DECIDE,
            self._owner.app,
            owner_key,
            1 if plan.adds else 0,
            plan.seq,
            self._commit.cause_kind,
            self._commit.run,
            None if reading is None else reading.model,
            None if reading is None else reading.prompt_version,
            0 if reading is None else reading.tokens_in,
            0 if reading is None else reading.tokens_out,
            0.0 if reading is None else reading.latency_seconds,
            [decision_row(effect) for effect in self._commit.effects],
        )

    async def _answer(self, owner_key: int, request: RequestId, seq: int | None) -> None:
        written = await self._connection.fetchval(
            _ANSWER,
            self._owner.app,
            owner_key,
            request.method,
            request.request_id,
            request.body_hash,
            seq,
            self._commit.effects[-1].memory_id,
        )
        if written is None:
            raise Stale

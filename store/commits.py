"""Writing what becomes of a window or a request: one transaction, a few statements, each for all effects at once."""

from typing import TYPE_CHECKING, Any, Final, LiteralString, assert_never

from processors.effects import Commit, RequestId
from processors.records import Owner
from processors.routing import Route
from runtime.failpoints import Failpoint, reach
from store.claims import Stale, claim
from store.forgetting import scrub_messages
from store.plans import Need, Plan, Rests, Step, decision_row, needs, planned
from store.vectors import by_width

if TYPE_CHECKING:
    import asyncpg

    from store.database import Connection

# The memories that are confirmed, revived or retired, as they are, with what they rest on among the turns.
# $1 app, $2 owner key, $3 memory ids, $4 turn ids
_TARGETS: Final[LiteralString] = """
    SELECT m.id, CASE
            WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'dormant'
            WHEN m.state = 'LIVE' AND m.valid_to <= now() THEN 'there'
            WHEN m.state = 'LIVE' THEN 'live'
            WHEN m.state IN ('ARCHIVED', 'EXPIRED', 'EVICTED') THEN 'dormant'
            ELSE 'there'
        END AS standing,
        array_agg(s.turn_id) AS turn_ids, array_agg(s.message_index) AS message_indices
    FROM memory AS m LEFT JOIN memory_source AS s
        ON s.app = m.app AND s.owner_key = m.owner_key AND s.memory_id = m.id AND s.turn_id = ANY ($4)
    WHERE m.app = $1 AND m.owner_key = $2 AND m.id = ANY ($3) AND m.state <> 'FORGOTTEN'
    GROUP BY m.owner_key, m.id
"""

# $1 app, $2 owner key, $3 cause kind, $4 language, $5 rows, $6 model key,
# and for each vector $7 memory id, $8 vector or $9 half
_ADD: Final[LiteralString] = """
    WITH given AS MATERIALIZED (
        SELECT g.seq, g.decision_id, g.cause_id, g.sources, g.id, g.session, g.content, g.content_hash, g.data, g.tags,
            g.type, g.category, g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role, g.state,
            g.valid_from, g.valid_to, g.retired_reason, g.supersedes, g.superseded_by, g.restates, g.stated_at,
            g.received_at, g.source_offset, g.source_index, g.half_life_seconds, g.fades_at, g.expires_at
        FROM jsonb_to_recordset($5) AS g (seq bigint, decision_id uuid, cause_id text, sources jsonb, id uuid,
            session text, content text, content_hash bytea, data jsonb, tags text[], type text, category text,
            importance smallint, confidence real, pinned boolean, subject text, attribute text, role text, state text,
            valid_from timestamptz, valid_to timestamptz, retired_reason text, supersedes uuid, superseded_by uuid,
            restates uuid, stated_at timestamptz, received_at timestamptz, source_offset bigint, source_index integer,
            half_life_seconds double precision, fades_at timestamptz, expires_at timestamptz)
    ), added AS (
        INSERT INTO memory (recorded_at, retired_at, owner_key, id, app, session, content, content_hash, text_search,
            data, tags, type, category, importance, confidence, pinned, subject, attribute, role, state, valid_from,
            valid_to, retired_reason, supersedes, superseded_by, restates, stated_at, received_at, source_offset,
            source_index, reinforced_at, half_life_seconds, fades_at, expires_at)
        -- In this order: what is history from the start is not retired before it is recorded.
        SELECT clock_timestamp(), CASE WHEN g.state <> 'LIVE' THEN clock_timestamp() END, $2, g.id, $1, g.session,
            g.content, g.content_hash, to_tsvector($4::text::regconfig, g.content), g.data, g.tags, g.type, g.category,
            g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role, g.state, g.valid_from, g.valid_to,
            g.retired_reason, g.supersedes, g.superseded_by, g.restates, g.stated_at, g.received_at, g.source_offset,
            g.source_index, g.stated_at, g.half_life_seconds, g.fades_at, g.expires_at
        FROM given AS g
        RETURNING id, recorded_at, retired_at
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
            valid_to, recorded_at, retired_at, retired_reason, supersedes, superseded_by, restates, stated_at,
            received_at, source_offset, source_index, reinforced_at, half_life_seconds, fades_at, expires_at,
            access_count, confirmations, version, sources)
        SELECT $2, g.seq, $1, 'added', $3, g.cause_id, g.decision_id, g.id, g.session, g.content,
            g.data, g.tags, g.type, g.category, g.importance, g.confidence, g.pinned, g.subject, g.attribute, g.role,
            g.state, g.valid_from, g.valid_to, a.recorded_at, a.retired_at, g.retired_reason, g.supersedes,
            g.superseded_by, g.restates, g.stated_at, g.received_at, g.source_offset, g.source_index, g.stated_at,
            g.half_life_seconds, g.fades_at, g.expires_at, 0, 0, 1, g.sources
        FROM given AS g JOIN added AS a USING (id)
        RETURNING seq
    )
    INSERT INTO outbox (owner_key, seq, app)
    SELECT $2, c.seq, $1
    FROM changed AS c
"""

# Memories are stated again: each at most once in a statement. One that `reinforces` is counted and is as fresh as what
# was said, never less; the others only gain a source. One that `revives` is live again.
# $1 app, $2 owner key, $3 cause kind, $4 rows
_CONFIRM: Final[LiteralString] = """
    WITH given AS MATERIALIZED (
        SELECT g.seq, g.decision_id, g.cause_id, g.sources, g.id, g.stated_at, g.received_at, g.source_offset,
            g.source_index, g.archive_factor, g.reinforces, g.revives, g.expires_at, g.confidence, g.role, g.valid_from
        FROM jsonb_to_recordset($4) AS g (seq bigint, decision_id uuid, cause_id text, sources jsonb, id uuid,
            stated_at timestamptz, received_at timestamptz, source_offset bigint, source_index integer,
            archive_factor double precision, reinforces boolean, revives boolean, expires_at timestamptz,
            confidence real, role text, valid_from timestamptz)
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
            (last_stated_at, last_received_at, last_offset, last_index) = (
                SELECT o.stated_at, o.received_at, o."offset", o.index
                FROM (VALUES
                    (g.stated_at, g.received_at, g.source_offset, g.source_index),
                    (coalesce(m.last_stated_at, m.stated_at), coalesce(m.last_received_at, m.received_at),
                        coalesce(m.last_offset, m.source_offset), coalesce(m.last_index, m.source_index))
                ) AS o (stated_at, received_at, "offset", index)
                ORDER BY o.stated_at DESC, o.received_at DESC, o."offset" DESC, o.index DESC
                LIMIT 1
            ),
            state = CASE WHEN g.revives THEN 'LIVE' ELSE m.state END,
            valid_to = CASE WHEN NOT g.revives THEN m.valid_to END,
            retired_at = CASE WHEN NOT g.revives THEN m.retired_at END,
            retired_reason = CASE WHEN NOT g.revives THEN m.retired_reason END,
            superseded_by = CASE WHEN NOT g.revives THEN m.superseded_by END,
            expires_at = CASE WHEN g.revives THEN g.expires_at WHEN NOT g.reinforces THEN m.expires_at
                WHEN g.expires_at IS NOT NULL AND m.expires_at IS NOT NULL
                THEN greatest(m.expires_at, g.expires_at) END,
            valid_from = least(m.valid_from, g.valid_from),
            confidence = greatest(m.confidence, g.confidence),
            role = CASE WHEN m.role IN ('assistant', 'tool') AND g.role = 'user' THEN g.role ELSE m.role END,
            version = m.version + 1
        FROM given AS g
        WHERE m.app = $1 AND m.owner_key = $2 AND m.id = g.id
        RETURNING g.seq, g.decision_id, g.cause_id, g.revives, m.id, m.session, m.content, m.data, m.tags, m.type,
            m.category, m.importance, m.confidence, m.pinned, m.subject, m.attribute, m.role, m.state, m.valid_from,
            m.valid_to, m.recorded_at, m.retired_at, m.retired_reason, m.supersedes, m.superseded_by, m.restates,
            m.stated_at, m.received_at, m.source_offset, m.source_index, m.reinforced_at, m.half_life_seconds,
            m.fades_at, m.expires_at, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations, m.version
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
            valid_to, recorded_at, retired_at, retired_reason, supersedes, superseded_by, restates, stated_at,
            received_at, source_offset, source_index, reinforced_at, half_life_seconds, fades_at, expires_at,
            access_count, accessed_at, confirmed_at, confirmations, version, sources)
        SELECT $2, c.seq, $1, CASE WHEN c.revives THEN 'revived' ELSE 'confirmed' END, $3, c.cause_id, c.decision_id,
            c.id, c.session, c.content, c.data, c.tags, c.type, c.category, c.importance, c.confidence, c.pinned,
            c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to, c.recorded_at, c.retired_at,
            c.retired_reason, c.supersedes, c.superseded_by, c.restates, c.stated_at, c.received_at, c.source_offset,
            c.source_index, c.reinforced_at, c.half_life_seconds, c.fades_at, c.expires_at, c.access_count,
            c.accessed_at, c.confirmed_at, c.confirmations, c.version,
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

# Memories no longer hold, or take another place on their line: each at most once in a statement. Given as LIVE, one
# only gets its end.
# $1 app, $2 owner key, $3 cause kind, $4 rows
_RETIRE: Final[LiteralString] = """
    WITH retired AS (
        UPDATE memory AS m
        SET state = CASE WHEN g.state = 'LIVE' THEN m.state ELSE g.state END,
            valid_to = CASE WHEN g.valid_to IS NOT NULL THEN greatest(m.valid_from, g.valid_to) END,
            retired_at = CASE WHEN m.state = 'LIVE' AND g.state <> 'LIVE' THEN clock_timestamp() ELSE m.retired_at END,
            retired_reason = CASE WHEN g.state = 'LIVE' THEN m.retired_reason ELSE g.reason END,
            superseded_by = CASE WHEN g.state = 'LIVE' THEN m.superseded_by ELSE g.superseded_by END,
            version = m.version + 1
        FROM jsonb_to_recordset($4) AS g (seq bigint, decision_id uuid, cause_id text, kind text, id uuid, state text,
            valid_to timestamptz, reason text, superseded_by uuid)
        WHERE m.app = $1 AND m.owner_key = $2 AND m.id = g.id
        RETURNING g.seq, g.decision_id, g.cause_id, g.kind, m.id, m.session, m.content, m.data, m.tags, m.type,
            m.category, m.importance, m.confidence, m.pinned, m.subject, m.attribute, m.role, m.state, m.valid_from,
            m.valid_to, m.recorded_at, m.retired_at, m.retired_reason, m.supersedes, m.superseded_by, m.restates,
            m.stated_at, m.received_at, m.source_offset, m.source_index, m.reinforced_at, m.half_life_seconds,
            m.fades_at, m.expires_at, m.access_count, m.accessed_at, m.confirmed_at, m.confirmations, m.version
    ), changed AS (
        INSERT INTO change (owner_key, seq, app, kind, cause_kind, cause_id, decision_id, memory_id, session, content,
            data, tags, type, category, importance, confidence, pinned, subject, attribute, role, state, valid_from,
            valid_to, recorded_at, retired_at, retired_reason, supersedes, superseded_by, restates, stated_at,
            received_at, source_offset, source_index, reinforced_at, half_life_seconds, fades_at, expires_at,
            access_count, accessed_at, confirmed_at, confirmations, version, sources)
        SELECT $2, r.seq, $1, r.kind, $3, r.cause_id, r.decision_id, r.id, r.session, r.content, r.data, r.tags,
            r.type, r.category, r.importance, r.confidence, r.pinned, r.subject, r.attribute, r.role, r.state,
            r.valid_from, r.valid_to, r.recorded_at, r.retired_at, r.retired_reason, r.supersedes, r.superseded_by,
            r.restates, r.stated_at, r.received_at, r.source_offset, r.source_index, r.reinforced_at,
            r.half_life_seconds, r.fades_at, r.expires_at, r.access_count, r.accessed_at, r.confirmed_at,
            r.confirmations, r.version,
            coalesce((
                SELECT jsonb_agg(jsonb_build_object('turn_id', s.turn_id, 'message_index', nullif(s.message_index, -1),
                    'role', s.role, 'said_at', s.said_at) ORDER BY s.said_at, s.turn_id, s.message_index)
                FROM memory_source AS s
                WHERE s.app = $1 AND s.owner_key = $2 AND s.memory_id = r.id
            ), '[]')
        FROM retired AS r
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
            reason, marked, memory_id, retired, model, prompt_version, tokens_in, tokens_out, latency_seconds,
            arbitration_model, arbitration_prompt_version, arbitration_tokens_in, arbitration_tokens_out,
            arbitration_latency_seconds)
        SELECT $2, d.id, $1, $5, d.cause_id, $6, d.candidate, d.route, d.neighbours, d.action, d.reason, d.marked,
            d.memory_id, d.retired, $7, $8, $9, $10, $11, d.arbitration_model, d.arbitration_prompt_version,
            coalesce(d.arbitration_tokens_in, 0), coalesce(d.arbitration_tokens_out, 0),
            coalesce(d.arbitration_latency_seconds, 0)
        FROM jsonb_to_recordset($12) AS d (id uuid, cause_id text, candidate jsonb, route text, neighbours jsonb,
            action text, reason text, marked boolean, memory_id uuid, retired uuid[], arbitration_model text,
            arbitration_prompt_version text, arbitration_tokens_in integer, arbitration_tokens_out integer,
            arbitration_latency_seconds double precision)
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


class CommitWriter:
    """One commit in one open transaction."""

    def __init__(self, connection: "Connection", owner: Owner, commit: Commit, model_key: int | None) -> None:
        self._connection = connection
        self._owner = owner
        self._commit = commit
        self._model_key = model_key

    async def write(self, version: int) -> None:
        """Write everything, or raise Stale."""
        me = await claim(self._connection, self._owner, version, self._commit)
        reach(Failpoint.STORE_CLAIMED)
        await self._effects(me)
        reach(Failpoint.STORE_WRITTEN)

    async def _effects(self, me: "asyncpg.Record") -> None:
        """Everything but the ledger."""
        owner_key: int = me["owner_key"]
        effects = self._commit.effects
        if not effects:
            return
        rests = await self._rests(owner_key)
        plan = planned(effects, rests, me["seq"], self._commit.cause_kind == "turn")
        if self._commit.request is not None:
            await self._answer(owner_key, self._commit.request, plan.answer_seq)
        if plan.adds:
            await self._add(owner_key, plan.adds)
        for step, rows in plan.steps:
            await self._connection.execute(_statement(step), self._owner.app, owner_key, self._commit.cause_kind, rows)
        await self._decide(owner_key, plan)
        # Last, for it opens the log of turns: what came after it was forgotten, and had been received before.
        late = [e for e in effects if e.verdict.route is Route.FORGOTTEN]
        said = [(source.turn_id, source.message_index) for effect in late for source in effect.sources]
        await scrub_messages(self._connection, self._owner.app, owner_key, said)

    async def _rests(self, owner_key: int) -> Rests:
        """What the memories that change rest on, among the turns of this commit; Stale where one is not as it must."""
        rests: Rests = {effect.new.id: set() for effect in self._commit.effects if effect.new is not None}
        needed = {memory_id: need for memory_id, need in needs(self._commit.effects).items() if memory_id not in rests}
        if not needed:
            return rests
        turn_ids = {source.turn_id for effect in self._commit.effects for source in effect.sources}
        rows = await self._connection.fetch(_TARGETS, self._owner.app, owner_key, list(needed), list(turn_ids))
        if len(rows) != len(needed):
            raise Stale
        for row in rows:
            if needed[row["id"]] not in {Need.THERE, row["standing"]}:
                raise Stale
            rests[row["id"]] = {
                (turn_id, None if index < 0 else index)
                for turn_id, index in zip(row["turn_ids"], row["message_indices"], strict=True)
                if turn_id is not None
            }
        return rests

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
            1 if plan.moves else 0,
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


def _statement(step: Step) -> LiteralString:
    match step:
        case Step.CONFIRM:
            return _CONFIRM
        case Step.RETIRE:
            return _RETIRE
        case _:
            assert_never(step)

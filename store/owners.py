"""Owners, read and written under their version: the port `OwnerStore` on Postgres."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID

from processors.effects import Answered, Commit, Look, Probe, RequestId
from processors.errors import Contended
from processors.memories import State
from processors.records import Owner
from processors.routing import Neighbour
from processors.vectors import EmbeddingModel
from store.commits import CommitWriter, Stale, lock
from store.database import Database
from store.models import ModelKeys
from store.notices import payload
from store.rows import memory_of, profile_of
from store.vectors import by_width

if TYPE_CHECKING:
    from store.database import Connection

# $1 app, $2 owner, $3 model's name, $4 run, $5 turn ids, $6 neighbours a probe,
# and for each probe $7 hash of the text, $8 vector or $9 half
LOOK: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key, version FROM owner WHERE app = $1 AND owner = $2
    ), probe AS MATERIALIZED (
        SELECT p.n, p.hash, p.vector, p.half
        FROM unnest($7::bytea[], $8::vector[], $9::halfvec[]) WITH ORDINALITY AS p (hash, vector, half, n)
    -- The same text, live ones first: an index on its hash finds them, whatever model embedded them.
    ), same AS (
        SELECT p.n, m.id, NULL::double precision AS similarity, m.state, true AS same_text
        FROM probe AS p CROSS JOIN LATERAL (
            SELECT m.id, CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state
            FROM memory AS m
            WHERE m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.content_hash = p.hash
                AND m.state <> 'FORGOTTEN'
            ORDER BY m.state <> 'LIVE', m.id
            LIMIT $6
        ) AS m
    -- The nearest, exactly: the primary key of the vectors carries them, so an owner's lie side by side.
    ), nearest AS MATERIALIZED (
        SELECT p.n, p.hash, v.id, v.similarity
        FROM probe AS p CROSS JOIN LATERAL (
            SELECT v.id, nullif(1 - coalesce(v.embedding <=> p.vector, v.half <=> p.half), 'NaN') AS similarity
            FROM memory_vector AS v
            WHERE v.app = $1 AND v.owner_key = (SELECT owner_key FROM me)
                AND v.model_key = (SELECT model_key FROM embedding_model WHERE name = $3)
            ORDER BY coalesce(v.embedding <=> p.vector, v.half <=> p.half), v.id
            LIMIT $6
        ) AS v
        WHERE p.vector IS NOT NULL OR p.half IS NOT NULL
    ), near AS (
        SELECT v.n, v.id, v.similarity,
            CASE WHEN m.state = 'LIVE' AND m.expires_at <= now() THEN 'EXPIRED' ELSE m.state END AS state,
            m.content_hash = v.hash AS same_text
        FROM nearest AS v JOIN memory AS m
            ON m.app = $1 AND m.owner_key = (SELECT owner_key FROM me) AND m.id = v.id AND m.state <> 'FORGOTTEN'
    ), found AS (
        SELECT n, id, similarity, state, same_text FROM same
        UNION ALL
        SELECT n, id, similarity, state, same_text FROM near
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
        (
            SELECT jsonb_agg(jsonb_build_array(f.n, f.id, f.similarity, f.state, f.same_text))
            FROM found AS f
        ) AS found
"""

# $1 app, $2 owner, $3 method, $4 request id
_ANSWER: Final[LiteralString] = """
    SELECT a.body_hash, c.memory_id AS id, c.session, c.content, c.data, c.tags, c.type, c.category, c.importance,
        c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to, c.recorded_at,
        c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.access_count, c.accessed_at, c.confirmed_at,
        c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
        CASE WHEN c.pinned OR c.half_life_seconds IS NULL THEN 1 ELSE
            power(2, -least(1000, greatest(0, date_part('epoch', c.at - c.reinforced_at)) / c.half_life_seconds))
        END AS strength
    FROM owner AS o
        JOIN answer AS a ON a.app = o.app AND a.owner_key = o.owner_key
        JOIN change AS c ON c.app = o.app AND c.owner_key = o.owner_key AND c.seq = a.seq
    WHERE o.app = $1 AND o.owner = $2 AND a.method = $3 AND a.request_id = $4 AND a.at > now() - interval '24 hours'
"""


class OwnerRepository:
    """Looks and commits. Neither holds anything between the calls: the version is what makes a commit safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._models = ModelKeys(database)

    async def look(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> Look:
        """The owner in one snapshot, with up to `limit` neighbours by text and by vector for each probe.

        A memory past its `expires_at` counts as expired. An answer is looked up first: once given it does not change,
        and one that is given meanwhile makes the commit fail.
        """
        async with self._database.app(owner.app) as connection:
            return await _look(connection, owner, probes, model, turn_ids, run, request, limit)

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        """Apply `commit` under the owner's row lock if its version is still `version`; else False, nothing written.

        A turn that was parked becomes stored; a confirmation whose memory is not live any more makes it False.
        """
        model_key = await self._model_key(commit.embedding_model)
        notice = payload(owner, [turn.turn_id for turn in commit.turns]) if commit.turns else None
        try:
            async with self._database.app(owner.app, notice=notice) as connection:
                await CommitWriter(connection, owner, commit, model_key).write(version)
        except Stale:
            return False
        return True

    async def settle(
        self,
        owner: Owner,
        probes: Sequence[Probe],
        decide: Callable[[Look], Commit | None],
        *,
        model: EmbeddingModel | None,
        turn_ids: Sequence[str] = (),
        run: int = 0,
        request: RequestId | None = None,
        limit: int = 5,
    ) -> None:
        """Look, decide and commit while the owner's row is locked, so that nobody changes it in between."""
        model_key = await self._model_key(model)
        notice = payload(owner, turn_ids) if turn_ids else None
        try:
            async with self._database.app(owner.app, notice=notice) as connection:
                await lock(connection, owner)
                look = await _look(connection, owner, probes, model, turn_ids, run, request, limit)
                commit = decide(look)
                if commit is not None:
                    await CommitWriter(connection, owner, commit, model_key).write(look.version)
        except Stale:
            raise Contended("what was decided under the owner's lock does not stand") from None

    async def _model_key(self, model: EmbeddingModel | None) -> int | None:
        return None if model is None else await self._models.key(model)


async def _look(
    connection: "Connection",
    owner: Owner,
    probes: Sequence[Probe],
    model: EmbeddingModel | None,
    turn_ids: Sequence[str],
    run: int,
    request: RequestId | None,
    limit: int,
) -> Look:
    answered = None if request is None else await _answered(connection, owner, request)
    vectors, halves = by_width([probe.vector for probe in probes])
    row = await connection.fetchrow(
        LOOK,
        owner.app,
        owner.owner,
        None if model is None else model.name,
        run,
        list(turn_ids),
        limit,
        [probe.content_hash for probe in probes],
        vectors,
        halves,
    )
    assert row is not None
    return Look(
        version=row["version"] or 0,
        now=row["now"],
        settled=frozenset(row["settled"] or ()),
        neighbours=_neighbours(len(probes), row["found"] or ()),
        profile=profile_of(row["profile"]),
        answered=answered,
    )


async def _answered(connection: "Connection", owner: Owner, request: RequestId) -> Answered | None:
    row = await connection.fetchrow(_ANSWER, owner.app, owner.owner, request.method, request.request_id)
    return None if row is None else Answered(row["body_hash"], memory_of(row, owner))


def _neighbours(probes: int, found: Iterable[list[Any]]) -> tuple[tuple[Neighbour, ...], ...]:
    """By probe: the same text first (live ones before the others), then by similarity, ties by id; each memory once."""
    by_probe: list[dict[UUID, Neighbour]] = [{} for _ in range(probes)]
    for n, memory_id, similarity, state, same_text in found:
        neighbour = Neighbour(UUID(memory_id), similarity, State(state), same_text)
        known = by_probe[n - 1].get(neighbour.memory_id)
        if known is None or known.similarity is None:
            by_probe[n - 1][neighbour.memory_id] = neighbour
    return tuple(tuple(sorted(neighbours.values(), key=_rank)) for neighbours in by_probe)


def _rank(neighbour: Neighbour) -> tuple[bool, bool, float, UUID]:
    similarity = -1.0 if neighbour.similarity is None else neighbour.similarity
    return (
        not neighbour.same_text,
        neighbour.same_text and neighbour.state is not State.LIVE,
        -similarity,
        neighbour.memory_id,
    )

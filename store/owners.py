"""Owners, read and written under their version: the port `OwnerStore` on Postgres."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, LiteralString

from processors.effects import Answered, Commit, Look, Probe, RequestId
from processors.errors import Contended
from processors.records import Owner
from processors.vectors import EmbeddingModel
from store.claims import Stale, lock
from store.commits import CommitWriter
from store.database import Database
from store.looks import look_at
from store.models import ModelKeys
from store.notices import payload
from store.rows import memory_of

if TYPE_CHECKING:
    from store.database import Connection

# $1 app, $2 owner, $3 method, $4 request id
_ANSWER: Final[LiteralString] = """
    SELECT a.body_hash, c.memory_id AS id, c.session, c.content, c.data, c.tags, c.type, c.category, c.importance,
        c.confidence, c.pinned, c.subject, c.attribute, c.role, c.state, c.valid_from, c.valid_to, c.recorded_at,
        c.retired_at, c.retired_reason, c.supersedes, c.superseded_by, c.restates, c.access_count,
        c.accessed_at, c.confirmed_at, c.confirmations, c.expires_at, c.fades_at, c.version, c.sources,
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
        """The owner in one snapshot, with up to `limit` neighbours by text, by slot and by vector for each probe.

        A memory past its `expires_at` counts as expired. An answer is looked up first: once given it does not change,
        and one that is given meanwhile makes the commit fail.
        """
        async with self._database.app(owner.app) as connection:
            return await _look(connection, owner, probes, model, turn_ids, run, request, limit)

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        """Apply `commit` under the owner's row lock if its version is still `version`; else False, nothing written.

        A turn that was parked becomes stored. Also False: what is confirmed is not live any more, what is revived is
        not dormant any more, what is retired was forgotten.
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
    return await look_at(connection, owner, probes, model, turn_ids=turn_ids, run=run, limit=limit, answered=answered)


async def _answered(connection: "Connection", owner: Owner, request: RequestId) -> Answered | None:
    row = await connection.fetchrow(_ANSWER, owner.app, owner.owner, request.method, request.request_id)
    return None if row is None else Answered(row["body_hash"], memory_of(row, owner))

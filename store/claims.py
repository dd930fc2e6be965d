"""The claim on an owner that every commit begins with: its row, locked, and a ledger row for each turn."""

from typing import TYPE_CHECKING, Final, LiteralString

from processors.effects import Commit
from processors.records import Owner

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

# The same, and a ledger row for each turn where the version still stands. A turn that was parked becomes stored (a
# trigger notes that, and the transaction); what state a turn is in is that of its first reading.
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
            AND $4 = 0
    )
    SELECT owner_key, version, seq, (SELECT count(*) FROM claimed) AS claimed
    FROM me
"""

# $1 app
ADD_APP: Final[LiteralString] = "INSERT INTO app (app) VALUES ($1) ON CONFLICT (app) DO NOTHING"

# $1 app, $2 owner
_ADD_OWNER: Final[LiteralString] = "INSERT INTO owner (app, owner) VALUES ($1, $2) ON CONFLICT (app, owner) DO NOTHING"


class Stale(Exception):
    """What was decided on does not stand any more: roll back, look again."""


async def lock(connection: "Connection", owner: Owner) -> None:
    """Hold the owner's row to the end of the transaction; an owner nobody has heard of is added."""
    if await connection.fetchrow(_LOCK, owner.app, owner.owner) is None:
        await add_owner(connection, owner)
        await connection.fetchrow(_LOCK, owner.app, owner.owner)


async def claim(connection: "Connection", owner: Owner, version: int, commit: Commit) -> "asyncpg.Record":
    """Lock the owner's row, which is added where it is new, note the turns of `commit` as stored, and give the row.

    Raises Stale where the version has moved, or a turn has taken effect.
    """
    me = await _claim(connection, owner, version, commit)
    if me is None:
        await add_owner(connection, owner)
        me = await _claim(connection, owner, version, commit)
    if me is None or me["version"] != version:
        raise Stale
    return me


async def _claim(connection: "Connection", owner: Owner, version: int, commit: Commit) -> "asyncpg.Record | None":
    turns = {turn.turn_id: turn.place for turn in commit.turns}
    if not turns:
        return await connection.fetchrow(_LOCK, owner.app, owner.owner)
    me = await connection.fetchrow(
        _CLAIM,
        owner.app,
        owner.owner,
        version,
        commit.run,
        list(turns),
        [place.topic for place in turns.values()],
        [place.partition for place in turns.values()],
        [place.offset for place in turns.values()],
        [place.received_at for place in turns.values()],
    )
    if me is not None and me["claimed"] != len(turns):
        raise Stale
    return me


async def add_owner(connection: "Connection", owner: Owner) -> None:
    """Somebody nobody has heard of: the rows that all others refer to. Again changes nothing."""
    await connection.execute(ADD_APP, owner.app)
    await connection.execute(_ADD_OWNER, owner.app, owner.owner)

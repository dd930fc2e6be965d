"""The ledger of what was set aside, as workers write it."""

from collections.abc import Iterable
from typing import Final, LiteralString

import structlog

from processors.records import Owner, Parking
from store.claims import add_owner
from store.database import Database
from store.notices import payload

_log = structlog.get_logger(__name__)

# A record is set aside: its place, and each of its turns unless that one is over, or waits as another record of the
# topic (the same id, used twice: what stands stays). What reconcile sets aside stands on a topic of its own.
#
# A place is of one record as long as it was received then and read in that run. Another time is that of another topic
# by the same name, and a later run another reading: of what was before nothing counts. An earlier run changes nothing.
# A copy that was put back more often than is known comes before the note of that: it waits anew, also where it had been
# given up. The copy of the last replay waits anew, unless it was given up since. The same copy again only tells where
# it lies now. One that was put back later is known better: a copy of before changes nothing.
#
# `noted` is false where the place holds what may not be seen: the row of another app.
# $1 app, $2 owner, $3 topic, $4 partition, $5 offset, $6 received at, $7 stage, $8 reason, $9 detail, $10 attempts,
# $11 turn ids, $12 partition and $13 offset on the topic of parked records, $14 replay, $15 run
_PARK: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), set_aside AS (
        INSERT INTO parked (topic, "partition", "offset", app, owner_key, turn_id, turn_ids, stage, reason, detail,
            attempts, received_at, parked_partition, parked_offset, replays, run)
        SELECT $3, $4, $5, $1, me.owner_key, ($11::text[])[1], $11, $7, $8, $9, $10, $6, $12, $13, $14, $15
        FROM me
        ON CONFLICT (topic, "partition", "offset") DO UPDATE
        SET app = EXCLUDED.app, owner_key = EXCLUDED.owner_key, turn_id = EXCLUDED.turn_id,
            turn_ids = EXCLUDED.turn_ids, run = EXCLUDED.run, stage = EXCLUDED.stage, reason = EXCLUDED.reason,
            detail = EXCLUDED.detail,
            attempts = EXCLUDED.attempts, received_at = EXCLUDED.received_at,
            parked_partition = EXCLUDED.parked_partition, parked_offset = EXCLUDED.parked_offset,
            replays = EXCLUDED.replays,
            replayed_at = NULL,
            dropped_at = CASE WHEN coalesce(parked.received_at, $6) = $6 AND EXCLUDED.run = parked.run
                    AND EXCLUDED.replays = parked.replays
                THEN parked.dropped_at END,
            parked_at = CASE WHEN coalesce(parked.received_at, $6) = $6 AND EXCLUDED.run = parked.run
                    AND EXCLUDED.replays = parked.replays AND parked.replayed_at IS NULL
                THEN parked.parked_at ELSE EXCLUDED.parked_at END
        -- Another app's row at this place is from a topic of the same name that is gone.
        WHERE (parked.app IS NULL OR parked.app = EXCLUDED.app)
            AND (parked.received_at <> $6 OR (EXCLUDED.run, EXCLUDED.replays) >= (parked.run, parked.replays))
        RETURNING topic
    ), marked AS (
        INSERT INTO turn (owner_key, id, app, state, reason, detail, received_at, topic, "partition", "offset")
        SELECT me.owner_key, t.id, $1, 'PARKED', $8, $9, $6, $3, $4, $5
        FROM me CROSS JOIN unnest($11::text[]) AS t (id)
        WHERE $8 <> 'id_reused' AND $15 = 0 AND NOT EXISTS (
            SELECT 1
            FROM ledger AS l
            WHERE l.app = $1 AND l.owner_key = me.owner_key AND l.turn_id = t.id AND l.outcome IN ('STORED', 'ERASED')
        )
        ORDER BY t.id
        ON CONFLICT (owner_key, id) DO UPDATE
        SET state = 'PARKED', reason = EXCLUDED.reason, detail = EXCLUDED.detail
        WHERE turn.state = 'PARKED' OR turn.state = 'PENDING' AND (turn.topic <> EXCLUDED.topic
            OR (turn."partition", turn."offset") = (EXCLUDED."partition", EXCLUDED."offset"))
        RETURNING id
    -- A reading after the first has its own word in the ledger; the turn stays what the first made of it.
    ), read_again AS (
        SELECT t.id
        FROM me CROSS JOIN unnest($11::text[]) AS t (id)
        WHERE $8 <> 'id_reused' AND $15 > 0 AND NOT EXISTS (
            SELECT 1
            FROM ledger AS l
            WHERE l.app = $1 AND l.owner_key = me.owner_key AND l.turn_id = t.id AND l.outcome = 'ERASED'
        )
    ), noted AS (
        INSERT INTO ledger (owner_key, turn_id, run, app, outcome, topic, "partition", "offset", received_at)
        SELECT me.owner_key, m.id, $15, $1, 'PARKED', $3, $4, $5, $6
        FROM me CROSS JOIN (SELECT id FROM marked UNION ALL SELECT id FROM read_again) AS m
        ON CONFLICT (owner_key, turn_id, run) DO NOTHING
    )
    SELECT EXISTS (SELECT 1 FROM set_aside) OR EXISTS (
        SELECT 1 FROM parked AS p WHERE p.topic = $3 AND p."partition" = $4 AND p."offset" = $5
    ) AS noted
    FROM me
"""

# What could not be read as a turn: it has no app, and no owner.
# $1 topic, $2 partition, $3 offset, $4 received at, $5 stage, $6 reason, $7 detail, $8 attempts, $9 partition and
# $10 offset on the topic of parked records, $11 replay
_PARK_UNREAD: Final[LiteralString] = """
    WITH set_aside AS (
        INSERT INTO parked (topic, "partition", "offset", received_at, stage, reason, detail, attempts,
            parked_partition, parked_offset, replays)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (topic, "partition", "offset") DO UPDATE
        SET stage = EXCLUDED.stage, reason = EXCLUDED.reason, detail = EXCLUDED.detail, attempts = EXCLUDED.attempts,
            received_at = EXCLUDED.received_at, parked_partition = EXCLUDED.parked_partition,
            parked_offset = EXCLUDED.parked_offset, replays = EXCLUDED.replays,
            replayed_at = NULL,
            dropped_at = CASE WHEN coalesce(parked.received_at, $4) = $4 AND EXCLUDED.replays = parked.replays
                THEN parked.dropped_at END,
            parked_at = CASE WHEN coalesce(parked.received_at, $4) = $4 AND EXCLUDED.replays = parked.replays
                    AND parked.replayed_at IS NULL
                THEN parked.parked_at ELSE EXCLUDED.parked_at END
        WHERE parked.app IS NULL AND (parked.received_at <> $4 OR EXCLUDED.replays >= parked.replays)
        RETURNING topic
    )
    SELECT EXISTS (SELECT 1 FROM set_aside) OR EXISTS (
        SELECT 1 FROM parked AS p WHERE p.topic = $1 AND p."partition" = $2 AND p."offset" = $3
    ) AS noted
"""


class ParkingRepository:
    """For the role `mnemo_worker`. Raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def park(self, parking: Parking) -> None:
        """Note that a record was set aside, and that its turns are parked; the same again changes nothing.

        A turn that took effect, and one that waits at another place (its id was used twice), stay as they are. A record
        that was put back and is refused again waits again, and so does one that a later run refuses; a mere redelivery
        does not undo that it was given up. Where the place holds a row of another app, the turns alone are noted, and
        that is logged.
        """
        place = parking.place
        landed = (None, None) if parking.landed is None else parking.landed
        why = (parking.stage, parking.reason, parking.detail, parking.attempts)
        if parking.owner is None:
            async with self._database.across() as connection:
                noted = await connection.fetchval(_PARK_UNREAD, *place, *why, *landed, parking.replay)
        else:
            noted = await self._park(parking, parking.owner, (*place, *why), landed)
        if not noted:
            _log.warning(
                "parked_place_taken",
                topic=place.topic,
                partition=place.partition,
                offset=place.offset,
                stage=parking.stage,
                reason=parking.reason.value,
            )

    async def _park(
        self, parking: Parking, owner: Owner, what: Iterable[object], landed: Iterable[int | None]
    ) -> bool | None:
        """Whether the record was noted."""
        turn_ids = list(dict.fromkeys(parking.turn_ids))
        notice = payload(owner, turn_ids) if turn_ids else None
        arguments = (*owner, *what, turn_ids, *landed, parking.replay, parking.run)
        async with self._database.app(owner.app, notice=notice) as connection:
            noted: bool | None = await connection.fetchval(_PARK, *arguments)
            if noted is None:
                await add_owner(connection, owner)
                noted = await connection.fetchval(_PARK, *arguments)
        return noted

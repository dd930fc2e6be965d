"""The log of turns: what was said, redacted, and how far it got."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString

from mnemostream.turns import Reason

from processors.records import AcceptedTurn, Begun, Owner, TurnStatus
from processors.search import TurnReport, TurnState
from store.claims import add_owner
from store.database import Database
from store.runs import begin_again
from store.sessions import CONTEXT_AND_PROFILE, begun_of

if TYPE_CHECKING:
    import asyncpg

    from store.database import Connection

# Turns become pending unless they are known. A turn that the ledger has as over is not written again, also when the log
# has dropped it.
#
# A parked turn begins anew where it comes by a record behind the one that it is known by: published again. A record
# delivered again leaves it parked, and given up where it was. One that was put back says so: it is read, unless that
# copy, or a later one, was parked already. The note that it was put back may come after it.
# $1 app, $2 owner, $3 session, $4 messages of context, $5 turns
BEGIN: Final[LiteralString] = "".join(
    (
        """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), given AS MATERIALIZED (
        SELECT g.id, g.n, g.session, g.off_record, g.said_at, g.received_at, g.time_zone, g.messages, g.recalled,
            g.metadata, g.fingerprint, g.topic, g."partition", g."offset", g.replay
        FROM jsonb_to_recordset($5) AS g (id text, n integer, session text, off_record boolean, said_at timestamptz,
            received_at timestamptz, time_zone text, messages jsonb, recalled jsonb, metadata jsonb, fingerprint bytea,
            topic text, "partition" integer, "offset" bigint, replay integer)
    ), settled AS MATERIALIZED (
        SELECT l.turn_id
        FROM ledger AS l
        WHERE l.app = $1 AND l.owner_key = (SELECT owner_key FROM me) AND l.turn_id IN (SELECT id FROM given)
            AND l.run = 0 AND l.outcome IN ('STORED', 'ERASED')
    ), left_parked AS MATERIALIZED (
        SELECT t.id
        FROM given AS g JOIN turn AS t ON t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.id = g.id
        WHERE t.state = 'PARKED' AND CASE
            WHEN g.replay = 0 THEN (g.topic, g."partition") = (t.topic, t."partition") AND g."offset" <= t."offset"
                AND g.received_at <= t.received_at
            ELSE EXISTS (
                SELECT 1
                FROM parked AS p
                WHERE p.topic = g.topic AND p."partition" = g."partition" AND p."offset" = g."offset" AND p.app = $1
                    AND p.run = 0 AND p.received_at = g.received_at AND p.replays >= g.replay
                    AND p.replayed_at IS NULL
            ) END
    ), reading AS MATERIALIZED (
        SELECT g.id, g.n, g.received_at, g."offset"
        FROM given AS g
        WHERE g.id NOT IN (SELECT turn_id FROM settled) AND g.id NOT IN (SELECT id FROM left_parked)
            AND NOT EXISTS (
                SELECT 1
                FROM turn AS t
                WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.id = g.id
                    AND t.state IN ('STORED', 'ERASED')
            )
    ), written AS (
        INSERT INTO turn (owner_key, id, app, session, state, off_record, said_at, received_at, time_zone, messages,
            recalled, metadata, fingerprint, topic, "partition", "offset")
        SELECT me.owner_key, g.id, $1, g.session, 'PENDING', g.off_record, g.said_at, g.received_at, g.time_zone,
            g.messages, g.recalled, g.metadata, g.fingerprint, g.topic, g."partition", g."offset"
        FROM me CROSS JOIN given AS g
        WHERE g.id IN (SELECT id FROM reading)
        ORDER BY g.id
        ON CONFLICT (owner_key, id) DO UPDATE
        SET session = EXCLUDED.session, state = 'PENDING', reason = NULL, detail = NULL,
            off_record = EXCLUDED.off_record, said_at = EXCLUDED.said_at, received_at = EXCLUDED.received_at,
            time_zone = EXCLUDED.time_zone, messages = EXCLUDED.messages, recalled = EXCLUDED.recalled,
            metadata = EXCLUDED.metadata, fingerprint = EXCLUDED.fingerprint, topic = EXCLUDED.topic,
            "partition" = EXCLUDED."partition", "offset" = EXCLUDED."offset", recorded_at = now()
        WHERE turn.state = 'PARKED'
        RETURNING id
    )
    SELECT
        (SELECT owner_key FROM me) AS owner_key,
        (SELECT array_agg(id) FROM written) AS written,
        (SELECT array_agg(turn_id) FROM settled) AS settled,
        (SELECT array_agg(id) FROM left_parked) AS left_parked,
        -- As they were before this statement.
        (
            SELECT jsonb_object_agg(t.id, jsonb_build_array(t.state, encode(t.fingerprint, 'hex')))
            FROM turn AS t
            WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.id IN (SELECT id FROM given)
        ) AS known,
""",
        CONTEXT_AND_PROFILE,
    )
)

# The log first; the ledger outlives it.
# $1 app, $2 owner, $3 turn id
_REPORT: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    )
    SELECT t.state, t.reason, t.detail, l.outcome, (
            SELECT array_agg(d.memory_id ORDER BY d.first, d.memory_id)
            FROM (
                SELECT d.memory_id, min(d.decided_at) AS first
                FROM decision AS d JOIN memory AS m
                    ON m.app = d.app AND m.owner_key = d.owner_key AND m.id = d.memory_id AND m.state <> 'FORGOTTEN'
                WHERE d.app = $1 AND d.owner_key = me.owner_key AND d.cause_id = $3 AND d.cause_kind = 'turn'
                    AND (d.action <> 'NOOP' OR EXISTS (
                        SELECT 1
                        FROM memory_source AS s
                        WHERE s.app = d.app AND s.owner_key = d.owner_key AND s.memory_id = d.memory_id
                            AND s.turn_id = d.cause_id
                    ))
                    AND NOT d.memory_id = ANY (d.retired)
                GROUP BY d.memory_id
            ) AS d
        ) AS memory_ids
    FROM me
        LEFT JOIN turn AS t ON t.app = $1 AND t.owner_key = me.owner_key AND t.id = $3
        LEFT JOIN ledger AS l ON l.app = $1 AND l.owner_key = me.owner_key AND l.turn_id = $3 AND l.run = 0
"""


class TurnRepository:
    """Turns on their way. Every method raises StoreUnavailable where Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, owner: Owner, turns: Sequence[AcceptedTurn], *, run: int = 0, context_messages: int = 6
    ) -> Begun:
        """Write the turns of `owner` that are new as pending, and say of each what is known of it.

        turns: at least one, of one session, in order. context: the session's last messages before the first of them
        that is still to be read. Of a turn off the record id, place and time of arrival are kept. The same again only
        finds them pending. run: above 0 they are read again, and nothing is written.
        """
        if run:
            return await begin_again(self._database, owner, turns, run, context_messages=context_messages)
        by_id: dict[str, AcceptedTurn] = {}
        for turn in turns:
            by_id.setdefault(turn.turn.id, turn)
        async with self._database.app(owner.app) as connection:
            # A turn that another worker wrote a moment ago is visible to the next statement only.
            while True:
                row = await _begin(connection, owner, list(by_id.values()), context_messages)
                found = _Found.of(row)
                if by_id.keys() <= found.written | found.settled | found.known.keys():
                    break
        first = {turn_id: found.status(turn) for turn_id, turn in by_id.items()}
        return begun_of((_nth_status(turn, by_id[turn.turn.id], first[turn.turn.id]) for turn in turns), row)

    async def report(self, owner: Owner, turn_id: str) -> TurnReport:
        """How far the turn got, and the memories that it made or confirmed, in the order of the decisions.

        What it took back is not among them, nor what it only repeated without becoming a source of it.
        """
        async with self._database.app(owner.app) as connection:
            row = await connection.fetchrow(_REPORT, owner.app, owner.owner, turn_id)
        if row is None:
            return TurnReport(TurnState.UNKNOWN)
        state = TurnState(row["state"] or row["outcome"] or TurnState.UNKNOWN)
        reason = Reason(row["reason"]) if state is TurnState.PARKED and row["reason"] is not None else None
        return TurnReport(
            state,
            reason,
            None if reason is None else row["detail"],
            tuple(str(memory_id) for memory_id in row["memory_ids"] or ()),
        )


async def _begin(
    connection: "Connection", owner: Owner, turns: list[AcceptedTurn], context_messages: int
) -> "asyncpg.Record":
    session = next((turn.turn.session for turn in turns if not turn.turn.off_record), None)
    arguments = (owner.app, owner.owner, session, context_messages, [_row(n, turn) for n, turn in enumerate(turns)])
    row = await connection.fetchrow(BEGIN, *arguments)
    if row is None or row["owner_key"] is None:
        await add_owner(connection, owner)
        row = await connection.fetchrow(BEGIN, *arguments)
    assert row is not None
    return row


def _row(n: int, accepted: AcceptedTurn) -> dict[str, Any]:
    turn, place = accepted.turn, accepted.place
    row: dict[str, Any] = {
        "id": turn.id,
        "n": n,
        "off_record": turn.off_record,
        "received_at": place.received_at,
        "topic": place.topic,
        "partition": place.partition,
        "offset": place.offset,
        "replay": accepted.replay,
    }
    if turn.off_record:
        return row
    return row | {
        "session": turn.session,
        "said_at": turn.said_at,
        "time_zone": turn.time_zone,
        "messages": [{"role": m.role, "content": m.content, "id": m.id, "name": m.name} for m in turn.messages],
        "recalled": turn.recalled,
        "metadata": turn.metadata,
        "fingerprint": "\\x" + accepted.fingerprint.hex(),
    }


@dataclass(frozen=True, slots=True)
class _Found:
    """What a statement found of turns, by their ids, and wrote."""

    written: frozenset[str]
    settled: frozenset[str]
    left_parked: frozenset[str]
    known: dict[str, list[str | None]]
    """State and fingerprint, before."""

    @classmethod
    def of(cls, row: "asyncpg.Record") -> "_Found":
        written, settled, left = (frozenset(row[name] or ()) for name in ("written", "settled", "left_parked"))
        return cls(written, settled, left, row["known"] or {})

    def status(self, turn: AcceptedTurn) -> TurnStatus:
        """Of one without fingerprint (off the record, erased) the id tells enough: it is any turn's."""
        turn_id = turn.turn.id
        if turn_id in self.written:
            return TurnStatus.NEW
        if turn_id not in self.known:
            return TurnStatus.SETTLED
        if turn_id in self.left_parked and turn_id not in self.settled:
            return TurnStatus.PARKED
        state, fingerprint = self.known[turn_id]
        if fingerprint is not None and fingerprint != turn.fingerprint.hex():
            return TurnStatus.REUSED
        # One that was parked, and was not written, another worker began anew a moment ago.
        to_read = state in ("PENDING", "PARKED") and turn_id not in self.settled
        return TurnStatus.PENDING if to_read else TurnStatus.SETTLED


def _nth_status(turn: AcceptedTurn, first: AcceptedTurn, status: TurnStatus) -> TurnStatus:
    """The status of a turn in a window that may hold its id twice: the first one counts."""
    if turn is first:
        return status
    if turn.fingerprint != first.fingerprint:
        return TurnStatus.REUSED
    return TurnStatus.PENDING if status is TurnStatus.NEW else status

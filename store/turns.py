"""The log of turns: what was said, redacted, and how far it got."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, LiteralString

from mnemostream.turns import Reason, Role

from processors.records import AcceptedTurn, Begun, ContextMessage, Owner, TurnStatus
from processors.search import TurnReport, TurnState
from store.claims import add_owner
from store.database import Database
from store.rows import profile_of
from store.runs import begin_again

if TYPE_CHECKING:
    import asyncpg

    from store.database import Connection

# Turns become pending unless they are known; one that was parked begins anew. A turn that the ledger has as over is not
# written again, also when the log has dropped it.
# $1 app, $2 owner, $3 turns, $4 session, $5 received at and $6 offset of the first, $7 messages of context
BEGIN: Final[LiteralString] = """
    WITH me AS MATERIALIZED (
        SELECT owner_key FROM owner WHERE app = $1 AND owner = $2
    ), given AS MATERIALIZED (
        SELECT g.id, g.session, g.off_record, g.said_at, g.received_at, g.time_zone, g.messages, g.recalled, g.metadata,
            g.fingerprint, g.topic, g."partition", g."offset"
        FROM jsonb_to_recordset($3) AS g (id text, session text, off_record boolean, said_at timestamptz,
            received_at timestamptz, time_zone text, messages jsonb, recalled jsonb, metadata jsonb, fingerprint bytea,
            topic text, "partition" integer, "offset" bigint)
    ), settled AS MATERIALIZED (
        SELECT l.turn_id
        FROM ledger AS l
        WHERE l.app = $1 AND l.owner_key = (SELECT owner_key FROM me) AND l.turn_id IN (SELECT id FROM given)
            AND l.run = 0 AND l.outcome IN ('STORED', 'ERASED')
    ), written AS (
        INSERT INTO turn (owner_key, id, app, session, state, off_record, said_at, received_at, time_zone, messages,
            recalled, metadata, fingerprint, topic, "partition", "offset")
        SELECT me.owner_key, g.id, $1, g.session, 'PENDING', g.off_record, g.said_at, g.received_at, g.time_zone,
            g.messages, g.recalled, g.metadata, g.fingerprint, g.topic, g."partition", g."offset"
        FROM me CROSS JOIN given AS g
        WHERE g.id NOT IN (SELECT turn_id FROM settled)
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
        -- As they were before this statement.
        (
            SELECT jsonb_object_agg(t.id, jsonb_build_array(t.state, encode(t.fingerprint, 'hex')))
            FROM turn AS t
            WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.id IN (SELECT id FROM given)
        ) AS known,
        (
            SELECT jsonb_agg(jsonb_build_array(c.role, c.content, c.name) ORDER BY c.received_at, c."offset", c.n)
            FROM (
                SELECT t.received_at, t."offset", m.n,
                    m.message ->> 'role' AS role, m.message ->> 'content' AS content, m.message ->> 'name' AS name
                FROM (
                    SELECT t.received_at, t."offset", t.messages
                    FROM turn AS t
                    WHERE t.app = $1 AND t.owner_key = (SELECT owner_key FROM me) AND t.session = $4
                        AND (t.received_at, t."offset") < ($5, $6) AND t.state IN ('PENDING', 'STORED')
                        AND t.messages IS NOT NULL AND t.id NOT IN (SELECT id FROM given)
                        -- What was forgotten may stand in what was answered to it.
                        AND NOT t.messages @> '[{"content": "[FORGOTTEN]"}]'
                    ORDER BY t.received_at DESC, t."offset" DESC
                    LIMIT $7
                ) AS t CROSS JOIN LATERAL jsonb_array_elements(t.messages) WITH ORDINALITY AS m (message, n)
                ORDER BY t.received_at DESC, t."offset" DESC, m.n DESC
                LIMIT $7
            ) AS c
        ) AS context,
        (
            SELECT jsonb_build_object('time_zone', a.time_zone, 'language', a.language,
                'instructions', a.instructions, 'categories', a.categories)
            FROM app AS a
            WHERE a.app = $1
        ) AS profile
"""

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

        turns: at least one, of one session, in order. context: the session's last messages before the first of them.
        Of a turn off the record id, place and time of arrival are kept. The same again only finds them pending.
        run: above 0 they are read again, and nothing is written.
        """
        if run:
            return await begin_again(self._database, owner, turns, run, context_messages=context_messages)
        by_id: dict[str, AcceptedTurn] = {}
        for turn in turns:
            by_id.setdefault(turn.turn.id, turn)
        async with self._database.app(owner.app) as connection:
            # A turn that another worker wrote a moment ago is visible to the next statement only.
            while True:
                row = await _begin(connection, owner, list(by_id.values()), turns[0], context_messages)
                written, settled = set(row["written"] or ()), set(row["settled"] or ())
                known: dict[str, list[str | None]] = row["known"] or {}
                if by_id.keys() <= written | settled | known.keys():
                    break
        first = {
            turn_id: _status(turn, turn_id in written, turn_id in settled, known.get(turn_id))
            for turn_id, turn in by_id.items()
        }
        return Begun(
            tuple(_nth_status(turn, by_id[turn.turn.id], first[turn.turn.id]) for turn in turns),
            tuple(ContextMessage(Role(role), content, name) for role, content, name in row["context"] or ()),
            profile_of(row["profile"]),
        )

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
    connection: "Connection", owner: Owner, turns: list[AcceptedTurn], first: AcceptedTurn, context_messages: int
) -> "asyncpg.Record":
    session = next((turn.turn.session for turn in turns if not turn.turn.off_record), None)
    arguments = (
        owner.app,
        owner.owner,
        [_row(turn) for turn in turns],
        session,
        first.place.received_at,
        first.place.offset,
        context_messages,
    )
    row = await connection.fetchrow(BEGIN, *arguments)
    if row is None or row["owner_key"] is None:
        await add_owner(connection, owner)
        row = await connection.fetchrow(BEGIN, *arguments)
    assert row is not None
    return row


def _row(accepted: AcceptedTurn) -> dict[str, Any]:
    turn, place = accepted.turn, accepted.place
    row: dict[str, Any] = {
        "id": turn.id,
        "off_record": turn.off_record,
        "received_at": place.received_at,
        "topic": place.topic,
        "partition": place.partition,
        "offset": place.offset,
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


def _status(turn: AcceptedTurn, written: bool, settled: bool, known: list[str | None] | None) -> TurnStatus:
    """The status of a turn by what was known of it. One without fingerprint (off the record, erased) is any turn's."""
    if written:
        return TurnStatus.NEW
    if known is None:
        return TurnStatus.SETTLED
    state, fingerprint = known
    if fingerprint is not None and fingerprint != turn.fingerprint.hex():
        return TurnStatus.REUSED
    return TurnStatus.PENDING if state == "PENDING" and not settled else TurnStatus.SETTLED


def _nth_status(turn: AcceptedTurn, first: AcceptedTurn, status: TurnStatus) -> TurnStatus:
    """The status of a turn in a window that may hold its id twice: the first one counts."""
    if turn is first:
        return status
    if turn.fingerprint != first.fingerprint:
        return TurnStatus.REUSED
    return TurnStatus.PENDING if status is TurnStatus.NEW else status

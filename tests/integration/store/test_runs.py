"""Turns that are read again: what a run chooses, and what a worker finds of its turns."""

from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg
import pytest
from mnemostream.turns import Message, Role

from processors.records import ContextMessage, Owner, TurnStatus
from processors.search import TurnState
from store.database import Database
from store.owners import OwnerRepository
from store.runs import Choice, Run, RunRepository
from store.turns import TurnRepository
from tests.fakes.values import NOON, OWNER, accepted, addition, commit_of, id_of, new_memory, place_of

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
PENDING, SETTLED, UNKNOWN = TurnStatus.PENDING, TurnStatus.SETTLED, TurnStatus.UNKNOWN
BOB = Owner("acme", "bob")
SCRUB = """
    UPDATE turn SET messages = jsonb_set(messages, '{0,content}', '"[FORGOTTEN]"') WHERE id = $1
"""


@pytest.fixture
def turns(worker: Database) -> TurnRepository:
    return TurnRepository(worker)


@pytest.fixture
def owners(worker: Database) -> OwnerRepository:
    return OwnerRepository(worker)


@pytest.fixture
def runs(operator: Database) -> RunRepository:
    return RunRepository(operator)


class Log:
    """Turns with their first reading over."""

    def __init__(self, turns: TurnRepository, owners: OwnerRepository, admin: Admin) -> None:
        self.turns, self.owners, self.admin = turns, owners, admin

    async def stored(self, turn_id: str, *texts: str, offset: int, owner: Owner = OWNER, **fields: Any) -> None:
        await self.turns.begin(owner, [accepted(turn_id, *texts, owner=owner, offset=offset, **fields)])
        look = await self.owners.look(owner, [], model=None)
        assert await self.owners.commit(owner, look.version, commit_of(turn_id, offset=offset))

    async def again(self, turn_id: str, run: int, *, offset: int = 1) -> TurnStatus:
        [status] = (await self.turns.begin(OWNER, [accepted(turn_id, offset=offset)], run=run)).statuses
        return status

    async def scrub(self, turn_id: str) -> None:
        async with self.admin.transaction():
            await self.admin.execute("SET LOCAL mnemo.forgetting = 'on'")
            await self.admin.execute(SCRUB, turn_id)


@pytest.fixture
def log(turns: TurnRepository, owners: OwnerRepository, admin: Admin) -> Log:
    return Log(turns, owners, admin)


async def chosen(runs: RunRepository, run: Run) -> list[str]:
    async with runs.turns(run) as pages:
        return [logged.turn.id async for page in pages for logged in page]


async def test_a_stored_turn_is_read_again_once_in_a_run(log: Log) -> None:
    await log.stored("t-1", offset=1)
    assert await log.again("t-1", 1) is PENDING
    assert await log.owners.commit(OWNER, 0, commit_of("t-1", run=1))
    assert await log.again("t-1", 1) is SETTLED
    assert await log.again("t-1", 2) is PENDING


async def test_reading_again_writes_nothing_and_compares_no_words(log: Log) -> None:
    await log.stored("t-1", "My key is [REDACTED]", offset=1)
    before = await log.admin.fetchrow("SELECT * FROM turn")
    other = accepted("t-1", "My key is something else", offset=1, time_zone="Europe/Lisbon")
    assert (await log.turns.begin(OWNER, [other], run=1)).statuses == (PENDING,)
    assert await log.admin.fetchrow("SELECT * FROM turn") == before


async def test_what_was_not_read_for_the_first_time_is_not_read_again(log: Log) -> None:
    await log.turns.begin(OWNER, [accepted("t-1")])
    assert await log.again("t-1", 1) is SETTLED
    assert await log.again("nobody-knows-it", 1) is UNKNOWN
    assert (await log.turns.begin(BOB, [accepted("t-1", owner=BOB)], run=1)).statuses == (UNKNOWN,)
    assert await log.admin.fetchval("SELECT count(*) FROM owner") == 1


async def test_what_is_gone_from_the_log_is_not_read_again(log: Log, runs: RunRepository) -> None:
    ways = {
        "erased": "UPDATE ledger SET outcome = 'ERASED' WHERE turn_id = $1",
        "parked": "UPDATE ledger SET outcome = 'PARKED' WHERE turn_id = $1",
        "marked": "UPDATE turn SET state = 'ERASED' WHERE id = $1",
        "waits": "UPDATE turn SET state = 'PENDING' WHERE id = $1",
        "unheard": "UPDATE turn SET off_record = true WHERE id = $1",
        "purged": "DELETE FROM turn WHERE id = $1",
        "there": "SELECT $1::text",
    }
    for offset, (turn_id, way) in enumerate(ways.items(), 1):
        await log.stored(turn_id, offset=offset)
        await log.admin.execute(way, turn_id)
    read = [turn_id for turn_id in ways if await log.again(turn_id, 1) is PENDING]
    assert read == ["there"]
    assert (await runs.extent(Choice())).turns == 1
    assert await chosen(runs, await runs.create(Choice(), 1)) == ["there"]


async def test_a_turn_in_which_something_was_forgotten_is_not_read_again(log: Log, runs: RunRepository) -> None:
    await log.stored("t-1", "I live in Porto.", "I have a dog.", offset=1)
    await log.stored("t-2", "It is big.", offset=2)
    run = await runs.create(Choice(), 2)
    await log.scrub("t-1")
    assert await log.again("t-1", 1) is SETTLED
    assert (await log.turns.begin(OWNER, [accepted("t-2", offset=2)], run=1)).context == ()
    assert (await runs.extent(Choice())).turns == 1
    assert await chosen(runs, run) == ["t-2"]


async def test_the_context_of_a_turn_is_what_was_said_before_it_in_its_session(log: Log) -> None:
    await log.stored("t-1", "I have a dog.", offset=1)
    await log.stored("t-2", "It is big.", offset=2)
    await log.stored("t-3", "And old.", offset=3)
    begun = await log.turns.begin(OWNER, [accepted("t-2", offset=2)], run=1)
    assert begun.context == (ContextMessage(Role.USER, "I have a dog."),)


async def test_the_state_of_a_turn_is_that_of_its_first_reading(log: Log) -> None:
    await log.turns.begin(OWNER, [accepted("t-1")])
    new = new_memory("Lives in Porto.")
    assert await log.owners.commit(OWNER, 0, commit_of("t-1", addition("t-1", new), run=1))
    report = await log.turns.report(OWNER, "t-1")
    assert report.state is TurnState.PENDING
    assert await log.owners.commit(OWNER, 1, commit_of("t-1"))
    report = await log.turns.report(OWNER, "t-1")
    assert (report.state, report.memory_ids) == (TurnState.STORED, (str(id_of("Lives in Porto.")),))


async def test_a_run_gives_the_turns_in_the_order_in_which_they_came_as_the_log_has_them(
    log: Log, runs: RunRepository
) -> None:
    fields: dict[str, Any] = {"time_zone": "Europe/Lisbon", "recalled": ("Has a cat.",), "metadata": {"channel": "web"}}
    await log.stored("b", "Two.", offset=2, **fields)
    await log.stored("c", "Three.", offset=3, session=None)
    await log.stored("a", "One.", offset=1, owner=BOB)
    run = await runs.create(Choice(), 3)
    async with runs.turns(run) as pages:
        found = [logged async for page in pages for logged in page]
    assert [logged.turn.id for logged in found] == ["a", "b", "c"]
    assert found[1].turn == accepted("b", "Two.", offset=2, **fields).turn
    assert found[1].place == place_of(2)
    assert found[2].turn.session is None
    assert found[2].turn.messages == (Message(Role.USER, "Three."),)


async def test_a_run_has_its_span_its_app_and_its_owner(log: Log, runs: RunRepository) -> None:
    globex = Owner("globex", "bob")
    for offset, (turn_id, owner) in enumerate((("a", OWNER), ("b", BOB), ("c", OWNER), ("d", globex)), 1):
        await log.stored(turn_id, offset=offset, owner=owner)
    second, fourth = (NOON + timedelta(seconds=offset) for offset in (2, 4))
    for choice, expected in (
        (Choice(), ["a", "b", "c", "d"]),
        (Choice(received_from=second, received_to=fourth), ["b", "c"]),
        (Choice(app="acme"), ["a", "b", "c"]),
        (Choice(app="acme", owner="bob"), ["b"]),
    ):
        extent = await runs.extent(choice)
        run = await runs.create(choice, extent.turns)
        assert await chosen(runs, run) == expected
        assert extent.turns == len(expected)
    assert (await runs.extent(Choice(app="acme"))).owners == 2


async def test_a_run_is_of_what_was_read_before_it_and_goes_on_where_it_was(log: Log, runs: RunRepository) -> None:
    await log.stored("a", offset=1)
    await log.stored("b", offset=2)
    run = await runs.create(Choice(), 2)
    await log.stored("c", offset=3)
    assert await chosen(runs, run) == ["a", "b"]
    assert await log.owners.commit(OWNER, 0, commit_of("a", run=run.run))
    known = await runs.get(run.run)
    assert known == run
    assert await chosen(runs, known) == ["b"]
    assert await runs.get(run.run + 1) is None


async def test_a_list_says_how_far_each_run_is(log: Log, runs: RunRepository) -> None:
    for offset, turn_id in enumerate("abcd", 1):
        await log.stored(turn_id, offset=offset)
    await log.turns.begin(OWNER, [accepted("e", offset=9)])
    extent = await runs.extent(Choice())
    assert (extent.turns, extent.owners, extent.parked, extent.pending) == (4, 1, 0, 1)
    assert extent.bytes > 100
    first, second = await runs.create(Choice(), 4), await runs.create(Choice(app="acme"), 4)
    await runs.note_published(first)
    assert await log.owners.commit(OWNER, 0, commit_of("a", run=first.run))
    await log.admin.execute(
        'INSERT INTO ledger (owner_key, turn_id, run, app, outcome, topic, partition, "offset", received_at)'
        " SELECT owner_key, 'b', $1, app, 'PARKED', topic, partition, \"offset\", received_at FROM turn WHERE id = 'b'",
        first.run,
    )
    await log.scrub("c")
    newest, oldest = await runs.reports(limit=10)
    assert (newest.run.run, newest.stored, newest.parked, newest.pending) == (second.run, 0, 0, 3)
    assert (oldest.run.run, oldest.stored, oldest.parked, oldest.pending) == (first.run, 1, 1, 1)
    assert newest.run.published_at is None
    assert oldest.run.published_at is not None
    assert len(await runs.reports(limit=1)) == 1


async def test_what_is_still_to_come_is_looked_at_only_so_far_as_to_see_that_it_is_much(
    log: Log, runs: RunRepository
) -> None:
    await log.stored("t-0", offset=1)
    await log.admin.execute(
        """
        WITH copied AS (
            INSERT INTO turn (owner_key, id, app, session, state, received_at, messages, topic, "partition", "offset")
            SELECT owner_key, 't-' || n, app, session, state, received_at, messages, topic, "partition", "offset" + n
            FROM turn CROSS JOIN generate_series(1, 1099) AS n
        )
        INSERT INTO ledger (owner_key, turn_id, app, outcome, topic, "partition", "offset", received_at)
        SELECT owner_key, 't-' || n, app, outcome, topic, "partition", "offset" + n, received_at
        FROM ledger CROSS JOIN generate_series(1, 1099) AS n
        """
    )
    run = await runs.create(Choice(), 1200)
    await log.scrub("t-7")
    [report] = await runs.reports(limit=1)
    assert report.pending == 1200
    await log.admin.execute(
        """
        INSERT INTO ledger (owner_key, turn_id, run, app, outcome, topic, "partition", "offset", received_at)
        SELECT owner_key, turn_id, $1, app, CASE WHEN "offset" % 2 = 0 THEN 'STORED' ELSE 'PARKED' END, topic,
            "partition", "offset", received_at
        FROM ledger
        WHERE "offset" > 200
        """,
        run.run,
    )
    [report] = await runs.reports(limit=1)
    assert (report.stored, report.parked, report.pending) == (450, 450, 199)

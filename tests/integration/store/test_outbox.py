"""The outbox on Postgres: read in order and without a gap, trimmed by number, shared by shard."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TypeAlias

import asyncpg
import pytest

from processors.effects import Effect
from processors.errors import StoreUnavailable
from processors.feed import Change
from processors.memories import State
from processors.records import Owner
from store.database import Database
from store.forgetting import ForgettingRepository
from store.memories import MemoryRepository
from store.outbox import SHARDS, OutboxRepository, Shards
from store.owners import OwnerRepository
from store.turns import TurnRepository
from tests.fakes.values import HALF_LIFE, NOON, OWNER, accepted, addition, commit_of, confirmation, id_of, new_memory

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
ALL = frozenset(range(SHARDS))


@pytest.fixture
async def timer(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_timer", pool_size=2)
    yield database
    await database.close()


async def hear(database: Database, turn_id: str, *effects: Effect, owner: Owner = OWNER) -> None:
    await TurnRepository(database).begin(owner, [accepted(turn_id, owner=owner)])
    owners = OwnerRepository(database)
    look = await owners.look(owner, [], model=None)
    assert await owners.commit(owner, look.version, commit_of(turn_id, *effects))


async def remember(database: Database, owner: Owner, count: int) -> None:
    """`count` memories, each in a change of its own."""
    for number in range(count):
        name = f"{owner.owner} {number}"
        await hear(database, f"t{number}", addition(f"t{number}", new_memory(name, id=id_of(name))), owner=owner)


def numbers(changes: list[Change]) -> list[tuple[str, int]]:
    return [(change.owner.owner, change.seq) for change in changes]


async def waiting(outbox: OutboxRepository, after: int = 0, limit: int = 1000) -> list[Change]:
    return [each.change for each in await outbox.read(ALL, after=after, limit=limit)]


async def test_a_change_is_read_with_the_memory_whole_as_it_was_then(worker: Database, timer: Database) -> None:
    first = new_memory("Lives in Porto", data={"a": 1}, tags=("home",), type="place", subject="user", attribute="home")
    await hear(worker, "t1", addition("t1", first))
    then = await MemoryRepository(worker).get(OWNER, first.id)
    later = NOON + timedelta(seconds=HALF_LIFE)
    await hear(worker, "t2", confirmation("t2", first.id, at=later))
    added, confirmed = await waiting(OutboxRepository(timer))
    assert then is not None
    assert (added.owner, added.seq, added.kind, added.cause_kind, added.cause_id) == (OWNER, 1, "added", "turn", "t1")
    assert added.decision_id == id_of(f"t1 adds {first.id}")
    assert added.memory is not None
    assert {name: getattr(added.memory, name) for name in then.__slots__ if name != "strength"} == {
        name: getattr(then, name) for name in then.__slots__ if name != "strength"
    }
    assert (confirmed.seq, confirmed.kind) == (2, "confirmed")
    assert confirmed.memory is not None
    assert confirmed.memory.confirmations == 1
    assert [source.turn_id for source in confirmed.memory.sources] == ["t1", "t2"]


async def test_changes_are_read_by_owner_and_number_as_many_as_are_asked_for(worker: Database, timer: Database) -> None:
    await asyncio.gather(*(remember(worker, Owner("acme", name), 3) for name in ("a", "b", "c")))
    outbox = OutboxRepository(timer)
    everything = await outbox.read(ALL, after=0, limit=100)
    assert [each.owner_key for each in everything] == sorted(each.owner_key for each in everything)
    for name in ("a", "b", "c"):
        assert [each.change.seq for each in everything if each.change.owner.owner == name] == [1, 2, 3]
    assert await outbox.read(ALL, after=0, limit=4) == everything[:4]
    assert await outbox.read(ALL, after=everything[0].owner_key, limit=100) == everything[3:]


async def test_a_shard_has_the_owners_whose_key_falls_into_it(worker: Database, timer: Database) -> None:
    await asyncio.gather(*(remember(worker, Owner("acme", f"o{number}"), 1) for number in range(8)))
    outbox = OutboxRepository(timer)
    found = {shard: await outbox.read([shard], after=0, limit=100) for shard in ALL}
    assert all(each.owner_key % SHARDS == shard for shard, some in found.items() for each in some)
    assert sum(len(some) for some in found.values()) == 8


async def test_what_is_out_is_trimmed_and_its_history_stays(worker: Database, timer: Database, admin: Admin) -> None:
    await remember(worker, OWNER, 5)
    outbox = OutboxRepository(timer)
    first = await outbox.read(ALL, after=0, limit=3)
    await outbox.trim(first)
    await outbox.trim(first)
    assert [change.seq for change in await waiting(outbox)] == [4, 5]
    assert (await outbox.backlog(ALL)).pointers == 2
    assert await admin.fetchval("SELECT count(*) FROM change") == 5


async def test_what_is_not_committed_yet_hides_nothing_that_comes_before_it(
    worker: Database, timer: Database, admin: Admin
) -> None:
    """Another writer of the owner cannot commit a later number first: it waits for the row."""
    await remember(worker, OWNER, 1)
    outbox = OutboxRepository(timer)
    async with admin.transaction():
        await admin.execute("SELECT FROM owner FOR NO KEY UPDATE")
        other = asyncio.ensure_future(hear(worker, "later", addition("later", new_memory("Later", id=id_of("later")))))
        await admin.execute("""
            INSERT INTO change (owner_key, seq, app, kind, cause_kind, cause_id)
            SELECT owner_key, seq + 1, app, 'owner_erased', 'request', 'r' FROM owner
        """)
        await admin.execute("INSERT INTO outbox (owner_key, seq, app) SELECT owner_key, seq + 1, app FROM owner")
        await admin.execute("UPDATE owner SET seq = seq + 1")
        assert [change.seq for change in await waiting(outbox)] == [1]
        assert not other.done()
    await other
    read = await waiting(outbox)
    assert [(change.seq, change.kind) for change in read] == [(1, "added"), (2, "owner_erased"), (3, "added")]
    assert read[1].memory is None


async def test_what_was_forgotten_is_read_without_its_text(worker: Database, query: Database, timer: Database) -> None:
    secret = new_memory("Has a tattoo of a heron", data={"where": "arm"}, tags=("body",), subject="user", attribute="t")
    await hear(worker, "t1", addition("t1", secret))
    assert await ForgettingRepository(query).forget(OWNER, secret.id, cause_id=id_of("request"))
    added, forgotten = await waiting(OutboxRepository(timer))
    assert (added.kind, forgotten.kind, forgotten.seq) == ("added", "forgotten", 2)
    assert forgotten.cause_kind == "request"
    for change in (added, forgotten):
        assert change.memory is not None
        assert (change.memory.content, change.memory.data, change.memory.tags) == ("", None, ())
        assert (change.memory.subject, change.memory.sources) == (None, ())
    assert forgotten.memory is not None
    assert forgotten.memory.state is State.FORGOTTEN


async def test_a_relay_alone_holds_every_shard_and_shares_them_with_who_comes(timer: Database) -> None:
    outbox = OutboxRepository(timer)
    async with outbox.shards() as one:
        await one.share()
        assert one.held == ALL
        async with outbox.shards() as other:
            await other.share()
            assert other.held == frozenset()
            await one.share()
            await other.share()
            assert len(one.held) == len(other.held) == SHARDS // 2
            assert one.held | other.held == ALL
        await until_all(one)


async def until_all(shards: Shards) -> None:
    """Postgres notices in a moment that a session has gone."""
    async with asyncio.timeout(10):
        while shards.held != ALL:
            await shards.share()
            await asyncio.sleep(0.01)


async def test_the_shards_of_a_relay_whose_session_was_ended_are_free_and_it_knows(
    timer: Database, admin: Admin
) -> None:
    outbox = OutboxRepository(timer)
    async with outbox.shards() as one, outbox.shards() as other:
        await one.share()
        pid = await admin.fetchval(
            """
            SELECT pid FROM pg_locks
            WHERE locktype = 'advisory' AND objid < 64
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            LIMIT 1
            """
        )
        await admin.execute("SELECT pg_terminate_backend($1, 5000)", pid)
        with pytest.raises(StoreUnavailable):
            await one.share()
        assert one.held == frozenset()
        await until_all(other)


async def test_a_relay_that_falls_silent_loses_its_session(timer: Database) -> None:
    """As one does that is frozen: nothing keeps its session."""
    async with timer.direct() as connection, OutboxRepository(timer).shards() as other:
        silent = Shards(connection, lease_seconds=0.5)
        await silent.begin()
        await silent.share()
        assert len(silent.held) == SHARDS // 2
        await until_all(other)
        with pytest.raises(StoreUnavailable):
            await silent.share()
        assert silent.held == frozenset()

"""Forgetting on Postgres: nothing of it is left, and it does not come back."""

from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg
import pytest

from processors.effects import Probe
from processors.memories import StatementOrder
from processors.records import Owner
from store.database import Database
from store.forgetting import ForgettingRepository
from store.owners import OwnerRepository
from store.turns import TurnRepository
from tests.fakes.values import (
    MODEL,
    NOON,
    OWNER,
    accepted,
    addition,
    commit_of,
    id_of,
    new_memory,
    source_of,
    vector_of,
)

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

SECRET = "The user has a tattoo of a heron."
OTHER = "The user likes green tea."
"""Its words are looked for in every table."""


async def told(database: Database, text: str, turn_id: str, **fields: Any) -> None:
    await TurnRepository(database).begin(OWNER, [accepted(turn_id, "Hello there.", f"Well: {text}")])
    owners = OwnerRepository(database)
    look = await owners.look(OWNER, [], model=None)
    effect = addition(turn_id, new_memory(text, **fields), source_of(turn_id, 1))
    assert await owners.commit(OWNER, look.version, commit_of(turn_id, effect))


def probe(text: str, received_hours: int, **fields: Any) -> Probe:
    at = NOON + timedelta(hours=received_hours)
    memory = new_memory(text)
    return Probe(memory.content_hash, vector_of(text), order=StatementOrder(at, at, 9, 0), **fields)


async def everything(admin: Admin) -> str:
    """All rows of all tables as text."""
    tables = await admin.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [
        await admin.fetchval(f"SELECT string_agg(t::text, E'\\n') FROM \"{table['tablename']}\" AS t")
        for table in tables
    ]
    return "\n".join(row for row in rows if row)


async def test_what_is_forgotten_is_in_no_table(worker: Database, query: Database, admin: Admin) -> None:
    await told(worker, SECRET, "t-1", subject="user", attribute="tattoo")
    await told(worker, OTHER, "t-2")
    assert "heron" in await everything(admin)
    forgetting = ForgettingRepository(query)
    assert await forgetting.forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    dump = await everything(admin)
    assert "heron" not in dump
    assert "tattoo" not in dump
    assert "green tea" in dump
    assert "Hello there." in dump
    assert not await forgetting.forget(OWNER, id_of(SECRET), cause_id=id_of("cause 2"))


async def test_it_does_not_come_back_for_what_was_received_before(
    worker: Database, query: Database, admin: Admin
) -> None:
    await told(worker, SECRET, "t-1", subject="user", attribute="tattoo")
    assert await ForgettingRepository(query).forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    far = 24 * 365 * 50
    look = await OwnerRepository(worker).look(
        OWNER,
        [
            probe(SECRET, 1),
            probe("Something else of the slot.", 1, subject="user", attribute="tattoo"),
            probe("Something else of the turn.", 1, turn_id="t-1"),
            probe(OTHER, 1, turn_id="t-2", subject="user", attribute="drink"),
            probe(SECRET, far),
        ],
        model=MODEL,
    )
    assert look.forgotten == (True, True, True, False, False)
    assert all(not found for found in look.neighbours)


async def test_the_log_of_turns_cannot_be_rewritten(worker: Database, admin: Admin) -> None:
    await told(worker, SECRET, "t-1")
    with pytest.raises(asyncpg.RaiseError, match="immutable"):
        await admin.execute("UPDATE turn SET messages = '[]'")


async def test_another_owners_memory_is_not_forgotten(worker: Database, query: Database, admin: Admin) -> None:
    await told(worker, SECRET, "t-1")
    for other in (Owner(OWNER.app, "somebody"), Owner("other-app", OWNER.owner)):
        assert not await ForgettingRepository(query).forget(other, id_of(SECRET), cause_id=id_of("cause"))
    assert "heron" in await everything(admin)


async def test_forgetting_is_in_the_history_without_its_text(worker: Database, query: Database, admin: Admin) -> None:
    await told(worker, SECRET, "t-1")
    assert await ForgettingRepository(query).forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    rows = await admin.fetch("SELECT seq, kind, state, content FROM change ORDER BY seq")
    assert [(row["seq"], row["kind"], row["state"], row["content"]) for row in rows] == [
        (1, "added", "LIVE", None),
        (2, "forgotten", "FORGOTTEN", None),
    ]
    assert await admin.fetchval("SELECT (version, seq)::text FROM owner") == "(2,2)"

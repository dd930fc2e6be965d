"""Forgetting on Postgres: nothing of it is left, and it does not come back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg
import pytest

from processors.effects import Effect, Probe, Verdict
from processors.memories import State, StatementOrder
from processors.records import Owner
from processors.routing import Action, Route
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
    confirmation,
    id_of,
    new_memory,
    nothing_done,
    retirement,
    retraction,
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


async def heard(database: Database, turn_id: str, *texts: str, becomes: Effect, **fields: Any) -> None:
    """A turn of messages that say `texts`, and what becomes of it."""
    await TurnRepository(database).begin(OWNER, [accepted(turn_id, *texts, **fields)])
    owners = OwnerRepository(database)
    look = await owners.look(OWNER, [], model=None)
    assert await owners.commit(OWNER, look.version, commit_of(turn_id, becomes))


async def messages_of(admin: Admin, turn_id: str) -> list[str]:
    rows = await admin.fetch(
        "SELECT m ->> 'content' AS text FROM turn, jsonb_array_elements(messages) AS m WHERE id = $1", turn_id
    )
    return [row["text"] for row in rows]


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


async def test_what_was_taken_back_and_said_again_is_forgotten_with_it(
    worker: Database, query: Database, admin: Admin
) -> None:
    for forgotten in ("old", "new"):
        await told(worker, SECRET, f"{forgotten}-1", id=id_of(f"{forgotten} old"))
        back = retraction(f"{forgotten}-2", retirement(id_of(f"{forgotten} old"), State.RETRACTED))
        await heard(worker, f"{forgotten}-2", "No heron, forget it.", becomes=back)
        again = {"id": id_of(f"{forgotten} new"), "restates": id_of(f"{forgotten} old")}
        await told(worker, SECRET, f"{forgotten}-3", **again)
        memory_id = id_of(f"{forgotten} {forgotten}")
        assert await ForgettingRepository(query).forget(OWNER, memory_id, cause_id=id_of(forgotten))
        assert "heron" not in await everything(admin)


async def test_the_words_that_took_it_back_or_repeated_it_go_too(
    worker: Database, query: Database, admin: Admin
) -> None:
    await told(worker, SECRET, "t-1")
    again = replace(confirmation("t-2", id_of(SECRET)), candidate={"text": SECRET, "messages": [0]})
    await heard(worker, "t-2", "The heron tattoo itches.", "Tea, please.", becomes=again)
    took = retraction("t-3", retirement(id_of(SECRET), State.RETRACTED))
    took = replace(took, candidate={"text": SECRET, "messages": [1]}, sources=(), memory_id=None)
    await heard(worker, "t-3", "Hello again.", "Forget that I have a heron.", becomes=took)
    late = replace(nothing_done("t-4", id_of(SECRET)), candidate={"text": SECRET, "messages": []}, sources=())
    await heard(worker, "t-4", "A heron,", "on the arm.", becomes=late)
    same_turn = replace(nothing_done("t-3"), decision_id=id_of("beside"), candidate={"text": "A heron, was it?"})
    owners = OwnerRepository(worker)
    look = await owners.look(OWNER, [], model=None)
    assert await owners.commit(OWNER, look.version, replace(commit_of("t-3", same_turn), turns=()))
    assert await ForgettingRepository(query).forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    assert "heron" not in (await everything(admin)).casefold()
    assert await messages_of(admin, "t-2") == ["[FORGOTTEN]", "Tea, please."]
    assert await messages_of(admin, "t-3") == ["Hello again.", "[FORGOTTEN]"]
    assert await messages_of(admin, "t-4") == ["[FORGOTTEN]", "[FORGOTTEN]"]


async def test_what_was_recalled_for_another_turn_goes_word_for_word(
    worker: Database, query: Database, admin: Admin
) -> None:
    await told(worker, SECRET, "t-1")
    await heard(worker, "t-2", "Tea, please.", becomes=nothing_done("t-2"), recalled=(SECRET, OTHER))
    assert await ForgettingRepository(query).forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    assert await messages_of(admin, "t-2") == ["Tea, please."]
    assert await admin.fetchval("SELECT recalled FROM turn WHERE id = 't-2'") == f'["{OTHER}"]'


@pytest.mark.parametrize(("index", "left"), [(1, ["Hello.", "[FORGOTTEN]"]), (None, ["[FORGOTTEN]", "[FORGOTTEN]"])])
async def test_what_arrives_after_it_was_forgotten_is_not_kept_in_the_log(
    worker: Database, query: Database, admin: Admin, index: int | None, left: list[str]
) -> None:
    await told(worker, SECRET, "t-1")
    await told(worker, OTHER, "t-2")
    assert await ForgettingRepository(query).forget(OWNER, id_of(SECRET), cause_id=id_of("cause"))
    verdict = Verdict(route=Route.FORGOTTEN, action=Action.NOOP, reason="it was forgotten")
    late = replace(nothing_done("t-3"), candidate={}, verdict=verdict, sources=(source_of("t-3", index),))
    await heard(worker, "t-3", "Hello.", "I have a heron.", becomes=late, metadata={"bird": "heron"})
    assert await messages_of(admin, "t-3") == left
    assert await messages_of(admin, "t-2") == ["Hello there.", f"Well: {OTHER}"]
    assert "heron" not in await everything(admin)


async def test_every_copy_of_the_text_is_forgotten_with_the_versions_of_each(
    worker: Database, query: Database, admin: Admin
) -> None:
    await told(worker, SECRET, "t-1", id=id_of("one"))
    await told(worker, SECRET, "t-2", id=id_of("two"))
    await told(worker, OTHER, "t-3")
    assert await ForgettingRepository(query).forget(OWNER, id_of("one"), cause_id=id_of("cause"))
    dump = await everything(admin)
    assert "heron" not in dump
    assert "green tea" in dump
    # What is forgotten has no text: the next time, it is nobody's copy.
    assert await ForgettingRepository(query).forget(OWNER, id_of(OTHER), cause_id=id_of("cause 2"))
    assert await admin.fetchval("SELECT count(*) FROM change WHERE kind = 'forgotten'") == 3

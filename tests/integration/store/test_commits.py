"""What a commit leaves in the tables, beyond what an owner store promises."""

import dataclasses
import json
from datetime import timedelta
from typing import TypeAlias

import asyncpg
import pytest

from processors.effects import Probe, Verdict
from processors.facts import Reading
from processors.memories import State
from processors.normalization import text_hash
from processors.routing import Action, Route
from store.database import Database
from store.owners import OwnerRepository
from tests.fakes.values import (
    MODEL,
    NOON,
    OWNER,
    addition,
    commit_of,
    id_of,
    new_memory,
    nothing_done,
    retirement,
    vector_of,
)

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
def owners(worker: Database) -> OwnerRepository:
    return OwnerRepository(worker)


async def test_a_decision_is_kept_with_what_it_saw_but_not_with_its_words(
    owners: OwnerRepository, admin: Admin
) -> None:
    assert await owners.commit(OWNER, 0, commit_of("t-0", addition("t-0", new_memory("a", subject="user"))))
    [[seen]] = (await owners.look(OWNER, [Probe(text_hash("a"), vector_of("a"))], model=MODEL)).neighbours
    assert seen.memory.content == "a"
    effect = dataclasses.replace(
        addition("t-1", new_memory("b"), retired=[retirement(id_of("a"), by=id_of("b"))]),
        neighbours=(seen,),
        verdict=Verdict(route=Route.ARBITRATE, action=Action.UPDATE, reason="it says more", marked=True),
        arbitration=Reading(
            model="judge", prompt_version="arbitration.v1", tokens_in=300, tokens_out=20, latency_seconds=0.25
        ),
    )
    reading = Reading(model="reader", prompt_version="extraction.v2", tokens_in=700, tokens_out=40)
    commit = commit_of("t-1", effect, nothing_done("t-1"), reading=reading)
    assert await owners.commit(OWNER, 1, commit)

    updated, nothing = await admin.fetch(
        """
        SELECT action, route, marked, memory_id, retired, neighbours::text, model, tokens_in, arbitration_model,
            arbitration_prompt_version, arbitration_tokens_in, arbitration_tokens_out, arbitration_latency_seconds
        FROM decision WHERE cause_id = 't-1' ORDER BY action DESC
        """
    )

    assert tuple(updated)[:5] == ("UPDATE", "arbitrate", True, id_of("b"), [id_of("a")])
    assert json.loads(updated["neighbours"]) == [
        {
            "id": str(id_of("a")),
            "similarity": pytest.approx(1.0),
            "state": "LIVE",
            "same_text": True,
            "same_slot": False,
        }
    ]
    assert tuple(updated)[6:] == ("reader", 700, "judge", "arbitration.v1", 300, 20, 0.25)
    assert tuple(nothing) == ("NOOP", "arbitrate", False, None, [], "[]", "reader", 700, None, None, 0, 0, 0.0)


async def test_every_change_of_a_commit_waits_to_be_published(owners: OwnerRepository, admin: Admin) -> None:
    assert await owners.commit(OWNER, 0, commit_of("t-0", addition("t-0", new_memory("a"))))
    effect = addition("t-1", new_memory("b"), retired=[retirement(id_of("a"), by=id_of("b"))])
    assert await owners.commit(OWNER, 1, commit_of("t-1", effect))
    assert [row["seq"] for row in await admin.fetch("SELECT seq FROM outbox ORDER BY seq")] == [1, 2, 3]
    assert await admin.fetchval("SELECT seq FROM owner") == 3


async def test_a_confirmation_that_an_older_version_wrote_counts_as_the_last_statement(
    owners: OwnerRepository, admin: Admin
) -> None:
    new = new_memory("a")
    assert await owners.commit(OWNER, 0, commit_of("t-0", addition("t-0", new)))
    later = new.order.stated_at + timedelta(days=3)
    await admin.execute("UPDATE memory SET confirmed_at = $1", later)
    [[found]] = (await owners.look(OWNER, [Probe(text_hash("a"), None)], model=None)).neighbours
    assert found.memory.last == new.order._replace(stated_at=later)


async def test_a_long_line_is_cut_around_what_was_asked_about(owners: OwnerRepository) -> None:
    names = [f"n {n}" for n in range(300)]
    chain = [
        new_memory(
            name,
            at=NOON + timedelta(days=n),
            state=State.SUPERSEDED,
            valid_to=NOON + timedelta(days=n + 1),
            superseded_by=id_of(f"n {n + 1}"),
        )
        for n, name in enumerate(names)
    ]
    assert await owners.commit(OWNER, 0, commit_of("t-0", *(addition("t-0", each) for each in chain)))
    look = await owners.look(OWNER, [Probe(text_hash("n 150"), None)], model=None)
    known = {each.content for each in look.lines}
    assert len(known) == 200
    assert {f"n {n}" for n in range(60, 240)} <= known

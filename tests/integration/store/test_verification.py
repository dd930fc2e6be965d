"""What the store alone can tell of the invariants: a store that went through everything is clean, and each way to break
it on purpose is found, and nothing else.

It is broken inside a transaction of the schema's owner that is rolled back, so that one store serves for all.
"""

import importlib
import json
import pkgutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg
import pytest
from mnemostream.turns import Reason
from typer.testing import CliRunner, Result
from typing_extensions import override

import store.verification
from cli.main import app
from processors.effects import Effect, RequestId
from processors.memories import State
from processors.records import Owner, Parking
from store.database import Database
from store.forgetting import ForgettingRepository
from store.owners import OwnerRepository
from store.parking import ParkingRepository
from store.turns import TurnRepository
from store.verification import INNER_ROLES, INVARIANTS, Findings, StoreSweep, check_walls
from store.verification.chains import cycles
from store.verification.findings import CHAINS, FEED, LIVE, WALLS
from store.verification.lookups import Head, TopicLookups
from store.verification.sweep import BATCH_OWNERS
from store.verification.walls import sample, standing
from tests import services
from tests.fakes.values import (
    NOON,
    OWNER,
    accepted,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    nothing_done,
    place_of,
    request_commit,
    retirement,
    retraction,
)
from tests.integration.store.verification_breaks import BREAKS, HARMLESS, HERON, LISBON, PORTO, TEA, WALL_BREAKS

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

LATER = NOON + timedelta(days=1)
FAR = NOON + timedelta(days=36_500)


class _Story:
    """Turns of one owner, each after the other."""

    def __init__(self, worker: Database, owner: Owner = OWNER) -> None:
        self._worker = worker
        self._owner = owner
        self._offset = 0

    async def hear(self, turn_id: str, *effects: Effect, run: int = 0) -> None:
        self._offset += 1
        if not run:
            turn = accepted(turn_id, f"Words of {turn_id}.", owner=self._owner, offset=self._offset)
            await TurnRepository(self._worker).begin(self._owner, [turn])
        owners = OwnerRepository(self._worker)
        look = await owners.look(self._owner, [], model=None)
        commit = replace(commit_of(turn_id, *effects, offset=self._offset), run=run)
        assert await owners.commit(self._owner, look.version, commit)

    async def park(self, turn_id: str) -> None:
        self._offset += 1
        parking = Parking(
            place=place_of(self._offset),
            stage="extract",
            reason=Reason.MODEL_ANSWER_UNUSABLE,
            detail="it is no use",
            attempts=3,
            owner=self._owner,
            turn_ids=(turn_id,),
        )
        await ParkingRepository(self._worker).park(parking)


async def _told(dsn: str) -> None:
    """What can happen to memories and turns, once each."""
    worker = await Database.open(dsn, role="mnemo_worker")
    query = await Database.open(dsn, role="mnemo_query")
    story = _Story(worker)
    await story.hear("t-porto", addition("t-porto", new_memory("Porto")))
    await story.park("t-late")
    await story.hear(
        "t-lisbon",
        addition("t-lisbon", new_memory("Lisbon", supersedes=PORTO), retired=[retirement(PORTO, by=LISBON)]),
    )
    await story.hear("t-again", confirmation("t-again", LISBON, at=LATER))
    await story.hear("t-often", confirmation("t-often", LISBON, at=LATER + timedelta(days=1)))
    await story.hear("t-quiet")
    await story.hear("t-nothing", nothing_done("t-nothing"))
    await story.hear("t-tea", addition("t-tea", new_memory("Tea")))
    to_come = new_memory("Plan", supersedes=TEA, valid_from=FAR)
    await story.hear("t-plan", addition("t-plan", to_come, retired=[retirement(TEA, State.LIVE, at=FAR)]))
    await story.hear("t-late", addition("t-late", new_memory("Late")))
    await story.park("t-poison")
    back = retirement(id_of("Late"), State.RETRACTED, at=LATER)
    await story.hear("t-back", retraction("t-back", back))
    again = new_memory("Late again", restates=id_of("Late"))
    await story.hear("t-restated", addition("t-restated", again))
    await story.hear("t-tea", confirmation("t-tea", TEA, at=LATER), run=1)
    added = replace(addition("r-1", new_memory("Told")), sources=())
    look = await OwnerRepository(query).look(OWNER, [], model=None)
    request = RequestId("CreateMemory", "r-1", b"-" * 32)
    assert await OwnerRepository(query).commit(OWNER, look.version, request_commit(request, added))
    await story.hear("t-heron", addition("t-heron", new_memory("Heron", subject="user", attribute="tattoo")))
    await story.hear("t-heron-2", confirmation("t-heron-2", HERON, at=LATER))
    assert await ForgettingRepository(query).forget(OWNER, HERON, cause_id=id_of("forget"))
    theirs = _Story(worker, Owner("zeta", "user/42"))
    await theirs.hear("t-porto", addition("t-porto", new_memory("Porto")))
    await worker.close()
    await query.close()


@pytest.fixture(scope="module")
def store_dsn(postgres_server: str, template_database: str) -> Iterator[str]:
    name = services.unique_name("verified")
    dsn = services.create_database(postgres_server, name, template=template_database)
    try:
        services.run_async(_told(dsn))
        yield dsn
    finally:
        services.drop_database(postgres_server, name)


@pytest.fixture
async def inside(store_dsn: str) -> AsyncIterator[Admin]:
    """The owner of the schema, in a transaction that comes to nothing."""
    connection = await asyncpg.connect(store_dsn)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    transaction = connection.transaction(isolation="repeatable_read")
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


@asynccontextmanager
async def undone(connection: Admin) -> AsyncIterator[None]:
    """What is done meanwhile comes to nothing."""
    savepoint = connection.transaction(isolation="repeatable_read")
    await savepoint.start()
    yield
    await savepoint.rollback()


class _Inside(Database):
    """A database that is one transaction."""

    def __init__(self, connection: Admin) -> None:
        self._connection = connection

    @override
    @asynccontextmanager
    async def across(self) -> AsyncIterator[Any]:
        yield self._connection


async def swept(
    connection: Admin, *, limit: int = 10, app: str | None = None, batch_owners: int = BATCH_OWNERS
) -> Findings:
    findings = Findings(INVARIANTS, limit=limit)
    await StoreSweep(_Inside(connection), findings, app=app, batch_owners=batch_owners).run()
    return findings


def broken(findings: Findings) -> dict[str, set[str]]:
    return {f.invariant.name: {each.what for each in f.evidence} for f in findings.all if f.broken}


async def test_a_store_that_went_through_everything_is_clean(store_dsn: str) -> None:
    """In the roles of the real processes."""
    findings = Findings(INVARIANTS, limit=10)
    operator = await Database.open(store_dsn, role="mnemo_operator", pool_size=1)
    inner = {role: await Database.open(store_dsn, role=role, pool_size=1) for role in INNER_ROLES}
    said: list[str] = []
    try:
        await check_walls(operator, inner, findings, None)
        await StoreSweep(operator, findings, progress=said.append).run()
    finally:
        for database in (operator, *inner.values()):
            await database.close()
    assert broken(findings) == {}
    counted = {finding.invariant.name: dict(finding.checked) for finding in findings.all}
    assert counted["accepted"] == {"turns": 15}
    assert counted["once"] == {"effects": 16}
    assert counted["order"] == {"turns": 13}
    assert counted["live"] == counted["traceable"] == {"memories": 9}
    assert counted["chains"] == {"pointers": 4}
    assert counted["forgotten"] == {"memories": 1, "tombstones": 1}
    assert counted["feed"]["changes"] == 16
    assert counted["walls"]["looks"] > 60
    assert said[-1].endswith("2 of 2 owners")


async def test_what_is_broken_on_purpose_is_found_and_nothing_else(inside: Admin) -> None:
    found = {}
    for name, (statements, _) in BREAKS.items():
        async with undone(inside):
            await inside.execute(statements)
            found[name] = broken(await swept(inside))
    assert found == {name: expected for name, (_, expected) in BREAKS.items()}


async def test_what_may_be_is_not_taken_for_broken(inside: Admin) -> None:
    for name, statements in HARMLESS.items():
        async with undone(inside):
            await inside.execute(statements)
            assert broken(await swept(inside)) == {}, name


async def test_only_so_much_evidence_is_kept_and_all_of_it_is_counted(inside: Admin) -> None:
    await inside.execute("UPDATE memory SET content = 'x' WHERE state <> 'FORGOTTEN'")
    finding = (await swept(inside, limit=3))[FEED]
    assert (finding.broken, len(finding.evidence), finding.more) == (8, 3, 5)
    assert finding.evidence[0].where["columns"] == ["content"]
    assert "x" not in finding.evidence[0].where.values()


async def test_an_app_is_checked_alone(inside: Admin) -> None:
    await inside.execute("UPDATE memory SET content = 'x' WHERE state <> 'FORGOTTEN'")
    finding = (await swept(inside, app="zeta"))[FEED]
    assert [(each.app, each.owner) for each in finding.evidence] == [("zeta", "user/42")]


async def test_batches_find_what_one_look_finds(inside: Admin) -> None:
    await inside.execute("UPDATE memory SET content = 'x' WHERE state <> 'FORGOTTEN'")
    findings = await swept(inside, batch_owners=1)
    assert findings[FEED].broken == 8
    assert findings[LIVE].checked == {"memories": 9}


_SMALL_TALK = """
    INSERT INTO owner (app, owner) SELECT 'acme', 'quiet/' || n FROM generate_series(1, 6) AS n;
    INSERT INTO ledger (owner_key, turn_id, app, outcome, topic, "partition", "offset", received_at)
    SELECT o.owner_key, 's-' || n, o.app, 'STORED', 'mnemo.turns.v1', 3, n, now()
    FROM owner AS o CROSS JOIN generate_series(1, 40) AS n WHERE o.owner LIKE 'quiet/%'
"""


async def test_owners_of_small_talk_fill_a_batch_too(inside: Admin) -> None:
    """They have turns, and no change."""
    await inside.execute(_SMALL_TALK)
    said: list[str] = []
    findings = Findings(INVARIANTS, limit=10)
    await StoreSweep(_Inside(inside), findings, progress=said.append, batch_rows=100).run()
    done = [int(line.split()[-4]) for line in said]
    assert done[-1] == 8
    assert max(after - before for before, after in zip([0, *done], done, strict=False)) == 3
    assert findings[LIVE].checked == {"memories": 9}


async def test_what_a_reader_of_the_topics_asks_of_the_ledger_comes_page_by_page(inside: Admin) -> None:
    await inside.execute(_SMALL_TALK)
    lookups = TopicLookups(_Inside(inside), ledger_page=7)
    assert await lookups.known_from("mnemo.turns.v1", {0: 5, 3: 40}) == {0, 3}
    assert await lookups.known_from("mnemo.turns.v1", {3: 41, 4: 0}) == set()
    await inside.execute(
        'INSERT INTO parked (topic, "partition", "offset", stage, reason, detail, attempts)'
        " VALUES ('mnemo.turns.v1', 4, 9, 'extract', 'INVALID', '', 1)"
    )
    assert await lookups.known_from("mnemo.turns.v1", {4: 9}) == {4}
    assert await lookups.known_from("mnemo.turns.v1", {4: 10}) == set()
    assert not await lookups.has_other_topics(["mnemo.turns.v1", "mnemo.candidates.v1"])
    assert await lookups.has_other_topics(["new.turns.v1"])


async def test_the_holes_of_a_long_backlog_come_page_by_page(inside: Admin) -> None:
    owner_key = await inside.fetchval("SELECT owner_key FROM owner WHERE app = 'acme'")
    await inside.execute("DELETE FROM outbox WHERE seq > 2")
    head = Head(owner_key, OWNER, 15, 1, 2)
    pages = [page async for page in TopicLookups(_Inside(inside), page=5).holes(head)]
    assert [len(page) for page in pages] == [5, 5, 3]
    assert [seq for page in pages for seq in page] == list(range(3, 16))


async def test_only_apps_that_have_owners_are_looked_at(inside: Admin) -> None:
    await inside.execute("INSERT INTO app (app) SELECT 'a-' || n FROM generate_series(1, 9) AS n")
    assert {app for app, _ in await sample(inside, "a-1")} == {"acme", "zeta"}


async def test_a_hole_in_the_walls_is_found_in_the_catalogue(inside: Admin) -> None:
    for name, (statements, what) in WALL_BREAKS.items():
        async with undone(inside):
            await inside.execute(statements)
            _, found = await standing(inside)
            assert what in {each.what for each in found}, name
    assert await standing(inside) == (11, [])


async def test_what_a_role_sees_of_another_app_is_found_by_looking(
    database_dsn: str, worker: Database, admin: Admin
) -> None:
    await _Story(worker).hear("t-1", addition("t-1", new_memory("Ours")))
    await _Story(worker, Owner("zeta", "ana")).hear("t-1", addition("t-1", new_memory("Theirs")))
    await admin.execute("ALTER TABLE decision DISABLE ROW LEVEL SECURITY")
    query = await Database.open(database_dsn, role="mnemo_query", pool_size=1)
    operator = await Database.open(database_dsn, role="mnemo_operator", pool_size=1)
    findings = Findings([WALLS], limit=20)
    await check_walls(operator, {"mnemo_query": query}, findings, None)
    await query.close()
    await operator.close()
    assert {
        (each.where["inside"], each.where["sees"])
        for each in findings[WALLS].evidence
        if each.what == "a role sees rows of another app" and each.where["table"] == "decision"
    } >= {("acme", "zeta"), ("zeta", "acme"), ("no app", "acme")}
    assert len(findings[WALLS].evidence) == 1 + 4


def test_an_operator_asks_of_one_app_and_without_kafka_what_the_store_can_tell(
    store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", store_dsn)
    monkeypatch.setenv("MNEMO_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("MNEMO_DATA_DIR", "/nothing-runs-here")

    def mnemo(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["verify", *arguments])

    alone = mnemo("--only", "live,walls", "--app", "zeta", "--json")
    assert alone.exit_code == 0, alone.output
    [live, walls] = json.loads(alone.stdout)["invariants"]
    assert (live["name"], live["ok"], live["checked"], live["evidence"], live["more"]) == (
        "live",
        True,
        {"memories": 1},
        [],
        0,
    )
    assert walls["ok"]
    away = mnemo("--app", "zeta")
    assert (away.exit_code, away.stdout) == (3, "")
    assert "Kafka" in away.stderr
    assert mnemo("--only", "live", "--app", "nobody").exit_code == 2


def test_the_cycles_among_pointers_are_found_each_once() -> None:
    assert list(cycles({1: 2, 2: 3, 4: 3})) == []
    assert list(cycles({1: 2, 2: 3, 3: 1, 4: 1, 5: 5})) == [(1, 2, 3), (5,)]
    long = {n: n + 1 for n in range(100_000)}
    assert list(cycles(long)) == []
    assert [len(cycle) for cycle in cycles(long | {100_000: 50_000})] == [50_001]


async def test_every_statement_is_understood_by_the_migrated_schema(inside: Admin) -> None:
    prepared = 0
    for module in pkgutil.iter_modules(store.verification.__path__):
        constants = vars(importlib.import_module(f"store.verification.{module.name}"))
        for name, value in constants.items():
            if isinstance(value, str) and name.isupper() and "SELECT" in value:
                await inside.prepare(value)
                prepared += 1
    assert prepared > 40


def test_there_are_ten_invariants_as_the_design_has_them() -> None:
    assert [invariant.name for invariant in INVARIANTS] == [
        "accepted",
        "once",
        "order",
        "live",
        "chains",
        "traceable",
        "walls",
        "feed",
        "strength",
        "forgotten",
    ]
    assert CHAINS.claim == "supersede chains acyclic and within one owner"

"""`mnemo verify` on a real Kafka and a real Postgres: clean while everything goes on, and what is broken is found."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import le
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition
from mnemostream.turns import Message, Role
from typer.testing import CliRunner, Result

from cli.main import app
from processors.effects import RequestId
from processors.records import Owner, Place
from runtime.settings import Settings, load_settings
from store.database import Database
from store.forgetting import ForgettingRepository
from store.owners import OwnerRepository
from store.turns import TurnRepository
from store.verification import INVARIANTS, Findings, StoreSweep, check_walls
from store.verification.findings import ACCEPTED, FEED, Invariant
from streams.parking import REPLAY_HEADER
from streams.records import RUN_HEADER, origin_headers
from streams.topics import ensure_topics
from streams.verification import verify_topics
from tests.fakes.values import NOON, accepted, addition, id_of, new_memory, request_commit
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import Raw, a_turn, all_records, publish, raw, until

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

STORED = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
BEGUN = "SELECT count(*) FROM turn"
PARKED = "SELECT count(*) FROM parked"
WAITING = "SELECT count(*) FROM outbox"


class System:
    """A system as an operator reaches it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.dsn = environment["MNEMO_POSTGRES_DSN"]
        self.bootstrap = environment["MNEMO_KAFKA_BOOTSTRAP_SERVERS"]
        self.prefix = environment["MNEMO_TOPIC_PREFIX"]
        self.settings: Settings = load_settings(environment)

    async def verify(self, *invariants: Invariant, app: str | None = None) -> Findings:
        """What `mnemo verify` finds."""
        findings = Findings(invariants or INVARIANTS, limit=10)
        operator = await Database.open(self.dsn, role="mnemo_operator", pool_size=1)
        query = await Database.open(self.dsn, role="mnemo_query", pool_size=1)
        try:
            await verify_topics(self.settings, operator, findings, app=app)
            if not invariants:
                await check_walls(operator, {"mnemo_query": query}, findings, app)
            await StoreSweep(operator, findings, app=app).run()
        finally:
            await operator.close()
            await query.close()
        return findings

    async def publish(self, topic: str, *records: Raw) -> list[tuple[int, int]]:
        """Partition and offset of each."""
        return await publish(self.bootstrap, self.prefix + topic, records)

    async def committed(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """As if the stage had worked on everything before `offset`."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=f"{self.settings.consumer_group}-{stage}",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            at = TopicPartition(self.prefix + topic, partition)
            consumer.assign([at])
            await consumer.commit({at: offset})
        finally:
            await consumer.stop()

    async def delete_up_to(self, topic: str, partition: int, offset: int) -> None:
        """As the retention does it."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            at = TopicPartition(self.prefix + topic, partition)
            await admin.delete_records({at: RecordsToDelete(before_offset=offset)})
        finally:
            await admin.close()


async def mnemo(environment: Mapping[str, str], *arguments: str) -> Result:
    """`mnemo verify` as an operator calls it."""
    runner = CliRunner(env={"MNEMO_DATA_DIR": "/nothing-runs-here", **environment})
    return await asyncio.to_thread(runner.invoke, app, ["verify", *arguments])


def broken(findings: Findings) -> dict[str, list[tuple[str, str | None]]]:
    """By invariant: what is broken, and whose it is."""
    return {
        finding.invariant.name: [(each.what, each.owner) for each in finding.evidence]
        for finding in findings.all
        if finding.broken
    }


def a_story(owners: int, turns: int) -> list[Raw]:
    """Each owner moves, says what was said again, and takes things back."""
    said = ("I live in Porto.", "I like green tea.", "I live in Porto.", "I moved to Lisbon.", "I work as a nurse.")
    return [
        raw(a_turn(number, f"user/{owner}", messages=(Message(Role.USER, said[number % len(said)]),)))
        for number in range(turns)
        for owner in range(owners)
    ]


@pytest.fixture
def system(worker_settings: dict[str, str]) -> System:
    return System(worker_settings)


@pytest.fixture
async def admin(system: System) -> AsyncIterator[Admin]:
    connection = await asyncpg.connect(system.dsn)
    yield connection
    await connection.close()


async def test_a_busy_system_is_clean_and_what_is_broken_on_purpose_is_found(
    system: System, start_worker: WorkerStarter, worker_settings: dict[str, str], admin: Admin
) -> None:
    """One system for all of it: to start a worker costs more than the rest."""
    worker = start_worker()
    bad = json.loads(raw(a_turn(90, "user/2"))[1] or b"") | {"messages": []}
    [*_, (partition, offset), _] = await system.publish(
        "turns.v1",
        *a_story(owners=8, turns=6),
        (b"acme/user/2", json.dumps(bad).encode(), ()),
        (b"acme/user/1", b"no turn", ()),
    )
    await until(system.dsn, BEGUN, partial(le, 1))
    while await admin.fetchval(STORED) < 48:
        assert broken(await system.verify()) == {}, "while turns are in flight"
    await until(system.dsn, PARKED, partial(le, 2))
    await _forgotten_and_told(system, admin)
    place = (await all_records(system.bootstrap, f"{system.prefix}turns.v1"), partition, offset)
    await system.publish("turns.v1", _put_back(*place), *await _read_again(system, admin, "user/3"))
    assert await until(system.dsn, STORED, lambda stored: stored >= 51) == 51
    assert await until(system.dsn, WAITING, lambda waiting: waiting == 0) == 0
    assert worker.terminate() == 0

    clean = await system.verify()
    assert broken(clean) == {}
    assert clean[ACCEPTED].checked == {"records": 53, "turns": 49}
    assert clean[FEED].checked["records"] >= clean[FEED].checked["changes"] > 48
    assert (clean[ACCEPTED].waiting, clean[FEED].waiting) == (0, 0)
    shown = await mnemo(worker_settings, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["ok"]) == (0, True), shown.output
    await _lost_turns(system, admin)
    await _on_its_way(system, admin)
    await _lost_changes(system, admin)
    await _past_its_retention(system)
    await _false_records(system)
    shown = await mnemo(worker_settings, "--only", "feed,live", "--only", "chains", "-n", "1")
    lines = shown.stdout.splitlines()
    assert (shown.exit_code, [line.split()[:2] for line in lines if not line.startswith(" ")]) == (
        1,
        [["ok", "live"], ["ok", "chains"], ["BROKEN", "feed"]],
    )
    assert lines[-2].startswith("        ")
    assert lines[-1].strip() == "… and 1 more (--limit shows more)"


def _put_back(records: list[Any], partition: int, offset: int) -> Raw:
    """The turn of a record that was set aside, as it is put back: corrected here, so that it can be read."""
    [record] = [each for each in records if (each.partition, each.offset) == (partition, offset)]
    received_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    key, value, _ = raw(a_turn(90, "user/2"))
    origin = origin_headers(Place(record.topic, partition, offset, received_at))
    return key, value, [*origin, (REPLAY_HEADER, b"1")]


async def _read_again(system: System, admin: Admin, owner: str) -> list[Raw]:
    """Two turns of `owner` in a run of their own."""
    run = await admin.fetchval("INSERT INTO run (turns) VALUES (2) RETURNING run")
    rows = await admin.fetch(
        """
        SELECT t.id, t.topic, t."partition", t."offset", t.received_at
        FROM turn AS t JOIN owner AS o USING (owner_key) WHERE o.owner = $1 ORDER BY t."offset" LIMIT 2
        """,
        owner,
    )
    return [
        (*raw(turn)[:2], [(RUN_HEADER, str(run).encode()), *origin_headers(Place(*list(row)[1:]))])
        for row in rows
        for turn in [a_turn(int(row["id"][1:]), owner, messages=(Message(Role.USER, "I live in Porto."),))]
    ]


async def _forgotten_and_told(system: System, admin: Admin) -> None:
    query = await Database.open(system.dsn, role="mnemo_query", pool_size=1)
    memory_id = await admin.fetchval(
        "SELECT m.id FROM memory AS m JOIN owner AS o USING (owner_key) WHERE o.owner = 'user/0' ORDER BY m.id LIMIT 1"
    )
    assert await ForgettingRepository(query).forget(
        Owner("acme", "user/0"), UUID(str(memory_id)), cause_id=id_of("forget it")
    )
    await _tell(query, "told")
    await query.close()


async def _tell(query: Database, name: str) -> None:
    owners, owner = OwnerRepository(query), Owner("acme", "user/4")
    look = await owners.look(owner, [], model=None)
    added = replace(addition(name, new_memory(f"It is {name}.")), sources=())
    told = request_commit(RequestId("CreateMemory", name, b"-" * 32), added)
    assert await owners.commit(owner, look.version, told)


async def _lost_turns(system: System, admin: Admin) -> None:
    whose = "(SELECT owner_key FROM owner WHERE owner = 'user/5')"
    for table, column in (("ledger", "turn_id"), ("turn", "id")):
        await admin.execute(f"CREATE TABLE saved_{table} AS SELECT * FROM {table} WHERE owner_key = {whose}")
        await admin.execute(f"DELETE FROM {table} WHERE owner_key = {whose} AND {column} = 't3'")
    found = await system.verify(ACCEPTED)
    assert broken(found) == {
        "accepted": [("a turn was read, and is neither stored, nor parked, nor on its way", "user/5")]
    }
    assert found[ACCEPTED].evidence[0].where["turn"] == "t3"
    for table in ("ledger", "turn"):
        await admin.execute(f"INSERT INTO {table} SELECT * FROM saved_{table} ON CONFLICT DO NOTHING")
        await admin.execute(f"DROP TABLE saved_{table}")

    await admin.execute("CREATE TABLE saved AS SELECT * FROM parked WHERE app IS NULL")
    await admin.execute("DELETE FROM parked WHERE app IS NULL")
    assert broken(await system.verify(ACCEPTED)) == {"accepted": [("a record that is no turn was not set aside", None)]}
    assert broken(await system.verify(ACCEPTED, app="zeta")) == {}
    await admin.execute("INSERT INTO parked SELECT * FROM saved")
    await admin.execute("DROP TABLE saved")

    await admin.execute("UPDATE turn SET fingerprint = 'another' WHERE id = 't2' AND owner_key = " + whose)
    assert broken(await system.verify(ACCEPTED)) == {
        "accepted": [("a turn that uses the id of another was not set aside", "user/5")]
    }
    await admin.execute("DELETE FROM turn WHERE id = 't2' AND owner_key = " + whose)
    assert broken(await system.verify(ACCEPTED)) == {}, "what the log of turns has let go of is in the ledger"


async def _on_its_way(system: System, admin: Admin) -> None:
    """Through both topics, by hand: a turn is lost only where neither its record nor its window is still to be read."""
    owner = Owner("acme", "user/6")
    [(partition, offset)] = await system.publish("turns.v1", raw(a_turn(70, owner.owner)))
    found = await system.verify(ACCEPTED)
    assert (broken(found), found[ACCEPTED].waiting) == ({}, 1)
    worker = await Database.open(system.dsn, role="mnemo_worker", pool_size=1)
    pending = replace(accepted("t70", owner=owner), place=Place(f"{system.prefix}turns.v1", partition, offset, NOON))
    await TurnRepository(worker).begin(owner, [pending])
    await worker.close()
    assert broken(await system.verify(ACCEPTED)) == {}
    await system.committed("extract", "turns.v1", partition, offset + 1)
    assert broken(await system.verify(ACCEPTED)) == {
        "accepted": [("a turn is pending, and nothing on the topics brings it on", "user/6")]
    }
    window = {
        "app": owner.app,
        "owner": owner.owner,
        "session": None,
        "turns": [
            {
                "id": "t70",
                "topic": f"{system.prefix}turns.v1",
                "partition": partition,
                "offset": offset,
                "received_at": NOON.isoformat(),
                "said_at": NOON.isoformat(),
            }
        ],
    }
    [at] = await system.publish("candidates.v1", (b"acme/user/6", json.dumps(window).encode(), ()))
    assert broken(await system.verify(ACCEPTED)) == {}
    await system.committed("reconcile", "candidates.v1", at[0], at[1] + 1)
    assert len(broken(await system.verify(ACCEPTED))["accepted"]) == 1
    await admin.execute("DELETE FROM turn WHERE id = 't70'")
    assert broken(await system.verify(ACCEPTED)) == {
        "accepted": [("a turn was read, and is neither stored, nor parked, nor on its way", "user/6")]
    }
    await system.delete_up_to("turns.v1", partition, offset + 1)
    assert broken(await system.verify(ACCEPTED)) == {}
    [(_, last)] = await system.publish("turns.v1", raw(a_turn(71, owner.owner)))
    await system.delete_up_to("turns.v1", partition, last + 1)
    assert broken(await system.verify(ACCEPTED)) == {
        "accepted": [("records were deleted before they were worked on", None)]
    }


async def _lost_changes(system: System, admin: Admin) -> None:
    query = await Database.open(system.dsn, role="mnemo_query", pool_size=1)
    await _tell(query, "told again")
    await query.close()
    found = await system.verify(FEED)
    assert (broken(found), found[FEED].waiting) == ({}, 1)
    seq = await admin.fetchval("SELECT seq FROM outbox")
    await admin.execute("DELETE FROM outbox")
    found = await system.verify(FEED)
    assert broken(found) == {"feed": [("changes are neither in the outbox nor on the topic", "user/4")]}
    assert (found[FEED].evidence[0].where["seq"], found[FEED].evidence[0].where["to"]) == (seq, seq)
    await admin.execute(
        "INSERT INTO outbox (owner_key, seq, app) SELECT owner_key, seq, app FROM change WHERE seq = $1"
        " AND owner_key = (SELECT owner_key FROM owner WHERE owner = 'user/4')",
        seq,
    )
    whose = "owner_key = (SELECT owner_key FROM owner WHERE owner = 'user/7') AND seq = 1"
    was = await admin.fetchval("SELECT importance FROM change WHERE " + whose)
    await admin.execute("UPDATE change SET importance = 11 - importance WHERE " + whose)
    found = await system.verify(FEED)
    assert ("a record says another thing than the history", "user/7") in broken(found)["feed"]
    await admin.execute(f"UPDATE change SET importance = {was} WHERE {whose}")
    assert broken(await system.verify(FEED)) == {}


async def _past_its_retention(system: System) -> None:
    """What the topic of changes no longer has is not missed, also where a late duplicate of it comes first."""
    there = await all_records(system.bootstrap, f"{system.prefix}changes.v1")
    for partition in {record.partition for record in there}:
        await system.delete_up_to("changes.v1", partition, 3)
    last = {record.key: record for record in there}[b"acme/user/7"]
    first = next(record for record in there if record.key == last.key)
    await system.delete_up_to("changes.v1", last.partition, last.offset + 1)
    await system.publish("changes.v1", (first.key, first.value, ()), (last.key, last.value, ()))
    assert broken(await system.verify(FEED)) == {}


async def _false_records(system: System) -> None:
    value = json.dumps({"seq": 999, "app": "acme", "owner": "user/7"}).encode()
    await system.publish("changes.v1", (b"acme/user/7", value, ()), (b"acme/user/7", b"nothing", ()))
    assert sorted(broken(await system.verify(FEED))["feed"]) == [
        ("a record is no change", None),
        ("a record tells of a change that the history does not have", "user/7"),
    ]


async def test_a_system_that_nothing_was_told_yet_is_clean_once_its_topics_are_there(
    system: System, worker_settings: dict[str, str]
) -> None:
    environment = worker_settings | {"MNEMO_TOPIC_PREFIX": f"{system.prefix}young."}
    before = await mnemo(environment)
    assert (before.exit_code, before.stdout) == (3, "")
    assert "`mnemo topics` creates them" in before.stderr
    await ensure_topics(load_settings(environment))
    shown = await mnemo(environment)
    lines = shown.stdout.splitlines()
    assert (shown.exit_code, len(lines), {line.split()[0] for line in lines}) == (0, 10, {"ok"}), shown.output
    assert lines[0].endswith(": 0 records, 0 turns")
    assert lines[6].endswith(" tables, 0 looks, 0 rows")
    assert lines[7].endswith(": 0 records, 0 changes")

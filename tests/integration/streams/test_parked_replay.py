"""`mnemo parked` on a real Kafka and a real Postgres: what was set aside is seen, and put back once."""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from mnemostream.turns import Message, Reason, Role
from typer.testing import CliRunner, Result

from cli.dev.model_server import ModelServer, serve
from cli.main import app
from processors.errors import Rejected
from processors.records import Landed, Parking
from runtime.settings import load_settings
from store.parked import ParkedPlace
from streams.delivery import Record
from streams.kafka import client_options
from streams.outlet import Outgoing, Outlet
from streams.parked_topic import NotThere, ParkedTopic
from streams.parking import Parker
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import (
    Raw,
    WorkerProcess,
    a_turn,
    all_records,
    publish,
    raw,
    rows,
    until,
)

Mnemo = Callable[..., Result]


@dataclass
class Parkings:
    """A ledger of what was set aside."""

    noted: list[Parking] = field(default_factory=list)

    async def park(self, parking: Parking) -> None:
        self.noted.append(parking)


STATES = "SELECT string_agg(id || ' ' || state, ', ' ORDER BY id) FROM turn"


@pytest.fixture
def mnemo(worker_settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Mnemo:
    for name in [name for name in os.environ if name.startswith("MNEMO_") and not name.startswith("MNEMO_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMO_DATA_DIR", str(tmp_path / "nothing-runs-here"))
    for name, value in worker_settings.items():
        monkeypatch.setenv(name, value)
    return lambda *arguments: CliRunner().invoke(app, ["parked", *arguments])


async def answer(mnemo: Mnemo, *arguments: str, exit_code: int = 0) -> Any:
    result = await asyncio.to_thread(mnemo, *arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def lives_in(number: int, town: str) -> Raw:
    text = f"FACT: The user lives in {town}. | subject=user | attribute=home_city"
    return raw(a_turn(number, "ana", messages=(Message(Role.USER, text),)))


def a_window() -> Raw:
    """A window of the turn w1 whose fact has no vector: reconcile has to embed it."""
    when = a_turn(1, "ben").said_at.isoformat()
    turn = {"id": "w1", "topic": "t", "partition": 0, "offset": 1, "received_at": when, "said_at": when}
    fact = {
        "turn": 0,
        "text": "Ben has a cat.",
        "category": "fact",
        "importance": 5,
        "confidence": 0.9,
        "role": "user",
        "said_at": when,
        "messages": [0],
    }
    window = {"app": "acme", "owner": "ben", "session": None, "turns": [turn], "facts": [fact]}
    return b"acme/ben", json.dumps(window).encode(), [("mnemo-schema", b"1"), ("of-its-own", b"\xff")]


@dataclass(frozen=True)
class Story:
    """Where what was set aside stood first."""

    turn: str
    window: str
    unread: str


async def set_aside(story_worker: Callable[[], WorkerProcess], server: ModelServer, where: dict[str, str]) -> Story:
    """A turn and a window are refused, a record is none; then the opposite of the turn is said, and stored."""
    kafka, prefix, dsn = (where[f"MNEMO_{n}"] for n in ("KAFKA_BOOTSTRAP_SERVERS", "TOPIC_PREFIX", "POSTGRES_DSN"))
    turns, candidates = f"{prefix}turns.v1", f"{prefix}candidates.v1"
    worker = story_worker()
    server.control(json.dumps({"mode": "error", "status": 400, "code": "content_filter"}).encode())
    [turn] = await publish(kafka, turns, [lives_in(1, "Porto")])
    [window] = await publish(kafka, candidates, [a_window()])
    [unread] = await publish(kafka, turns, [(None, b"{", [])])
    assert await until(dsn, "SELECT count(*) FROM parked", lambda parked: parked >= 3) == 3
    server.control(b'{"reset": true}')
    await publish(kafka, turns, [lives_in(2, "Lisbon")])
    assert await until(dsn, STATES, lambda states: "t2 STORED" in (states or ""))
    assert worker.terminate() == 0
    places = ((turns, turn), (candidates, window), (turns, unread))
    return Story(*(f"{topic}/{partition}/{offset}" for topic, (partition, offset) in places))


async def check_what_is_shown(mnemo: Mnemo, story: Story) -> None:
    listed = (await answer(mnemo, "list"))["parked"]
    assert {(each["stage"], each["reason"], *each["turnIds"], each["state"]) for each in listed} == {
        ("extract", "missing_key", "waiting"),
        ("reconcile", "model_refused", "w1", "waiting"),
        ("extract", "model_refused", "t1", "waiting"),
    }
    by_filter = await answer(mnemo, "list", "--app", "acme", "--owner", "ana", "--since", "1h")
    assert [each["turnId"] for each in by_filter["parked"]] == ["t1"]
    shown = await answer(mnemo, "show", story.turn)
    assert (shown["record"]["key"], "value" in shown["record"]) == ("acme/ana", False)
    assert {"name": "mnemo-parked-reason", "value": "model_refused"} in shown["record"]["told"]
    shown = await answer(mnemo, "show", story.window.partition(".")[2], "--value")
    assert "Ben has a cat." in shown["record"]["value"]
    assert {"name": "of-its-own", "valueBase64": "/w=="} in shown["record"]["headers"]


async def put_back(mnemo: Mnemo, story: Story, dsn: str) -> None:
    """All of it, then some of it again."""
    dry = await answer(mnemo, "replay", "--all-waiting", "--dry-run")
    assert set(dry["places"]) == {story.turn, story.window, story.unread}
    assert (await answer(mnemo, "replay", "--all-waiting", "--yes"))["replayed"] == 3
    assert (await answer(mnemo, "replay", "--all-waiting", "--yes"))["replayed"] == 0
    assert await rows(dsn, STATES) == [("t1 PENDING, t2 STORED, w1 PENDING",)]
    assert (await answer(mnemo, "replay", story.turn, story.window))["replayed"] == 2
    failed = await answer(mnemo, "replay", story.turn, "turns.v1/0/9999", exit_code=1)
    assert failed["replayed"] == 1
    assert [each["error"] for each in failed["failed"]] == ["nothing was parked there"]


async def test_what_was_parked_is_put_back_with_one_effect_and_overturns_nothing_said_since(
    start_worker: WorkerStarter, worker_settings: dict[str, str], database_dsn: str, mnemo: Mnemo
) -> None:
    kafka, prefix = worker_settings["MNEMO_KAFKA_BOOTSTRAP_SERVERS"], worker_settings["MNEMO_TOPIC_PREFIX"]
    server = ModelServer()
    async with serve(server) as url:
        story_worker = partial(start_worker, MNEMO_MODEL_PROVIDER="openai", MNEMO_OPENAI_BASE_URL=url)
        story = await set_aside(story_worker, server, worker_settings)
        await check_what_is_shown(mnemo, story)
        await put_back(mnemo, story, database_dsn)
        copies = [each for each in await all_records(kafka, f"{prefix}candidates.v1") if each.key == b"acme/ben"]
        assert [(each.value, each.headers[:2]) for each in copies] == [(copies[0].value, copies[0].headers)] * 3
        worker = story_worker()
        stored = "t1 STORED, t2 STORED, w1 STORED"
        assert await until(database_dsn, STATES, lambda states: states == stored) == stored
        waiting = "SELECT count(*) FROM parked WHERE replayed_at IS NULL"
        assert await until(database_dsn, waiting, lambda count: count == 1) == 1
        assert worker.terminate() == 0
    assert await rows(database_dsn, "SELECT content, state FROM memory ORDER BY content") == [
        ("Ben has a cat.", "LIVE"),
        ("The user lives in Lisbon.", "LIVE"),
        ("The user lives in Porto.", "SUPERSEDED"),
    ]
    listed = (await answer(mnemo, "list", "--all"))["parked"]
    assert sorted((each["turnIds"], each["state"], each["tookEffect"], each["replays"]) for each in listed) == [
        ([], "waiting", False, 1),
        (["t1"], "replayed", True, 3),
        (["w1"], "replayed", True, 2),
    ]
    assert len(await all_records(kafka, f"{prefix}parked.v1")) == 4
    assert (await answer(mnemo, "drop", story.unread))["dropped"] == 1
    assert (await answer(mnemo, "list"))["parked"] == []


async def test_what_is_larger_than_its_topic_takes_is_rejected_and_the_next_goes_through(
    worker_settings: dict[str, str], topic_prefix: str
) -> None:
    options = client_options(load_settings(worker_settings))
    candidates = f"{topic_prefix}candidates.v1"
    async with Outlet(options, client_id="test") as outlet:
        for size in (8_500_000, 9_500_000):
            with pytest.raises(Rejected) as rejected:
                await outlet.publish(candidates, key=b"k", value=b"x" * size, headers=[])
            assert rejected.value.reason is Reason.TOO_LARGE
            landed = await outlet.publish(candidates, key=b"k", value=b"y", headers=[])
        assert landed is not None
        records = [Outgoing(b"k", b"x" * size, [("own", None)]) for size in (1, 2, 8_500_000, 3, 9_500_000, 4)]
        partition, before = landed
        returned = await outlet.put_back(candidates, partition, records)
        assert (returned.arrived, returned.refused, returned.failure) == ((0, 1, 3, 5), (2, 4), None)
        assert await outlet.publish(candidates, key=b"k", value=b"z", headers=[]) == Landed(partition, before + 5)
        assert await outlet.partitions(candidates) == {0, 1, 2, 3}


async def test_parked_records_are_read_back_by_their_places_in_any_order(
    worker_settings: dict[str, str], kafka_bootstrap: str, topic_prefix: str
) -> None:
    options = client_options(load_settings(worker_settings))
    parked = f"{topic_prefix}parked.v1"
    parkings = Parkings()
    async with Outlet(options, client_id="test") as outlet, ParkedTopic(options, parked) as topic:
        parker = Parker(outlet, parkings, stage="extract", topic=parked, holds_windows=False)
        values = [b"%d" % n for n in range(300)] + [b"x" * 8_388_000, b"x" * 9_500_000]
        for n, value in enumerate(values):
            key = b"a/large" if n >= 300 else None if n % 50 == 0 else b"a/%d" % (n % 3)
            record = Record("t", 0, n, a_turn(1, "a").said_at, key, value, (("own", b"%d" % n),))
            await parker(record, Reason.INVALID_JSON, "x", 1)
        landed = [parking.landed for parking in parkings.noted]
        assert len({*landed}) == len(values)
        for n in (*range(300), 300, 150, 7, 299, 0, 8, 300):
            read = await topic.read(ParkedPlace("t", 0, n), landed[n])
            assert (read.value, read.headers, read.lost) == (values[n], [("own", b"%d" % n)], None)
        assert "9500000 bytes" in str((await topic.read(ParkedPlace("t", 0, 301), landed[301])).lost)

        last = landed[299]
        assert last is not None
        for place, at, problem in (
            (1, None, "is not known"),
            (1, landed[2], "another record lies at"),
            (1, Landed(last.partition, 10_000), "the topic ends at"),
            (1, Landed(9, 0), f"there is no {parked}/9"),
        ):
            with pytest.raises(NotThere, match=problem):
                await topic.read(ParkedPlace("t", 0, place), at)
    async with ParkedTopic(options, parked) as topic:
        assert (await topic.read(ParkedPlace("t", 0, 299), last)).value == b"299"
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        await admin.start()
        older = RecordsToDelete(before_offset=last.offset)
        await admin.delete_records({TopicPartition(parked, last.partition): older})
        await admin.close()
        with pytest.raises(NotThere, match="gone from the topic"):
            await topic.read(ParkedPlace("t", 0, 296), landed[296])
        assert (await topic.read(ParkedPlace("t", 0, 299), last)).value == b"299"
    async with ParkedTopic(options, parked) as topic:
        with pytest.raises(NotThere, match="past its retention"):
            await topic.read(ParkedPlace("t", 0, 296), landed[296])

"""The worker on a real Kafka and a real Postgres."""

import asyncio
import json
import socket
import time
from collections import defaultdict

from aiokafka.admin import AIOKafkaAdminClient
from mnemostream.turns import Message, Role

from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import Raw, a_turn, all_records, publish, raw, rows, until

LEDGER = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"


async def test_turns_survive_two_kills_once_and_in_order(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    turns = [a_turn(number, f"user/{number % 20}") for number in range(500)]
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [raw(turn) for turn in turns])
    for enough in (100, 300):
        worker = start_worker()
        await until(database_dsn, LEDGER, lambda stored, enough=enough: stored >= enough)
        worker.kill()
    worker = start_worker()
    assert await until(database_dsn, LEDGER, lambda stored: stored >= 500) == 500
    assert worker.terminate() == 0
    order = defaultdict(list)
    for owner, turn_id in await rows(database_dsn, "SELECT owner_key, turn_id FROM ledger ORDER BY decided_at"):
        order[owner].append(int(turn_id[1:]))
    assert len(order) == 20
    assert all(numbers == sorted(set(numbers)) and len(numbers) == 25 for numbers in order.values())
    memories = await rows(
        database_dsn, "SELECT s.turn_id, count(*) FROM memory_source AS s GROUP BY s.turn_id HAVING count(*) <> 1"
    )
    assert memories == []
    assert await rows(database_dsn, "SELECT count(*) FROM memory") == [(500,)]
    assert await rows(database_dsn, "SELECT count(*) FROM parked") == [(0,)]


async def test_a_turn_that_arrives_sixteen_times_at_two_workers_takes_effect_once(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    workers = [start_worker(), start_worker()]
    records = [raw(a_turn(1, "user/1"))] * 16 + [raw(a_turn(2, f"user/{n}")) for n in range(8)]
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", records)
    assert await until(database_dsn, LEDGER, lambda stored: stored >= 9) == 9
    assert [worker.terminate() for worker in workers] == [0, 0]
    assert await rows(database_dsn, "SELECT count(*), count(DISTINCT id) FROM memory") == [(9, 9)]


def _malformed() -> list[tuple[str, Raw]]:
    key, value, _ = raw(a_turn(900, "user/1"))
    assert value is not None
    body = json.loads(value)

    def changed(**fields: object) -> bytes:
        return json.dumps({**body, **fields}).encode()

    return [
        ("missing_key", (None, value, [])),
        ("missing_key", (None, None, [])),
        ("empty_value", (key, None, [])),
        ("empty_value", (key, b"", [])),
        ("invalid_utf8", (key, b"\xff" + value, [])),
        ("invalid_json", (key, value[:-1], [])),
        ("invalid_json", (key, b"[" * 100_000, [])),
        ("invalid_field", (key, b"[]", [])),
        ("invalid_field", (key, changed(said_at="1000000000-01-01T00:00:00Z"), [])),
        ("invalid_field", (key, changed(id="lone \ud800"), [])),
        ("key_mismatch", (b"acme/user/2", value, [])),
        ("key_mismatch", (b"\xff/\xfe", value, [])),
        ("unsupported_schema", (key, value, [("mnemo-schema", b"99")])),
        ("too_large", (key, changed(messages=[{"role": "user", "content": "x" * 2_000_000}]), [("a", b"\x00\xff")])),
        ("id_reused", (key, changed(id="t0", messages=[{"role": "user", "content": "Another."}]), [])),
    ]


async def test_malformed_records_are_parked_untouched_with_their_reason_and_the_good_between_them_are_stored(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    malformed = _malformed()
    records = [raw(a_turn(0, "user/1"))]
    for number, (_, bad) in enumerate(malformed, start=1):
        records += [bad, raw(a_turn(number, "user/1"))]
    places = await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", records)
    good = len(malformed) + 1
    assert await until(database_dsn, LEDGER, lambda stored: stored >= good) == good
    assert await until(database_dsn, "SELECT count(*) FROM parked", lambda parked: parked >= len(malformed)) == len(
        malformed
    )
    assert worker.terminate() == 0
    reasons = {places[1 + 2 * number]: reason for number, (reason, _) in enumerate(malformed)}
    noted = await rows(database_dsn, 'SELECT "partition", "offset", reason, app FROM parked')
    assert {(partition, offset): reason for partition, offset, reason, _ in noted} == reasons
    untrusted = {"missing_key", "empty_value", "invalid_utf8", "invalid_json", "key_mismatch", "unsupported_schema"}
    assert all(app is None for *_, reason, app in noted if reason in untrusted)
    sent = dict(zip(places, records, strict=True))
    parked = await all_records(kafka_bootstrap, f"{topic_prefix}parked.v1")
    assert len(parked) == len(malformed)
    for record in parked:
        headers = dict(record.headers)
        place = (int(headers["mnemo-parked-partition"]), int(headers["mnemo-parked-offset"]))
        assert headers["mnemo-parked-reason"].decode() == reasons[place]
        assert headers["mnemo-parked-stage"] == b"extract"
        assert headers["mnemo-parked-topic"].decode() == f"{topic_prefix}turns.v1"
        key, value, original = sent[place]
        assert (record.key, record.value) == (key, value)
        assert all(header in record.headers for header in original)


async def test_what_stands_on_the_topic_of_candidates_and_is_none_is_parked(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker("reconcile")
    window = {"app": "acme", "owner": "user/1", "session": None, "turns": []}
    records: list[Raw] = [
        (b"acme/user/1", b"{", []),
        (b"acme/user/1", json.dumps({**window, "turns": [{"id": "secret"}]}).encode(), []),
        (b"acme/user/2", json.dumps(window).encode(), []),
        (None, None, []),
    ]
    await publish(kafka_bootstrap, f"{topic_prefix}candidates.v1", records)
    assert await until(database_dsn, "SELECT count(*) FROM parked", lambda parked: parked == 4) == 4
    noted = await rows(database_dsn, "SELECT reason, detail, stage FROM parked ORDER BY reason")
    assert [reason for reason, *_ in noted] == ["invalid_field", "invalid_json", "key_mismatch", "missing_key"]
    assert all(stage == "reconcile" and "secret" not in detail for _, detail, stage in noted)
    assert worker.terminate() == 0


async def test_turns_of_eight_mebibytes_come_through_whatever_they_are_compressed_with(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    codecs = (None, "gzip", "snappy", "lz4", "zstd")
    for number, codec in enumerate(codecs):
        key, value, _ = raw(a_turn(number, "user/1"))
        assert value is not None
        padded = value + b" " * ((8 << 20) - len(value) - 200)
        await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [(key, padded, [])], compression_type=codec)
    assert await until(database_dsn, LEDGER, lambda stored: stored >= len(codecs)) == len(codecs)
    assert worker.terminate() == 0


async def test_the_trace_goes_on_and_received_is_when_the_broker_took_it(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    key, value, _ = raw(a_turn(1, "user/1", messages=(Message(Role.USER, "I live in Lisbon. I live in lisbon!"),)))
    before = time.time()
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [(key, value, [("traceparent", trace)])])
    await until(database_dsn, LEDGER, lambda stored: stored >= 1)
    [window] = await all_records(kafka_bootstrap, f"{topic_prefix}candidates.v1")
    assert dict(window.headers) == {"mnemo-schema": b"1", "traceparent": trace}
    assert window.key == key
    [(received_at,)] = await rows(database_dsn, "SELECT received_at FROM turn")
    assert before - 1 <= received_at.timestamp() <= time.time() + 1
    assert worker.terminate() == 0


async def test_the_operations_endpoint_tells_readiness_and_metrics(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    worker = start_worker()
    worker.event("operations_endpoint")
    assert worker.page("/readyz")[0] == 503
    for _ in range(2):
        worker.event("assigned")
    status, body = worker.page("/readyz")
    assert status == 200, body
    await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [raw(a_turn(1, "user/1"))])
    await until(database_dsn, LEDGER, lambda stored: stored >= 1)
    metrics = worker.page("/metrics")[1]
    assert 'mnemo_records_total{outcome="done",stage="extract"} 1.0' in metrics
    assert 'mnemo_assigned_partitions{stage="reconcile"} 4.0' in metrics
    assert worker.page("/healthz")[0] == 200
    assert worker.terminate() == 0


async def test_a_model_that_hangs_does_not_hold_up_a_stop_and_nothing_is_parked_or_acked(
    start_worker: WorkerStarter,
    worker_settings: dict[str, str],
    kafka_bootstrap: str,
    topic_prefix: str,
    database_dsn: str,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = start_worker(
            MNEMO_MODEL_PROVIDER="openai",
            MNEMO_EMBEDDING_PROVIDER="local",
            MNEMO_OPENAI_API_KEY="sk-nobody",
            MNEMO_OPENAI_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            MNEMO_DRAIN_SECONDS="1",
        )
        await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [raw(a_turn(n, f"user/{n}")) for n in range(5)])
        pending = "SELECT count(*) FROM turn WHERE state = 'PENDING'"
        assert await until(database_dsn, pending, lambda count: count >= 5) == 5
        began = time.monotonic()
        assert worker.terminate() == 0
        assert time.monotonic() - began < 4
    assert await rows(database_dsn, "SELECT count(*) FROM parked") == [(0,)]
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    try:
        offsets = await admin.list_consumer_group_offsets(f"{worker_settings['MNEMO_CONSUMER_GROUP']}-extract")
    finally:
        await admin.close()
    assert all(offset.offset <= 0 for offset in offsets.values())


async def test_a_broker_that_is_away_is_waited_for_and_told_once(start_worker: WorkerStarter) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: whoever connects is refused
        worker = start_worker(MNEMO_KAFKA_BOOTSTRAP_SERVERS=f"127.0.0.1:{taken.getsockname()[1]}")
        waiting = worker.event("waiting")
        assert waiting["waiting_for"] == "Kafka"
        assert worker.page("/readyz")[0] == 503
        assert worker.page("/healthz")[0] == 200
        await asyncio.sleep(1)
        assert worker.terminate() == 0
    assert sum('"waiting"' in line for line in worker.lines) == 1


async def test_missing_topics_are_named_with_the_command_that_creates_them(start_worker: WorkerStarter) -> None:
    worker = start_worker(MNEMO_TOPIC_PREFIX="nobody.made.these.")
    assert worker.wait() == 1
    assert any("nobody.made.these.turns.v1" in line and "mnemo topics" in line for line in worker.lines)


async def test_a_database_without_the_schema_is_told_with_the_command_that_makes_it(
    start_worker: WorkerStarter, empty_database_dsn: str
) -> None:
    worker = start_worker(MNEMO_POSTGRES_DSN=empty_database_dsn)
    assert worker.wait() == 1
    assert any("mnemo migrate" in line for line in worker.lines)

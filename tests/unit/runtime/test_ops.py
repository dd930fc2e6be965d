"""The operations endpoint, over a real socket."""

import asyncio
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry, Counter

from runtime.ops import Check, Health, Heartbeat, OpsServer, Readiness

GOOD = Readiness((Check("postgres", ok=True, detail="schema 1"),))
BAD = Readiness((Check("postgres", ok=True), Check("assignment", ok=False, detail="no partitions yet")))


@contextmanager
def serving(
    health: Callable[[], Health] = Health, ready: Callable[[], Readiness] = Readiness, *, host: str = "127.0.0.1"
) -> Iterator[tuple[int, CollectorRegistry]]:
    registry = CollectorRegistry()
    server = OpsServer(host, 0, registry=registry, health=health, ready=ready)
    port = server.start()
    try:
        yield port, registry
    finally:
        server.stop()


def ask(port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()
    finally:
        connection.close()


def test_what_is_healthy_answers_200_with_each_check() -> None:
    with serving(health=lambda: GOOD) as (port, _):
        status, kind, body = ask(port, "/healthz")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"ok": True, "checks": {"postgres": {"ok": True, "detail": "schema 1"}}}


def test_one_bad_check_is_enough_for_503() -> None:
    with serving(ready=lambda: BAD) as (port, _):
        status, _, body = ask(port, "/readyz")
        assert ask(port, "/healthz")[0] == 200
    assert status == 503
    assert json.loads(body)["checks"]["assignment"] == {"ok": False, "detail": "no partitions yet"}


def test_a_check_that_raises_is_not_good_and_tells_only_its_type() -> None:
    def raises() -> Readiness:
        raise ValueError("I moved to Lisbon")

    with serving(ready=raises) as (port, _):
        status, _, body = ask(port, "/readyz")
    assert status == 503
    assert b"ValueError" in body
    assert b"Lisbon" not in body


def test_metrics_are_those_of_the_registry() -> None:
    with serving() as (port, registry):
        Counter("mnemo_turns", "Turns.", registry=registry).inc(3)
        status, kind, body = ask(port, "/metrics")
        _, openmetrics, _ = ask(port, "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert status == 200
    assert kind.startswith("text/plain")
    assert b"mnemo_turns_total 3.0" in body
    assert openmetrics.startswith("application/openmetrics-text")


def test_other_paths_are_not_there_and_a_head_has_no_body() -> None:
    with serving() as (port, _):
        assert ask(port, "/")[0] == 404
        assert ask(port, "/healthz", "HEAD")[::2] == (200, b"")
        assert ask(port, "/healthz?verbose=1")[0] == 200


def test_nothing_but_reading_is_possible() -> None:
    with serving() as (port, _):
        assert ask(port, "/metrics", "POST")[0] == 501


def test_after_stop_the_port_is_free() -> None:
    server = OpsServer("127.0.0.1", 0, registry=CollectorRegistry(), health=Health, ready=Readiness)
    port = server.start()
    server.stop()
    server.stop()
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))


def test_a_port_that_is_taken_is_an_error() -> None:
    with serving() as (port, _):
        other = OpsServer("127.0.0.1", port, registry=CollectorRegistry(), health=Health, ready=Readiness)
        with pytest.raises(OSError, match="in use"):
            other.start()


def test_a_silent_connection_does_not_keep_others_waiting() -> None:
    with serving() as (port, _), socket.create_connection(("127.0.0.1", port)):
        assert ask(port, "/healthz")[0] == 200


def test_a_heart_is_alive_until_its_last_beat_is_too_old() -> None:
    now = 100.0
    heart = Heartbeat(stale_after_seconds=15, clock=lambda: now)
    assert heart.health().ok
    now = 115.0
    assert heart.check().ok
    now = 115.1
    assert heart.check() == Check("event_loop", ok=False, detail="last beat 15.1 s ago")
    heart.beat()
    assert heart.check().ok


async def test_a_heart_beats_while_the_loop_turns_and_stops_when_told() -> None:
    times = iter(range(10_000))
    heart = Heartbeat(every_seconds=0, clock=lambda: next(times))
    heart.start()
    before = next(times)
    for _ in range(20):
        await asyncio.sleep(0)
    assert next(times) - before > 3
    await heart.stop()
    after = next(times)
    for _ in range(20):
        await asyncio.sleep(0)
    assert next(times) == after + 1

"""Searches a second, beside the same SQL run bare in the same run."""

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from mnemostream.ids import uuid7

from cli.dev.scripted_answers import scripted_vector
from cli.embedded.processes import choose_ports
from processors.effects import Commit, Effect, NewMemory, Verdict
from processors.keys import key_hash, key_prefix, new_key
from processors.memories import StatementOrder
from processors.normalization import text_hash
from processors.records import Owner
from processors.routing import Action, Route
from processors.search import SearchQuery
from processors.vectors import EmbeddingModel, Vector, unpack
from store.database import Database
from store.keys import ApiKeyRepository
from store.owners import OwnerRepository
from store.search import SearchRepository
from tests.bench.http_load import Load, cpu_seconds, summarised
from tests.bench.processes import Machine, program

APP = "bench"
QUERIES = 400
DIMENSIONS = 384
_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_WORDS = (
    *("garden", "kitchen", "violin", "mountain", "harbour", "contract", "invoice", "holiday", "sister", "engine"),
    *("lecture", "breakfast", "museum", "library", "bicycle", "passport", "recipe", "meeting", "budget", "deadline"),
    *("hospital", "concert", "language", "umbrella", "telescope", "workshop"),
)


def content(n: int) -> str:
    """A sentence of some 12 words, different for each `n`."""
    picked = [_WORDS[(n * step + step) % len(_WORDS)] for step in (1, 3, 7, 11)]
    return f"The user's {picked[0]} number {n} has to do with the {picked[1]}, the {picked[2]} and the {picked[3]}."


def vector(text: str) -> Vector:
    """What the scripted model says."""
    return unpack(scripted_vector(text, DIMENSIONS))


async def make_key(dsn: str) -> str:
    """A key of the app of the benchmark."""
    key = new_key(secrets.token_bytes(32))
    database = await Database.open(dsn, role="mnemo_operator", pool_size=1)
    try:
        await ApiKeyRepository(database).create(
            app=APP, key_id=uuid7(), key_hash=key_hash(key), prefix=key_prefix(key), name="bench"
        )
    finally:
        await database.close()
    return key


async def fill(dsn: str, model: EmbeddingModel, *, memories: int, owners: int) -> None:
    """`memories` of `owners` owners, alike in number, by the same commits as the stream."""
    database = await Database.open(dsn, role="mnemo_worker", pool_size=2)
    repository = OwnerRepository(database)
    each = memories // owners
    try:
        for o in range(owners):
            owner = Owner(APP, f"owner-{o}")
            for start in range(0, each, 50):
                effects = tuple(_added(o * each + n) for n in range(start, min(each, start + 50)))
                version = (await repository.look(owner, [], model=None)).version
                commit = Commit(cause_kind="request", effects=effects, embedding_model=model)
                assert await repository.commit(owner, version, commit)
    finally:
        await database.close()


def _added(n: int) -> Effect:
    text, memory_id = content(n), uuid7()
    new = NewMemory(
        id=memory_id,
        content=text,
        content_hash=text_hash(text),
        category="fact",
        importance=5,
        confidence=0.9,
        order=StatementOrder(_NOW, _NOW, 0, 0),
        valid_from=_NOW,
        half_life_seconds=1e7,
        fades_at=_NOW,
        vector=vector(text),
    )
    return Effect(
        decision_id=uuid7(),
        cause_id=f"fill-{n}",
        candidate={},
        neighbours=(),
        verdict=Verdict(route=Route.EXACT, action=Action.ADD, reason="told as exact"),
        memory_id=memory_id,
        new=new,
    )


@contextlib.contextmanager
def query_service(made: Machine, name: str, environment: Mapping[str, str]) -> Iterator[int]:
    """A query service; its port."""
    port, grpc_port = choose_ports(0, 0)
    ports = {"MNEMO_QUERY_PORT": str(port), "MNEMO_GRPC_PORT": str(grpc_port)}
    with program(made, f"{name}-query", ["query"], {**environment, **ports}) as started:
        query_service_pid[port] = started.process.pid
        yield port


query_service_pid: dict[int, int] = {}
"""By port: whose CPU to read."""


def queries(memories: int, owners: int) -> list[dict[str, Any]]:
    """QUERIES different questions, each to one of the owners, as the RPC's JSON."""
    each = memories // owners
    step = memories // QUERIES
    return [{"owner": f"owner-{n * step // each}", "query": content(n * step)} for n in range(QUERIES)]


def by_rpc(port: int, key: str, bodies: list[dict[str, Any]], *, clients: int, seconds: float) -> Load:
    """The load, from a process of its own."""
    job = {
        "host": "127.0.0.1",
        "port": port,
        "path": "/mnemostream.v1.MemoryService/Search",
        "key": key,
        "bodies": bodies,
        "clients": clients,
        "seconds": seconds,
    }
    return _in_process("tests.bench.http_load", job)


def by_sql(dsn: str, model: EmbeddingModel, bodies: list[dict[str, Any]], *, clients: int, seconds: float) -> Load:
    """The same statement without a service, from a process of its own."""
    job = {
        "dsn": dsn,
        "model": [model.name, model.dimensions],
        "bodies": bodies,
        "clients": clients,
        "seconds": seconds,
    }
    return _in_process("tests.bench.searching", job)


def _in_process(module: str, job: Mapping[str, Any]) -> Load:
    done = subprocess.run(
        [sys.executable, "-m", module], input=json.dumps(job).encode(), stdout=subprocess.PIPE, check=True
    )
    return Load(**json.loads(done.stdout))


async def _bare(job: dict[str, Any]) -> Load:
    """What `SearchRepository` sends, on connections of the same kind, nothing around it."""
    model = EmbeddingModel(*job["model"])
    database = await Database.open(job["dsn"], role="mnemo_query", pool_size=job["clients"])
    repository = SearchRepository(database)
    asked = [
        (Owner(APP, body["owner"]), SearchQuery(text=body["query"]), vector(body["query"])) for body in job["bodies"]
    ]
    latencies: list[float] = []

    async def client(offset: int, until: float) -> None:
        position = offset
        while (start := time.perf_counter()) < until:
            owner, query, embedded = asked[position % len(asked)]
            position += 1
            await repository.search(owner, query, embedded, model)
            latencies.append(time.perf_counter() - start)

    start, cpu = time.perf_counter(), cpu_seconds()
    step = max(1, len(asked) // job["clients"])
    async with asyncio.TaskGroup() as group:
        for n in range(job["clients"]):
            group.create_task(client(n * step, start + job["seconds"]))
    load = summarised(latencies, time.perf_counter() - start, cpu_seconds() - cpu)
    await database.close()
    return load


if __name__ == "__main__":
    import uvloop

    print(json.dumps(asdict(uvloop.run(_bare(json.load(sys.stdin))))))

"""The system as anybody sees it: topics, SQL, RPC. Only libraries are used, nothing of the project."""

import asyncio
import json
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, LiteralString, TypeVar

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from tests.chaos.checks import Change, Effect, Name, Observation, Parked, Published
from tests.chaos.workload import Logged, Place, Turn

_METHOD: Final = "/mnemostream.v1.MemoryService/"
_PAGE: Final = 500
_CALLS_AT_ONCE: Final = 8
_READ_SECONDS: Final = 60.0

_Result = TypeVar("_Result")

_LEDGER: Final[LiteralString] = """
    SELECT o.owner, l.turn_id, l.outcome, l."partition", l."offset", l.decided_at
    FROM ledger AS l JOIN owner AS o USING (owner_key)
    ORDER BY l.owner_key, l.turn_id, l.run
"""
_TURNS: Final[LiteralString] = (
    "SELECT o.owner, t.id, t.state, t.reason FROM turn AS t JOIN owner AS o USING (owner_key)"
)
_MEMORIES: Final[LiteralString] = """
    SELECT o.owner, m.id::text, m.content, m.state FROM memory AS m JOIN owner AS o USING (owner_key)
"""
_DECISIONS: Final[LiteralString] = """
    SELECT o.owner, d.cause_id, count(*) AS made
    FROM decision AS d JOIN owner AS o USING (owner_key)
    GROUP BY o.owner, d.cause_id
"""
_HISTORY: Final[LiteralString] = """
    SELECT o.owner, c.seq, c.kind, c.memory_id::text, c.content, c.state, c.cause_id
    FROM change AS c JOIN owner AS o USING (owner_key)
    ORDER BY c.owner_key, c.seq
"""
_OWNERS: Final[LiteralString] = "SELECT owner, seq FROM owner"
_PARKED: Final[LiteralString] = 'SELECT topic, "partition", "offset", reason FROM parked'
_SETTLED: Final[LiteralString] = """
    SELECT o.owner, l.turn_id, l."partition", l."offset" FROM ledger AS l JOIN owner AS o USING (owner_key)
"""
_COUNTS: Final[LiteralString] = """
    SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM parked), (SELECT count(*) FROM outbox)
"""
_OF_TURNS: Final[LiteralString] = """
    SELECT max(l.decided_at), count(*)
    FROM ledger AS l JOIN owner AS o USING (owner_key)
    WHERE (o.owner, l.turn_id) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND l.outcome = 'STORED'
"""


@dataclass(frozen=True, slots=True)
class System:
    """Where it is reached."""

    bootstrap: str
    dsn: str
    prefix: str
    partitions: int
    groups: Sequence[str]
    url: str
    key: str


class Rows:
    """SQL, over a connection that is made anew after it broke."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def fetch(self, query: LiteralString, *values: object) -> list[asyncpg.Record]:
        """Raises OSError, asyncpg.PostgresError, asyncpg.InterfaceError or TimeoutError while Postgres is away."""
        async with self._one_at_a_time:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self._dsn, timeout=5)
            try:
                return await self._connection.fetch(query, *values, timeout=_READ_SECONDS)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._connection.terminate()
                self._connection = None
                raise

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    async def counts(self) -> tuple[int, int, int]:
        """Rows of the ledger, of what is parked, of the outbox."""
        [row] = await self.fetch(_COUNTS)
        return row[0], row[1], row[2]

    async def settled(self) -> tuple[dict[Name, Place], set[Place]]:
        """Turns with an effect, with their places, and places of turns.v1 that are parked."""
        names = {(row[0], row[1]): Place(row[2], row[3]) for row in await self.fetch(_SETTLED)}
        parked = await self.fetch(_PARKED)
        return names, {Place(row[1], row[2]) for row in parked if row[0].endswith("turns.v1")}

    async def all_took_effect(self, names: Sequence[Name]) -> float | None:
        """When the last of `names` was stored; None while one is not, or is parked."""
        [row] = await self.fetch(_OF_TURNS, [owner for owner, _ in names], [turn_id for _, turn_id in names])
        return row[0].timestamp() if row[1] >= len(names) else None


async def all_records(system: System, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    """What stands on a topic now, in order per partition."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=system.bootstrap, enable_auto_commit=False, max_partition_fetch_bytes=8 << 20
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(system.prefix + topic, number) for number in range(system.partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[ConsumerRecord[bytes, bytes]] = []
        async with asyncio.timeout(_READ_SECONDS):
            while any([await consumer.position(each) < end for each, end in ends.items()]):
                for batch in (await consumer.getmany(timeout_ms=300)).values():
                    found += batch
        return found
    finally:
        await consumer.stop()


async def lag(system: System) -> int:
    """Records of turns and candidates whose offsets are not committed by their groups."""
    async with _admin(system.bootstrap) as admin:
        committed = [await admin.list_consumer_group_offsets(group) for group in system.groups]
    done = {each: found.offset for offsets in committed for each, found in offsets.items()}
    consumer = AIOKafkaConsumer(bootstrap_servers=system.bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        left = 0
        for topic in ("turns.v1", "candidates.v1"):
            partitions = [TopicPartition(system.prefix + topic, number) for number in range(system.partitions)]
            ends = await consumer.end_offsets(partitions)
            left += sum(end - max(0, done.get(each, 0)) for each, end in ends.items())
        return left
    finally:
        await consumer.stop()


@asynccontextmanager
async def _admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def observe(system: System, by_value: Mapping[bytes, Turn], rows: Rows) -> Observation:
    """All that is to be seen, by every way there is. The journal is the caller's."""
    seen = Observation()
    await _topics(system, by_value, seen)
    await _tables(rows, seen)
    owners = sorted({logged.turn.owner for logged in seen.log})
    seen.listed = dict(zip(owners, await _called([partial(_listed, system, owner) for owner in owners]), strict=True))
    names = list({(each.turn.owner, each.turn.id): None for each in seen.log if each.turn.kind.is_turn})
    sample = names[:: max(1, len(names) // 300)]
    told = await _called([partial(_told, system, *name) for name in sample])
    seen.told = dict(zip(sample, told, strict=True))
    seen.lag = await lag(system)
    return seen


async def _topics(system: System, by_value: Mapping[bytes, Turn], seen: Observation) -> None:
    async def read(topic: str) -> list[ConsumerRecord[bytes, bytes]]:
        return await all_records(system, topic)

    log: list[Logged] = []
    foreign: list[Place] = []
    for record in await read("turns.v1"):
        turn = by_value.get(record.value or b"")
        place = Place(record.partition, record.offset)
        if turn is None or record.key != turn.key:
            foreign.append(place)
        else:
            log.append(Logged(place, turn))
    seen.log, seen.foreign = log, foreign
    windows = [json.loads(record.value or b"") for record in await read("candidates.v1")]
    seen.candidates = [(window["owner"], turn["id"]) for window in windows for turn in window["turns"]]
    parked = [{name: value.decode() for name, value in record.headers} for record in await read("parked.v1")]
    seen.parked_topic = [
        Parked(
            each["mnemo-parked-topic"].removeprefix(system.prefix),
            Place(int(each["mnemo-parked-partition"]), int(each["mnemo-parked-offset"])),
            each["mnemo-parked-reason"],
            datetime.fromisoformat(each["mnemo-parked-at"]).timestamp(),
        )
        for each in parked
    ]
    seen.feed = [_published(record.value or b"") for record in await read("changes.v1")]


def _published(value: bytes) -> Published:
    told = json.loads(value)
    memory = told["memory"] or {}
    change = Change(
        told["seq"], told["kind"], memory.get("id"), memory.get("content"), memory.get("state"), told["cause"]["id"]
    )
    return Published(told["owner"], change, value)


async def _tables(rows: Rows, seen: Observation) -> None:
    ledger: dict[Name, list[Effect]] = defaultdict(list)
    for row in await rows.fetch(_LEDGER):
        ledger[row[0], row[1]].append(Effect(row[2], Place(row[3], row[4]), row[5].timestamp()))
    seen.ledger = ledger
    seen.turns = {(row[0], row[1]): (row[2], row[3]) for row in await rows.fetch(_TURNS)}
    live: dict[str, dict[str, str]] = defaultdict(dict)
    dead = []
    for owner, memory_id, content, state in await rows.fetch(_MEMORIES):
        if state == "LIVE":
            live[owner][memory_id] = content
        else:
            dead.append((owner, content, state))
    seen.live, seen.dead = live, dead
    seen.decisions = {(row[0], row[1]): row[2] for row in await rows.fetch(_DECISIONS)}
    history: dict[str, list[Change]] = defaultdict(list)
    for row in await rows.fetch(_HISTORY):
        history[row[0]].append(Change(*list(row)[1:]))
    seen.history = history
    seen.seqs = {row[0]: row[1] for row in await rows.fetch(_OWNERS)}
    _, _, seen.outbox = await rows.counts()
    seen.parked = {(_topic(row[0]), Place(row[1], row[2])): row[3] for row in await rows.fetch(_PARKED)}


def _topic(name: str) -> str:
    """Without the prefix."""
    return ".".join(name.split(".")[-2:])


async def _called(calls: Iterable[Callable[[], _Result]]) -> list[_Result]:
    limit = asyncio.Semaphore(_CALLS_AT_ONCE)

    async def one(call: Callable[[], _Result]) -> _Result:
        async with limit:
            return await asyncio.to_thread(call)

    return list(await asyncio.gather(*map(one, calls)))


def _listed(system: System, owner: str) -> dict[str, str]:
    memories: dict[str, str] = {}
    token = ""
    while True:
        page = _call(system, "ListMemories", {"owner": owner, "pageSize": _PAGE, "pageToken": token})
        memories |= {each["id"]: each["content"] for each in page["memories"]}
        token = page["nextPageToken"]
        if not token:
            return memories


def _told(system: System, owner: str, turn_id: str) -> tuple[str, str]:
    turn = _call(system, "GetTurn", {"owner": owner, "turnId": turn_id})
    return turn["state"], turn["reason"]


def _call(system: System, method: str, body: Mapping[str, Any]) -> Any:
    """A call of the RPC, as curl would make it. Raises urllib's errors."""
    request = urllib.request.Request(
        system.url + _METHOD + method,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {system.key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_READ_SECONDS) as answer:
        return json.loads(answer.read())

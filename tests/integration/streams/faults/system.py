"""A scene: topics, a database, a scripted model and workers, what was said in it, and what must be true at its end."""

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any, Final

from mnemostream.turns import Message, Role, Turn
from typing_extensions import override

from cli.dev.model_server import Mode, ModelServer, Wire, serve
from cli.embedded.processes import choose_ports
from tests.integration.streams.faults import groups
from tests.integration.streams.faults.nursery import Nursery, Worker
from tests.integration.streams.test_relay import assert_true, read_feed
from tests.integration.streams.worker_process import Raw, a_turn, all_records, publish, raw, rows, until

CANARY: Final = "quokkazimt"
"""In every text that is said: no log may have it."""
POISON: Final = "unspeakable"
"""In a text that the model cannot make anything of."""
STORED: Final = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
WAITING: Final = "SELECT count(*) FROM outbox"

# The turns of each owner, in the order in which they took effect.
_EFFECTS: Final = (
    "SELECT o.owner, c.cause_id FROM change AS c JOIN owner AS o USING (owner_key) ORDER BY o.owner, c.seq"
)
_DECISIONS: Final = "SELECT o.owner, d.cause_id FROM decision AS d JOIN owner AS o USING (owner_key)"
_LEDGER: Final = (
    "SELECT o.owner, l.turn_id FROM ledger AS l JOIN owner AS o USING (owner_key) WHERE l.outcome = 'STORED'"
)

Place = tuple[str, int, int]


class _Squeamish(ModelServer):
    """Talks nonsense as soon as a text has `POISON`."""

    @override
    def answer(self, wire: Wire, body: bytes, mode: Mode) -> bytes:
        return super().answer(wire, body, "garbage" if POISON.encode() in body and wire == "chat" else mode)


class ScriptedModel:
    """The scripted model server in a thread, on one port for good: it can go away, and come back."""

    def __init__(self) -> None:
        self.server: ModelServer = _Squeamish()
        [self._port] = choose_ports(0)
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._serving: AsyncExitStack | None = None

    def start(self) -> None:
        """Take connections."""
        self._thread.start()
        self.come_back()

    def stop(self) -> None:
        """For good."""
        self.go_away()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def go_away(self) -> None:
        """Connections are refused."""
        self._wait_for(self._close())

    def come_back(self) -> None:
        """They are taken again."""
        self._wait_for(self._open())

    def control(self, **behaviour: Any) -> None:
        """What it does from now on, as `POST /control` has it."""
        self._wait_for(self._control(json.dumps(behaviour).encode()))

    def _wait_for(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _control(self, body: bytes) -> None:
        self.server.control(body)

    async def _open(self) -> None:
        if self._serving is None:
            self._serving = AsyncExitStack()
            await self._serving.enter_async_context(serve(self.server, port=self._port))

    async def _close(self) -> None:
        serving, self._serving = self._serving, None
        if serving is not None:
            await serving.aclose()


@contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    """One that answers."""
    model = ScriptedModel()
    model.start()
    try:
        yield model
    finally:
        model.stop()


@contextmanager
def nursery(directory: Path) -> Iterator[Nursery]:
    """One that starts workers."""
    made = Nursery(directory)
    try:
        yield made
    finally:
        made.close()


class Scene:
    """What is said is numbered by owner; poison is remembered by its place."""

    def __init__(self, bootstrap: str, prefix: str, dsn: str, model: ScriptedModel, workers: Nursery) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.dsn = dsn
        self.model = model
        self.group = f"group-{prefix.rstrip('.')}"
        self.workers: list[Worker] = []
        self.said: dict[str, list[str]] = defaultdict(list)
        self.poison: dict[Place, str] = {}
        self._nursery = workers
        self._unspeakable = 0

    def settings(self, **changes: str) -> dict[str, str]:
        """Of a worker."""
        return {
            "MNEMO_KAFKA_BOOTSTRAP_SERVERS": self.bootstrap,
            "MNEMO_TOPIC_PREFIX": self.prefix,
            "MNEMO_CONSUMER_GROUP": self.group,
            "MNEMO_POSTGRES_DSN": self.dsn,
            "MNEMO_MODEL_PROVIDER": "openai",
            "MNEMO_OPENAI_BASE_URL": self.model.url,
            "MNEMO_OPENAI_API_KEY": "scripted",
            "MNEMO_EMBEDDING_DIMENSIONS": "384",
            "MNEMO_DRAIN_SECONDS": "5",
            **changes,
        }

    def start(self, stages: str = "extract,reconcile", **changes: str) -> Worker:
        """One more worker."""
        worker = self._nursery.start(self.settings(**changes), stages)
        self.workers.append(worker)
        return worker

    @property
    def turns(self) -> int:
        """How many were said that must be stored."""
        return sum(map(len, self.said.values()))

    def a_turn(self, owner: str, *, words: int = 0, **changes: Any) -> Turn:
        """What `owner` says next. Every second owner moves to another town with each turn, the others say new things.

        words: so many more, that mean nothing.
        """
        number = len(self.said[owner])
        text = f"FACT: Likes {CANARY} number {number} of {owner}."
        if int(owner.rpartition("/")[2]) % 2:
            text = f"FACT: Lives in {CANARY.title()}{number}. | subject=user | attribute=home_city"
        text += "\n" + " ".join(f"{number}{place}" for place in range(words))
        turn = a_turn(number, owner, **{"messages": (Message(Role.USER, text),), **changes})
        self.said[owner].append(turn.id)
        return turn

    async def say(
        self, owners: Sequence[str], times: int = 1, *, words: int = 0, skew: Mapping[str, timedelta] | None = None
    ) -> None:
        """Each of `owners` in turn, so many times. skew: whose clock is wrong, and by how much."""
        turns = [self.a_turn(owner, words=words) for _ in range(times) for owner in owners]
        await self.publish("turns.v1", [raw(_shifted(turn, (skew or {}).get(turn.owner))) for turn in turns])

    async def publish(self, topic: str, records: Sequence[Raw]) -> list[Place]:
        """Records on a topic; where they stand."""
        places = await publish(self.bootstrap, f"{self.prefix}{topic}", records)
        return [(f"{self.prefix}{topic}", partition, offset) for partition, offset in places]

    async def poison_turn(self, owner: str) -> None:
        """A record of `owner` that is no turn."""
        [place] = await self.publish("turns.v1", [(f"acme/{owner}".encode(), f'{{"{CANARY}"'.encode(), [])])
        self.poison[place] = "invalid_json"

    async def unspeakable(self, owner: str) -> None:
        """A turn of `owner` that no model can read. It is none of those that must be stored."""
        turn = self.a_turn(owner, messages=(Message(Role.USER, f"{POISON} {CANARY}"),))
        self.said[owner].pop()
        self._unspeakable += 1
        turn = replace(turn, id=f"poison-{self._unspeakable}")
        [place] = await self.publish("turns.v1", [raw(turn)])
        self.poison[place] = "model_answer_unusable"

    async def poison_window(self, owner: str) -> None:
        """A record of `owner` that is no window."""
        [place] = await self.publish("candidates.v1", [(f"acme/{owner}".encode(), f'{{"{CANARY}"'.encode(), [])])
        self.poison[place] = "invalid_json"

    async def stored(self, seconds: float = 90) -> None:
        """Until every turn that was said is."""
        count = await until(self.dsn, STORED, lambda count: count >= self.turns, seconds)
        assert count == self.turns, f"{count} of {self.turns} are stored\n{self.tails()}"

    def tails(self) -> str:
        """The ends of the workers' logs."""
        return "\n".join(f"--- {worker.pid}, {worker.code}\n{worker.log[-2500:]}" for worker in self.workers[-3:])

    async def holds(self, seconds: float = 90) -> None:
        """Nothing is lost, doubled, reordered or wrongly parked, and the feed tells all. Waits for what is open."""
        await self.stored(seconds)
        parked = "SELECT count(*) FROM parked"
        assert await until(self.dsn, parked, lambda count: count >= len(self.poison), seconds) == len(self.poison)
        assert await until(self.dsn, WAITING, lambda waiting: waiting == 0, seconds) == 0
        await self._holds_in_the_store()
        await self._holds_on_the_topics()
        self.keeps_quiet()

    async def _holds_in_the_store(self) -> None:
        said = Counter((owner, turn_id) for owner, ids in self.said.items() for turn_id in ids)
        assert Counter(await rows(self.dsn, _LEDGER)) == said
        assert Counter(await rows(self.dsn, _DECISIONS)) == said
        order: dict[str, list[str]] = defaultdict(list)
        for owner, turn_id in await rows(self.dsn, _EFFECTS):
            if order[owner][-1:] != [turn_id]:
                order[owner].append(turn_id)
        assert order == {owner: ids for owner, ids in self.said.items() if ids}
        assert await rows(self.dsn, "SELECT id, state FROM turn WHERE state NOT IN ('STORED', 'PARKED')") == []
        noted = await rows(self.dsn, 'SELECT topic, "partition", "offset", reason FROM parked')
        assert {(topic, partition, offset): reason for topic, partition, offset, reason in noted} == self.poison

    async def _holds_on_the_topics(self) -> None:
        parked = [dict(record.headers) for record in await all_records(self.bootstrap, f"{self.prefix}parked.v1")]
        places = {
            (
                told["mnemo-parked-topic"].decode(),
                int(told["mnemo-parked-partition"]),
                int(told["mnemo-parked-offset"]),
            )
            for told in parked
        }
        assert places == set(self.poison)
        await assert_true(await read_feed(self.bootstrap, self.prefix), self.dsn)

    def keeps_quiet(self) -> None:
        """No worker's log has a text that was said."""
        for worker in self.workers:
            told = [line for line in worker.log.splitlines() if CANARY in line.lower()]
            assert told == [], told

    async def evict(self) -> None:
        """The broker forgets the members of the groups, as after their session time-out."""
        await groups.evict(self.bootstrap, self.group)

    def kill_all(self) -> None:
        """Whoever still runs, at the end of a test."""
        for worker in self.workers:
            worker.kill()


def _shifted(turn: Turn, by: timedelta | None) -> Turn:
    return turn if by is None else replace(turn, said_at=turn.said_at + by)


async def eventually(condition: Any, what: str, seconds: float = 60) -> None:
    """Until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        await asyncio.sleep(0.02)

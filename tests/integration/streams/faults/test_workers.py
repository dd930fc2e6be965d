"""Workers that are frozen, told to stop, or come and go; and what is delivered again."""

import asyncio
import signal
import time
from datetime import timedelta
from typing import Final

from runtime.failpoints import VARIABLE
from tests.integration.streams.faults import groups
from tests.integration.streams.faults.system import WAITING, Scene, ScriptedModel, eventually
from tests.integration.streams.worker_process import rows, until

OWNERS: Final = [f"user/{number}" for number in range(12)]

_TABLES: Final = """
    SELECT quote_ident(c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind = 'r'
"""
_OF_PARKING: Final = {"parked": "{parked_at,parked_partition,parked_offset}", "turn": "{recorded_at}"}
"""What is parked lies on its topic once more when it is delivered again, and is noted so: when, and where."""
_RELAYS: Final = """
    SELECT count(pg_terminate_backend(pid))
    FROM (
        SELECT DISTINCT pid
        FROM pg_locks
        WHERE locktype = 'advisory' AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS holder
"""


async def tables(dsn: str) -> dict[str, list[tuple[str]]]:
    """Every row of every table."""
    names = [name for (name,) in await rows(dsn, _TABLES)]
    assert len(names) > 10
    return {
        name: sorted(
            await rows(dsn, f"SELECT (to_jsonb(t) - '{_OF_PARKING.get(name, '{}')}'::text[])::text FROM {name} AS t")
        )
        for name in names
    }


async def test_what_a_frozen_worker_holds_is_finished_by_another_and_changes_nothing_when_it_thaws(
    scene: Scene, model: ScriptedModel
) -> None:
    """It holds an owner's row in an open transaction, and turns of others inside their model calls."""
    model.control(latency_seconds=1)
    zombie = scene.start(**{VARIABLE: "store.written=stop@3", "MNEMO_MAX_WINDOW_TURNS": "1"})
    await scene.say(OWNERS, 4)
    await zombie.stopped()
    assert model.server.stats.in_flight > 0
    other = scene.start()
    await scene.stored()  # only once its session in the group, and its transaction, are over
    zombie.send(signal.SIGCONT)
    await scene.say(OWNERS, 2)
    await scene.holds()
    assert await other.terminate() == 0
    if zombie.code is None:
        await scene.say(OWNERS, 2)
        await scene.holds()
        assert await zombie.terminate() == 0
    else:
        assert zombie.code == 1


async def test_a_frozen_relay_publishes_what_it_had_in_hand_a_second_time_and_the_same(scene: Scene) -> None:
    zombie = scene.start(**{VARIABLE: "relay.read=stop@2"})
    await scene.say(OWNERS)
    await until(scene.dsn, WAITING, lambda waiting: waiting == 0)
    await scene.say(OWNERS)
    await zombie.stopped()
    await scene.evict()
    other = scene.start()
    await rows(scene.dsn, _RELAYS)  # as Postgres does with a session that has not said a word for long
    await scene.say(OWNERS)
    await scene.holds()
    zombie.send(signal.SIGCONT)
    await scene.say(OWNERS)
    await scene.holds()
    assert [await worker.terminate() for worker in (other, zombie)] == [0, 0]
    await scene.holds()


async def test_what_is_delivered_from_the_beginning_again_changes_no_row(scene: Scene) -> None:
    worker = scene.start()
    await scene.say(OWNERS, 5)
    await scene.poison_turn(OWNERS[0])
    await scene.poison_window(OWNERS[1])
    await scene.unspeakable(OWNERS[2])
    await scene.holds()
    assert await worker.terminate() == 0
    before, ends = await tables(scene.dsn), await groups.committed(scene.bootstrap, scene.group)
    assert ends["extract"] == scene.turns + 2
    await groups.rewind(scene.bootstrap, scene.group, scene.prefix)
    worker = scene.start()
    deadline = time.monotonic() + 60
    while (reached := await groups.committed(scene.bootstrap, scene.group)) != ends:
        assert time.monotonic() < deadline, reached
        await asyncio.sleep(0.2)
    assert await worker.terminate() == 0
    after = await tables(scene.dsn)
    assert {name for name in before if before[name] != after[name]} == set()
    await scene.holds()


async def test_clocks_that_are_hours_apart_lose_nothing_and_change_no_order(scene: Scene) -> None:
    worker = scene.start()
    for hours in (5, -7, 0, 48, -1):
        skew = {owner: timedelta(hours=hours if number % 3 else -hours) for number, owner in enumerate(OWNERS)}
        await scene.say(OWNERS, 2, skew=skew)
    await scene.holds()
    assert await worker.terminate() == 0


async def test_a_turn_that_runs_when_it_is_time_to_stop_is_finished_and_acked(
    scene: Scene, model: ScriptedModel
) -> None:
    worker = scene.start()
    await worker.ready()
    model.control(latency_seconds=1)
    await scene.say(OWNERS[:3])
    await eventually(lambda: model.server.stats.in_flight == 3, "the turns are read")
    assert await worker.terminate() == 0
    assert (await groups.committed(scene.bootstrap, scene.group))["extract"] == 3
    worker = scene.start()
    await scene.holds()
    assert model.server.stats.chat_calls == 3
    assert await worker.terminate() == 0


async def test_workers_come_and_go_under_load(scene: Scene, model: ScriptedModel) -> None:
    model.control(latency_seconds=0.1)
    serving = [scene.start()]
    for _ in range(2):
        await scene.say(OWNERS, 6)
        serving.append(scene.start())
        leaving = serving.pop(0)
        await serving[0].ready()
        await scene.say(OWNERS, 6)
        assert await leaving.terminate() == 0
    await scene.holds()
    assert [await worker.terminate() for worker in serving] == [0]


async def test_a_stage_that_breaks_ends_the_process_soon_and_the_next_one_goes_on(scene: Scene) -> None:
    worker = scene.start(**{VARIABLE: "extract.acked=fail@2", "MNEMO_DRAIN_SECONDS": "60"})
    await scene.say(OWNERS, 3)
    await worker.event("delivery_crashed")
    assert await worker.ended(15) == 1  # not after a drain of a minute
    await scene.evict()
    worker = scene.start()
    await scene.holds()
    assert await worker.terminate() == 0

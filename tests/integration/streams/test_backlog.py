"""A backlog is read in windows: fewer calls, fewer tokens, the same memories."""

import json

from mnemostream.turns import Message, Role, Turn

from cli.dev.model_server import ModelServer, serve
from tests.integration.streams.conftest import WorkerStarter
from tests.integration.streams.worker_process import a_turn, publish, raw, rows, until

TURNS = 200


def backlog(owner: str) -> list[Turn]:
    """What a chatty owner says: new things, old ones again, and a move now and then."""
    turns = []
    for number in range(TURNS):
        text = f"FACT: The user keeps item {number % 150} in drawer {number % 7}."
        if number % 25 == 0:
            text = f"FACT: The user lives in Town{number}. | subject=user | attribute=home_city"
        turns.append(a_turn(number, owner, messages=(Message(Role.USER, text),)))
    return turns


async def test_two_hundred_turns_that_wait_cost_a_tenth_of_the_calls_and_a_third_of_the_tokens(
    start_worker: WorkerStarter, kafka_bootstrap: str, topic_prefix: str, database_dsn: str
) -> None:
    server = ModelServer()
    costs = []
    async with serve(server) as url:
        for done, (owner, size) in enumerate((("one-by-one", "1"), ("in-windows", "20")), start=1):
            server.control(json.dumps({"reset": True}).encode())
            await publish(kafka_bootstrap, f"{topic_prefix}turns.v1", [raw(turn) for turn in backlog(owner)])
            worker = start_worker(MNEMO_MODEL_PROVIDER="openai", MNEMO_OPENAI_BASE_URL=url, MNEMO_MAX_WINDOW_TURNS=size)
            ledger = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
            assert await until(database_dsn, ledger, lambda count, done=done: count >= done * TURNS) == done * TURNS
            assert worker.terminate() == 0
            extraction = server.stats.schemas["facts"]
            costs.append((extraction, server.stats.endpoints["chat"].tokens_in))
    assert costs[1][0] <= costs[0][0] / 10
    assert costs[1][1] <= costs[0][1] / 3
    memories = [
        await rows(
            database_dsn,
            "SELECT m.content, m.state, m.confirmations, m.valid_from, m.valid_to "
            f"FROM memory AS m JOIN owner AS o USING (owner_key) WHERE o.owner = '{owner}' ORDER BY m.valid_from, m.id",
        )
        for owner in ("one-by-one", "in-windows")
    ]
    assert memories[0] == memories[1]
    assert len(memories[0]) > 100

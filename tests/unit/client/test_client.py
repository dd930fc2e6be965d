import subprocess
import sys
from datetime import datetime

import pytest
from mnemostream import AsyncMnemo, Mnemo, State, messages, types
from mnemostream.v1 import memory_service_pb as pb
from protobuf.wkt import Duration


async def test_without_a_cluster_nothing_is_published() -> None:
    async with AsyncMnemo(api_key="mnk_x", app="acme") as mnemo:
        with pytest.raises(ValueError, match="bootstrap_servers"):
            await mnemo.publish(mnemo.turn("u", [("user", "hello")]))


def test_a_turn_is_of_the_app_of_the_client() -> None:
    turn = Mnemo(api_key="mnk_x", app="acme").turn("u", [("user", "hello")], session="s")
    assert (turn.app, turn.owner, turn.session) == ("acme", "u", "s")
    with pytest.raises(ValueError, match="app"):
        Mnemo(api_key="mnk_x").turn("u", [("user", "hello")])


async def test_the_key_is_shown_nowhere() -> None:
    assert "mnk_secret" not in repr(AsyncMnemo(api_key="mnk_secret"))


def test_a_state_that_is_newer_than_the_client_is_no_error() -> None:
    assert messages.memory(pb.Memory(state=pb.Memory.State(99))).state is State.UNRECOGNIZED
    assert messages.turn_report(pb.Turn(state=pb.Turn.State(99))).state is types.TurnState.UNRECOGNIZED


def test_an_explanation_that_is_newer_than_the_client_is_no_error() -> None:
    newer = pb.Decision(route=pb.Decision.Route(99), action=pb.Decision.Action(99))
    [decision] = messages.explanation(pb.ExplainMemoryResponse(decisions=[newer])).decisions
    assert (decision.route, decision.action) == (types.Route.UNRECOGNIZED, types.Action.UNRECOGNIZED)
    assert (decision.reading, decision.arbitration, decision.memory_id) == (None, None, None)


def test_what_is_unset_in_an_explanation_is_none() -> None:
    answer = pb.ExplainMemoryResponse(
        story="It was told.",
        statements=[pb.Statement(turn_id="t-1"), pb.Statement(turn_id="t-2", message_index=0)],
        decisions=[
            pb.Decision(
                model="m",
                latency=Duration(seconds=1, nanos=500_000_000),
                arbitration=pb.Arbitration(model="a", tokens_in=3),
                neighbours=[pb.DecisionNeighbour(memory_id="x"), pb.DecisionNeighbour(similarity=0.0)],
            )
        ],
    )
    explained = messages.explanation(answer)
    assert [said.message_index for said in explained.statements] == [None, 0]
    assert [said.role for said in explained.statements] == [None, None]
    [decision] = explained.decisions
    assert decision.reading == types.ModelCall("m", "", 0, 0, 1.5)
    assert decision.arbitration == types.ModelCall("a", "", 3, 0, 0.0)
    assert [near.similarity for near in decision.neighbours] == [None, 0.0]


def test_a_time_without_a_zone_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="time zone"):
        messages.list_request("u", {"said_after": datetime(2026, 1, 1)}, page_size=1, page_token=None)  # noqa: DTZ001


def test_the_names_of_the_states_are_those_of_the_wire() -> None:
    shared = {state.name for state in State} - {"UNRECOGNIZED"}
    assert shared == {state.name for state in pb.Memory.State} - {"UNSPECIFIED"}
    assert {mode.name for mode in types.Mode} == {mode.name for mode in pb.SearchRequest.Mode} - {"UNSPECIFIED"}
    turns = {state.name for state in types.TurnState} - {"UNRECOGNIZED"}
    assert turns == {state.name for state in pb.Turn.State} - {"UNSPECIFIED"}
    for ours, theirs in ((types.Route, pb.Decision.Route), (types.Action, pb.Decision.Action)):
        assert set(ours.__members__) - {"UNRECOGNIZED"} == {each.name for each in theirs} - {"UNSPECIFIED"}


def test_making_a_client_loads_neither_kafka_nor_the_rpc_nor_anything_of_the_server() -> None:
    code = "import sys; from mnemostream import Mnemo; Mnemo(api_key='x', bootstrap_servers='y'); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert not loaded & {"aiokafka", "connectrpc", "protobuf", "query", "processors", "store", "memory", "numpy"}

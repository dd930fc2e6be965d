from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mnemostream.redaction import REDACTED, sanitize_lines
from mnemostream.turns import Reason, Role
from mnemostream.v1 import memory_service_pb as pb
from protobuf.wkt import Duration, Struct, Timestamp

from processors.errors import InvalidRequest
from processors.memories import Source
from processors.records import Owner
from processors.search import Filters, Mode, TurnReport, TurnState, Weights
from query import wire
from query.auth import Caller
from query.errors import NotFound, TurnNotOver, TurnParked
from tests.fakes.query import Behind, explanation_of, memory_named, parts
from tests.fakes.values import NOON, id_of

CALLER = Caller("acme", frozenset({"read", "write"}), id_of("key"))
MINE = Owner("acme", "u")


async def field_refused(request: Any) -> str:
    service = parts(Behind()).service
    handlers: dict[type[Any], Any] = {
        pb.SearchRequest: service.search,
        pb.GetMemoryRequest: service.get_memory,
        pb.ListMemoriesRequest: service.list_memories,
        pb.ExplainMemoryRequest: service.explain_memory,
        pb.DeleteMemoryRequest: service.delete_memory,
        pb.GetTurnRequest: service.get_turn,
        pb.CreateMemoryRequest: service.create_memory,
    }
    with pytest.raises(InvalidRequest) as raised:
        await handlers[type(request)](request, CALLER)
    return raised.value.field


async def test_a_search_with_nothing_but_an_owner_has_the_defaults() -> None:
    behind = Behind()
    await parts(behind).service.search(pb.SearchRequest(owner="u", query="q"), CALLER)
    [(owner, query)] = behind.queries
    assert owner == MINE
    assert (query.text, query.limit, query.mode, query.weights) == ("q", 10, Mode.WEIGHTED, Weights())
    assert query.filters == Filters()


async def test_a_search_takes_every_filter() -> None:
    behind = Behind()
    request = pb.SearchRequest(
        owner="u",
        query="q",
        limit=3,
        categories=["fact"],
        types=["t"],
        tags=["a", "b"],
        session="s",
        data_contains=Struct.from_python({"n": 1}),
        min_importance=4,
        min_confidence=0.5,
        said_after=Timestamp.from_datetime(NOON),
        said_before=Timestamp.from_datetime(NOON + timedelta(days=1)),
        include_retired=True,
        mode=pb.SearchRequest.Mode.RRF,
        weights=pb.Weights(text=0.0, recency=0.1),
    )
    await parts(behind).service.search(request, CALLER)
    [(_, query)] = behind.queries
    assert query.mode is Mode.RRF
    assert query.weights == Weights(similarity=0.6, text=0.0, strength=0.2, recency=0.1)
    assert query.filters == Filters(
        categories=("fact",),
        types=("t",),
        tags=("a", "b"),
        session="s",
        data_contains={"n": 1},
        min_importance=4,
        min_confidence=0.5,
        said_after=NOON,
        said_before=NOON + timedelta(days=1),
        include_retired=True,
    )


async def test_a_long_query_is_cut_and_the_answer_says_so() -> None:
    behind = Behind()
    answer = await parts(behind).service.search(pb.SearchRequest(owner="u", query="ä" * 1001), CALLER)
    assert answer.query_cut
    assert behind.queries[0][1].text == "ä" * 1000


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.SearchRequest(query="q"), "owner"),
        (pb.SearchRequest(owner="a\tb"), "owner"),
        (pb.SearchRequest(owner="u", limit=101), "limit"),
        (pb.SearchRequest(owner="u", limit=-1), "limit"),
        (pb.SearchRequest(owner="u", min_importance=11), "minImportance"),
        (pb.SearchRequest(owner="u", min_confidence=float("nan")), "minConfidence"),
        (pb.SearchRequest(owner="u", weights=pb.Weights(text=-1)), "weights.text"),
        (pb.SearchRequest(owner="u", weights=pb.Weights(similarity=0, text=0, strength=0)), "weights"),
        (pb.SearchRequest(owner="u", mode=pb.SearchRequest.Mode(77)), "mode"),
        (pb.SearchRequest(owner="u", session="s\n"), "session"),
        (pb.SearchRequest(owner="u", categories=[""]), "categories[0]"),
        (pb.SearchRequest(owner="u", said_after=Timestamp(seconds=10**15)), "saidAfter"),
        (pb.SearchRequest(owner="u", said_after=Timestamp(nanos=-1)), "saidAfter"),
        (pb.SearchRequest(owner="u", after_turn=pb.AfterTurn()), "afterTurn.turnId"),
        (
            pb.SearchRequest(owner="u", after_turn=pb.AfterTurn(turn_id="t", timeout=Duration(seconds=-1))),
            "afterTurn.timeout",
        ),
        (pb.GetMemoryRequest(owner="u", id="x"), "id"),
        (pb.ExplainMemoryRequest(owner="u", id="x"), "id"),
        (pb.ExplainMemoryRequest(id=str(id_of("m"))), "owner"),
        (pb.DeleteMemoryRequest(owner="u", id="x"), "id"),
        (pb.DeleteMemoryRequest(id=str(id_of("m"))), "owner"),
        (pb.ListMemoriesRequest(owner="u", page_size=1001), "pageSize"),
        (pb.ListMemoriesRequest(owner="u", page_token="x"), "pageToken"),
        (pb.GetTurnRequest(owner="u"), "turnId"),
        (pb.GetTurnRequest(owner="u", turn_id="t" * 129), "turnId"),
        (pb.GetTurnRequest(owner="u", turn_id="t", wait=Duration(seconds=10**18)), "wait"),
        (pb.CreateMemoryRequest(owner="u"), "content"),
        (pb.CreateMemoryRequest(owner="u", content="x" * 501), "content"),
        (pb.CreateMemoryRequest(owner="u", content="x", category="Food"), "category"),
        (pb.CreateMemoryRequest(owner="u", content="x", importance=11), "importance"),
        (pb.CreateMemoryRequest(owner="u", content="x", confidence=1.5), "confidence"),
        (pb.CreateMemoryRequest(owner="u", content="x", tags=[""] * 3), "tags[0]"),
        (pb.CreateMemoryRequest(owner="u", content="x", type="t" * 65), "type"),
        (pb.CreateMemoryRequest(owner="u", content="x", request_id="r" * 129), "requestId"),
        (pb.CreateMemoryRequest(owner="u", content="x", data=Struct.from_python({"a": float("inf")})), "data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_a_field_that_breaks_its_rule_is_named(request_: Any, field: str) -> None:
    assert await field_refused(request_) == field


async def test_a_turn_that_is_over_is_searched_after() -> None:
    behind = Behind(reports={"t": TurnReport(TurnState.STORED)})
    request = pb.SearchRequest(owner="u", query="q", after_turn=pb.AfterTurn(turn_id="t", timeout=Duration(seconds=90)))
    await parts(behind).service.search(request, CALLER)
    assert behind.waits == [timedelta(seconds=60)]
    assert len(behind.queries) == 1


async def test_a_turn_that_is_not_over_in_time_or_unknown_ends_the_search() -> None:
    for state in (TurnState.PENDING, TurnState.UNKNOWN):
        behind = Behind(reports={"t": TurnReport(state)})
        with pytest.raises(TurnNotOver, match=state.value):
            await parts(behind).service.search(
                pb.SearchRequest(owner="u", query="q", after_turn=pb.AfterTurn(turn_id="t")), CALLER
            )
        assert behind.queries == []


async def test_a_parked_turn_ends_the_search_with_its_reason() -> None:
    behind = Behind()
    behind.park("t", Reason.INVALID_FIELD, "messages[0].role")
    with pytest.raises(TurnParked) as raised:
        await parts(behind).service.search(
            pb.SearchRequest(owner="u", query="q", after_turn=pb.AfterTurn(turn_id="t")), CALLER
        )
    assert raised.value.reason is Reason.INVALID_FIELD


async def test_a_memory_is_shown_whole() -> None:
    memory = memory_named(
        "m",
        MINE,
        data={"a": [1, {"b": None}]},
        sources=(Source("t-1", 0, Role.USER, NOON), Source("t-2", None, None, NOON)),
        supersedes=id_of("old"),
        access_count=2**40,
    )
    shown = await parts(Behind(memories=[memory])).service.get_memory(
        pb.GetMemoryRequest(owner="u", id=str(memory.id)), CALLER
    )
    assert shown.state is pb.Memory.State.LIVE
    assert shown.data is not None
    assert shown.data.to_python() == {"a": [1, {"b": None}]}
    assert shown.sources[0].message_index == 0
    assert shown.sources[0].has_field("message_index")
    assert not shown.sources[1].has_field("message_index")
    assert shown.supersedes == str(id_of("old"))
    assert shown.access_count == 2**31 - 1
    assert shown.etag == "1"
    assert shown.recorded_at is not None
    assert shown.recorded_at.to_datetime() == NOON
    assert shown.retired_at is None


async def test_another_owners_and_another_apps_memory_is_not_found() -> None:
    for owner in (Owner("acme", "v"), Owner("other", "u")):
        memory = memory_named("m", owner)
        behind = Behind(memories=[memory])
        service, memory_id = parts(behind).service, str(memory.id)
        with pytest.raises(NotFound):
            await service.get_memory(pb.GetMemoryRequest(owner="u", id=memory_id), CALLER)
        with pytest.raises(NotFound):
            await service.explain_memory(pb.ExplainMemoryRequest(owner="u", id=memory_id), CALLER)
        with pytest.raises(NotFound):
            await service.delete_memory(pb.DeleteMemoryRequest(owner="u", id=memory_id), CALLER)
        assert behind.memories == [memory]


async def test_a_memory_is_forgotten_once() -> None:
    behind = Behind(memories=[memory_named("m", MINE)])
    service, request = parts(behind).service, pb.DeleteMemoryRequest(owner="u", id=str(id_of("m")))
    assert await service.delete_memory(request, CALLER) == pb.DeleteMemoryResponse()
    assert behind.memories == []
    with pytest.raises(NotFound):
        await service.delete_memory(request, CALLER)


async def test_a_memory_is_explained_in_words_and_with_every_record() -> None:
    behind = Behind(memories=[memory_named("m", MINE)])
    behind.explanations[id_of("m")] = explanation_of(behind.memories[0])
    answer = await parts(behind).service.explain_memory(pb.ExplainMemoryRequest(owner="u", id=str(id_of("m"))), CALLER)
    assert answer.story.startswith("On 21 Mar 2025 the user (Ana) said: “I moved.” (turn t-1, message 0).")
    assert [memory.content for memory in answer.line] == ["old", "m"]
    [whole, first] = answer.statements
    assert not whole.has_field("message_index")
    assert (first.turn_id, first.message_index, first.role, first.name, first.text) == (
        "t-1", 0, "user", "Ana", "I moved.",
    )  # fmt: skip
    [decision] = answer.decisions
    assert (decision.route, decision.action) == (pb.Decision.Route.ARBITRATE, pb.Decision.Action.DELETE)
    assert (decision.cause_kind, decision.cause_id, decision.candidate) == ("turn", "t-1", "m")
    assert (decision.reason, decision.marked) == ("moved", True)
    assert list(decision.retired) == [str(id_of("old"))]
    assert (decision.model, decision.prompt_version) == ("reader", "extraction.v2")
    assert (decision.tokens_in, decision.tokens_out) == (10, 2)
    assert decision.latency == Duration.from_timedelta(timedelta(seconds=1.5))
    assert decision.arbitration == pb.Arbitration(
        model="judge", prompt_version="arbitration.v1", tokens_in=20, tokens_out=4, latency=Duration(seconds=2)
    )
    [near, same_slot] = decision.neighbours
    assert (near.memory_id, near.similarity, near.state, near.content) == (
        str(id_of("old")), 0.9, pb.Memory.State.LIVE, "old",
    )  # fmt: skip
    assert not same_slot.has_field("similarity")
    assert same_slot.same_slot


async def test_what_no_model_was_asked_about_has_no_arbitration() -> None:
    behind = Behind(memories=[memory_named("m", MINE)])
    explained = explanation_of(behind.memories[0])
    told = replace(explained.decisions[0], reading=None, arbitration=None)
    behind.explanations[id_of("m")] = replace(explained, decisions=(told,), time_zone="Not/AZone")
    answer = await parts(behind).service.explain_memory(pb.ExplainMemoryRequest(owner="u", id=str(id_of("m"))), CALLER)
    [decision] = answer.decisions
    assert decision.arbitration is None
    assert (decision.model, decision.latency) == ("", Duration())


async def test_pages_hold_every_memory_once() -> None:
    memories = [memory_named(f"m{n}", MINE, recorded_at=NOON + timedelta(seconds=n // 2)) for n in range(7)]
    service = parts(Behind(memories=memories)).service
    seen, token = [], ""
    while True:
        page = await service.list_memories(pb.ListMemoriesRequest(owner="u", page_size=3, page_token=token), CALLER)
        assert page.total_size == 7
        seen += [memory.content for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert sorted(seen) == sorted(memory.content for memory in memories)


async def test_a_turn_is_told_as_it_stands() -> None:
    behind = Behind()
    behind.park("t", Reason.TOO_LARGE, "value")
    service = parts(behind).service
    parked = await service.get_turn(pb.GetTurnRequest(owner="u", turn_id="t"), CALLER)
    assert (parked.state, parked.reason, parked.detail) == (pb.Turn.State.PARKED, "too_large", "value")
    unknown = await service.get_turn(pb.GetTurnRequest(owner="u", turn_id="x", wait=Duration(seconds=2)), CALLER)
    assert unknown.state is pb.Turn.State.UNKNOWN
    assert behind.waits == [timedelta(0), timedelta(seconds=2)]


async def test_a_statement_has_the_defaults() -> None:
    behind = Behind()
    await parts(behind).service.create_memory(pb.CreateMemoryRequest(owner="u", content="x"), CALLER)
    [(owner, statement, request, exact)] = behind.told
    assert owner == MINE
    assert (statement.category, statement.importance, statement.confidence) == ("general", 5, 0.95)
    assert (request, exact) == (None, False)


async def test_a_confidence_of_zero_is_no_default() -> None:
    behind = Behind()
    await parts(behind).service.create_memory(pb.CreateMemoryRequest(owner="u", content="x", confidence=0.0), CALLER)
    assert behind.told[0][1].confidence == 0


async def test_a_statement_is_redacted_like_a_turn() -> None:
    behind = Behind()
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 4
    request = pb.CreateMemoryRequest(
        owner="u",
        content=f"fine\nmy key is {key}",
        tags=[key[:64]],
        data=Struct.from_python({"note": f"use {key}", "password": "hunter2-Tr0ub4dor", "n": 1}),
    )
    await parts(behind, redact=sanitize_lines).service.create_memory(request, CALLER)
    statement = behind.told[0][1]
    assert statement.content == f"fine\n{REDACTED}"
    assert statement.data == {"note": REDACTED, "password": REDACTED, "n": 1}
    assert key[:64] not in statement.tags


async def test_a_statement_that_is_all_secret_is_refused() -> None:
    behind = Behind()
    request = pb.CreateMemoryRequest(owner="u", content="my key is sk-proj-" + "Ab3dEf6hIj9kLm2n" * 4)
    with pytest.raises(InvalidRequest, match="content"):
        await parts(behind, redact=sanitize_lines).service.create_memory(request, CALLER)
    assert behind.told == []


async def test_a_request_id_is_bound_to_the_body() -> None:
    behind = Behind()
    service = parts(behind).service
    when = Timestamp.from_datetime(datetime(2026, 1, 1, tzinfo=UTC))
    for fields in ({}, {}, {"pinned": True}, {"exact": True}, {"valid_from": when}):
        await service.create_memory(
            pb.CreateMemoryRequest(owner="u", content="x", request_id="r", **fields),
            CALLER,  # type: ignore[arg-type]
        )
    hashes = [request.body_hash for _, _, request, _ in behind.told if request is not None]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4
    assert {(r.method, r.request_id) for _, _, r, _ in behind.told if r is not None} == {("CreateMemory", "r")}


def test_what_is_pinned_shows_no_end_of_fading() -> None:
    fading = memory_named("m", MINE, fades_at=NOON)
    pinned = memory_named("m", MINE, fades_at=NOON, pinned=True)
    assert wire.memory(fading).fades_at == Timestamp.from_datetime(NOON)
    assert wire.memory(pinned).fades_at is None

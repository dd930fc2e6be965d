"""Both ports on parts in this process: what every protocol must give, and what no client can break."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from mnemostream.turns import Reason
from mnemostream.v1 import memory_service_pb as pb
from mnemostream.v1.google.rpc.error_details_pb import BadRequest

from processors.errors import ModelUnavailable, StoreUnavailable
from processors.memories import Source
from processors.records import Owner
from query.asgi import MAX_BODY_BYTES, application
from query.grpc_port import GrpcPort
from query.ports import Listening, Ports
from tests.fakes.query import BROKEN, KEY, READER, Behind, listening, memory_named, parts
from tests.fakes.values import NOON, id_of
from tests.integration.query.http_client import Answer, call, call_connect, call_grpc_web, grpc_web_status, request
from tests.integration.query.stock_client import StockClient, load_pool

MINE = Owner("acme", "user/42")
METHOD = "/mnemostream.v1.MemoryService/Search"


@pytest.fixture
def behind() -> Behind:
    sources = (Source("t-1", 0, None, NOON), Source("t-2", None, None, NOON))
    memories = [
        memory_named("Lives in Lisbon", MINE, data={"n": 3, "x": [1.5, None]}, tags=("home",), sources=sources),
        memory_named("Likes olives ✓", MINE, recorded_at=NOON + timedelta(microseconds=1)),
    ]
    return Behind(memories=memories)


@pytest.fixture
async def where(behind: Behind) -> AsyncIterator[Listening]:
    async with listening(parts(behind)) as where:
        yield where


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pool.DescriptorPool:
    return load_pool(Path(tmp_path_factory.mktemp("proto")))


async def post(where: Listening, method: str, body: Any, key: str | None = KEY, **headers: str) -> Answer:
    return await asyncio.to_thread(call, where.http_port, key, method, body, **headers)


REQUESTS = [
    ("Search", {"owner": "user/42", "query": "where?", "mode": "RRF", "minConfidence": 0.5}, pb.SearchResponse),
    ("ListMemories", {"owner": "user/42", "pageSize": 1}, pb.ListMemoriesResponse),
    ("GetTurn", {"owner": "user/42", "turnId": "t-1", "wait": "0.5s"}, pb.Turn),
    ("CreateMemory", {"owner": "user/42", "content": "x", "data": {"n": 1}, "confidence": 0.0}, pb.Memory),
    ("GetMemory", {"owner": "user/42", "id": str(id_of("Lives in Lisbon"))}, pb.Memory),
    ("ExplainMemory", {"owner": "user/42", "id": str(id_of("Lives in Lisbon"))}, pb.ExplainMemoryResponse),
]
INPUTS = {
    "Search": pb.SearchRequest,
    "ListMemories": pb.ListMemoriesRequest,
    "GetTurn": pb.GetTurnRequest,
    "CreateMemory": pb.CreateMemoryRequest,
    "GetMemory": pb.GetMemoryRequest,
    "ExplainMemory": pb.ExplainMemoryRequest,
}


@pytest.mark.parametrize(("method", "body", "output"), REQUESTS, ids=[method for method, *_ in REQUESTS])
async def test_every_protocol_gives_the_same_answer(
    where: Listening, pool: descriptor_pool.DescriptorPool, method: str, body: dict[str, Any], output: Any
) -> None:
    by_json = await post(where, method, body)
    assert by_json.status == 200, by_json.body
    expected = output.from_json(by_json.body)
    message = INPUTS[method].from_json(json.dumps(body))
    assert await asyncio.to_thread(call_connect, where.http_port, KEY, method, message, output) == expected
    payload, trailers = await asyncio.to_thread(call_grpc_web, where.http_port, KEY, method, message)
    assert trailers["grpc-status"] == "0"
    assert payload is not None
    assert output.from_binary(payload) == expected
    # Google's own messages print the same JSON, zero values and all.
    assert await StockClient(pool, where.grpc_port, KEY).call(method, body) == by_json.json()


async def test_every_protocol_forgets(where: Listening, behind: Behind, pool: descriptor_pool.DescriptorPool) -> None:
    names = [f"m{n}" for n in range(4)]
    behind.memories += [memory_named(name, MINE) for name in names]
    bodies = [{"owner": "user/42", "id": str(id_of(name))} for name in names]
    by_json = await post(where, "DeleteMemory", bodies[0])
    assert (by_json.status, by_json.json()) == (200, {})
    message = pb.DeleteMemoryRequest.from_json(json.dumps(bodies[1]))
    answer = await asyncio.to_thread(
        call_connect, where.http_port, KEY, "DeleteMemory", message, pb.DeleteMemoryResponse
    )
    assert answer == pb.DeleteMemoryResponse()
    message = pb.DeleteMemoryRequest.from_json(json.dumps(bodies[2]))
    payload, trailers = await asyncio.to_thread(call_grpc_web, where.http_port, KEY, "DeleteMemory", message)
    assert (payload, trailers["grpc-status"]) == (b"", "0")
    stock = StockClient(pool, where.grpc_port, KEY)
    assert await stock.call("DeleteMemory", bodies[3]) == {}
    assert not {memory.content for memory in behind.memories} & set(names)
    # What is gone is not found, by any of them.
    assert (await post(where, "DeleteMemory", bodies[0])).json()["code"] == "not_found"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stock.call("ExplainMemory", bodies[3])
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_key_that_reads_may_explain_and_not_forget(where: Listening) -> None:
    body = {"owner": "user/42", "id": str(id_of("Lives in Lisbon"))}
    assert (await post(where, "ExplainMemory", body, READER)).status == 200
    assert (await post(where, "DeleteMemory", body, READER)).json()["code"] == "permission_denied"


async def test_an_explanation_is_json_as_the_rest(where: Listening) -> None:
    answer = await post(where, "ExplainMemory", {"owner": "user/42", "id": str(id_of("Lives in Lisbon"))})
    told = answer.json()
    [decision] = told["decisions"]
    assert (decision["route"], decision["action"], decision["latency"]) == ("ARBITRATE", "DELETE", "1.500s")
    assert decision["arbitration"]["tokensIn"] == 20
    assert told["statements"][1]["messageIndex"] == 0
    assert told["memory"]["data"] == {"n": 3, "x": [1.5, None]}
    assert [memory["content"] for memory in told["line"]] == ["old", "Lives in Lisbon"]


async def test_every_protocol_gives_the_same_error(where: Listening, pool: descriptor_pool.DescriptorPool) -> None:
    by_json = await post(where, "Search", {"owner": "user/42", "limit": 101})
    assert by_json.status == 400
    assert by_json.json()["code"] == "invalid_argument"
    violation = {"field": "limit", "description": "must be 1 to 100"}
    assert by_json.json()["details"][0]["debug"]["fieldViolations"] == [violation]

    message = pb.SearchRequest(owner="user/42", limit=101)
    _, trailers = await asyncio.to_thread(call_grpc_web, where.http_port, KEY, "Search", message)
    status = grpc_web_status(trailers)
    assert trailers["grpc-status"] == "3"
    assert status.message == by_json.json()["message"]
    bad = status.details[0].unpack(BadRequest)
    assert bad is not None
    assert bad.field_violations[0].field == "limit"

    stock = StockClient(pool, where.grpc_port, KEY)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stock.call("Search", {"owner": "user/42", "limit": 101})
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details() == status.message
    details = stock.details(raised.value)
    assert details["google.rpc.BadRequest"]["fieldViolations"] == [violation]
    assert details["google.rpc.ErrorInfo"] == {"reason": "INVALID_FIELD", "domain": "mnemostream"}


@pytest.mark.parametrize("key", [None, "mnk_unknown", "nonsense"])
async def test_without_a_good_key_nothing_is_answered_by_any_protocol(
    where: Listening, behind: Behind, pool: descriptor_pool.DescriptorPool, key: str | None
) -> None:
    assert (await post(where, "Search", {"owner": "user/42"}, key)).status == 401
    message = pb.SearchRequest(owner="user/42")
    _, trailers = await asyncio.to_thread(call_grpc_web, where.http_port, key or "", "Search", message)
    assert trailers["grpc-status"] == "16"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await StockClient(pool, where.grpc_port, key).call("Search", {"owner": "user/42"})
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert behind.queries == []


async def test_a_key_that_reads_may_not_tell(where: Listening, pool: descriptor_pool.DescriptorPool) -> None:
    body = {"owner": "user/42", "content": "x"}
    assert (await post(where, "CreateMemory", body, READER)).json()["code"] == "permission_denied"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await StockClient(pool, where.grpc_port, READER).call("CreateMemory", body)
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert (await post(where, "Search", {"owner": "user/42"}, READER)).status == 200


async def test_who_calls_is_asked_before_the_body_is_read(where: Listening) -> None:
    assert (await post(where, "Search", b"[" * 1000, None)).status == 401


async def test_unavailable_says_when_to_come_again(
    where: Listening, behind: Behind, pool: descriptor_pool.DescriptorPool
) -> None:
    behind.error = StoreUnavailable("Postgres at 10.0.0.1 is away")
    answer = await post(where, "Search", {"owner": "user/42"})
    assert answer.status == 503
    assert answer.json()["details"][0]["debug"] == {"retryDelay": "1s"}
    assert "10.0.0.1" not in answer.body.decode()
    behind.error = ModelUnavailable("away", retry_after=timedelta(seconds=2.5))
    stock = StockClient(pool, where.grpc_port, KEY)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stock.call("Search", {"owner": "user/42"})
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert stock.details(raised.value)["google.rpc.RetryInfo"] == {"retryDelay": "2.500s"}


async def test_a_parked_turn_ends_a_search_with_its_reason(where: Listening, behind: Behind) -> None:
    behind.park("t-9", Reason.INVALID_FIELD, "messages[0].role: must be user")
    answer = await post(where, "Search", {"owner": "user/42", "query": "q", "afterTurn": {"turnId": "t-9"}})
    assert answer.json()["code"] == "failed_precondition"
    infos = [detail["debug"] for detail in answer.json()["details"] if detail["type"] == "google.rpc.ErrorInfo"]
    assert infos[0]["metadata"] == {"reason": "invalid_field", "turnId": "t-9"}


async def test_a_defect_is_internal_and_tells_nothing(where: Listening, pool: descriptor_pool.DescriptorPool) -> None:
    answer = await post(where, "Search", {"owner": "user/42", "query": BROKEN})
    assert answer.status == 500
    assert answer.json()["code"] == "internal"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await StockClient(pool, where.grpc_port, KEY).call("Search", {"owner": "user/42", "query": BROKEN})
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert "SELECT" not in answer.body.decode() + str(raised.value)


async def test_the_deadline_of_the_caller_ends_the_work(
    where: Listening, behind: Behind, pool: descriptor_pool.DescriptorPool
) -> None:
    behind.hang = True
    answer = await post(where, "Search", {"owner": "user/42"}, connect_timeout_ms="50")
    assert answer.status == 504
    assert answer.json()["code"] == "deadline_exceeded"
    await asyncio.wait_for(behind.cancelled.get(), 5)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await StockClient(pool, where.grpc_port, KEY).call("Search", {"owner": "user/42"}, timeout=0.1)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(behind.cancelled.get(), 5)


async def test_a_caller_that_goes_away_ends_the_work(where: Listening, behind: Behind) -> None:
    behind.hang = True
    body = b'{"owner":"user/42"}'
    head = f"POST {METHOD} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", where.http_port)
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    await asyncio.wait_for(behind.hanging.get(), 5)
    writer.close()
    await asyncio.wait_for(behind.cancelled.get(), 5)


async def test_a_body_over_the_limit_is_refused_by_every_protocol(
    where: Listening, pool: descriptor_pool.DescriptorPool
) -> None:
    large = {"owner": "user/42", "query": "x" * MAX_BODY_BYTES}
    assert (await post(where, "Search", large)).json()["code"] == "resource_exhausted"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await StockClient(pool, where.grpc_port, KEY).call("Search", large)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_packed_body_is_read_and_a_bomb_is_not(where: Listening) -> None:
    small = gzip.compress(b'{"owner":"user/42","query":"q"}')
    assert (await post(where, "Search", small, content_encoding="gzip")).status == 200
    bomb = gzip.compress(b'{"owner":"' + b"a" * (64 << 20) + b'"}')
    answer = await post(where, "Search", bomb, content_encoding="gzip")
    assert answer.json()["code"] in ("resource_exhausted", "invalid_argument")
    assert (await post(where, "Search", b"\x1f\x8bno", content_encoding="gzip")).json()["code"] == "invalid_argument"


@pytest.mark.parametrize(
    ("path", "method", "kind", "status"),
    [
        ("/", "GET", "", 404),
        ("/metrics", "GET", "", 404),
        ("/mnemostream.v1.MemoryService/", "POST", "application/json", 404),
        ("/mnemostream.v1.MemoryService/DeleteEverything", "POST", "application/json", 404),
        ("/mnemostream.v1.MemoryService/search", "POST", "application/json", 404),
        (METHOD, "GET", "", 405),
        (METHOD, "OPTIONS", "", 405),
        (METHOD, "POST", "", 415),
        (METHOD, "POST", "application/x-www-form-urlencoded", 415),
        (METHOD, "POST", "application/grpc", 415),
        (METHOD, "POST", "text/plain", 415),
    ],
)
async def test_what_is_no_call_gets_a_status_and_a_reason(
    where: Listening, path: str, method: str, kind: str, status: int
) -> None:
    answer = await asyncio.to_thread(request, where.http_port, path, b"{}", kind=kind, method=method)
    assert answer.status == status
    assert answer.json()["message"]


async def test_headers_that_are_no_text_break_nothing(where: Listening) -> None:
    head = f"POST {METHOD} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {KEY}\r\n"
    sent = head.encode() + b"x-strange: \xff\xfe\r\ncontent-length: 19\r\n\r\n" + b'{"owner":"user/42"}'
    with socket.create_connection(("127.0.0.1", where.http_port), timeout=5) as connection:
        await asyncio.to_thread(connection.sendall, sent)
        assert (await asyncio.to_thread(connection.recv, 15)) == b"HTTP/1.1 200 OK"


async def test_a_binary_body_that_is_no_message_is_an_invalid_argument(where: Listening) -> None:
    answer = await asyncio.to_thread(
        request,
        where.http_port,
        METHOD,
        b"\x0a\xff\xff",
        kind="application/proto",
        authorization=f"Bearer {KEY}",
    )
    assert answer.json()["code"] == "invalid_argument"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{where.grpc_port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await channel.unary_unary(METHOD)(b"\x0a\xff\xff", metadata=(("authorization", f"Bearer {KEY}"),))
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_health_and_reflection_need_no_key(where: Listening) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{where.grpc_port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "mnemostream.v1.MemoryService"):
            checked = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert checked.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="mnemostream.v1.MemoryService"),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="google.rpc.BadRequest"),
            reflection_pb2.ServerReflectionRequest(file_by_filename="google/protobuf/struct.proto"),
        ]
        answers = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
    services = {service.name for service in answers[0].list_services_response.service}
    assert services >= {"mnemostream.v1.MemoryService", "grpc.health.v1.Health"}
    assert all(answer.file_descriptor_response.file_descriptor_proto for answer in answers[1:])


async def test_calls_are_counted_by_method_and_code(behind: Behind, pool: descriptor_pool.DescriptorPool) -> None:
    made = parts(behind)
    async with listening(made) as where:
        await post(where, "Search", {"owner": "user/42"})
        await StockClient(pool, where.grpc_port, KEY).call("Search", {"owner": "user/42"})
        await post(where, "Search", {"owner": "user/42", "what": 1})
        await post(where, "Search", {}, None)

    def count(code: str) -> float | None:
        return made.registry.get_sample_value("mnemo_rpc_requests_total", {"method": "Search", "code": code})

    assert (count("OK"), count("INVALID_ARGUMENT"), count("UNAUTHENTICATED")) == (2, 1, 1)
    assert made.registry.get_sample_value("mnemo_rpc_seconds_count", {"method": "Search"}) == 4


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open(where: Listening, behind: Behind) -> None:
    for taken in ({"http": where.http_port, "grpc": 0}, {"http": 0, "grpc": where.grpc_port}):
        with pytest.raises(OSError, match=r"in use|cannot be bound"):
            await _start(behind, taken["http"], taken["grpc"])


async def _start(behind: Behind, http_port: int, grpc_port: int) -> None:
    made = parts(behind)
    ports = Ports(application(made.gate, made.methods), GrpcPort(made.gate, made.methods), drain_seconds=1)
    await ports.start(http=("127.0.0.1", http_port), grpc=("127.0.0.1", grpc_port))

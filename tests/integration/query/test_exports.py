"""`ExportOwner` by every protocol, on parts in this process; and what a reader cannot do to it."""

import asyncio
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict
from mnemostream import (
    AsyncMnemo,
    Change,
    DeadlineExceeded,
    Decision,
    ExportEnd,
    ExportHeader,
    LoggedTurn,
    Memory,
    Mnemo,
    ResourceExhausted,
    ServerFault,
    Unauthenticated,
    Unavailable,
)
from mnemostream.types import TurnState
from mnemostream.v1 import memory_service_pb as pb

from cli.rpc import Endpoint, stream
from processors.errors import StoreUnavailable
from processors.records import Owner
from query.auth import Caller
from query.errors import ExportTooSlow, TooManyExports
from query.exporting import Patience
from query.ports import Listening
from tests.fakes.query import KEY, OTHER, READER, Behind, listening, memory_named, parts
from tests.fakes.values import NOON, id_of
from tests.integration.query.http_client import PATH, call, request
from tests.integration.query.stock_client import SERVICE, StockClient, load_pool

MINE = Owner("acme", "user/42")
CALLER = Caller("acme", frozenset({"read"}), id_of("key"))
ASKED = {"owner": "user/42"}


def behind_with(memories: int) -> Behind:
    return Behind(memories=[memory_named(f"m{n}", MINE, data={"n": n}) for n in range(memories)])


def connect(where: Listening, kind: str, body: bytes, key: str | None = KEY) -> list[tuple[int, bytes]]:
    """The frames that a Connect client gets."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    frame = struct.pack(">BI", 0, len(body)) + body
    answer = request(where.http_port, f"{PATH}ExportOwner", frame, kind=f"application/connect+{kind}", **headers)
    assert answer.status == 200, answer.body
    frames, rest = [], answer.body
    while rest:
        flags, length = struct.unpack(">BI", rest[:5])
        frames.append((flags, rest[5 : 5 + length]))
        rest = rest[5 + length :]
    return frames


async def by_grpc(where: Listening, pool: descriptor_pool.DescriptorPool, key: str = KEY) -> list[dict[str, Any]]:
    """What a client gets that knows nothing but the proto file."""
    stock = StockClient(pool, where.grpc_port, key)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{where.grpc_port}") as channel:
        rpc = channel.unary_stream(
            f"/{SERVICE}/ExportOwner",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=stock.message("mnemostream.v1.ExportOwnerResponse").FromString,
        )
        asked = ParseDict(ASKED, stock.message("mnemostream.v1.ExportOwnerRequest")())
        answers = rpc(asked, metadata=(("authorization", f"Bearer {key}"),), timeout=10)
        return [MessageToDict(each, always_print_fields_with_no_presence=True) async for each in answers]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pool.DescriptorPool:
    return load_pool(Path(tmp_path_factory.mktemp("proto")))


async def test_every_protocol_gives_the_same_lines(pool: descriptor_pool.DescriptorPool) -> None:
    asked = pb.ExportOwnerRequest(owner="user/42")
    async with listening(parts(behind_with(2))) as where:
        frames = await asyncio.to_thread(connect, where, "json", json.dumps(ASKED).encode())
        binary = await asyncio.to_thread(connect, where, "proto", asked.to_binary())
        web = await asyncio.to_thread(_grpc_web, where, asked.to_binary())
        lines = [json.loads(body) for flags, body in frames if flags == 0]
        assert await by_grpc(where, pool) == lines
        endpoint = Endpoint(f"http://127.0.0.1:{where.http_port}", KEY)
        assert await asyncio.to_thread(lambda: list(stream(endpoint, "ExportOwner", ASKED))) == lines
    assert [body for flags, body in frames if flags] == [b"{}"]
    assert [next(iter(line)) for line in lines] == [
        "header",
        *("memory", "change", "change", "turn", "decision") * 2,
        "end",
    ]
    assert lines[0]["header"] == {
        "app": "acme",
        "owner": "user/42",
        "seq": "2",
        "version": "7",
        "exportedAt": "2025-03-21T12:00:00Z",
        "schema": 1,
    }
    assert lines[4]["turn"]["metadata"] == {"n": 1, "x": [1.5]}
    assert '"metadata":{"n":1,' in frames[4][1].decode()
    assert lines[-1] == {"end": {"memories": "2", "changes": "4", "turns": "2", "decisions": "2"}}
    expected = [pb.ExportOwnerResponse.from_json(json.dumps(line)) for line in lines]
    assert [pb.ExportOwnerResponse.from_binary(body) for flags, body in binary if flags == 0] == expected
    assert [pb.ExportOwnerResponse.from_binary(body) for body in web] == expected


def _grpc_web(where: Listening, body: bytes) -> list[bytes]:
    frame = struct.pack(">BI", 0, len(body)) + body
    headers = {"authorization": f"Bearer {KEY}", "x_grpc_web": "1"}
    answer = request(where.http_port, f"{PATH}ExportOwner", frame, kind="application/grpc-web+proto", **headers)
    found, rest = [], answer.body
    while rest:
        flags, length = struct.unpack(">BI", rest[:5])
        if not flags & 0x80:
            found.append(rest[5 : 5 + length])
        rest = rest[5 + length :]
    return found


async def test_the_client_gives_values(pool: descriptor_pool.DescriptorPool) -> None:
    behind = behind_with(1)
    async with listening(parts(behind)) as where:
        url = f"http://127.0.0.1:{where.http_port}"
        async with AsyncMnemo(url=url, api_key=READER) as mnemo:
            lines = [line async for line in mnemo.export("user/42")]
            found = await mnemo.get_memory("user/42", str(id_of("m0")))
        blocking = await asyncio.to_thread(lambda: _blocking(url))
    header, memory, change, erased, turn, decision, end = lines
    assert isinstance(header, ExportHeader)
    assert (header.seq, header.version, header.exported_at) == (1, 7, NOON)
    assert memory == found
    assert isinstance(change, Change)
    assert (change.seq, change.memory, change.cause.id) == (1, memory, "t-1")
    assert change.decision == str(id_of("decision"))
    assert isinstance(erased, Change)
    assert (erased.memory, erased.decision) == (None, None)
    assert isinstance(turn, LoggedTurn)
    assert (turn.state, turn.said_at, turn.metadata) == (TurnState.STORED, NOON, {"n": 1, "x": [1.5]})
    assert [message.role for message in turn.messages] == ["user", "assistant"]
    assert isinstance(decision, Decision)
    assert end == ExportEnd(memories=1, changes=2, turns=1, decisions=1)
    assert blocking == (lines, [ExportHeader])


def _blocking(url: str) -> Any:
    with Mnemo(url=url, api_key=KEY) as mnemo:
        begun = mnemo.export("user/42")
        first = [type(next(begun))]
        begun.close()
        return list(mnemo.export("user/42")), first


@pytest.mark.parametrize(
    ("key", "error", "expected"),
    [
        ("mnk_unknown", None, Unauthenticated),
        (KEY, StoreUnavailable("away"), Unavailable),
        (KEY, ZeroDivisionError(), ServerFault),
    ],
)
async def test_what_goes_wrong_is_told_as_ever(key: str, error: Exception | None, expected: type[Exception]) -> None:
    behind = behind_with(1)
    behind.error = error
    async with listening(parts(behind)) as where:
        async with AsyncMnemo(url=f"http://127.0.0.1:{where.http_port}", api_key=key) as mnemo:
            with pytest.raises(expected):
                await anext(mnemo.export("user/42"))


async def test_an_owner_of_another_app_is_not_in_it() -> None:
    async with listening(parts(behind_with(1))) as where:
        async with AsyncMnemo(url=f"http://127.0.0.1:{where.http_port}", api_key=OTHER) as mnemo:
            lines = [line async for line in mnemo.export("user/42")]
    assert not any(isinstance(line, Memory) for line in lines)


async def test_a_stream_is_not_asked_for_as_plain_json_nor_the_others_as_streams() -> None:
    async with listening(parts(behind_with(1))) as where:
        plain = await asyncio.to_thread(call, where.http_port, KEY, "ExportOwner", ASKED)
        streamed = await asyncio.to_thread(
            request, where.http_port, f"{PATH}Search", b"", kind="application/connect+json"
        )
    assert (plain.status, streamed.status) == (415, 415)
    assert "application/connect+json" in plain.json()["message"]


async def test_only_so_many_exports_run_at_once_and_one_that_is_left_makes_room() -> None:
    made = parts(behind_with(50), exports=1)
    asked = pb.ExportOwnerRequest(owner="user/42")
    first = made.exporter.export_owner(asked, CALLER)
    await anext(first)
    with pytest.raises(TooManyExports):
        await anext(made.exporter.export_owner(asked, CALLER))
    async with listening(made) as where, AsyncMnemo(url=f"http://127.0.0.1:{where.http_port}", api_key=KEY) as mnemo:
        with pytest.raises(ResourceExhausted) as raised:
            await anext(mnemo.export("user/42"))
        assert raised.value.reason == "TOO_MANY_EXPORTS"
        assert raised.value.retry_after is not None
        await first.aclose()
        assert len([line async for line in mnemo.export("user/42")]) == 252


async def test_an_app_leaves_room_for_the_exports_of_others() -> None:
    apps = ["acme", "acme", "acme", "b", "c", "d"]
    made = parts(
        Behind(memories=[memory_named(f"m{n}", Owner(app, "user/42")) for app in set(apps) for n in range(50)])
    )
    asked = pb.ExportOwnerRequest(owner="user/42")
    begun = [made.exporter.export_owner(asked, replace(CALLER, app=app)) for app in apps]
    mine, others = begun[:3], begun[3:]
    for each in mine[:2]:
        await anext(each)
    with pytest.raises(TooManyExports, match="of this app"):
        await anext(mine[2])
    for each in others[:2]:
        await anext(each)
    with pytest.raises(TooManyExports, match="too many exports run"):
        await anext(others[2])
    for each in begun:
        await each.aclose()
    assert len([line async for line in made.exporter.export_owner(asked, CALLER)]) == 252


async def test_an_export_that_nobody_reads_is_given_up_and_little_of_it_was_read_ahead() -> None:
    behind = behind_with(50)
    made = parts(behind, exports=1, patience=Patience(reader_seconds=0.05))
    asked = pb.ExportOwnerRequest(owner="user/42")
    slow = made.exporter.export_owner(asked, CALLER)
    await anext(slow)
    async with asyncio.timeout(10):
        await behind.closed.wait()
    assert len(behind.exported) < 4
    with pytest.raises(ExportTooSlow):
        async for _ in slow:
            pass
    assert len([line async for line in made.exporter.export_owner(asked, CALLER)]) == 252


async def test_an_export_takes_no_longer_than_it_may() -> None:
    made = parts(behind_with(3), patience=Patience(whole_seconds=0))
    async with listening(made) as where, AsyncMnemo(url=f"http://127.0.0.1:{where.http_port}", api_key=KEY) as mnemo:
        with pytest.raises(DeadlineExceeded) as raised:
            _ = [line async for line in mnemo.export("user/42")]
    assert raised.value.reason == "EXPORT_TOO_SLOW"


async def test_the_client_gives_up_a_stream_that_stands_still() -> None:
    behind = behind_with(1)
    behind.hang = True
    async with listening(parts(behind)) as where:
        async with AsyncMnemo(url=f"http://127.0.0.1:{where.http_port}", api_key=KEY) as mnemo:
            with pytest.raises(DeadlineExceeded):
                await anext(mnemo.export("user/42", timeout_seconds=0.2))
        async with asyncio.timeout(10):
            await behind.cancelled.get()

"""The client, the service and a real Postgres: what an application sees."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from mnemostream import (
    Action,
    AsyncMnemo,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    Mnemo,
    Mode,
    NotFound,
    State,
    TurnState,
    Unauthenticated,
)
from mnemostream.turns import Reason

from processors.effects import Commit, TurnEffect
from processors.records import Owner, Parking
from store.database import Database
from store.keys import ApiKeyRepository
from store.owners import OwnerRepository
from store.parking import ParkingRepository
from store.turns import TurnRepository
from tests.fakes.values import accepted
from tests.integration.query.conftest import Served

OWNER = Owner("acme", "user/42")


def client(served: Served, key: str, **options: Any) -> AsyncMnemo:
    return AsyncMnemo(url=served.url, api_key=key, **options)


async def test_what_is_told_is_found_read_and_listed(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        told = await mnemo.create_memory(
            "user/42",
            "Lives in Lisbon",
            data={"floor": 3, "x": [1.5, None, {"y": True}]},
            tags=["home"],
            type="place",
            category="identity",
            importance=8,
            confidence=0.8,
            valid_from=datetime(2026, 1, 2, tzinfo=UTC),
        )
        assert told.state is State.LIVE
        assert (told.content, told.category, told.importance, told.confidence) == (
            "Lives in Lisbon",
            "identity",
            8,
            0.8,
        )
        assert told.data == {"floor": 3, "x": [1.5, None, {"y": True}]}
        assert told.valid_from == datetime(2026, 1, 2, tzinfo=UTC)
        assert told.fades_at is None
        for mode in (None, *Mode):
            found = await mnemo.search("user/42", "Lives in Lisbon", mode=mode)
            assert [hit.memory.id for hit in found] == [told.id], mode
        assert (await mnemo.get_memory("user/42", told.id)).content == told.content
        page = await mnemo.list_memories("user/42")
        assert ([m.id for m in page.memories], page.total_size, page.next_page_token) == ([told.id], 1, None)


async def test_what_is_told_can_be_explained(served: Served, key: str, other_key: str) -> None:
    async with client(served, key) as mnemo, client(served, other_key) as other:
        told = await mnemo.create_memory("user/42", "Lives in Lisbon", request_id="r-1")
        again = await mnemo.create_memory("user/42", "Lives in Lisbon", request_id="r-2")
        explained = await mnemo.explain(told.id, owner="user/42")
        assert again.id == explained.memory.id == told.id
        assert explained.story.endswith(f"Unless it is said again, it fades by {_day(explained.memory.fades_at)}.")
        assert "an application told it directly: “Lives in Lisbon” (request r-1)" in explained.story
        assert "by an application (request r-2)" in explained.story
        assert [decision.action for decision in explained.decisions] == [Action.ADD, Action.CONFIRM]
        assert [decision.cause_id for decision in explained.decisions] == ["r-1", "r-2"]
        assert [decision.candidate for decision in explained.decisions] == ["Lives in Lisbon"] * 2
        assert [near.content for near in explained.decisions[1].neighbours] == ["Lives in Lisbon"]
        assert [memory.id for memory in explained.line] == [told.id]
        for asker, owner in ((mnemo, "user/43"), (other, "user/42")):
            with pytest.raises(NotFound):
                await asker.explain(told.id, owner=owner)


async def test_what_is_forgotten_is_neither_found_nor_explained(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        told = await mnemo.create_memory("user/42", "Lives in Lisbon")
        with pytest.raises(NotFound):
            await mnemo.delete(told.id, owner="user/43")
        await mnemo.delete(told.id, owner="user/42")
        for asked in (mnemo.delete(told.id, owner="user/42"), mnemo.explain(told.id, owner="user/42")):
            with pytest.raises(NotFound):
                await asked
        assert len(await mnemo.search("user/42", "Lives in Lisbon", include_retired=True)) == 0
        again = await mnemo.create_memory("user/42", "Lives in Lisbon")
        assert again.id != told.id
        assert (await mnemo.explain(again.id, owner="user/42")).memory.content == "Lives in Lisbon"


def _day(at: datetime | None) -> str:
    assert at is not None
    return f"{at.day} {at:%b %Y}"


async def test_filters_restrict_a_search_and_a_list(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        await mnemo.create_memory("u", "red wine", tags=["a", "b"], data={"n": 1, "m": 2}, importance=9)
        await mnemo.create_memory("u", "red house", tags=["a"], type="t", category="fact", confidence=0.2)
        both = {"red wine", "red house"}

        async def found(**filters: Any) -> set[str]:
            hits = {hit.memory.content for hit in await mnemo.search("u", "red", **filters)}
            listed = {memory.content for memory in (await mnemo.list_memories("u", **filters)).memories}
            assert hits == listed
            return hits

        assert await found() == both
        assert await found(tags=["a"]) == both
        assert await found(tags=["a", "b"]) == {"red wine"}
        assert await found(types=["t"]) == {"red house"}
        assert await found(categories=["fact", "skill"]) == {"red house"}
        assert await found(data_contains={"n": 1}) == {"red wine"}
        assert await found(min_importance=9) == {"red wine"}
        assert await found(min_confidence=0.9) == {"red wine"}
        assert await found(session="s") == set()


async def test_a_list_is_read_in_pages(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        told = [(await mnemo.create_memory("u", f"fact number {n}")).id for n in range(5)]
        seen: list[str] = []
        token = None
        while True:
            page = await mnemo.list_memories("u", page_size=2, page_token=token)
            assert page.total_size == 5
            seen += [memory.id for memory in page.memories]
            token = page.next_page_token
            if token is None:
                break
        assert seen == told
        first = await mnemo.list_memories("u", page_size=2)
        with pytest.raises(InvalidArgument) as raised:
            await mnemo.list_memories("v", page_size=2, page_token=first.next_page_token)
        assert raised.value.field == "pageToken"


async def test_a_request_id_has_one_effect_and_one_body(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        first, *others = await asyncio.gather(
            *(mnemo.create_memory("u", "Likes tea", exact=True, request_id="r-1") for _ in range(8))
        )
        assert {memory.id for memory in others} == {first.id}
        assert (await mnemo.list_memories("u")).total_size == 1
        with pytest.raises(InvalidArgument) as raised:
            await mnemo.create_memory("u", "Likes coffee", exact=True, request_id="r-1")
        assert raised.value.field == "requestId"
        elsewhere = await mnemo.create_memory("v", "Likes coffee", exact=True, request_id="r-1")
        assert elsewhere.content == "Likes coffee"


async def test_nothing_crosses_from_one_app_or_owner_to_another(served: Served, key: str, other_key: str) -> None:
    async with client(served, key) as mine, client(served, other_key) as theirs:
        told = await mine.create_memory("user/42", "The vault code is kept by Ada", request_id="r")
        page = await mine.list_memories("user/42", page_size=1)
        assert page.total_size == 1
        assert len(await theirs.search("user/42", "vault code")) == 0
        assert len(await mine.search("user/43", "vault code")) == 0
        assert (await theirs.list_memories("user/42")).total_size == 0
        for asked in (theirs.get_memory("user/42", told.id), mine.get_memory("user/43", told.id)):
            with pytest.raises(NotFound):
                await asked
        own = await theirs.create_memory("user/42", "Something else", request_id="r")
        assert own.id != told.id
        assert own.content == "Something else"


async def test_a_search_waits_for_a_turn(served: Served, key: str, database_dsn: str) -> None:
    worker = await Database.open(database_dsn, role="mnemo_worker", pool_size=2)
    turn = accepted("t-1", owner=OWNER)
    try:
        async with client(served, key) as mnemo:
            assert (await mnemo.get_turn("user/42", "t-1")).state is TurnState.UNKNOWN
            waiting = asyncio.create_task(mnemo.search("user/42", "anything", after_turn="t-1", after_turn_seconds=30))
            await TurnRepository(worker).begin(OWNER, [turn])
            assert (await mnemo.get_turn("user/42", "t-1")).state is TurnState.PENDING
            with pytest.raises(DeadlineExceeded) as raised:
                await mnemo.search("user/42", "anything", after_turn="t-1", after_turn_seconds=0.1)
            assert raised.value.reason == "TURN_NOT_OVER"
            assert not waiting.done()
            look = await OwnerRepository(worker).look(OWNER, [], model=None)
            done = Commit(cause_kind="turn", turns=(TurnEffect("t-1", turn.place),))
            assert await OwnerRepository(worker).commit(OWNER, look.version, done)
            assert len(await asyncio.wait_for(waiting, 5)) == 0
            assert (await mnemo.get_turn("user/42", "t-1")).state is TurnState.STORED
    finally:
        await worker.close()


async def test_a_search_after_a_parked_turn_says_why(served: Served, key: str, database_dsn: str) -> None:
    worker = await Database.open(database_dsn, role="mnemo_worker", pool_size=2)
    turn = accepted("t-1", owner=OWNER)
    try:
        await TurnRepository(worker).begin(OWNER, [turn])
        parking = Parking(
            place=turn.place,
            stage="extract",
            reason=Reason.MODEL_REFUSED,
            detail="the model refused",
            attempts=3,
            owner=OWNER,
            turn_ids=("t-1",),
        )
        await ParkingRepository(worker).park(parking)
        async with client(served, key) as mnemo:
            with pytest.raises(FailedPrecondition) as raised:
                await mnemo.search("user/42", "anything", after_turn="t-1")
            assert raised.value.metadata["reason"] == "model_refused"
            report = await mnemo.get_turn("user/42", "t-1", wait_seconds=5)
            assert (report.state, report.reason) == (TurnState.PARKED, "model_refused")
    finally:
        await worker.close()


async def test_without_the_embedding_model_the_text_is_searched_and_the_answer_says_so(
    served: Served, key: str
) -> None:
    async with client(served, key) as mnemo:
        await mnemo.create_memory("u", "Plays the violin")
        served.embedder.away = True
        found = await mnemo.search("u", "violin")
        assert found.degraded
        assert [hit.memory.content for hit in found] == ["Plays the violin"]


async def test_nul_is_stored_as_the_replacement_character(served: Served, key: str) -> None:
    async with client(served, key) as mnemo:
        told = await mnemo.create_memory("u", "a\0b", data={"k\0": "v\0"})
        assert (told.content, told.data) == ("a\ufffdb", {"k\ufffd": "v\ufffd"})
        assert len(await mnemo.search("u", "a\0b", data_contains={"k\0": "v\0"})) == 1


async def test_a_key_that_was_revoked_before_its_first_use_is_refused(served: Served, key: str) -> None:
    keys = ApiKeyRepository(served.operator)
    [entry] = await keys.list("acme")
    assert await keys.revoke(entry.id)
    async with client(served, key) as mnemo:
        with pytest.raises(Unauthenticated):
            await mnemo.list_memories("u")


async def test_the_client_without_an_event_loop_does_the_same(served: Served, key: str) -> None:
    def talk() -> list[str]:
        with Mnemo(url=served.url, api_key=key) as mnemo:
            mnemo.create_memory("u", "Has a dog")
            with pytest.raises(NotFound):
                mnemo.get_memory("u", "01a200e4-ec1e-768d-bb58-0eb7dbd4cdc9")
            return [hit.memory.content for hit in mnemo.search("u", "dog")]

    assert await asyncio.to_thread(talk) == ["Has a dog"]

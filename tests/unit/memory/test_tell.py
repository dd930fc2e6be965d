import asyncio
import itertools
from datetime import timedelta
from uuid import UUID

import pytest

from memory.tell import Tell
from processors.effects import RequestId
from processors.errors import InvalidRequest, ModelUnavailable
from processors.records import Owner
from processors.statements import NewStatement
from tests.fakes.arbitrator import FakeArbitrator
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.owner_store import FakeOwnerStore
from tests.fakes.values import NOON, OWNER


def tell(store: FakeOwnerStore, embedder: FakeEmbedder | None = None) -> Tell:
    numbers = itertools.count(1)
    return Tell(store, store, embedder or FakeEmbedder(), FakeArbitrator(), new_id=lambda: UUID(int=next(numbers)))


def request(body: bytes = b"1" * 32) -> RequestId:
    return RequestId("CreateMemory", "r-1", body)


async def test_a_statement_becomes_a_memory_at_once() -> None:
    store = FakeOwnerStore(now=lambda: NOON)
    until = NOON + timedelta(days=1)
    statement = NewStatement(content="Likes tea.", data={"cups": 3}, tags=("drink",), pinned=True, expires_at=until)
    memory = await tell(store).create(OWNER, statement)
    assert (memory.content, memory.data, memory.tags) == ("Likes tea.", {"cups": 3}, ("drink",))
    assert (memory.pinned, memory.importance, memory.valid_from, memory.expires_at) == (True, 5, NOON, until)


async def test_the_same_text_again_confirms() -> None:
    store = FakeOwnerStore()
    teller = tell(store)
    first = await teller.create(OWNER, NewStatement(content="Likes tea."))
    again = await teller.create(OWNER, NewStatement(content="likes TEA"))
    assert (again.id, again.confirmations) == (first.id, 1)


async def test_an_exact_statement_is_added_whatever_is_known() -> None:
    store = FakeOwnerStore()
    teller = tell(store)
    first = await teller.create(OWNER, NewStatement(content="Likes tea."))
    second = await teller.create(OWNER, NewStatement(content="Likes tea."), exact=True)
    assert second.id != first.id


async def test_the_same_request_again_has_no_second_effect_and_the_same_answer() -> None:
    store = FakeOwnerStore()
    teller = tell(store)
    first = await teller.create(OWNER, NewStatement(content="Likes tea."), request=request())
    again = await teller.create(OWNER, NewStatement(content="Likes tea."), request=request())
    assert again == first
    assert len(store.changes(OWNER)) == 1


async def test_a_request_id_with_another_body_is_refused() -> None:
    teller = tell(FakeOwnerStore())
    await teller.create(OWNER, NewStatement(content="Likes tea."), request=request())
    with pytest.raises(InvalidRequest, match="requestId"):
        await teller.create(OWNER, NewStatement(content="Likes rum."), request=request(b"2" * 32))


async def test_sixteen_writers_of_one_fact_make_one_memory() -> None:
    store = FakeOwnerStore()
    teller = tell(store)
    made = await asyncio.gather(*(teller.create(OWNER, NewStatement(content="Likes tea.")) for _ in range(16)))
    assert len({memory.id for memory in made}) == 1


async def test_owners_of_one_name_in_two_apps_have_nothing_in_common() -> None:
    store = FakeOwnerStore()
    teller = tell(store)
    ours = await teller.create(Owner("acme", "ana"), NewStatement(content="Likes tea."))
    theirs = await teller.create(Owner("other", "ana"), NewStatement(content="Likes tea."))
    assert (ours.app, theirs.app, theirs.confirmations) == ("acme", "other", 0)
    assert ours.id != theirs.id


async def test_without_its_embedding_nothing_is_stored() -> None:
    store, embedder = FakeOwnerStore(), FakeEmbedder()
    embedder.away = True
    with pytest.raises(ModelUnavailable):
        await tell(store, embedder).create(OWNER, NewStatement(content="Likes tea."))
    assert store.memories(OWNER) == []

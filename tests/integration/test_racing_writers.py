"""Many writers of one owner at once, on a real Postgres, through the use cases."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from mnemostream.ids import uuid7

from memory.tell import Tell
from processors.records import Owner
from processors.search import Filters
from processors.statements import NewStatement
from store.database import Database
from store.memories import MemoryRepository
from store.owners import OwnerRepository
from tests.fakes.arbitrator import FakeArbitrator
from tests.fakes.embedder import FakeEmbedder

ANA = Owner("acme", "ana")
WRITERS = 16


@pytest.fixture
async def database(database_dsn: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_dsn, role="mnemo_query", pool_size=WRITERS)
    try:
        yield opened
    finally:
        await opened.close()


def tell(database: Database) -> Tell:
    return Tell(OwnerRepository(database), MemoryRepository(database), FakeEmbedder(), FakeArbitrator(), new_id=uuid7)


async def test_one_fact_by_sixteen_writers_is_one_memory(database: Database) -> None:
    teller = tell(database)
    made = await asyncio.gather(*(teller.create(ANA, NewStatement(content="Likes tea.")) for _ in range(WRITERS)))
    assert len({memory.id for memory in made}) == 1
    page = await MemoryRepository(database).list_page(ANA, Filters(), page_size=100)
    assert [memory.confirmations for memory in page.memories] == [WRITERS - 1]


async def test_sixteen_facts_at_once_are_all_kept_whoever_comes_first(database: Database) -> None:
    teller = tell(database)
    texts = {f"Owns book {n}." for n in range(WRITERS)}
    await asyncio.gather(*(teller.create(ANA, NewStatement(content=text)) for text in texts))
    page = await MemoryRepository(database).list_page(ANA, Filters(), page_size=100)
    assert {memory.content for memory in page.memories} == texts

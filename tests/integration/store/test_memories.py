import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from mnemostream.turns import Role

from processors.effects import NewMemory
from processors.memories import Memory, State
from processors.records import Owner
from processors.search import Filters
from store.database import Database
from store.memories import MemoryRepository
from store.owners import OwnerRepository
from tests.fakes.values import HALF_LIFE, NOON, OWNER, addition, commit_of, id_of, new_memory, source_of


@pytest.fixture
def memories(query: Database) -> MemoryRepository:
    return MemoryRepository(query)


async def _add(worker: Database, *new: NewMemory, owner: Owner = OWNER) -> None:
    owners = OwnerRepository(worker)
    look = await owners.look(owner, [], model=None)
    turn_id = f"turn {look.version}"
    effects = [addition(turn_id, each, source_of(turn_id)) for each in new]
    assert await owners.commit(owner, look.version, commit_of(turn_id, *effects))


async def _get(memories: MemoryRepository, name: str) -> Memory:
    memory = await memories.get(OWNER, id_of(name))
    assert memory is not None
    return memory


async def test_a_memory_fades_by_its_half_life(worker: Database, memories: MemoryRepository) -> None:
    now = datetime.now(UTC)
    half_life = timedelta(days=10)
    faded = {
        "fresh": (now, half_life, False),
        "once": (now - half_life, half_life, False),
        "twice": (now - 2 * half_life, half_life, False),
        "ages ago": (datetime(1, 1, 1, tzinfo=UTC), half_life, False),
        "in the future": (now + half_life, half_life, False),
        "never": (now - 9 * half_life, None, False),
        "pinned": (now - 9 * half_life, half_life, True),
    }
    await _add(
        worker,
        *(
            new_memory(name, at=at, half_life_seconds=None if life is None else life.total_seconds(), pinned=pinned)
            for name, (at, life, pinned) in faded.items()
        ),
    )
    strengths = {name: (await _get(memories, name)).strength for name in faded}
    assert strengths == {
        "fresh": pytest.approx(1, abs=1e-3),
        "once": pytest.approx(1 / 2, abs=1e-3),
        "twice": pytest.approx(1 / 4, abs=1e-3),
        "ages ago": pytest.approx(0, abs=1e-3),
        "in the future": 1,
        "never": 1,
        "pinned": 1,
    }


async def test_pages_follow_the_order_of_recording_without_gap_or_double(
    worker: Database, memories: MemoryRepository
) -> None:
    for n in range(0, 10, 5):
        await _add(worker, *(new_memory(f"Fact {n + k}.") for k in range(5)))
    seen: list[UUID] = []
    after = None
    sizes = []
    while True:
        page = await memories.list_page(OWNER, Filters(), page_size=4, after=after)
        assert page.total == 10
        seen += [memory.id for memory in page.memories]
        sizes.append(len(page.memories))
        if page.next_after is None:
            break
        after = page.next_after
    assert sizes == [4, 4, 2]
    assert seen == [id_of(f"Fact {n}.") for n in range(10)]
    assert (await memories.list_page(OWNER, Filters(), page_size=10)).next_after is None


async def test_an_owner_without_memories_has_an_empty_page(memories: MemoryRepository) -> None:
    page = await memories.list_page(OWNER, Filters(), page_size=10)
    assert (page.memories, page.total, page.next_after) == ((), 0, None)


async def test_only_what_is_live_now_is_listed(
    worker: Database, memories: MemoryRepository, admin: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    now = datetime.now(UTC)
    day = timedelta(days=1)
    await _add(
        worker,
        new_memory("lives"),
        new_memory("starts tomorrow", valid_from=now + day),
        new_memory("expired", expires_at=now - day),
        new_memory("expires tomorrow", expires_at=now + day),
        new_memory("ended"),
        new_memory("archived"),
        new_memory("forgotten"),
    )
    await admin.execute("UPDATE memory SET valid_to = now() WHERE id = $1", id_of("ended"))
    for state in ("archived", "forgotten"):
        await admin.execute(
            "UPDATE memory SET state = $2, retired_at = now() WHERE id = $1", id_of(state), state.upper()
        )

    async def listed(filters: Filters) -> set[str]:
        return {memory.content for memory in (await memories.list_page(OWNER, filters, page_size=100)).memories}

    assert await listed(Filters()) == {"lives", "expires tomorrow"}
    everything = {"lives", "expires tomorrow", "starts tomorrow", "expired", "ended", "archived"}
    assert await listed(Filters(include_retired=True)) == everything
    assert (await _get(memories, "expired")).state is State.EXPIRED
    assert (await _get(memories, "archived")).state is State.ARCHIVED
    assert await memories.get(OWNER, id_of("forgotten")) is None


FILTERS: list[tuple[Filters, set[str]]] = [
    (Filters(categories=("skill", "rule")), {"a", "b"}),
    (Filters(categories=("nothing",)), set()),
    (Filters(types=("note",)), {"a"}),
    (Filters(tags=("x",)), {"a", "b"}),
    (Filters(tags=("x", "y")), {"b"}),
    (Filters(session="s-1"), {"a"}),
    (Filters(data_contains={"kind": "pet"}), {"a", "b"}),
    (Filters(data_contains={"kind": "pet", "legs": {"front": 2}}), {"b"}),
    (Filters(min_importance=7), {"b", "c"}),
    (Filters(min_confidence=0.8), {"b", "c"}),
    (Filters(said_after=NOON), {"b", "c"}),
    (Filters(said_before=NOON), {"a"}),
    (Filters(tags=("x",), min_importance=7, categories=("rule",)), {"b"}),
]


@pytest.mark.parametrize(
    ("filters", "expected"), FILTERS, ids=lambda value: repr(sorted(value) if isinstance(value, set) else value)[:40]
)
async def test_a_filter_restricts(
    worker: Database, memories: MemoryRepository, filters: Filters, expected: set[str]
) -> None:
    fields: dict[str, dict[str, Any]] = {
        "a": {
            "category": "skill", "type": "note", "tags": ("x",), "session": "s-1", "data": {"kind": "pet"},
            "importance": 3, "confidence": 0.4, "at": NOON - timedelta(seconds=1),
        },
        "b": {
            "category": "rule", "tags": ("x", "y", "z"), "data": {"kind": "pet", "legs": {"front": 2, "back": 2}},
            "importance": 7, "confidence": 0.8,
        },
        "c": {"importance": 10, "confidence": 1.0, "at": NOON + timedelta(days=1)},
    }  # fmt: skip
    await _add(worker, *(new_memory(name, **values) for name, values in fields.items()))
    page = await memories.list_page(OWNER, filters, page_size=10)
    assert {memory.content for memory in page.memories} == expected
    assert page.total == len(expected)


async def test_a_source_names_its_message_or_the_turn_as_a_whole(worker: Database, memories: MemoryRepository) -> None:
    sources = (
        source_of("t-1", None),
        dataclasses.replace(source_of("t-1", 0), role=Role.ASSISTANT),
        dataclasses.replace(source_of("t-2", 1, at=NOON + timedelta(microseconds=1)), role=None),
    )
    new = new_memory("x", half_life_seconds=HALF_LIFE)
    assert await OwnerRepository(worker).commit(OWNER, 0, commit_of("t-1", addition("t-1", new, *sources)))
    assert (await _get(memories, "x")).sources == sources
    page = await memories.list_page(OWNER, Filters(), page_size=10)
    assert page.memories[0].sources == sources

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from mnemostream.turns import Reason, Role

from memory.ports import OwnerStore
from memory.reconcile import ROUNDS, Reconciler
from processors.effects import Commit
from processors.errors import Rejected
from processors.facts import Fact, Reading, Window, WindowTurn
from processors.memories import State
from processors.records import Owner
from processors.routing import Action
from processors.vectors import EmbeddingModel, pack
from tests.fakes.arbitrator import FakeArbitrator
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.owner_store import FakeOwnerStore
from tests.fakes.values import MODEL, NOON, OWNER, vector_of


def ids() -> Callable[[], UUID]:
    numbers = itertools.count(1)
    return lambda: UUID(int=next(numbers))


def reconciler(store: OwnerStore, embedder: FakeEmbedder | None = None) -> Reconciler:
    return Reconciler(store, embedder or FakeEmbedder(), FakeArbitrator(), new_id=ids())


def turn(name: str, offset: int = 1) -> WindowTurn:
    at = NOON + timedelta(seconds=offset)
    return WindowTurn(id=name, topic="mnemo.turns.v1", partition=0, offset=offset, received_at=at, said_at=at)


def fact(text: str, *, of: int = 0, **fields: Any) -> Fact:
    values: dict[str, Any] = {
        "turn": of,
        "text": text,
        "category": "fact",
        "importance": 5,
        "confidence": 0.95,
        "role": Role.USER,
        "said_at": NOON,
        "messages": (0,),
        "embedding": pack(vector_of(text)),
    }
    return Fact(**(values | fields))


def window(*turns: WindowTurn, facts: tuple[Fact, ...] = ()) -> Window:
    return Window(
        app=OWNER.app,
        owner=OWNER.owner,
        session="s-1",
        turns=turns,
        facts=facts,
        reading=Reading(model="scripted", prompt_version="1"),
        embedding_model=MODEL.name if facts else None,
    )


class InterruptedStore(FakeOwnerStore):
    """Somebody else commits first, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.tried = 0

    async def commit(self, owner: Owner, version: int, commit: Commit) -> bool:
        self.tried += 1
        if self.left:
            self.left -= 1
            return False
        return await super().commit(owner, version, commit)


async def test_a_fact_becomes_a_memory_with_its_provenance() -> None:
    store = FakeOwnerStore()
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Lives in Lisbon."),)))
    [memory] = store.memories(OWNER)
    assert memory.content == "Lives in Lisbon."
    assert [(source.turn_id, source.message_index) for source in memory.sources] == [("t-1", 0)]


async def test_a_turn_that_is_delivered_again_changes_nothing() -> None:
    store = FakeOwnerStore()
    record = window(turn("t-1"), facts=(fact("Lives in Lisbon."),))
    for _ in range(16):
        await reconciler(store).reconcile(record)
    assert len(store.changes(OWNER)) == 1


async def test_a_turn_that_was_read_differently_the_second_time_keeps_its_first_effect() -> None:
    store = FakeOwnerStore()
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Lives in Lisbon."),)))
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Has moved to Lisbon."),)))
    assert [memory.content for memory in store.memories(OWNER)] == ["Lives in Lisbon."]


async def test_of_a_window_only_the_turns_that_are_new_take_effect() -> None:
    store = FakeOwnerStore()
    ours = reconciler(store)
    await ours.reconcile(window(turn("t-1"), facts=(fact("Lives in Lisbon."),)))
    both = window(turn("t-1"), turn("t-2", 2), facts=(fact("Likes tea."), fact("Has a dog.", of=1)))
    await ours.reconcile(both)
    assert [memory.content for memory in store.memories(OWNER)] == ["Lives in Lisbon.", "Has a dog."]


async def test_a_turn_without_facts_is_in_the_ledger() -> None:
    store = FakeOwnerStore()
    await reconciler(store).reconcile(window(turn("t-1")))
    look = await store.look(OWNER, [], model=None, turn_ids=["t-1"])
    assert look.settled == {"t-1"}


async def test_the_same_statement_in_another_turn_confirms_the_memory() -> None:
    store = FakeOwnerStore()
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Lives in Lisbon."),)))
    await reconciler(store).reconcile(window(turn("t-2", 9), facts=(fact("lives in  LISBON!"),)))
    [memory] = store.memories(OWNER)
    assert (memory.content, memory.confirmations) == ("Lives in Lisbon.", 1)
    assert [kind for _, kind, _ in store.changes(OWNER)] == ["added", "confirmed"]


async def test_two_candidates_of_one_window_are_not_decided_on_a_stale_picture() -> None:
    store = FakeOwnerStore()
    twice = window(turn("t-1"), turn("t-2", 2), facts=(fact("Likes tea."), fact("Likes TEA", of=1)))
    await reconciler(store).reconcile(twice)
    [memory] = store.memories(OWNER)
    assert memory.confirmations == 1
    assert {source.turn_id for source in memory.sources} == {"t-1", "t-2"}


async def test_facts_take_effect_in_the_order_of_their_turns() -> None:
    store = FakeOwnerStore()
    mixed = window(turn("t-1"), turn("t-2", 2), facts=(fact("Second.", of=1), fact("First.")))
    await reconciler(store).reconcile(mixed)
    assert [memory.content for _, _, memory in store.changes(OWNER)] == ["First.", "Second."]


async def test_a_retired_memory_is_not_confirmed() -> None:
    store = FakeOwnerStore()
    ours = reconciler(store)
    await ours.reconcile(window(turn("t-1"), facts=(fact("Likes tea."),)))
    store.retire(OWNER, store.memories(OWNER)[0].id, State.SUPERSEDED)
    await ours.reconcile(window(turn("t-2", 2), facts=(fact("Likes tea."),)))
    assert [memory.state for memory in store.memories(OWNER)] == [State.SUPERSEDED, State.LIVE]


async def test_every_candidate_leaves_a_decision_that_names_its_cause() -> None:
    store = FakeOwnerStore()
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Likes tea."), fact("likes tea"))))
    added, confirmed = store.decisions(OWNER)
    assert (added.verdict.action, confirmed.verdict.action) == (Action.ADD, Action.CONFIRM)
    assert confirmed.memory_id == added.memory_id
    assert "embedding" not in added.candidate


async def test_what_another_writer_changed_meanwhile_is_decided_again() -> None:
    store = InterruptedStore(ROUNDS - 1)
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Likes tea."),)))
    assert (store.tried, len(store.memories(OWNER))) == (ROUNDS, 1)


async def test_an_owner_that_never_stands_still_is_decided_under_its_lock() -> None:
    store = InterruptedStore(ROUNDS)
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Likes tea."),)))
    assert (store.tried, len(store.memories(OWNER))) == (ROUNDS, 1)


async def test_vectors_of_another_model_are_made_again() -> None:
    store, embedder = FakeOwnerStore(), FakeEmbedder(EmbeddingModel("another", 4))
    await reconciler(store, embedder).reconcile(window(turn("t-1"), facts=(fact("Likes tea."),)))
    assert embedder.embedded == ["Likes tea."]


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (fact("x", of=1), "facts[0].turn"),
        (fact("x", embedding=b"123"), "facts[0].embedding"),
        (fact("x", embedding=pack(vector_of("x", 4))), "facts[0].embedding"),
        (fact("x", embedding=b"\x00\x00\xc0\x7f" * 8), "facts[0].embedding"),
    ],
)
async def test_a_window_that_contradicts_itself_is_refused_with_the_place(broken: Fact, place: str) -> None:
    store = FakeOwnerStore()
    with pytest.raises(Rejected) as refused:
        await reconciler(store).reconcile(window(turn("t-1"), facts=(broken,)))
    assert refused.value.reason is Reason.INVALID_FIELD
    assert refused.value.detail.startswith(place)
    assert store.memories(OWNER) == []


async def test_a_turn_dated_2099_holds_from_when_it_arrived() -> None:
    store = FakeOwnerStore()
    ahead = NOON.replace(year=2099)
    await reconciler(store).reconcile(window(turn("t-1"), facts=(fact("Likes tea.", said_at=ahead),)))
    [memory] = store.memories(OWNER)
    assert memory.valid_from == NOON + timedelta(seconds=1)


def test_a_window_survives_its_journey() -> None:
    record = window(turn("t-1"), facts=(fact("Likes tea.", expires_at=NOON),))
    assert msgspec.json.decode(msgspec.json.encode(record), type=Window) == record

"""Turns through the real reconciler on a real Postgres, and the stories that are told of what became of them."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from mnemostream.ids import uuid7
from mnemostream.turns import Role

from memory.reconcile import Reconciler
from processors.arbitration import ArbitrationAnswer, ArbitrationRequest, Arbitrator
from processors.errors import ModelTimeout
from processors.explanations import Explanation
from processors.facts import Fact, Reading, Window, WindowTurn
from processors.records import Owner
from processors.routing import Action, Route
from processors.search import Filters
from processors.stories import story
from providers.local.arbitrator import LocalArbitrator
from store.database import Database
from store.decisions import DecisionRepository
from store.memories import MemoryRepository
from store.owners import OwnerRepository
from store.turns import TurnRepository
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.values import NOON, accepted, place_of

OWNER = Owner("acme", "user/42")
PORTO, LISBON, FARO = "The user lives in Porto.", "The user lives in Lisbon.", "The user lives in Faro."
READING = Reading(model="local-rules", prompt_version="local.v2")


class SlowArbitrator:
    """The port `Arbitrator`, whose model does not answer in its time."""

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        raise ModelTimeout("no answer in time")


@dataclass
class Conversation:
    """Says things, one a day from 22 March 2025 on, and tells the stories of what is known."""

    worker: Database
    arbitrator: Arbitrator

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._embedder = FakeEmbedder()

    async def say(self, words: str, fact: str, *, day: int | None = None, **fields: Any) -> None:
        number = next(self._numbers)
        at = NOON + timedelta(days=number if day is None else day)
        turn_id = f"t-{number}"
        await TurnRepository(self.worker).begin(OWNER, [accepted(turn_id, words, offset=number)])
        values: dict[str, Any] = {
            "turn": 0,
            "text": fact,
            "category": "identity",
            "importance": 5,
            "confidence": 0.95,
            "role": Role.USER,
            "said_at": at,
            "messages": (0,),
            "subject": "user",
            "attribute": "home_city",
        }
        place = place_of(number)
        turn_of_window = WindowTurn(
            id=turn_id,
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            received_at=NOON + timedelta(days=100, seconds=number),
            said_at=at,
        )
        window = Window(
            app=OWNER.app,
            owner=OWNER.owner,
            session="s-1",
            turns=(turn_of_window,),
            facts=(Fact(**(values | fields)),),
            reading=READING,
        )
        await Reconciler(OwnerRepository(self.worker), self._embedder, self.arbitrator, new_id=uuid7).reconcile(window)

    async def explain(self, content: str, nth: int = 0) -> tuple[str, Explanation]:
        """The story of the `nth` memory with this text, by when it was recorded."""
        page = await MemoryRepository(self.worker).list_page(OWNER, Filters(include_retired=True), page_size=100)
        ids: list[UUID] = [memory.id for memory in page.memories if memory.content == content]
        explained = await DecisionRepository(self.worker).explain(OWNER, ids[nth])
        assert explained is not None
        words = story(explained.memory, explained.statements, explained.decisions, explained.line, explained.now)
        return words, explained


@pytest.fixture
async def worker(database_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(database_dsn, role="mnemo_worker", pool_size=2)
    yield database
    await database.close()


async def test_a_move_a_return_and_a_retraction_can_be_read_back(worker: Database) -> None:
    conversation = Conversation(worker, LocalArbitrator())
    await conversation.say("I live in Porto.", PORTO)
    await conversation.say("I moved to Lisbon.", LISBON)
    await conversation.say("Back in Porto!", PORTO)
    await conversation.say("Yes, Porto.", PORTO)
    await conversation.say("Forget that I live in Porto.", PORTO, retracts=True)

    words, explained = await conversation.explain(PORTO)
    assert words.startswith(
        "On 22 Mar 2025 the user said: “I live in Porto.” (turn t-1, message 0). "
        "It was read as “The user lives in Porto.” by local-rules (local.v2). "
        "It was added as something new: "
    )
    assert "On 23 Mar 2025 it was replaced by “The user lives in Lisbon.”, which the user said (turn t-2)." in words
    assert words.endswith("It held from 22 Mar 2025 to 23 Mar 2025.")
    assert [version.content for version in explained.line] == [PORTO, LISBON, PORTO]

    words, explained = await conversation.explain(LISBON)
    assert "It replaced “The user lives in Porto.”, known since 22 Mar 2025 (it held until 23 Mar 2025)." in words
    assert "The reason, as local-rules (local-arbitration-2) gave it: " in words
    replaced = explained.decisions[0]
    assert (replaced.route, replaced.action, replaced.marked) == (Route.ARBITRATE, Action.DELETE, False)
    assert [compared.content for compared in replaced.compared] == [PORTO]
    assert replaced.reading == READING
    assert replaced.arbitration is not None

    words, _ = await conversation.explain(PORTO, nth=1)
    assert "It replaced “The user lives in Lisbon.”" in words
    assert "The same had been known before, from 22 Mar 2025 to 23 Mar 2025, and was replaced; said again" in words
    assert "It was said again once on 25 Mar 2025, by the user: “Yes, Porto.” (turn t-4)." in words
    assert "On 26 Mar 2025 the user took it back (turn t-5)." in words


async def test_what_comes_late_is_told_as_history(worker: Database) -> None:
    conversation = Conversation(worker, LocalArbitrator())
    await conversation.say("I live in Porto.", PORTO, day=1)
    await conversation.say("I moved to Lisbon.", LISBON, day=9)
    await conversation.say("I moved to Faro.", FARO, day=5)
    words, explained = await conversation.explain(FARO)
    assert "It came late: “The user lives in Lisbon.” had been said after it and stands" in words
    assert "as what held from 26 Mar 2025 to 30 Mar 2025." in words
    assert [version.content for version in explained.line] == [PORTO, FARO, LISBON]
    words, _ = await conversation.explain(PORTO)
    assert "“The user lives in Faro.”, said on 26 Mar 2025, came late (turn t-3) and took its place" in words


async def test_what_the_arbitrator_could_not_settle_is_told_as_kept_beside(worker: Database) -> None:
    conversation = Conversation(worker, SlowArbitrator())
    await conversation.say("I live in Porto.", PORTO)
    await conversation.say("I moved to Lisbon.", LISBON)
    words, explained = await conversation.explain(LISBON)
    assert explained.decisions[0].marked
    assert "Nobody could settle whether both can stand, so it was kept beside “The user lives in Porto.”" in words

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from memory.recall import Recall, TurnWatch
from processors.records import Owner
from processors.search import Hit, Mode, SearchQuery, TurnReport, TurnState
from processors.vectors import EmbeddingModel, Vector
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.values import OWNER

LONG = timedelta(seconds=60)


class Asked:
    """A search that remembers what it was asked with."""

    def __init__(self) -> None:
        self.vectors: list[Vector | None] = []
        self.modes: list[Mode] = []

    async def search(
        self, owner: Owner, query: SearchQuery, vector: Vector | None, model: EmbeddingModel
    ) -> tuple[Hit, ...]:
        self.vectors.append(vector)
        self.modes.append(query.mode)
        return ()


class Log:
    """Turns whose state a test sets; the word of it comes when the test says so."""

    def __init__(self, state: TurnState) -> None:
        self.state = state
        self.looks = 0
        self.ended = asyncio.Event()

    async def report(self, owner: Owner, turn_id: str) -> TurnReport:
        self.looks += 1
        return TurnReport(self.state)

    @asynccontextmanager
    async def subscribe(self, owner: Owner, turn_id: str) -> AsyncIterator[asyncio.Event]:
        yield self.ended


@pytest.mark.parametrize(
    ("query", "embeds"),
    [
        (SearchQuery(text="tea"), True),
        (SearchQuery(text="tea", mode=Mode.VECTOR), True),
        (SearchQuery(text="tea", mode=Mode.TEXT), False),
        (SearchQuery(text="  "), False),
    ],
)
async def test_a_query_is_embedded_where_vectors_count(query: SearchQuery, embeds: bool) -> None:
    asked = Asked()
    result = await Recall(asked, FakeEmbedder()).search(OWNER, query)
    assert (asked.vectors[0] is not None, result.degraded) == (embeds, False)


@pytest.mark.parametrize(
    ("mode", "instead"), [(Mode.WEIGHTED, Mode.WEIGHTED), (Mode.RRF, Mode.RRF), (Mode.VECTOR, Mode.TEXT)]
)
async def test_while_the_model_is_away_text_answers_alone_and_says_so(mode: Mode, instead: Mode) -> None:
    asked, embedder = Asked(), FakeEmbedder()
    embedder.away = True
    result = await Recall(asked, embedder).search(OWNER, SearchQuery(text="tea", mode=mode))
    assert (asked.vectors, asked.modes, result.degraded) == ([None], [instead], True)


@pytest.mark.parametrize("state", [TurnState.STORED, TurnState.PARKED, TurnState.ERASED])
async def test_a_turn_that_has_ended_is_told_at_once(state: TurnState) -> None:
    log = Log(state)
    assert (await TurnWatch(log, log).wait(OWNER, "t-1", LONG)).state is state
    assert log.looks == 1


async def test_waiting_ends_with_the_word_of_the_turn() -> None:
    log = Log(TurnState.PENDING)
    waiting = asyncio.create_task(TurnWatch(log, log).wait(OWNER, "t-1", LONG))
    await asyncio.sleep(0)
    log.state = TurnState.STORED
    log.ended.set()
    assert (await waiting).state is TurnState.STORED
    assert log.looks == 2


async def test_a_turn_that_nobody_has_heard_of_is_waited_for() -> None:
    log = Log(TurnState.UNKNOWN)
    waiting = asyncio.create_task(TurnWatch(log, log).wait(OWNER, "t-1", LONG))
    await asyncio.sleep(0)
    log.ended.set()  # word that may concern another: look again, go on waiting
    await asyncio.sleep(0)
    log.state = TurnState.PARKED
    log.ended.set()
    assert (await waiting).state is TurnState.PARKED


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(milliseconds=1)])
async def test_when_the_time_is_over_the_state_is_told_as_it_is(timeout: timedelta) -> None:
    log = Log(TurnState.PENDING)
    assert (await TurnWatch(log, log).wait(OWNER, "t-1", timeout)).state is TurnState.PENDING

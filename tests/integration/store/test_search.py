import dataclasses
from datetime import UTC, datetime, timedelta

import asyncpg
import numpy as np
import pytest

from processors.effects import NewMemory, Probe
from processors.search import Filters, Hit, Mode, SearchQuery, Weights
from processors.vectors import Vector
from store.database import Database
from store.owners import OwnerRepository
from store.search import SearchRepository
from tests.fakes.values import MODEL, OWNER, addition, commit_of, id_of, new_memory, source_of, vector_of


@pytest.fixture
def search(query: Database) -> SearchRepository:
    return SearchRepository(query)


async def _add(worker: Database, *new: NewMemory) -> None:
    owners = OwnerRepository(worker)
    look = await owners.look(OWNER, [], model=None)
    turn_id = f"turn {look.version}"
    effects = [addition(turn_id, each, source_of(turn_id)) for each in new]
    assert await owners.commit(OWNER, look.version, commit_of(turn_id, *effects))


def _at(degrees: float) -> Vector:
    """A unit vector at an angle to the query's, which is at 0."""
    vector = np.zeros(8, dtype=np.float32)
    vector[0], vector[1] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return vector


def _contents(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.memory.content for hit in hits]


async def test_neither_arm_hides_what_only_the_other_finds(worker: Database, search: SearchRepository) -> None:
    near = [new_memory(f"Unrelated wording {n}.", vector=_at(75 + n / 100)) for n in range(120)]
    by_text = new_memory("Her code word is xylophone.", vector=_at(90))
    by_vector = dataclasses.replace(new_memory("Nothing alike."), vector=_at(0))
    await _add(worker, *near, by_text, by_vector)
    hits = await search.search(OWNER, SearchQuery(text="xylophone"), _at(0), MODEL)
    assert {by_text.content, by_vector.content} <= set(_contents(hits))


async def test_a_hit_s_score_is_made_of_its_parts(worker: Database, search: SearchRepository) -> None:
    now = datetime.now(UTC)
    await _add(
        worker,
        new_memory("Likes green tea.", at=now, vector=_at(60)),
        new_memory("Likes green tea and green apples in the garden.", at=now - timedelta(days=30), vector=_at(90)),
        new_memory("Has a dog.", at=now, vector=_at(120)),
    )
    weights = Weights(similarity=0.5, text=0.3, strength=0.1, recency=0.1)
    question = SearchQuery(text="green tea", weights=weights)
    hits = {hit.memory.content: hit for hit in await search.search(OWNER, question, _at(0), MODEL)}

    tea, dog = hits["Likes green tea."], hits["Has a dog."]
    assert tea.similarity == pytest.approx(0.5, abs=1e-5)  # cos 60°
    assert max(hit.text_score for hit in hits.values()) == 1
    assert tea.score == pytest.approx(0.5 * 0.5 + 0.3 * tea.text_score + 0.1 * tea.strength + 0.1, abs=1e-4)
    assert (dog.similarity, dog.text_score) == (0, 0)  # cos 120° is below zero
    old = hits["Likes green tea and green apples in the garden."]
    recency = (old.score - 0.5 * old.similarity - 0.3 * old.text_score - 0.1 * old.strength) / 0.1
    assert recency == pytest.approx(1 / 2, abs=1e-3)  # 1 / (1 + 30 / 30)
    assert tea.strength == tea.memory.strength


async def test_each_mode_ranks_in_its_own_way(worker: Database, search: SearchRepository) -> None:
    await _add(
        worker,
        new_memory("tea", vector=_at(80)),
        new_memory("tea and coffee and juice and water", vector=_at(40)),
        new_memory("nothing of it", vector=_at(10)),
    )

    async def ask(mode: Mode) -> list[tuple[str, float]]:
        hits = await search.search(OWNER, SearchQuery(text="tea", mode=mode), _at(0), MODEL)
        return [(hit.memory.content, hit.score) for hit in hits]

    vector, text, fused = await ask(Mode.VECTOR), await ask(Mode.TEXT), await ask(Mode.RRF)
    assert [content for content, _ in vector] == [
        "nothing of it", "tea and coffee and juice and water", "tea",
    ]  # fmt: skip
    assert {content for content, _ in text} == {"tea", "tea and coffee and juice and water"}
    assert text[0][1] == 1
    by_content = dict(fused)
    assert by_content["nothing of it"] == pytest.approx(1 / 61)  # first of one arm, absent from the other
    in_text = {content: nth for nth, (content, _) in enumerate(text, 1)}
    in_vector = {content: nth for nth, (content, _) in enumerate(vector, 1)}
    for content, nth in in_text.items():
        assert by_content[content] == pytest.approx(1 / (60 + nth) + 1 / (60 + in_vector[content]))


async def test_without_a_vector_the_text_answers_alone(worker: Database, search: SearchRepository) -> None:
    await _add(worker, new_memory("She moved to Lisbon."), new_memory("Has a dog."))
    for mode in (Mode.WEIGHTED, Mode.TEXT, Mode.RRF):
        hits = await search.search(OWNER, SearchQuery(text="moving to lisbon?", mode=mode), None, MODEL)
        assert _contents(hits) == ["She moved to Lisbon."]  # stemmed, and any of the words
        assert hits[0].similarity == 0
    assert await search.search(OWNER, SearchQuery(text="lisbon", mode=Mode.VECTOR), None, MODEL) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "the of and",
        "it's a 'quoted' thing",
        "back\\slash \\' \\\\",
        "a & b | !c <-> (d) :*",
        "' OR 1=1; --",
        "%s $1 {0} \N{ROCKET} 東京 \x01",
        "http://example.com/a'b\\c?d=e&f user@example.com /usr/local/bin -12.5e3",
        "word " * 1000,
    ],
    ids=range(10),
)
async def test_any_text_is_a_question(worker: Database, search: SearchRepository, text: str) -> None:
    await _add(worker, new_memory(text.strip() or "x", id=id_of("x")))
    hits = await search.search(OWNER, SearchQuery(text=text), vector_of("q"), MODEL)
    assert len(hits) == 1
    by_text = await search.search(OWNER, SearchQuery(text=text, mode=Mode.TEXT), None, MODEL)
    assert len(by_text) <= 1


async def test_a_quoted_word_is_found_by_itself(worker: Database, search: SearchRepository) -> None:
    await _add(worker, new_memory("Her host is db-7.example.com/a'b."), new_memory("Has a dog."))
    hits = await search.search(OWNER, SearchQuery(text="db-7.example.com/a'b", mode=Mode.TEXT), None, MODEL)
    assert len(hits) == 1


async def test_only_what_is_live_is_found_unless_history_is_asked_for(
    worker: Database, search: SearchRepository, admin: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    now = datetime.now(UTC)
    day = timedelta(days=1)
    await _add(
        worker,
        new_memory("tea now"),
        new_memory("tea tomorrow", valid_from=now + day),
        new_memory("tea expired", expires_at=now - day),
        new_memory("tea archived"),
        new_memory("tea forgotten"),
    )
    for state in ("archived", "forgotten"):
        await admin.execute(
            "UPDATE memory SET state = $2, retired_at = now() WHERE id = $1", id_of(f"tea {state}"), state.upper()
        )

    async def found(filters: Filters) -> set[str]:
        return set(_contents(await search.search(OWNER, SearchQuery(text="tea", filters=filters), _at(0), MODEL)))

    assert await found(Filters()) == {"tea now"}
    everything = {"tea now", "tea tomorrow", "tea expired", "tea archived"}
    assert await found(Filters(include_retired=True)) == everything


async def test_filters_restrict_before_the_arms_do(worker: Database, search: SearchRepository) -> None:
    wanted = new_memory("tea far away", vector=_at(89), category="skill", tags=("rare",), data={"n": 1}, importance=9)
    await _add(worker, wanted, *(new_memory(f"tea tea tea {n}", vector=_at(n / 100)) for n in range(150)))
    for filters in (
        Filters(categories=("skill",)),
        Filters(tags=("rare",)),
        Filters(data_contains={"n": 1}),
        Filters(min_importance=9),
    ):
        hits = await search.search(OWNER, SearchQuery(text="tea", limit=1, filters=filters), _at(0), MODEL)
        assert _contents(hits) == ["tea far away"]


async def test_ties_go_by_id_and_the_limit_holds(worker: Database, search: SearchRepository) -> None:
    same = [new_memory(f"tea {n}", vector=_at(45), half_life_seconds=None) for n in range(30)]
    await _add(worker, *same)
    hits = await search.search(OWNER, SearchQuery(text="nothing", limit=10), _at(0), MODEL)
    assert [hit.memory.id for hit in hits] == sorted(new.id for new in same)[:10]


async def test_the_app_s_language_stems_the_question(
    worker: Database, search: SearchRepository, admin: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    await _add(worker, new_memory("only so that the app is there"))
    await admin.execute("UPDATE app SET language = 'german'")
    commit = commit_of("t-9", addition("t-9", new_memory("Er mag alte Häuser.")), language="german")
    assert await OwnerRepository(worker).commit(OWNER, 1, commit)
    hits = await search.search(OWNER, SearchQuery(text="Haus", mode=Mode.TEXT), None, MODEL)
    assert _contents(hits) == ["Er mag alte Häuser."]


async def test_the_answer_stays_the_same_past_ten_executions(worker: Database, database_dsn: str) -> None:
    """A prepared statement turns generic after some executions, which has cost others their recall."""
    await _add(worker, *(new_memory(f"Fact number {n} about tea.", half_life_seconds=None) for n in range(300)))
    database = await Database.open(database_dsn, role="mnemo_query", pool_size=1)
    search = SearchRepository(database)
    question = SearchQuery(text="tea 7", filters=Filters(categories=("fact",)))
    answers = [await search.search(OWNER, question, vector_of("Fact number 7 about tea."), MODEL) for _ in range(15)]
    await database.close()
    assert answers[0][0].memory.content == "Fact number 7 about tea."
    assert {tuple(hit.memory.id for hit in answer) for answer in answers} == {
        tuple(hit.memory.id for hit in answers[0])
    }


async def test_a_vector_without_a_direction_is_like_nothing(worker: Database, search: SearchRepository) -> None:
    zero = np.zeros(8, dtype=np.float32)
    await _add(worker, new_memory("tea", vector=zero), new_memory("coffee", vector=_at(0)))
    hits = await search.search(OWNER, SearchQuery(text="tea coffee"), _at(0), MODEL)
    assert {hit.memory.content: hit.similarity for hit in hits} == {"tea": 0, "coffee": pytest.approx(1)}
    look = await OwnerRepository(worker).look(OWNER, [Probe(b"x", zero)], model=MODEL)
    assert [neighbour.similarity for neighbour in look.neighbours[0]] == [None, None]

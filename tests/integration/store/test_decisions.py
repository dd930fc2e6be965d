"""What can be read back of an owner's memories: statements, decisions, versions."""

from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import asyncpg
import pytest
from mnemostream.turns import Role

from processors.effects import Effect
from processors.explanations import Explanation
from processors.facts import Reading
from processors.memories import State, StatementOrder
from processors.records import Owner
from processors.routing import Action, Known, Neighbour, Route
from store.database import Database
from store.decisions import DecisionRepository
from store.owners import OwnerRepository
from store.turns import TurnRepository
from tests.fakes.values import (
    NOON,
    OWNER,
    accepted,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    retirement,
    retraction,
    source_of,
)

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
DAY = timedelta(days=1)
PORTO, LISBON = "Lives in Porto.", "Lives in Lisbon."
READING = Reading(model="reader", prompt_version="extraction.v2", tokens_in=700, tokens_out=40, latency_seconds=0.5)
ARBITRATION = Reading(
    model="judge", prompt_version="arbitration.v1", tokens_in=300, tokens_out=20, latency_seconds=0.25
)


@pytest.fixture
def decisions(query: Database) -> DecisionRepository:
    return DecisionRepository(query)


async def _commit(worker: Database, turn_id: str, *effects: Effect, owner: Owner = OWNER) -> None:
    owners = OwnerRepository(worker)
    look = await owners.look(owner, [], model=None)
    assert await owners.commit(owner, look.version, commit_of(turn_id, *effects, offset=look.version, reading=READING))


async def _explained(decisions: DecisionRepository, name: str) -> Explanation:
    explanation = await decisions.explain(OWNER, id_of(name))
    assert explanation is not None
    return explanation


def _moved(new: str = LISBON, old: str = PORTO, turn_id: str = "t-2", day: int = 1) -> Effect:
    at = NOON + day * DAY
    order = StatementOrder(at, at, day, 0)
    known = Known(
        id=id_of(old), state=State.LIVE, order=order, last=order, valid_from=NOON, content=old, superseded_by=None
    )
    added = addition(
        turn_id,
        new_memory(new, at=at, supersedes=id_of(old)),
        source_of(turn_id, at=at),
        retired=[retirement(id_of(old), at=at, by=id_of(new))],
    )
    return replace(
        added,
        candidate={"text": new, "said_at": at.isoformat(), "role": "user"},
        neighbours=(Neighbour(known, 0.9, same_text=False, same_slot=True),),
        verdict=replace(added.verdict, route=Route.ARBITRATE, action=Action.DELETE, reason="moved"),
        arbitration=ARBITRATION,
    )


@pytest.fixture
async def moved(worker: Database) -> None:
    """Porto in turn t-1, Lisbon in t-2, said again in t-3."""
    turns = TurnRepository(worker)
    for number, text in enumerate((PORTO, LISBON, "Lisbon, I said."), start=1):
        await turns.begin(OWNER, [accepted(f"t-{number}", text, offset=number)])
    await _commit(worker, "t-1", addition("t-1", new_memory(PORTO)))
    await _commit(worker, "t-2", _moved())
    await _commit(worker, "t-3", confirmation("t-3", id_of(LISBON), at=NOON + 2 * DAY))


@pytest.mark.usefixtures("moved")
async def test_a_memory_has_its_statements_decisions_and_versions(decisions: DecisionRepository) -> None:
    explained = await _explained(decisions, LISBON)
    assert explained.memory.content == LISBON
    assert [(said.turn_id, said.message_index, said.role, said.text) for said in explained.statements] == [
        ("t-2", 0, Role.USER, LISBON),
        ("t-3", 0, Role.USER, "Lisbon, I said."),
    ]
    replaced, again = explained.decisions
    assert (replaced.cause_kind, replaced.cause_id, replaced.candidate) == ("turn", "t-2", LISBON)
    assert (replaced.route, replaced.action, replaced.reason) == (Route.ARBITRATE, Action.DELETE, "moved")
    assert (replaced.said_at, replaced.role) == (NOON + DAY, Role.USER)
    assert (replaced.memory_id, replaced.retired) == (id_of(LISBON), (id_of(PORTO),))
    assert (replaced.reading, replaced.arbitration) == (READING, ARBITRATION)
    [compared] = replaced.compared
    assert (compared.memory_id, compared.state, compared.same_slot) == (id_of(PORTO), State.LIVE, True)
    assert compared.similarity == pytest.approx(0.9)
    assert compared.content == PORTO
    assert (again.action, again.arbitration, again.compared, again.retired) == (Action.CONFIRM, None, (), ())
    assert [version.content for version in explained.line] == [PORTO, LISBON]
    assert explained.time_zone == "UTC"


@pytest.mark.usefixtures("moved")
async def test_what_was_replaced_is_told_from_the_other_end(decisions: DecisionRepository) -> None:
    explained = await _explained(decisions, PORTO)
    assert explained.memory.state is State.SUPERSEDED
    assert [decision.action for decision in explained.decisions] == [Action.ADD, Action.DELETE]
    assert [version.content for version in explained.line] == [PORTO, LISBON]


async def test_what_was_taken_back_names_the_decision(worker: Database, decisions: DecisionRepository) -> None:
    await _commit(worker, "t-1", addition("t-1", new_memory(PORTO)))
    await _commit(worker, "t-2", retraction("t-2", retirement(id_of(PORTO), State.RETRACTED, at=NOON + DAY)))
    explained = await _explained(decisions, PORTO)
    assert [decision.cause_id for decision in explained.decisions] == ["t-1", "t-2"]
    assert explained.decisions[1].retired == (id_of(PORTO),)


@pytest.mark.usefixtures("moved")
async def test_nobody_else_gets_an_explanation(worker: Database, decisions: DecisionRepository) -> None:
    theirs, neighbour = Owner("zeta", OWNER.owner), Owner(OWNER.app, "somebody else")
    for owner in (theirs, neighbour):
        await _commit(worker, "t-1", addition("t-1", new_memory("something of theirs")), owner=owner)
        assert await decisions.explain(owner, id_of(LISBON)) is None
    assert await decisions.explain(OWNER, id_of("something of theirs")) is None
    assert await decisions.explain(OWNER, id_of("nothing")) is None
    assert await decisions.explain(Owner("nobody", "at all"), id_of(LISBON)) is None


@pytest.mark.usefixtures("moved")
async def test_what_is_forgotten_is_not_explained_and_not_quoted(decisions: DecisionRepository, admin: Admin) -> None:
    await admin.execute("UPDATE memory SET state = 'FORGOTTEN', retired_at = now() WHERE id = $1", id_of(PORTO))
    assert await decisions.explain(OWNER, id_of(PORTO)) is None
    explained = await _explained(decisions, LISBON)
    assert [version.content for version in explained.line] == [LISBON]
    assert [compared.content for compared in explained.decisions[0].compared] == [""]


@pytest.mark.usefixtures("moved")
async def test_a_statement_whose_turn_is_gone_is_told_without_its_text(
    decisions: DecisionRepository, admin: Admin
) -> None:
    await admin.execute("DELETE FROM turn WHERE id = 't-2'")
    async with admin.transaction():
        await admin.execute("SET LOCAL mnemo.forgetting = 'on'")
        await admin.execute("UPDATE turn SET state = 'ERASED', messages = NULL WHERE id = 't-3'")
    explained = await _explained(decisions, LISBON)
    assert [(said.turn_id, said.text) for said in explained.statements] == [("t-2", ""), ("t-3", "")]


async def test_a_statement_is_an_excerpt_with_its_speaker_and_a_whole_turn_has_all_messages(
    worker: Database, decisions: DecisionRepository
) -> None:
    long = accepted("t-1", "x" * 600, "second")
    named = replace(long.turn, messages=(replace(long.turn.messages[0], name="Ana"), long.turn.messages[1]))
    whole = accepted("t-2", "one", "two", offset=2)
    await TurnRepository(worker).begin(OWNER, [replace(long, turn=named), whole])
    sources = (source_of("t-1"), source_of("t-1", 7), source_of("t-2", None, at=NOON + DAY))
    await _commit(worker, "t-1", addition("t-1", new_memory(PORTO), *sources))
    said = (await _explained(decisions, PORTO)).statements
    assert [(each.message_index, each.name, each.text) for each in said] == [
        (0, "Ana", "x" * 500),
        (7, None, ""),
        (None, None, "one\ntwo"),
    ]


async def test_a_line_is_followed_both_ways_oldest_first(worker: Database, decisions: DecisionRepository) -> None:
    names = [f"Lives in house {number}." for number in range(6)]
    await _commit(worker, "t-0", addition("t-0", new_memory(names[0])), addition("t-0", new_memory("Likes tea.")))
    for number in range(1, 6):
        await _commit(worker, f"t-{number}", _moved(names[number], names[number - 1], f"t-{number}", number))
    for name in names:
        assert [version.content for version in (await _explained(decisions, name)).line] == names
    assert [version.content for version in (await _explained(decisions, "Likes tea.")).line] == ["Likes tea."]


async def test_what_is_said_again_is_on_one_line_with_what_it_says_again(
    worker: Database, decisions: DecisionRepository
) -> None:
    await _commit(worker, "t-1", addition("t-1", new_memory(PORTO)))
    await _commit(worker, "t-2", retraction("t-2", retirement(id_of(PORTO), State.RETRACTED, at=NOON + DAY)))
    again = replace(new_memory("again", at=NOON + 2 * DAY), content=PORTO, restates=id_of(PORTO))
    await _commit(worker, "t-3", addition("t-3", again))
    explained = await _explained(decisions, "again")
    assert explained.memory.restates == id_of(PORTO)
    assert [version.state for version in explained.line] == [State.RETRACTED, State.LIVE]


async def test_a_long_life_is_cut_to_its_beginning_and_its_latest_part(
    worker: Database, decisions: DecisionRepository, admin: Admin
) -> None:
    await _commit(worker, "t-0", addition("t-0", new_memory(LISBON)))
    for number in range(1, 6):
        at = NOON + number * DAY
        sources = [source_of(f"t-{number}", index, at=at) for index in range(50)]
        again = [confirmation(f"t-{number}", id_of(LISBON), source, at=at, nth=n) for n, source in enumerate(sources)]
        await _commit(worker, f"t-{number}", *again)
    explained = await _explained(decisions, LISBON)
    assert len(explained.decisions) == len(explained.statements) == 201
    assert (explained.decisions[0].cause_id, explained.decisions[-1].cause_id) == ("t-0", "t-5")
    assert explained.decisions[1].cause_id == "t-2"
    assert await admin.fetchval("SELECT count(*) FROM decision") == 251

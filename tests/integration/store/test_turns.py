import asyncio
import dataclasses
from datetime import timedelta
from typing import TypeAlias

import asyncpg
import pytest
from mnemostream.turns import Message, Reason, Role

from processors.effects import Verdict
from processors.memories import State
from processors.records import AppProfile, Category, ContextMessage, Owner, Parking, TurnStatus
from processors.routing import Action, Route
from processors.search import TurnReport, TurnState
from store.database import Database
from store.memories import MemoryRepository
from store.models import ModelMismatch
from store.owners import OwnerRepository
from store.parking import ParkingRepository
from store.turns import TurnRepository
from tests.fakes.values import (
    MODEL,
    NOON,
    OWNER,
    accepted,
    addition,
    commit_of,
    confirmation,
    id_of,
    new_memory,
    nothing_done,
    place_of,
    retirement,
    retraction,
)

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
NEW, PENDING, SETTLED, REUSED = TurnStatus.NEW, TurnStatus.PENDING, TurnStatus.SETTLED, TurnStatus.REUSED


@pytest.fixture
def turns(worker: Database) -> TurnRepository:
    return TurnRepository(worker)


@pytest.fixture
def ledger(worker: Database) -> ParkingRepository:
    return ParkingRepository(worker)


@pytest.fixture
def owners(worker: Database) -> OwnerRepository:
    return OwnerRepository(worker)


def _parking(*turn_ids: str, offset: int = 1, topic: str = "mnemo.turns.v1", **fields: object) -> Parking:
    values: dict[str, object] = {"stage": "extract", "reason": Reason.INVALID_FIELD, "detail": "said_at: no date"}
    return Parking(
        place=place_of(offset, topic=topic),
        attempts=1,
        owner=OWNER,
        turn_ids=turn_ids,
        **(values | fields),  # type: ignore[arg-type]
    )


async def test_a_turn_is_new_once_and_then_pending(turns: TurnRepository, admin: Admin) -> None:
    turn = accepted(
        "t-1", "I moved to Lisbon.", time_zone="Europe/Lisbon", metadata={"channel": "web"}, recalled=("x",)
    )
    assert (await turns.begin(OWNER, [turn])).statuses == (NEW,)
    assert (await turns.begin(OWNER, [turn])).statuses == (PENDING,)
    row = await admin.fetchrow("SELECT * FROM turn")
    assert row is not None
    assert (row["state"], row["session"], row["said_at"], row["time_zone"]) == ("PENDING", "s-1", NOON, "Europe/Lisbon")
    assert (row["topic"], row["partition"], row["offset"]) == ("mnemo.turns.v1", 0, 1)
    assert row["messages"] == '[{"id": null, "name": null, "role": "user", "content": "I moved to Lisbon."}]'


async def test_sixteen_workers_begin_one_turn(turns: TurnRepository) -> None:
    turn = accepted("t-1")
    begun = await asyncio.gather(*(turns.begin(OWNER, [turn]) for _ in range(16)))
    assert sorted(one.statuses[0] for one in begun) == [NEW] + [PENDING] * 15


async def test_a_stored_turn_is_settled(turns: TurnRepository, owners: OwnerRepository) -> None:
    turn = accepted("t-1")
    await turns.begin(OWNER, [turn])
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    assert (await turns.begin(OWNER, [turn])).statuses == (SETTLED,)
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.STORED)


async def test_a_turn_that_only_the_ledger_remembers_is_settled_and_not_written_again(
    turns: TurnRepository, owners: OwnerRepository, admin: Admin
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    await admin.execute("DELETE FROM turn")
    assert (await turns.begin(OWNER, [accepted("t-1")])).statuses == (SETTLED,)
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.STORED)
    assert await admin.fetchval("SELECT count(*) FROM turn") == 0


@pytest.mark.parametrize("stored", [False, True])
async def test_an_id_with_other_messages_is_reused_and_leaves_what_stands(
    turns: TurnRepository, ledger: ParkingRepository, owners: OwnerRepository, admin: Admin, stored: bool
) -> None:
    await turns.begin(OWNER, [accepted("t-1", "First.")])
    if stored:
        assert await owners.commit(OWNER, 0, commit_of("t-1"))
    before = await admin.fetchrow("SELECT * FROM turn")

    assert (await turns.begin(OWNER, [accepted("t-1", "Second.", offset=2)])).statuses == (REUSED,)
    await ledger.park(_parking("t-1", offset=2, reason=Reason.ID_REUSED, detail="id: used before"))

    assert await admin.fetchrow("SELECT * FROM turn") == before
    assert await admin.fetchval("SELECT count(*) FROM ledger WHERE outcome = 'PARKED'") == 0
    assert await admin.fetchval("SELECT reason FROM parked") == "id_reused"


async def test_the_same_id_twice_in_a_window_counts_once(turns: TurnRepository) -> None:
    window = [accepted("t-1", "A."), accepted("t-1", "A.", offset=2), accepted("t-1", "B.", offset=3)]
    assert (await turns.begin(OWNER, window)).statuses == (NEW, PENDING, REUSED)
    assert (await turns.begin(OWNER, window)).statuses == (PENDING, PENDING, REUSED)


async def test_another_owner_may_use_the_same_id(turns: TurnRepository) -> None:
    for owner in (OWNER, Owner("acme", "other"), Owner("other-app", "user/42")):
        assert (await turns.begin(owner, [accepted("t-1", owner.owner, owner=owner)])).statuses == (NEW,)


async def test_of_a_turn_off_the_record_only_the_id_the_place_and_the_time_are_kept(
    turns: TurnRepository, admin: Admin
) -> None:
    turn = accepted("t-1", "A secret.", off_record=True, metadata={"a": 1}, recalled=("r",), time_zone="UTC")
    assert (await turns.begin(OWNER, [turn])).statuses == (NEW,)
    assert (await turns.begin(OWNER, [turn])).statuses == (PENDING,)
    row = await admin.fetchrow("SELECT * FROM turn")
    assert row is not None
    kept = {name for name, value in row.items() if value is not None}
    assert kept == {
        "owner_key", "id", "app", "state", "off_record", "received_at", "topic", "partition", "offset", "recorded_at",
    }  # fmt: skip


async def test_the_context_is_what_the_session_said_before(turns: TurnRepository) -> None:
    said = [
        accepted("t-1", "one", "two", offset=1),
        accepted("t-2", "elsewhere", offset=2, session="s-2"),
        accepted("t-3", "three", offset=3),
        accepted("t-4", "not for the record", offset=4, off_record=True),
        accepted("t-6", "later", offset=6),
    ]
    for turn in said:
        await turns.begin(OWNER, [turn])
    named = accepted("t-5", offset=5)
    named = dataclasses.replace(
        named, turn=dataclasses.replace(named.turn, messages=(Message(Role.ASSISTANT, "now", "m-1", "Ada"),))
    )

    first = await turns.begin(OWNER, [named], context_messages=2)
    again = await turns.begin(OWNER, [named])
    after = await turns.begin(OWNER, [accepted("t-7", offset=7)], context_messages=2)
    alone = await turns.begin(OWNER, [accepted("t-8", offset=8, session=None)])

    assert [message.content for message in first.context] == ["two", "three"]
    assert [message.content for message in again.context] == ["one", "two", "three"]
    assert after.context == (ContextMessage(Role.ASSISTANT, "now", "Ada"), ContextMessage(Role.USER, "later"))
    assert alone.context == ()


async def test_the_app_s_own_settings_come_along(turns: TurnRepository, admin: Admin) -> None:
    assert (await turns.begin(OWNER, [accepted("t-1")])).profile == AppProfile()
    await admin.execute(
        """
        UPDATE app
        SET time_zone = 'Europe/Berlin', language = 'german', instructions = 'Du.',
            categories = '{"pet": {}, "diet": {"fading": "slow", "description": "What they eat."}}'
        """
    )
    categories = (Category("diet", "slow", "What they eat."), Category("pet"))
    profile = AppProfile("Europe/Berlin", "german", "Du.", categories)
    assert (await turns.begin(OWNER, [accepted("t-1")])).profile == profile
    assert (await OwnerRepository(turns._database).look(OWNER, [], model=None)).profile == profile


async def test_a_pending_turn_is_parked_with_its_reason(
    turns: TurnRepository, ledger: ParkingRepository, admin: Admin
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    for _ in range(2):
        await ledger.park(_parking("t-1", reason=Reason.MODEL_REFUSED, detail="the model refused"))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.PARKED, Reason.MODEL_REFUSED, "the model refused")
    [parked] = await admin.fetch("SELECT app, turn_id, stage, reason, detail, attempts FROM parked")
    assert tuple(parked) == ("acme", "t-1", "extract", "model_refused", "the model refused", 1)
    assert [tuple(row) for row in await admin.fetch("SELECT turn_id, outcome FROM ledger")] == [("t-1", "PARKED")]


async def test_a_turn_that_was_never_begun_can_be_parked(turns: TurnRepository, ledger: ParkingRepository) -> None:
    await ledger.park(_parking("t-1"))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.PARKED, Reason.INVALID_FIELD, "said_at: no date")


async def test_a_parked_turn_that_is_sent_again_is_new_and_becomes_stored(
    turns: TurnRepository, ledger: ParkingRepository, owners: OwnerRepository
) -> None:
    await ledger.park(_parking("t-1"))
    corrected = accepted("t-1", "Corrected.", offset=9)
    assert (await turns.begin(OWNER, [corrected])).statuses == (NEW,)
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.PENDING)
    look = await owners.look(OWNER, [], model=None, turn_ids=["t-1"])
    assert look.settled == frozenset()
    assert await owners.commit(OWNER, look.version, commit_of("t-1", addition("t-1", new_memory("x")), offset=9))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.STORED, memory_ids=(str(id_of("x")),))
    assert not await owners.commit(OWNER, 1, commit_of("t-1"))


async def test_a_stored_turn_stays_stored_whatever_is_parked_after(
    turns: TurnRepository, ledger: ParkingRepository, owners: OwnerRepository, admin: Admin
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    await ledger.park(_parking("t-1"))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.STORED)
    await admin.execute("DELETE FROM turn")  # the log's retention is over
    await ledger.park(_parking("t-1"))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.STORED)


async def test_a_broken_record_does_not_park_the_pending_turn_whose_id_it_uses(
    turns: TurnRepository, ledger: ParkingRepository
) -> None:
    await turns.begin(OWNER, [accepted("t-1", offset=1)])
    await ledger.park(_parking("t-1", offset=2))
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.PENDING)


async def test_what_reconcile_parks_marks_the_turns_of_the_window(
    turns: TurnRepository, ledger: ParkingRepository
) -> None:
    await turns.begin(OWNER, [accepted("t-1", offset=1), accepted("t-2", offset=2)])
    await ledger.park(_parking("t-1", "t-2", offset=77, topic="mnemo.candidates.v1", stage="reconcile"))
    for turn_id in ("t-1", "t-2"):
        assert (await turns.report(OWNER, turn_id)).state is TurnState.PARKED


async def test_what_has_no_owner_is_kept_by_its_place_alone(ledger: ParkingRepository, admin: Admin) -> None:
    parking = dataclasses.replace(_parking(reason=Reason.MISSING_KEY, detail="key: missing"), owner=None)
    for _ in range(2):
        await ledger.park(parking)
    assert [tuple(row) for row in await admin.fetch("SELECT app, owner_key, turn_id, reason FROM parked")] == [
        (None, None, None, "missing_key")
    ]
    assert await admin.fetchval("SELECT count(*) FROM owner") == 0


async def test_a_place_that_another_app_s_record_had_does_not_stop_the_parking(
    turns: TurnRepository, ledger: ParkingRepository, admin: Admin
) -> None:
    await ledger.park(_parking("t-1"))
    other = dataclasses.replace(_parking("t-1"), owner=Owner("other-app", "o"))
    await ledger.park(other)
    await ledger.park(dataclasses.replace(_parking(), owner=None))
    assert [row["app"] for row in await admin.fetch("SELECT app FROM parked")] == ["acme"]
    assert (await turns.report(Owner("other-app", "o"), "t-1")).state is TurnState.PARKED


async def test_a_report_names_the_memories_that_a_turn_made_or_confirmed(
    turns: TurnRepository, owners: OwnerRepository
) -> None:
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.UNKNOWN)
    assert await owners.commit(OWNER, 0, commit_of("t-0", addition("t-0", new_memory("a"))))
    await turns.begin(OWNER, [accepted("t-1")])
    assert await turns.report(OWNER, "t-1") == TurnReport(TurnState.PENDING)
    effects = (addition("t-1", new_memory("b")), confirmation("t-1", id_of("a")), addition("t-1", new_memory("c")))
    assert await owners.commit(OWNER, 1, commit_of("t-1", *effects))
    report = await turns.report(OWNER, "t-1")
    assert report == TurnReport(TurnState.STORED, memory_ids=tuple(str(id_of(name)) for name in "bac"))


async def test_a_report_leaves_out_what_a_turn_took_back_or_only_repeated(
    turns: TurnRepository, owners: OwnerRepository
) -> None:
    known = [addition("t-0", new_memory(name)) for name in "abcd"]
    assert await owners.commit(OWNER, 0, commit_of("t-0", *known))
    in_place_of_b = retirement(id_of("b"), by=id_of("e"))
    effects = (
        retraction("t-1", retirement(id_of("a"), State.RETRACTED)),
        addition("t-1", new_memory("e"), retired=[in_place_of_b]),
        nothing_done("t-1", id_of("c")),
        dataclasses.replace(
            confirmation("t-1", id_of("d")),
            verdict=Verdict(route=Route.ARBITRATE, action=Action.NOOP, reason="it is known"),
        ),
    )
    assert await owners.commit(OWNER, 1, commit_of("t-1", *effects))
    report = await turns.report(OWNER, "t-1")
    assert report.memory_ids == (str(id_of("e")), str(id_of("d")))


async def test_text_of_every_kind_survives(turns: TurnRepository, owners: OwnerRepository, query: Database) -> None:
    text = 'Ünïcødé 東京 \N{ROCKET} it\'s \\ "quoted" \x01\x7f \ufffd {json: [1]} $1 %s\n\t'
    await turns.begin(OWNER, [accepted("t-1", text, metadata={"\N{ROCKET}": [1e300, -0.5, "\\u0000"]})])
    new = new_memory(text, id=id_of("x"), data={"n": 2**63, "deep": [[[{}]]]}, tags=("a,b", '"', "{}", "NULL", ""))
    assert await owners.commit(OWNER, 0, commit_of("t-1", addition("t-1", new)))
    memory = await MemoryRepository(query).get(OWNER, new.id)
    assert memory is not None
    assert (memory.content, memory.data, memory.tags) == (text, new.data, new.tags)
    context = (await turns.begin(OWNER, [accepted("t-2", offset=2)])).context
    assert [message.content for message in context] == [text]


async def test_a_mebibyte_of_messages_is_kept(turns: TurnRepository) -> None:
    turn = accepted("t-1", *("x" * 10_000 for _ in range(100)))
    assert (await turns.begin(OWNER, [turn])).statuses == (NEW,)
    begun = await turns.begin(OWNER, [accepted("t-2", offset=2)])
    assert len(begun.context) == 6


async def test_halves_carry_what_is_too_wide(owners: OwnerRepository) -> None:
    from processors.effects import Probe
    from tests.fakes.values import vector_of

    for dimensions in (640, 641, 1280):
        model = dataclasses.replace(MODEL, name=f"wide-{dimensions}", dimensions=dimensions)
        owner = Owner("acme", f"o-{dimensions}")
        vector = vector_of("v", dimensions)
        commit = dataclasses.replace(
            commit_of("t-1", addition("t-1", new_memory("v", vector=vector))), embedding_model=model
        )
        assert await owners.commit(owner, 0, commit)
        look = await owners.look(owner, [Probe(b"other", vector)], model=model)
        [[neighbour]] = look.neighbours
        assert neighbour.similarity == pytest.approx(1.0, abs=1e-3)


async def test_a_model_keeps_its_key_and_takes_new_thresholds(
    owners: OwnerRepository, worker: Database, admin: Admin
) -> None:
    assert await owners.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory("a"))))
    strict = dataclasses.replace(MODEL, auto_merge_threshold=0.99)
    commit = dataclasses.replace(commit_of("t-2", addition("t-2", new_memory("b"))), embedding_model=strict)
    assert await OwnerRepository(worker).commit(OWNER, 1, commit)
    [row] = await admin.fetch("SELECT model_key, auto_merge_threshold FROM embedding_model")
    assert row["auto_merge_threshold"] == pytest.approx(0.99)
    shorter = dataclasses.replace(MODEL, dimensions=4)
    with pytest.raises(ModelMismatch, match="need another name"):
        await owners.commit(OWNER, 2, dataclasses.replace(commit, embedding_model=shorter))


async def test_an_erased_owner_comes_back_as_a_new_one(
    turns: TurnRepository, owners: OwnerRepository, admin: Admin
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    assert await owners.commit(OWNER, 0, commit_of("t-1", addition("t-1", new_memory("a"))))
    await admin.execute("DELETE FROM owner")
    assert await admin.fetchval("SELECT count(*) FROM memory") == 0
    assert (await owners.look(OWNER, [], model=None)).version == 0
    assert (await turns.begin(OWNER, [accepted("t-2")])).statuses == (NEW,)
    assert await owners.commit(OWNER, 0, commit_of("t-2", addition("t-2", new_memory("a"))))


async def test_an_answer_older_than_a_day_is_given_anew(query: Database, admin: Admin) -> None:
    from processors.effects import RequestId
    from tests.fakes.values import request_commit

    owners = OwnerRepository(query)
    request = RequestId("CreateMemory", "r-1", b"b" * 32)
    assert await owners.commit(OWNER, 0, request_commit(request, addition("r-1", new_memory("a"))))
    assert not await owners.commit(OWNER, 1, request_commit(request, addition("r-1", new_memory("b"))))
    await admin.execute("UPDATE answer SET at = at - $1::interval", timedelta(hours=25))
    assert (await owners.look(OWNER, [], model=None, request=request)).answered is None
    assert await owners.commit(OWNER, 1, request_commit(request, addition("r-1", new_memory("b"))))
    answered = (await owners.look(OWNER, [], model=None, request=request)).answered
    assert answered is not None
    assert answered.memory.content == "b"

"""The ledger of what was set aside: parked again, put back, given up."""

import dataclasses
from datetime import timedelta
from typing import Any, TypeAlias

import asyncpg
import pytest
import structlog
from mnemostream.turns import Reason

from processors.records import Landed, Owner, Parking, TurnStatus
from processors.search import TurnState
from store.database import Database
from store.owners import OwnerRepository
from store.parked import ParkedEntry, ParkedFilter, ParkedPlace, ParkedRepository, ParkedState
from store.parking import ParkingRepository
from store.turns import TurnRepository
from tests.fakes.values import NOON, OWNER, accepted, commit_of, place_of

Admin: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
TURNS, CANDIDATES = "mnemo.turns.v1", "mnemo.candidates.v1"
ALL = ParkedFilter()


@pytest.fixture
def ledger(worker: Database) -> ParkingRepository:
    return ParkingRepository(worker)


@pytest.fixture
def turns(worker: Database) -> TurnRepository:
    return TurnRepository(worker)


@pytest.fixture
def owners(worker: Database) -> OwnerRepository:
    return OwnerRepository(worker)


@pytest.fixture
def parked(operator: Database) -> ParkedRepository:
    return ParkedRepository(operator)


def parking(*turn_ids: str, offset: int = 1, topic: str = TURNS, **fields: Any) -> Parking:
    known = Parking(
        place=place_of(offset, topic=topic),
        stage="extract" if topic == TURNS else "reconcile",
        reason=Reason.MODEL_REFUSED,
        detail="the model refused",
        attempts=1,
        owner=OWNER,
        turn_ids=turn_ids,
        landed=Landed(2, 100 + offset),
    )
    return dataclasses.replace(known, **fields)


async def only(parked: ParkedRepository) -> ParkedEntry:
    [entry] = await parked.list(ALL, everything=True, limit=10)
    return entry


async def walked(parked: ParkedRepository, wanted: ParkedFilter = ALL, page: int = 2) -> list[ParkedPlace]:
    return [entry.place async for entries in parked.waiting(wanted, page=page) for entry in entries]


async def state_of(turns: TurnRepository, turn_id: str = "t-1") -> TurnState:
    return (await turns.report(OWNER, turn_id)).state


async def test_where_a_record_lies_and_all_its_turns_are_kept(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1", "t-2", offset=7, topic=CANDIDATES))
    entry = await only(parked)
    assert (entry.place, entry.landed) == (ParkedPlace(CANDIDATES, 0, 7), Landed(2, 107))
    assert (entry.received_at, entry.turn_ids) == (NOON + timedelta(seconds=7), ("t-1", "t-2"))
    assert (entry.state, entry.replays, entry.stored) == (ParkedState.WAITING, 0, 0)


async def test_a_redelivery_tells_where_the_record_lies_now_and_nothing_else(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1"))
    before = await only(parked)
    await ledger.park(parking("t-1", landed=Landed(2, 500)))
    assert await only(parked) == dataclasses.replace(before, landed=Landed(2, 500))


@pytest.mark.parametrize("owner", [OWNER, None])
async def test_a_redelivery_does_not_undo_that_a_record_was_given_up(
    ledger: ParkingRepository, parked: ParkedRepository, owner: Owner | None
) -> None:
    one = parking(*(["t-1"] if owner else []), owner=owner)
    await ledger.park(one)
    assert await parked.drop([await only(parked)]) == {ParkedPlace(TURNS, 0, 1)}
    dropped = await only(parked)
    assert await parked.drop([dropped]) == {ParkedPlace(TURNS, 0, 1)}
    assert await only(parked) == dropped
    await ledger.park(one)
    assert (await only(parked)).state is ParkedState.DROPPED
    assert await parked.list(ALL, limit=10) == ()
    assert await walked(parked) == []


@pytest.mark.parametrize("owner", [OWNER, None])
async def test_a_record_that_was_put_back_and_is_refused_again_waits_again(
    ledger: ParkingRepository, parked: ParkedRepository, owner: Owner | None
) -> None:
    one = parking(*(["t-1"] if owner else []), owner=owner)
    await ledger.park(one)
    first = await only(parked)
    await parked.replayed([first])
    back = await only(parked)
    assert (back.state, back.replays) == (ParkedState.REPLAYED, 1)
    again = dataclasses.replace(one, reason=Reason.INTERNAL_ERROR, replay=1, landed=Landed(2, 300))
    await ledger.park(again)
    entry = await only(parked)
    assert (entry.state, entry.replays, entry.reason) == (ParkedState.WAITING, 1, "internal_error")
    assert entry.landed == Landed(2, 300)
    assert entry.parked_at > first.parked_at
    await ledger.park(one)  # the first copy, delivered once more
    assert await only(parked) == entry


async def test_a_copy_that_comes_back_before_its_replay_is_noted_waits_and_is_not_noted(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1"))
    first = await only(parked)
    await parked.drop([first])
    await ledger.park(parking("t-1", replay=1))
    assert ((await only(parked)).state, (await only(parked)).replays) == (ParkedState.WAITING, 1)
    await parked.replayed([first])
    assert ((await only(parked)).state, (await only(parked)).replays) == (ParkedState.WAITING, 1)


async def test_who_gave_up_after_a_replay_has_the_last_word(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1"))
    await parked.replayed([await only(parked)])
    await parked.drop([await only(parked)])
    await ledger.park(parking("t-1", replay=1))
    assert (await only(parked)).state is ParkedState.DROPPED
    await parked.replayed([await only(parked)])
    assert (await only(parked)).state is ParkedState.REPLAYED


async def test_a_record_of_a_topic_that_was_made_anew_is_another(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1"))
    await parked.replayed([await only(parked)])
    await parked.drop([await only(parked)])
    later = place_of(1)._replace(received_at=NOON + timedelta(days=1))
    await ledger.park(parking("t-2", place=later))
    entry = await only(parked)
    assert (entry.state, entry.replays, entry.turn_ids) == (ParkedState.WAITING, 0, ("t-2",))
    assert entry.received_at == later.received_at


async def test_a_turn_is_parked_then_pending_then_stored_along_a_replay(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository, owners: OwnerRepository
) -> None:
    turn = accepted("t-1")
    await turns.begin(OWNER, [turn])
    await ledger.park(parking("t-1"))
    assert await state_of(turns) is TurnState.PARKED
    await parked.replayed([await only(parked)])
    assert await state_of(turns) is TurnState.PENDING
    assert (await turns.begin(OWNER, [turn])).statuses == (TurnStatus.PENDING,)
    assert not (await only(parked)).took_effect
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    assert await state_of(turns) is TurnState.STORED
    assert ((await only(parked)).state, (await only(parked)).took_effect) == (ParkedState.REPLAYED, True)


async def test_a_turn_that_was_never_begun_is_parked_until_it_is_read(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository
) -> None:
    await ledger.park(parking("t-1", reason=Reason.INVALID_FIELD))
    await parked.replayed([await only(parked)])
    assert await state_of(turns) is TurnState.PARKED
    assert (await turns.begin(OWNER, [dataclasses.replace(accepted("t-1"), replay=1)])).statuses == (TurnStatus.NEW,)
    assert await state_of(turns) is TurnState.PENDING


async def test_the_turns_of_a_window_are_pending_once_it_is_put_back(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository, owners: OwnerRepository
) -> None:
    await turns.begin(OWNER, [accepted("t-1"), accepted("t-2", offset=2)])
    assert await owners.commit(OWNER, 0, commit_of("t-2"))
    await ledger.park(parking("t-1", "t-2", offset=70, topic=CANDIDATES))
    assert [await state_of(turns, each) for each in ("t-1", "t-2")] == [TurnState.PARKED, TurnState.STORED]
    entry = await only(parked)
    assert (entry.stored, entry.took_effect) == (1, False)
    await parked.replayed([entry])
    assert [await state_of(turns, each) for each in ("t-1", "t-2")] == [TurnState.PENDING, TurnState.STORED]


async def test_putting_back_another_record_with_its_id_leaves_a_parked_turn_alone(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    await ledger.park(parking("t-1"))
    await ledger.park(parking("t-1", offset=2, reason=Reason.ID_REUSED))
    reused, first = sorted(await parked.list(ALL, limit=10), key=lambda entry: entry.reason)
    assert (reused.place.offset, first.place.offset) == (2, 1)
    await parked.replayed([reused])
    assert await state_of(turns) is TurnState.PARKED


async def test_a_stored_turn_does_not_make_a_reuse_of_its_id_count_as_stored(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository, owners: OwnerRepository
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    await ledger.park(parking("t-1", offset=2, reason=Reason.ID_REUSED))
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    assert (await only(parked)).stored == 0


async def test_a_reading_after_the_first_is_noted_as_its_own_and_leaves_a_stored_turn_stored(
    ledger: ParkingRepository,
    parked: ParkedRepository,
    turns: TurnRepository,
    owners: OwnerRepository,
    admin: Admin,
) -> None:
    await turns.begin(OWNER, [accepted("t-1")])
    assert await owners.commit(OWNER, 0, commit_of("t-1"))
    for _ in range(2):
        await ledger.park(parking("t-1", run=3))
    assert await state_of(turns) is TurnState.STORED
    noted = await admin.fetch("SELECT run, outcome FROM ledger ORDER BY run")
    assert [tuple(row) for row in noted] == [(0, "STORED"), (3, "PARKED")]
    entry = await only(parked)
    assert (entry.state, entry.took_effect) == (ParkedState.WAITING, False)


async def test_a_second_reading_that_is_refused_shows_although_the_first_was_put_back(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await ledger.park(parking("t-1"))
    await parked.replayed([await only(parked)])
    await ledger.park(parking("t-1", run=1, landed=Landed(0, 9)))
    entry = await only(parked)
    assert (entry.state, entry.replays, entry.landed) == (ParkedState.WAITING, 0, Landed(0, 9))


async def test_a_later_run_is_another_record_and_an_earlier_one_changes_nothing(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    first = parking("t-1", run=1)
    await ledger.park(first)
    seen = await only(parked)
    await parked.drop([seen])
    await ledger.park(parking("t-1", run=2, landed=Landed(2, 777)))
    entry = await only(parked)
    assert (entry.state, entry.run, entry.landed) == (ParkedState.WAITING, 2, Landed(2, 777))
    assert entry.parked_at > seen.parked_at
    for late in (first, dataclasses.replace(first, replay=3), parking("t-1")):
        await ledger.park(late)
    await parked.replayed([seen])
    assert await only(parked) == entry


async def test_what_was_put_back_since_it_was_seen_is_not_given_up(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    for offset in (1, 2, 3):
        await ledger.park(parking(f"t-{offset}", offset=offset))
    seen = sorted(await parked.list(ALL, limit=10), key=lambda entry: entry.place)
    await parked.replayed(seen[:2])
    await ledger.park(parking("t-2", offset=2, replay=1))
    assert await parked.drop(seen) == {ParkedPlace(TURNS, 0, 3)}
    states = [entry.state for entry in await parked.find([entry.place for entry in seen])]
    assert states == [ParkedState.REPLAYED, ParkedState.WAITING, ParkedState.DROPPED]
    # Who names it as it is now means it.
    assert len(await parked.drop(await parked.find([seen[0].place]))) == 1


@pytest.mark.parametrize("app", ["other-app", None])
async def test_a_place_that_holds_the_row_of_another_app_is_told_and_its_turn_is_parked_all_the_same(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository, app: str | None
) -> None:
    await ledger.park(parking("t-1"))
    before = await only(parked)
    owner = None if app is None else Owner(app, "ben")
    with structlog.testing.capture_logs() as logged:
        await ledger.park(parking("t-1"))
        assert not logged
        await ledger.park(parking(*(["t-9"] if owner else []), owner=owner))
    assert logged == [
        {
            "event": "parked_place_taken",
            "log_level": "warning",
            "topic": TURNS,
            "partition": 0,
            "offset": 1,
            "stage": "extract",
            "reason": "model_refused",
        }
    ]
    assert await only(parked) == before
    if owner is not None:
        assert (await turns.report(owner, "t-9")).state is TurnState.PARKED


async def test_a_worker_of_the_version_before_notes_that_a_turn_had_been_parked(
    ledger: ParkingRepository, worker: Database, admin: Admin
) -> None:
    await ledger.park(parking("t-1"))
    async with worker.app(OWNER.app) as connection:
        transaction = await connection.fetchval("SELECT pg_current_xact_id()::text")
        await connection.execute("UPDATE ledger SET outcome = 'STORED' WHERE outcome = 'PARKED'")
    assert tuple(await admin.fetchrow("SELECT tx::text, was_parked FROM ledger") or ()) == (transaction, True)


async def _several(ledger: ParkingRepository) -> None:
    ben = Owner("acme", "ben")
    for one in (
        parking("t-1", offset=1),
        parking("t-2", offset=2, reason=Reason.INTERNAL_ERROR),
        parking("t-3", offset=3, owner=ben),
        parking("t-4", offset=4, owner=Owner("other", "user/42")),
        parking("t-1", offset=5, topic=CANDIDATES),
        parking(offset=6, owner=None, reason=Reason.INVALID_JSON),
    ):
        await ledger.park(one)


_MEANT: tuple[tuple[ParkedFilter, list[int]], ...] = (
    (ALL, [6, 5, 4, 3, 2, 1]),
    (ParkedFilter(app="acme"), [5, 3, 2, 1]),
    (ParkedFilter(app="acme", owner="user/42"), [5, 2, 1]),
    (ParkedFilter(reason="internal_error"), [2]),
    (ParkedFilter(stage="reconcile"), [5]),
    (ParkedFilter(since=NOON), [6, 5, 4, 3, 2, 1]),
    (ParkedFilter(until=NOON), []),
)


async def test_the_list_is_filtered_newest_first_and_the_walk_is_in_the_order_of_the_places(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    await _several(ledger)
    for wanted, offsets in _MEANT:
        assert [entry.place.offset for entry in await parked.list(wanted, limit=10)] == offsets
        assert len(await parked.list(wanted, limit=1)) == min(1, len(offsets))
        places = await walked(parked, wanted)
        assert places == sorted(places)
        assert sorted(place.offset for place in places) == sorted(offsets)


async def test_a_walk_ends_although_what_it_puts_back_is_parked_again(
    ledger: ParkingRepository, parked: ParkedRepository
) -> None:
    for offset in range(5):
        await ledger.park(parking(f"t-{offset}", offset=offset))
    seen = 0
    async for entries in parked.waiting(ALL, page=2):
        for entry in entries:
            seen += 1
            await parked.replayed([entry])
            await ledger.park(parking(entry.turn_ids[0], offset=entry.place.offset, replay=1))
    assert seen == 5


async def test_the_walk_passes_over_what_took_effect_since(
    ledger: ParkingRepository, parked: ParkedRepository, turns: TurnRepository, owners: OwnerRepository
) -> None:
    await ledger.park(parking("t-1"))
    await ledger.park(parking("t-2", offset=2))
    await turns.begin(OWNER, [accepted("t-1", "Corrected.", offset=9)])
    assert await owners.commit(OWNER, 0, commit_of("t-1", offset=9))
    assert [place.offset for place in await walked(parked)] == [2]
    assert [entry.took_effect for entry in await parked.find([ParkedPlace(TURNS, 0, 1)])] == [True]


async def test_what_was_parked_before_its_place_was_kept_is_listed_all_the_same(
    parked: ParkedRepository, ledger: ParkingRepository, admin: Admin
) -> None:
    await ledger.park(parking("t-1"))
    await admin.execute(
        "UPDATE parked SET turn_ids = '{}', received_at = NULL, parked_partition = NULL, parked_offset = NULL"
    )
    entry = await only(parked)
    assert (entry.turn_ids, entry.landed, entry.received_at) == (("t-1",), None, None)
    await parked.replayed([entry])
    await ledger.park(parking("t-1", replay=1))
    assert ((await only(parked)).state, (await only(parked)).landed) == (ParkedState.WAITING, Landed(2, 101))


async def test_a_place_where_nothing_was_parked_is_not_found(parked: ParkedRepository) -> None:
    assert await parked.find([ParkedPlace(TURNS, 0, 1)]) == ()

"""Records that come again: what was parked stays so until it is put back; a window is read with all that was before."""

import dataclasses

import pytest
from mnemostream.turns import Reason

from processors.records import AcceptedTurn, Begun, Parking, TurnStatus
from processors.search import TurnState
from store.database import Database
from store.owners import OwnerRepository
from store.parked import ParkedFilter, ParkedRepository
from store.parking import ParkingRepository
from store.turns import TurnRepository
from tests.fakes.values import OWNER, accepted, commit_of, place_of

NEW, PENDING, SETTLED, PARKED = TurnStatus.NEW, TurnStatus.PENDING, TurnStatus.SETTLED, TurnStatus.PARKED
UNKNOWN = TurnStatus.UNKNOWN
TURNS, CANDIDATES = "mnemo.turns.v1", "mnemo.candidates.v1"


class Log:
    """What workers do with turns, and an operator with what is parked."""

    def __init__(self, worker: Database, operator: Database) -> None:
        self.turns, self.owners = TurnRepository(worker), OwnerRepository(worker)
        self.ledger, self.parked = ParkingRepository(worker), ParkedRepository(operator)

    async def stored(self, *turns: AcceptedTurn) -> None:
        for turn in turns:
            await self.turns.begin(OWNER, [turn])
            look = await self.owners.look(OWNER, [], model=None)
            assert await self.owners.commit(OWNER, look.version, commit_of(turn.turn.id, offset=turn.place.offset))

    async def refused(self, turn: AcceptedTurn, *, offset: int | None = None, topic: str = TURNS) -> None:
        """Parked, as a record at its place or another."""
        place = place_of(offset or turn.place.offset, topic=topic)
        stage = "extract" if topic == TURNS else "reconcile"
        parking = Parking(
            place=place, stage=stage, reason=Reason.MODEL_REFUSED, detail="no", attempts=1, owner=OWNER,
            turn_ids=(turn.turn.id,), replay=turn.replay,
        )  # fmt: skip
        await self.ledger.park(parking)

    async def begun(self, *turns: AcceptedTurn, run: int = 0) -> Begun:
        return await self.turns.begin(OWNER, turns, run=run)

    async def status(self, turn: AcceptedTurn, *, run: int = 0) -> TurnStatus:
        [status] = (await self.begun(turn, run=run)).statuses
        return status

    async def put_back(self, turn: AcceptedTurn) -> AcceptedTurn:
        """Its copy on the topic; the note of it is still to come."""
        [entry] = await self.parked.list(ParkedFilter(), everything=True, limit=10)
        return dataclasses.replace(turn, replay=entry.replays + 1)

    async def note(self) -> None:
        await self.parked.replayed(await self.parked.list(ParkedFilter(), everything=True, limit=10))


@pytest.fixture
def log(worker: Database, operator: Database) -> Log:
    return Log(worker, operator)


def contents(begun: Begun) -> list[str]:
    return [message.content for message in begun.context]


@pytest.mark.parametrize("run", [0, 1])
async def test_a_window_that_comes_again_in_part_is_read_with_what_took_effect_of_it(log: Log, run: int) -> None:
    a, b, c = (accepted(name, f"Words of {name}.", offset=offset) for offset, name in enumerate("abc", 1))
    if run:
        await log.stored(a, b, c)
        assert await log.owners.commit(OWNER, 0, commit_of("a", run=run))
    else:
        await log.stored(a)
        await log.begun(b, c)
    begun = await log.begun(a, b, c, run=run)
    assert begun.statuses == (SETTLED, PENDING, PENDING)
    assert contents(begun) == ["Words of a."]
    assert contents(await log.begun(b, c, run=run)) == ["Words of a."]
    assert contents(await log.begun(a, run=run)) == []


async def test_a_parked_turn_that_is_delivered_again_stays_parked(log: Log) -> None:
    turn = accepted("t-1")
    await log.begun(turn)
    await log.refused(turn)
    before, after = accepted("t-0", offset=0), accepted("t-2", offset=2)
    assert (await log.begun(before, turn, after)).statuses == (NEW, PARKED, NEW)
    assert (await log.turns.report(OWNER, "t-1")).state is TurnState.PARKED
    assert contents(await log.begun(after)) == ["This is t-0."]


async def test_a_turn_that_was_parked_unread_stays_parked_when_it_is_delivered_again(log: Log) -> None:
    await log.refused(accepted("t-1"))
    assert await log.status(accepted("t-1")) is PARKED


async def test_a_parked_turn_is_read_once_for_each_time_it_is_put_back(log: Log) -> None:
    turn = accepted("t-1")
    await log.begun(turn)
    await log.refused(turn)
    once = await log.put_back(turn)
    assert await log.status(once) is NEW  # before the note
    await log.note()
    assert await log.status(turn) is PENDING
    await log.refused(once)
    assert [await log.status(each) for each in (turn, once)] == [PARKED, PARKED]
    twice = await log.put_back(turn)
    await log.note()
    assert [await log.status(each) for each in (once, twice)] == [PENDING, PENDING]
    await log.stored(twice)
    assert [await log.status(each) for each in (turn, once, twice)] == [SETTLED, SETTLED, SETTLED]


async def test_a_parked_turn_that_is_published_again_is_read_and_the_record_of_before_is_not(log: Log) -> None:
    refused, corrected = accepted("t-1", "Worng."), accepted("t-1", "Right.", offset=5)
    await log.begun(refused)
    await log.refused(refused)
    assert await log.status(corrected) is NEW
    await log.refused(corrected)
    assert await log.status(refused) is PARKED
    assert await log.status(corrected) is PARKED
    assert await log.status(dataclasses.replace(refused, replay=1)) is NEW


async def test_a_place_of_a_topic_that_was_made_anew_is_another_place(log: Log) -> None:
    turn = accepted("t-1", offset=3)
    await log.begun(turn)
    await log.refused(turn)
    anew = dataclasses.replace(turn, place=place_of(9)._replace(offset=1))
    assert await log.status(anew) is NEW


async def test_a_turn_whose_window_was_parked_stays_so_until_the_window_is_put_back(log: Log) -> None:
    turn = accepted("t-1")
    await log.begun(turn)
    await log.refused(turn, offset=77, topic=CANDIDATES)
    assert await log.status(turn) is PARKED
    await log.note()
    assert await log.status(turn) is PENDING


async def test_a_turn_that_nobody_knows_cannot_be_read_again(log: Log) -> None:
    await log.stored(accepted("t-1"))
    stranger = OWNER._replace(owner="stranger")
    assert await log.status(accepted("t-2", offset=2), run=1) is UNKNOWN
    assert (await log.turns.begin(stranger, [accepted("t-1", owner=stranger)], run=1)).statuses == (UNKNOWN,)

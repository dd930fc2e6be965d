import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest
from mnemostream.turns import Reason

from processors.records import Owner, Parking
from store.database import Database
from store.notices import TurnNotices, payload
from store.owners import OwnerRepository
from store.parking import ParkingRepository
from store.turns import TurnRepository
from tests.fakes.values import OWNER, accepted, commit_of, place_of

_LONG = 10.0
"""Seconds that a test waits at most for what is about to come."""


@pytest.fixture
async def notices(query: Database) -> AsyncIterator[TurnNotices]:
    """Listening already."""
    async with TurnNotices(query) as notices:
        async with notices.subscribe(OWNER, "the first word says that it listens") as ready:
            await asyncio.wait_for(ready.wait(), _LONG)
        yield notices


async def test_a_turn_that_is_stored_wakes_who_waits_for_it(worker: Database, notices: TurnNotices) -> None:
    await TurnRepository(worker).begin(OWNER, [accepted("t-1"), accepted("t-2", offset=2)])
    async with notices.subscribe(OWNER, "t-1") as one, notices.subscribe(OWNER, "t-1") as another:
        async with notices.subscribe(OWNER, "t-2") as other, notices.subscribe(Owner("acme", "x"), "t-1") as stranger:
            assert await OwnerRepository(worker).commit(OWNER, 0, commit_of("t-1"))
            await asyncio.wait_for(one.wait(), _LONG)
            assert another.is_set()
            assert not other.is_set()
            assert not stranger.is_set()


async def test_a_turn_that_is_parked_wakes_who_waits_for_it(worker: Database, notices: TurnNotices) -> None:
    parking = Parking(
        place=place_of(1),
        stage="extract",
        reason=Reason.INVALID_FIELD,
        detail="owner: too long",
        attempts=1,
        owner=OWNER,
        turn_ids=("t-1",),
    )
    async with notices.subscribe(OWNER, "t-1") as ended:
        await ParkingRepository(worker).park(parking)
        await asyncio.wait_for(ended.wait(), _LONG)


async def test_what_is_rolled_back_wakes_nobody(worker: Database, notices: TurnNotices) -> None:
    async with notices.subscribe(OWNER, "t-1") as ended, notices.subscribe(OWNER, "t-2") as after:
        assert not await OwnerRepository(worker).commit(OWNER, 5, commit_of("t-1"))
        assert await OwnerRepository(worker).commit(OWNER, 0, commit_of("t-2"))
        await asyncio.wait_for(after.wait(), _LONG)
        assert not ended.is_set()


async def test_a_long_window_wakes_everybody(worker: Database, notices: TurnNotices) -> None:
    commit = commit_of("t-0")
    many = tuple(dataclasses.replace(commit.turns[0], turn_id=f"t-{n}") for n in range(1000))
    async with notices.subscribe(OWNER, "t-999") as ended:
        assert await OwnerRepository(worker).commit(OWNER, 0, dataclasses.replace(commit, turns=many))
        await asyncio.wait_for(ended.wait(), _LONG)


async def test_who_left_is_forgotten(notices: TurnNotices) -> None:
    async with notices.subscribe(OWNER, "t-1"):
        pass
    assert notices._waiting == {}


def test_a_notice_fits_and_names_nobody() -> None:
    notice = payload(OWNER, [f"turn number {n}" for n in range(450)])
    assert len(notice) < 7900
    assert set(notice) <= set("0123456789abcdef,")

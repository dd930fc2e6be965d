from collections.abc import AsyncIterator, Callable

import pytest

from tests.streams.delivery_fakes import Desk

DeskMaker = Callable[..., Desk]


@pytest.fixture
async def make_desk() -> AsyncIterator[DeskMaker]:
    """Desks whose lanes are closed after the test."""
    desks: list[Desk] = []

    def make(**kwargs: object) -> Desk:
        desks.append(Desk(**kwargs))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.lanes.close()

"""What keeps the servers of a distributed test session."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

from tests.shared_servers import Keeper

told: list[str] = []


@contextlib.contextmanager
def a_server() -> Iterator[str]:
    told.append("started")
    yield "address"
    told.append("stopped")


@contextlib.contextmanager
def a_broken_one() -> Iterator[str]:
    raise OSError("no room")
    yield ""


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    told.clear()
    keeper = Keeper({"server": a_server, "broken": a_broken_one})
    yield keeper
    keeper.close()


def test_nothing_starts_before_somebody_asks(keeper: Keeper) -> None:
    assert told == []


def test_it_is_started_once_for_all_who_ask_and_stopped_at_the_end() -> None:
    told.clear()
    keeper = Keeper({"server": a_server})
    with ThreadPoolExecutor(4) as workers:
        assert list(workers.map(keeper.door.ask, ["server"] * 20)) == ["address"] * 20
    assert told == ["started"]
    keeper.close()
    assert told == ["started", "stopped"]


def test_what_cannot_be_started_is_told_and_the_others_go_on(keeper: Keeper) -> None:
    with pytest.raises(RuntimeError, match="broken could not be started: OSError: no room"):
        keeper.door.ask("broken")
    assert keeper.door.ask("server") == "address"


def test_who_dies_before_the_answer_or_knows_no_key_disturbs_nobody(keeper: Keeper) -> None:
    with Client(keeper.door.address, authkey=keeper.door.key) as gone:
        gone.send("server")
    with Client(keeper.door.address, authkey=keeper.door.key):
        """Asks nothing."""
    with pytest.raises(AuthenticationError):
        Client(keeper.door.address, authkey=b"another")
    assert keeper.door.ask("server") == "address"

import asyncio
import threading

from streams.stopping import CLOSE_SECONDS, Stopping


async def test_work_goes_on_until_it_is_done_or_it_is_time_to_stop() -> None:
    stopping = Stopping(100, leave=lambda _: None)
    assert await stopping.unless_asked(asyncio.sleep(0, "done")) == "done"
    waiting = asyncio.ensure_future(stopping.unless_asked(asyncio.Event().wait()))
    await asyncio.sleep(0)
    stopping.ask("test")
    assert await waiting is None
    assert await stopping.wait()


async def test_what_fails_before_it_is_time_to_stop_is_raised() -> None:
    async def fail() -> None:
        raise ValueError

    try:
        await Stopping(100).unless_asked(fail())
    except ValueError:
        return
    raise AssertionError("nothing was raised")


async def test_whatever_hangs_the_process_leaves_at_its_deadline() -> None:
    left: list[int] = []
    gone = threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    stopping = Stopping(-CLOSE_SECONDS, leave=leave)
    stopping.ask("test")
    stopping.ask("again")
    assert gone.wait(10)
    assert left == [1]


async def test_a_thread_that_outlives_an_orderly_stop_does_not_make_it_a_failure() -> None:
    left: list[int] = []
    gone = threading.Event()
    stopping = Stopping(0.2 - CLOSE_SECONDS, leave=lambda code: (left.append(code), gone.set()))
    stopping.ask("test")
    stopping.over()
    assert gone.wait(10)
    assert left == [0]


async def test_a_process_that_broke_has_less_time_than_one_that_was_told_to_stop() -> None:
    gone = threading.Event()
    stopping = Stopping(3600, leave=lambda _: gone.set())
    stopping.ask("crash", drain_seconds=0.1 - CLOSE_SECONDS)
    assert gone.wait(10)

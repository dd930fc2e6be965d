"""When a provider is left alone, and who asks whether it is back."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from processors.errors import ModelUnavailable
from providers.circuit import Circuit, Passage, Patience


class World:
    """A circuit with its time in our hands."""

    def __init__(self, patience: Patience | None = None, uniform: float = 0.999) -> None:
        self.now = 1_000.0
        self.heard: list[bool] = []
        self.circuit = Circuit(patience, on_change=self.heard.append, clock=lambda: self.now, uniform=lambda: uniform)

    def fail(self, times: int = 1, retry_after: timedelta | None = None) -> None:
        for _ in range(times):
            self.circuit.failed(self.circuit.enter(), retry_after=retry_after)

    def rest(self) -> float:
        """How long a call is told to wait."""
        with pytest.raises(ModelUnavailable) as away:
            self.circuit.enter()
        assert away.value.retry_after is not None
        return away.value.retry_after.total_seconds()


def test_it_opens_after_five_failures_in_a_row() -> None:
    world = World()
    world.fail(4)
    world.circuit.answered(world.circuit.enter())
    world.fail(4)
    assert world.heard == []
    world.fail()
    assert world.circuit.is_open
    assert world.heard == [True]


def test_an_answer_to_the_probe_closes_it() -> None:
    world = World()
    world.fail(5)
    world.now += world.rest()
    probe = world.circuit.enter()
    assert world.rest() == 1, "others wait while one asks"
    world.circuit.answered(probe)
    assert not world.circuit.is_open
    assert world.heard == [True, False]
    world.fail(4)
    assert not world.circuit.is_open, "failures are counted anew"


@pytest.mark.parametrize(
    ("openings", "uniform", "seconds"),
    [
        (1, 0.0, 0.5),  # 1 · 0.5
        (1, 0.5, 0.75),
        (2, 0.0, 1.0),
        (3, 0.0, 2.0),
        (5, 0.0, 8.0),  # 16 · 0.5
        (6, 0.0, 15.0),  # 32, capped at 30, · 0.5
        (10_000, 0.0, 15.0),
    ],
)
def test_it_rests_longer_each_time_up_to_a_cap(openings: int, uniform: float, seconds: float) -> None:
    assert Patience().rest(openings, lambda: uniform) == seconds


def test_a_probe_that_fails_opens_it_for_longer() -> None:
    world = World(uniform=0.0)
    world.fail(5)
    for seconds in (1.0, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0):  # a caller is told to wait a second at least
        assert world.rest() == seconds
        world.now += seconds
        world.fail()
    assert world.heard == [True]


def test_a_longer_delay_that_the_provider_names_counts() -> None:
    world = World()
    world.fail(4)
    world.fail(retry_after=timedelta(seconds=77))
    assert world.rest() == 77


def test_what_began_before_it_opened_neither_closes_it_nor_makes_it_rest_longer() -> None:
    world = World(uniform=0.0)
    early = [world.circuit.enter() for _ in range(20)]
    for passage in early[:5]:
        world.circuit.failed(passage)
    for passage in early[5:18]:
        world.circuit.failed(passage)
    world.circuit.answered(early[18])
    assert world.circuit.is_open
    assert world.rest() == 1
    world.circuit.failed(early[19], retry_after=timedelta(seconds=40))
    assert world.rest() == 40, "but a delay that it names is kept"


def test_a_probe_that_is_given_up_leaves_its_place_to_the_next_call() -> None:
    world = World()
    world.fail(5)
    world.now += world.rest()
    world.circuit.left(world.circuit.enter())
    world.circuit.answered(world.circuit.enter())
    assert not world.circuit.is_open


async def test_of_32_callers_that_wait_for_a_slow_recovery_only_one_gets_through_at_a_time() -> None:
    world = World()
    world.fail(5)
    world.now += world.rest()
    inside = most = probes = 0
    slow = asyncio.Event()

    async def call() -> bool:
        nonlocal inside, most, probes
        try:
            passage = world.circuit.enter()
        except ModelUnavailable:
            return False
        inside, probes = inside + 1, probes + 1
        most = max(most, inside)
        await slow.wait()
        inside -= 1
        world.circuit.answered(passage)
        return True

    callers = [asyncio.create_task(call()) for _ in range(32)]
    await asyncio.sleep(0)
    slow.set()
    assert sum(await asyncio.gather(*callers)) == 1
    assert (most, probes) == (1, 1)
    assert sum(await asyncio.gather(*(call() for _ in range(32)))) == 32


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_a_rest_is_never_shorter_than_half_a_step_nor_longer_than_the_cap(openings: int, uniform: float) -> None:
    patience = Patience()
    seconds = patience.rest(openings, lambda: uniform)
    assert patience.first_seconds / 2 <= seconds <= patience.cap_seconds


class AnyOrder(RuleBasedStateMachine):
    """Calls that begin and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Patience(failures=3))
        self.running: list[Passage] = []
        self.probes: list[Passage] = []

    @rule()
    def begin(self) -> None:
        was_open, waits = self.world.circuit.is_open, None
        try:
            self.running.append(self.world.circuit.enter())
        except ModelUnavailable as away:
            waits = away.retry_after or timedelta()
        if waits is not None:
            assert was_open
            assert waits > timedelta()
        elif was_open:
            self.probes.append(self.running[-1])

    @precondition(lambda self: self.running)
    @rule(data=st.data(), how=st.sampled_from(["answered", "failed", "left"]))
    def end(self, data: st.DataObject, how: str) -> None:
        passage = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if passage in self.probes:
            self.probes.remove(passage)
        getattr(self.world.circuit, how)(passage)

    @rule(seconds=st.floats(0, 40))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @invariant()
    def at_most_one_probes(self) -> None:
        assert len(self.probes) <= 1

    @invariant()
    def what_is_heard_alternates(self) -> None:
        heard = self.world.heard
        assert heard == [place % 2 == 0 for place in range(len(heard))]
        assert self.world.circuit.is_open == bool(heard and heard[-1])


TestAnyOrder = AnyOrder.TestCase

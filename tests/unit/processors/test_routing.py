from uuid import UUID

import pytest

from processors.memories import State
from processors.routing import Action, Neighbour, Route, decide

ONE, TWO = UUID(int=1), UUID(int=2)


def test_the_same_text_confirms_the_memory_that_has_it() -> None:
    verdict = decide(
        [Neighbour(TWO, 0.99, State.LIVE, same_text=False), Neighbour(ONE, 0.4, State.LIVE, same_text=True)]
    )
    assert (verdict.route, verdict.action, verdict.target) == (Route.SAME_TEXT, Action.CONFIRM, ONE)


@pytest.mark.parametrize("state", [state for state in State if state is not State.LIVE])
def test_a_memory_that_is_not_live_is_not_confirmed(state: State) -> None:
    assert decide([Neighbour(ONE, 1.0, state, same_text=True)]).action is Action.ADD


def test_a_near_duplicate_is_no_duplicate() -> None:
    assert decide([Neighbour(ONE, 0.999, State.LIVE, same_text=False)]).action is Action.ADD


def test_what_has_no_neighbour_is_new() -> None:
    assert decide([]).route is Route.NEW


def test_the_order_of_neighbours_does_not_matter() -> None:
    twins = [Neighbour(ONE, None, State.LIVE, same_text=True), Neighbour(TWO, None, State.LIVE, same_text=True)]
    assert decide(twins) == decide(twins[::-1])

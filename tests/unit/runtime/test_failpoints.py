"""Failpoints do nothing unless they are told to."""

from collections.abc import Iterator

import pytest

from runtime.failpoints import VARIABLE, Failpoint, Injected, arm, reach


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm({})


def test_nothing_happens_where_nothing_is_set() -> None:
    arm({})
    for failpoint in Failpoint:
        reach(failpoint)


def test_it_acts_at_the_hit_it_was_told_and_at_no_other() -> None:
    arm({VARIABLE: "parking.sent=fail@2"})
    reach(Failpoint.PARKING_SENT)
    reach(Failpoint.PARKING_NOTED)
    with pytest.raises(Injected, match=r"parking\.sent"):
        reach(Failpoint.PARKING_SENT)
    reach(Failpoint.PARKING_SENT)


def test_several_are_set_at_once_and_the_first_hit_is_what_is_meant_without_a_number() -> None:
    arm({VARIABLE: "relay.read=fail, store.claimed=fail@1"})
    for failpoint in (Failpoint.RELAY_READ, Failpoint.STORE_CLAIMED):
        with pytest.raises(Injected):
            reach(failpoint)


@pytest.mark.parametrize(
    "value", ["extract.publishd=kill", "extract.read", "extract.read=explode", "extract.read=kill@x"]
)
def test_a_setting_that_means_nothing_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"extract|MNEMO_TEST"):
        arm({VARIABLE: value})

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.fading import ARCHIVE_BELOW, POLICIES, Fading, fades_at, half_life, policy, strength

DAY = timedelta(days=1)
NOW = datetime(2026, 3, 1, tzinfo=UTC)

idles = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))
half_lives = st.timedeltas(min_value=timedelta(hours=1), max_value=timedelta(days=3650))


@given(idles, idles, half_lives)
def test_strength_never_increases_with_time(first: timedelta, more: timedelta, half: timedelta) -> None:
    assert strength(first + more, Fading(half)) <= strength(first, Fading(half))


@given(half_lives)
def test_a_memory_just_reinforced_has_full_strength(half: timedelta) -> None:
    assert strength(timedelta(0), Fading(half)) == 1.0


@given(idles, half_lives)
def test_strength_halves_every_half_life(idle: timedelta, half: timedelta) -> None:
    assert strength(idle + half, Fading(half)) == pytest.approx(strength(idle, Fading(half)) / 2, rel=1e-9)


@given(idles)
def test_what_never_fades_stays_whole(idle: timedelta) -> None:
    assert strength(idle, Fading(None)) == 1.0


def test_an_idle_time_below_zero_counts_as_zero() -> None:
    assert strength(-DAY, Fading(DAY)) == 1.0


def test_two_half_lives_leave_a_quarter() -> None:
    assert strength(timedelta(days=30), Fading(timedelta(days=15))) == 0.25  # 2 ** -2


@pytest.mark.parametrize(
    ("rate", "days", "left"),
    [
        (0.005, 1, 0.995),
        (0.005, 100, 0.605770436),  # 0.995 ** 100
        (0.05, 10, 0.598736939),  # 0.95 ** 10
        (0.28, 10, 0.037439062),  # 0.72 ** 10
    ],
)
def test_a_rate_per_day_compounds(rate: float, days: int, left: float) -> None:
    assert strength(timedelta(days=days), Fading(half_life(rate))) == pytest.approx(left, abs=1e-6)


@given(half_lives)
def test_the_strength_at_the_crossing_is_the_archive_line(half: timedelta) -> None:
    crossing = fades_at(NOW, Fading(half))
    assert crossing is not None
    assert strength(crossing - NOW, Fading(half)) == pytest.approx(ARCHIVE_BELOW, rel=1e-6)


def test_what_never_fades_has_no_crossing() -> None:
    assert fades_at(NOW, POLICIES["identity"]) is None


def test_a_category_of_an_app_fades_like_general() -> None:
    assert policy("aquariums") == POLICIES["general"]

"""How memories fade: a closed curve, so nothing has to be written while they do."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

ARCHIVE_BELOW: Final = 0.1
"""A memory weaker than this is archived."""


@dataclass(frozen=True, slots=True)
class Fading:
    """How memories of one category fade. `half_life` is None for those that never do."""

    half_life: timedelta | None
    archive_below: float = ARCHIVE_BELOW


def half_life(rate_per_day: float) -> timedelta:
    """The half-life of what loses `rate_per_day` of its strength each day, a share in (0, 1).

    ln 2 / -ln(1 - rate)
    """
    return timedelta(days=math.log(2) / -math.log1p(-rate_per_day))


_LASTING: Final = Fading(None)
_SLOW: Final = Fading(half_life(0.005))
_EPISODIC: Final = Fading(half_life(0.05))

POLICIES: Final[Mapping[str, Fading]] = MappingProxyType(
    {
        "identity": _LASTING,
        "preference": _SLOW,
        "skill": _SLOW,
        "rule": _SLOW,
        "fact": _SLOW,
        "relational": _EPISODIC,
        "project": _EPISODIC,
        "context": _EPISODIC,
        "event": _EPISODIC,
        "temporary": Fading(half_life(0.28)),
        "general": _EPISODIC,
    }
)
"""The built-in categories, in the order in which a context gives them room."""


NAMED: Final[Mapping[str, Fading]] = MappingProxyType(
    {"never": _LASTING, "slow": _SLOW, "medium": _EPISODIC, "fast": POLICIES["temporary"]}
)
"""What an app may call the policy of a category of its own: 0, 0.5 %, 5 % and 28 % a day."""


def fading_of(name: str) -> Fading:
    """The policy that an app names: one of `NAMED`, or a half-life in days such as `30d`. Raises ValueError."""
    if name in NAMED:
        return NAMED[name]
    days = re.fullmatch(r"(\d{1,5})d", name)
    if days is None or int(days[1]) == 0:
        raise ValueError(f"must be one of {', '.join(NAMED)}, or a half-life in days such as 30d")
    return Fading(timedelta(days=int(days[1])))


def policy(category: str) -> Fading:
    """The policy of `category`; a category that is not built in fades like `general`."""
    return POLICIES.get(category, POLICIES["general"])


def strength(idle: timedelta, fading: Fading) -> float:
    """What is left of a memory last reinforced `idle` ago, in [0, 1].

        s = 2 ** (-idle / half_life)

    An idle time below zero (clock skew between producers) counts as zero.
    """
    if fading.half_life is None:
        return 1.0
    return math.pow(2.0, -max(0.0, idle / fading.half_life))


def fades_at(reinforced_at: datetime, fading: Fading) -> datetime | None:
    """The moment when the strength will cross the archive line; None for what never fades.

    half_life * log2(1 / archive_below) after the last reinforcement.
    """
    if fading.half_life is None:
        return None
    return reinforced_at + fading.half_life * math.log2(1.0 / fading.archive_below)

"""The invariants by name, and what was found out about each."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Invariant:
    """What has to hold of a live system (DESIGN.md §10)."""

    name: str
    claim: str


ACCEPTED: Final = Invariant("accepted", "every acknowledged turn stored or parked")
ONCE: Final = Invariant("once", "one effect per turn id")
ORDER: Final = Invariant("order", "per-owner effects in offset order")
LIVE: Final = Invariant("live", "nothing live and superseded at once")
CHAINS: Final = Invariant("chains", "supersede chains acyclic and within one owner")
TRACEABLE: Final = Invariant("traceable", "every memory traceable to a turn")
WALLS: Final = Invariant("walls", "no row of one app reachable from another")
FEED: Final = Invariant("feed", "the change feed equal to the store's history")
STRENGTH: Final = Invariant("strength", "strength never rising without reinforcement")
FORGOTTEN: Final = Invariant("forgotten", "nothing forgotten still findable")

INVARIANTS: Final = (ACCEPTED, ONCE, ORDER, LIVE, CHAINS, TRACEABLE, WALLS, FEED, STRENGTH, FORGOTTEN)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One violation: which rule is broken, and by what. Ids, numbers, times and places; never a text."""

    what: str
    where: Mapping[str, Any]
    app: str | None = None
    owner: str | None = None


@dataclass(slots=True)
class Finding:
    """What was found out about one invariant so far. Evidence is kept up to `limit`, counted beyond."""

    invariant: Invariant
    limit: int
    checked: Counter[str] = field(default_factory=Counter)
    """By what was counted: turns, records, memories …"""
    waiting: int = 0
    """On their way: neither right nor wrong yet."""
    broken: int = 0
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How much evidence is still wanted; at least 1, so that a statement that is asked for it can count."""
        return max(1, self.limit - len(self.evidence))

    @property
    def more(self) -> int:
        """Violations without evidence here."""
        return self.broken - len(self.evidence)

    def found(self, evidence: Iterable[Evidence], count: int | None = None) -> None:
        """These, or `count` of which these are some."""
        given = list(evidence)
        self.broken += len(given) if count is None else count
        self.evidence += given[: self.limit - len(self.evidence)]


class Findings:
    """Of all invariants that are checked."""

    def __init__(self, invariants: Iterable[Invariant], *, limit: int) -> None:
        self._by_name = {each.name: Finding(each, limit) for each in invariants}

    def __contains__(self, invariant: Invariant) -> bool:
        return invariant.name in self._by_name

    def __getitem__(self, invariant: Invariant) -> Finding:
        return self._by_name[invariant.name]

    @property
    def all(self) -> tuple[Finding, ...]:
        """In the order in which they were asked for."""
        return tuple(self._by_name.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not any(finding.broken for finding in self.all)

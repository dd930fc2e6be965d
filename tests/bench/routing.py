"""What deciding costs: the CPU of a candidate between the look and the commit, without a model and without a store."""

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import numpy as np

from memory.candidates import Candidate
from memory.decisions import Heard, decide_in_order
from processors.effects import Look
from processors.guards import differences
from processors.memories import State, StatementOrder
from processors.normalization import text_hash
from processors.router import Thresholds
from processors.routing import Known, Neighbour

_ROUNDS: Final = 400
_AT: Final = datetime(2026, 3, 1, tzinfo=UTC)
_OLD: Final = "The user keeps the spare key of the cabinet in the third drawer of the kitchen."
_NEW: Final = "The user keeps the spare key of the cabinet in the fourth drawer of the kitchen."


def measure() -> dict[str, float]:
    """Milliseconds a candidate among five neighbours, the median: by how near they are; and one pair by the guards."""
    near_by = {
        "far from all (added)": [0.3, 0.25, 0.2, 0.15, 0.1],
        "five between the thresholds (a question is made)": [0.94, 0.93, 0.92, 0.91, 0.9],
        "five above auto-merge (the guards compare)": [0.99, 0.985, 0.98, 0.975, 0.97],
    }
    looks = {name: _look(similarities) for name, similarities in near_by.items()}
    costs = {name: _median(partial(_decide, look)) for name, look in looks.items()}
    return costs | {"the guards, one pair": _median(lambda: differences(_OLD, _NEW))}


def _decide(look: Look) -> None:
    decide_in_order([(0, _CANDIDATE)], look, Heard(), Thresholds())


def _look(similarities: Sequence[float]) -> Look:
    neighbours = tuple(
        Neighbour(_known(number, f"{_OLD} {number}"), similarity, same_text=False)
        for number, similarity in enumerate(similarities)
    )
    return Look(version=1, now=_AT + timedelta(days=1), settled=frozenset(), neighbours=(neighbours,))


def _known(number: int, text: str) -> Known:
    order = StatementOrder(_AT, _AT, number, 0)
    return Known(id=UUID(int=number + 10), state=State.LIVE, order=order, last=order, valid_from=_AT, content=text)


_CANDIDATE: Final = Candidate(
    decision_id=UUID(int=1),
    new_id=UUID(int=2),
    cause_id="t",
    content=_NEW,
    content_hash=text_hash(_NEW),
    vector=np.zeros(8, np.float32),
    category="fact",
    importance=5,
    confidence=0.95,
    order=StatementOrder(_AT + timedelta(hours=1), _AT + timedelta(hours=1), 99, 0),
    record={},
)


def _median(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in itertools.repeat(None, _ROUNDS):
        start = time.perf_counter()
        work()
        taken.append(1_000 * (time.perf_counter() - start))
    return statistics.median(taken)

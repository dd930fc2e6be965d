"""Facts of one turn that say the same, made one: in an answer, across the chunks of a window, and by their vectors."""

from collections.abc import Sequence

import msgspec
import numpy as np

from processors.facts import Fact
from processors.guards import differences, says_more
from processors.normalization import normalized
from processors.vectors import Vector


def folded(facts: Sequence[Fact]) -> tuple[list[Fact], int]:
    """The facts, those with the same normalised text of one turn as one, at the place of the first; and how many went
    into others. Of two the stronger stays, with the messages of both."""
    kept: dict[tuple[int, bool, str], Fact] = {}
    for fact in facts:
        key = (fact.turn, fact.retracts, normalized(fact.text))
        same = kept.get(key)
        kept[key] = fact if same is None else _one(same, fact)
    return list(kept.values()), len(facts) - len(kept)


def folded_by_vectors(
    facts: Sequence[Fact], vectors: Sequence[Vector], threshold: float
) -> tuple[list[Fact], list[Vector], int]:
    """As `folded`, for facts whose cosine is at least `threshold` where the guards see no difference between their
    texts: the facts, the vector of each, and how many went into others."""
    kept: list[Fact] = []
    stays: list[Vector] = []
    for fact, vector in zip(facts, vectors, strict=True):
        place = next(
            (
                place
                for place, (other, known) in enumerate(zip(kept, stays, strict=True))
                if _same(fact, other)
                and float(np.dot(vector, known)) >= threshold
                and not differences(other.text, fact.text)
            ),
            None,
        )
        if place is None:
            kept.append(fact)
            stays.append(vector)
        else:
            one = _one(kept[place], fact)
            if one.text != kept[place].text:
                stays[place] = vector
            kept[place] = one
    return kept, stays, len(facts) - len(kept)


def strength(fact: Fact) -> float:
    """What decides which facts of a turn are kept."""
    return fact.confidence * fact.importance


def _same(one: Fact, other: Fact) -> bool:
    """Whether two facts may be one at all: of one turn, about one thing, as far as both say what."""
    return (
        one.turn == other.turn
        and one.retracts == other.retracts
        and (one.subject == other.subject or one.subject is None or other.subject is None)
        and (one.valid_from == other.valid_from or one.valid_from is None or other.valid_from is None)
    )


def _one(first: Fact, second: Fact) -> Fact:
    """The stronger of two that say the same, else the first; what it lacks comes from the other."""
    strong, weak = (second, first) if strength(second) > strength(first) else (first, second)
    return msgspec.structs.replace(
        strong,
        text=weak.text if says_more(strong.text, weak.text) else strong.text,
        messages=tuple(sorted({*strong.messages, *weak.messages})),
        subject=strong.subject or weak.subject,
        attribute=strong.attribute or weak.attribute,
        valid_from=strong.valid_from or weak.valid_from,
        expires_at=strong.expires_at or weak.expires_at,
    )

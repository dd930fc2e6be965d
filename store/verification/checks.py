"""A check: what is counted, and the statements that find what breaks an invariant, for the owners of one batch.

Every statement takes $1 and $2, an owner key after which and one up to which it looks, and $3, an app or NULL for all.
One that finds takes $4, how many rows at most, and gives `found` (how many there are), `app`, `owner`, `what` (the rule
that is broken) and `evidence` (JSON: ids, numbers, places; never a text).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

from store.verification.findings import Invariant


@dataclass(frozen=True, slots=True)
class Check:
    """What one invariant is checked with."""

    invariant: Invariant
    counts: Mapping[str, LiteralString]
    """By what is counted. Takes $1 to $3."""
    finds: tuple[LiteralString, ...]

"""Vectors on their way into a statement: in the column that their width asks for."""

from collections.abc import Sequence
from typing import Final

from pgvector import HalfVector
from pgvector import Vector as FullVector

from processors.vectors import Vector

WIDEST_VECTOR: Final = 640
"""Dimensions. An index entry carries 2,704 bytes: float32 up to here, and halves up to twice as many."""


def by_width(vectors: Sequence[Vector | None]) -> tuple[list[FullVector | None], list[HalfVector | None]]:
    """`vectors` as two columns, `vector` and `halfvec`: each in the one that it fits, None in the other.

    Wrapped, because the driver takes an array inside a list for a nested list.
    """
    full = [None if v is None or len(v) > WIDEST_VECTOR else FullVector(v) for v in vectors]
    half = [None if v is None or len(v) <= WIDEST_VECTOR else HalfVector(v) for v in vectors]
    return full, half

"""Vectors on their way into a statement: packed, in the column that their width asks for."""

from collections.abc import Sequence
from typing import Final

from processors.vectors import Vector

WIDEST_VECTOR: Final = 640
"""Dimensions. An index entry carries 2,704 bytes: float32 up to here, and halves up to twice as many."""


def by_width(vectors: Sequence[Vector | None]) -> tuple[list[bytes | None], list[bytes | None]]:
    """`vectors` as two columns, `vector` and `halfvec`: each in the one that it fits, None in the other.

    Packed as pgvector sends them (dimensions, zero, big-endian floats): the driver takes an array for a nested list.
    """
    full = [None if v is None or len(v) > WIDEST_VECTOR else _packed(v, ">f4") for v in vectors]
    half = [None if v is None or len(v) <= WIDEST_VECTOR else _packed(v, ">f2") for v in vectors]
    return full, half


def _packed(vector: Vector, kind: str) -> bytes:
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(kind).tobytes()

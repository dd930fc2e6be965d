"""Embeddings as values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""An embedding: shape (dimensions,), unit length, finite."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Vectors are compared only within one model; the thresholds mean something only on its scale."""

    name: str
    dimensions: int
    auto_merge_threshold: float = 0.95
    arbitration_threshold: float = 0.85


def pack(vector: Vector) -> bytes:
    """`vector` as little-endian float32, the form in which it travels on a topic."""
    return vector.astype("<f4", copy=False).tobytes()


def unpack(packed: bytes) -> Vector:
    """The inverse of `pack`. Raises ValueError where `packed` is no whole number of floats, or not finite."""
    vector = np.frombuffer(packed, dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("an embedding must be finite")
    return vector

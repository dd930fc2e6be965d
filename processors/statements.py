"""A statement that an application makes itself, beside the stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatement:
    """What is to be remembered: already validated and redacted. `content` is at most 500 bytes of UTF-8."""

    content: str
    category: str = "general"
    importance: int = 5
    confidence: float = 0.95
    data: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    pinned: bool = False
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    """Since when it holds in the world; None: since it is told."""

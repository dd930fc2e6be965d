"""A record of a topic as a value."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Record:
    """What stands in the log at one place: bytes as they came, nothing decoded."""

    topic: str
    partition: int
    offset: int
    received_at: datetime
    """When the broker took it."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size_bytes(self) -> int:
        """Key, value and headers: what it holds in memory beside some hundred bytes of its own."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers

    def header(self, name: str) -> bytes | None:
        """The last header of that name."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

"""How long to wait before the next attempt."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Retry:
    """Capped exponential backoff with jitter, and how often an unforeseen error is tried again."""

    first_seconds: float = 0.2
    cap_seconds: float = 15.0
    failures: int = 3
    """Attempts at a window that fails in a way nobody foresaw, before it is parked."""
    attempt_seconds: float = 55.0
    """Of one attempt: below the rebalance timeout. Longer counts as unavailable."""
    park_seconds: float = 30.0
    """Of one attempt to park."""

    def delay(
        self, attempt: int, *, retry_after: timedelta | None = None, uniform: Callable[[], float] = random.random
    ) -> float:
        """Seconds before the attempt after the `attempt`-th (1, 2, …) in a row.

            min(cap, first · 2 ** (attempt - 1)) · u,  u in [0.5, 1)

        Where the dependency names a delay, at least that, up to ten caps; jitter comes on top of it.
        """
        ceiling = min(self.cap_seconds, self.first_seconds * 2.0 ** min(attempt - 1, 32))
        jittered = ceiling * (0.5 + uniform() / 2)
        if retry_after is None:
            return jittered
        return min(max(retry_after.total_seconds(), 0.0), 10 * self.cap_seconds) + jittered

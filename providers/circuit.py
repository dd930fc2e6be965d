"""A circuit: a provider that is away is left alone, and asked by one call whether it is back."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NewType

from processors.errors import ModelUnavailable

Passage = NewType("Passage", int)
"""A call's permit. It says in which state of the circuit the call began: the outcome of an older one counts no more."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a circuit opens, and for how long."""

    failures: int = 5
    """In a row."""
    first_seconds: float = 1.0
    cap_seconds: float = 30.0

    def rest(self, openings: int, uniform: Callable[[], float]) -> float:
        """Seconds that it stays open the `openings`-th time (1, 2, …) since it was last closed.

        min(cap, first · 2 ** (openings - 1)) · u,  u in [0.5, 1)
        """
        return min(self.cap_seconds, self.first_seconds * 2.0 ** min(openings - 1, 32)) * (0.5 + uniform() / 2)


def _ignore(is_open: bool) -> None:
    """Tell nobody."""


class Circuit:
    """Whether calls may go to a provider now.

        closed ── `failures` in a row ──▶ open ── its time is over ──▶ one probe ── answers ──▶ closed
                                           ▲                               │
                                           └──── fails: open for longer ───┘

    While it is open nobody touches the network: a call is told when to come again, and nothing is lost, because turns
    wait. Every call that is let through ends with exactly one of `answered`, `failed` and `left`.

    on_change: hears True when it opens, and False when the provider is back.
    """

    def __init__(
        self,
        patience: Patience | None = None,
        *,
        on_change: Callable[[bool], None] = _ignore,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._patience = patience or Patience()
        self._on_change = on_change
        self._clock = clock
        self._uniform = uniform
        self._state = Passage(0)
        self._failures = 0
        self._openings = 0
        self._until = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether the provider counts as away, a probe under way or not."""
        return self._openings > 0

    def enter(self) -> Passage:
        """The permit of a call. Raises ModelUnavailable, with the time to wait, where there is none now."""
        if not self.is_open:
            return self._state
        rest = self._until - self._clock()
        if rest > 0 or self._probing:
            wait = timedelta(seconds=max(rest, self._patience.first_seconds))
            raise ModelUnavailable("the model provider is away and left alone for a while", retry_after=wait)
        self._probing = True
        return self._state

    def answered(self, passage: Passage) -> None:
        """The provider is there: it answered, if only to refuse what it was asked."""
        if passage != self._state:
            return
        self._failures = 0
        if self.is_open:
            self._state = Passage(self._state + 1)
            self._openings, self._probing = 0, False
            self._on_change(False)

    def failed(self, passage: Passage, *, retry_after: timedelta | None = None) -> None:
        """The provider is away, or cannot be used by anybody as it is set up. It opens for `retry_after` at least."""
        named = retry_after.total_seconds() if retry_after is not None else 0.0
        if passage != self._state:
            if self.is_open:
                self._until = max(self._until, self._clock() + named)
            return
        self._failures += 1
        if not self.is_open and self._failures < self._patience.failures:
            return
        was_open = self.is_open
        self._openings += 1
        self._state, self._probing = Passage(self._state + 1), False
        self._until = self._clock() + max(self._patience.rest(self._openings, self._uniform), named)
        if not was_open:
            self._on_change(True)

    def left(self, passage: Passage) -> None:
        """The call was given up by its caller, so that nothing is known: the next one may probe."""
        if passage == self._state:
            self._probing = False

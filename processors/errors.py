"""What can go wrong on the way of a turn, as one tree.

    MnemoError
    ├── Rejected        no retry helps: park the record with `reason`
    ├── InvalidRequest  an application broke a rule of the RPC: tell it which
    └── Unavailable     a dependency is away: wait and try again, for as long as it lasts
        ├── ModelUnavailable      `retry_after` when the provider names a delay
        │   └── ModelTimeout      it was reached, and did not answer in its time
        ├── StoreUnavailable
        ├── BrokerUnavailable
        └── Contended             the owner changed meanwhile

A message names field, place, rule and length. It holds a value only where that comes from a closed set: never the text
of a conversation, never a key.
"""

from datetime import timedelta

from mnemostream.turns import Reason


class MnemoError(Exception):
    """The root of the tree."""


class Rejected(MnemoError):
    """The record cannot be processed, now or later. `detail` is safe to store and to show."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Unavailable(MnemoError):
    """A dependency is away or overloaded; the same call may succeed later."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelUnavailable(Unavailable):
    """The language or embedding model cannot be reached, is overloaded or timed out."""


class ModelTimeout(ModelUnavailable):
    """The model did not answer in the time that it has."""


class StoreUnavailable(Unavailable):
    """Postgres cannot be reached, or ended the connection."""


class BrokerUnavailable(Unavailable):
    """Kafka cannot be reached, or did not acknowledge in time."""


class InvalidRequest(MnemoError):
    """An application's request breaks a rule: it names the field, and the rule as a sentence."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class Contended(Unavailable):
    """Others changed the owner while this was decided; the same call may succeed later."""

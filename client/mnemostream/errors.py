"""What can go wrong for a user of the client, as one tree.

    MnemoClientError
    ├── InvalidTurn           the turn breaks a rule of `turns.v1` (also a ValueError); no retry helps
    │   └── TurnTooLarge      it is over a limit on size
    ├── BrokerUnavailable     Kafka cannot be reached or did not acknowledge in time; publish the same turn again
    ├── BrokerRefused         Kafka answered no (credentials, permissions); no retry helps
    ├── TopicMissing          the topic does not exist; `mnemo topics` creates it
    ├── FeedGap               changes of an owner are missing: export the owner, and go on from its `seq`
    ├── FeedExpired           the place to go on from is no longer on the topic: export the owners, and begin anew
    ├── InvalidChange         a record of the change feed cannot be read; `partition` and `offset` say which
    └── CallFailed            the query service answered with an error, or not at all; `reason` is from a closed set
        ├── InvalidArgument       `field` breaks `rule`
        ├── Unauthenticated       no key, or one that is unknown, expired or revoked
        ├── PermissionDenied      the key may not do this
        ├── NotFound              also for what belongs to another owner or app
        ├── FailedPrecondition    such as a turn that was parked: `metadata["reason"]` says why
        ├── Aborted               somebody else was faster; read again, then try again
        ├── OutOfRange
        ├── ResourceExhausted     a limit is reached
        ├── DeadlineExceeded      not done in time; a tell may have happened all the same
        ├── Unavailable           come again after `retry_after`
        └── ServerFault           a defect of the service, or something that is no query service

A message names field, place, rule and length. It never holds text of a conversation, an owner, or a credential.
"""

from collections.abc import Mapping
from datetime import timedelta

from mnemostream.turns import Envelope, Reason


class MnemoClientError(Exception):
    """The root of the tree."""


class InvalidTurn(MnemoClientError, ValueError):
    """The turn breaks a rule. `detail` is safe to store and to show: it never quotes the value.

    `envelope` says whose turn it is, only where the key and the body agree on that and each is valid by itself.
    """

    def __init__(self, reason: Reason, detail: str, *, envelope: Envelope | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.envelope = envelope


class TurnTooLarge(InvalidTurn):
    """The turn is over a limit on size; split it, or publish less of it."""

    def __init__(self, detail: str, *, envelope: Envelope | None = None) -> None:
        super().__init__(Reason.TOO_LARGE, detail, envelope=envelope)


class BrokerUnavailable(MnemoClientError):
    """Kafka cannot be reached, or did not acknowledge in time.

    The turn may have arrived all the same. Publishing it again with the same id is safe: it has no second effect.
    """


class BrokerRefused(MnemoClientError):
    """Kafka refused the connection or the record for a reason that a retry does not change."""


class TopicMissing(MnemoClientError):
    """The topic does not exist under this prefix."""


class FeedGap(MnemoClientError):
    """Changes of `owner` are missing: `expected` should have come, `got` did."""

    def __init__(self, owner: str, expected: int, got: int) -> None:
        super().__init__(
            f"an owner's change {expected} is missing, the next one is {got}: it is no longer on the topic. Export the "
            "owner, and go on from the seq of the export"
        )
        self.owner = owner
        self.expected = expected
        self.got = got


class FeedExpired(MnemoClientError):
    """The feed cannot go on at `offset` of `partition`: the topic holds `first` to `end` there."""

    def __init__(self, partition: int, offset: int, first: int, end: int) -> None:
        super().__init__(
            f"partition {partition} cannot be read from offset {offset}: the topic holds {first} to {end}. Export the "
            "owners, and begin anew with another group or start, and what is known"
        )
        self.partition = partition
        self.offset = offset
        self.first = first
        self.end = end


class InvalidChange(MnemoClientError):
    """A record of the change feed cannot be read. `detail` never quotes the value."""

    def __init__(self, topic: str, partition: int, offset: int, detail: str) -> None:
        super().__init__(f"{topic}, partition {partition}, offset {offset}: {detail}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.detail = detail


class CallFailed(MnemoClientError):
    """The query service answered with an error, or did not answer.

    reason: from the service's closed set, such as TURN_PARKED; None where something else answered.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        field: str | None = None,
        rule: str | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.field = field
        self.rule = rule
        self.retry_after = retry_after


class InvalidArgument(CallFailed, ValueError):
    """The request breaks a rule: `field` by its name on the wire, `rule` as a sentence."""


class Unauthenticated(CallFailed):
    """No key, or one that is unknown, expired or revoked."""


class PermissionDenied(CallFailed):
    """The key may not do this."""


class NotFound(CallFailed):
    """The owner has no such thing."""


class FailedPrecondition(CallFailed):
    """It cannot be done as things stand."""


class Aborted(CallFailed):
    """Somebody else changed it meanwhile."""


class OutOfRange(CallFailed):
    """What is asked for is no longer kept."""


class ResourceExhausted(CallFailed):
    """A limit is reached."""


class DeadlineExceeded(CallFailed):
    """Not done in time."""


class Unavailable(CallFailed):
    """The service, or what it needs, is away. `retry_after` where it named a delay."""


class ServerFault(CallFailed):
    """A defect of the service, or something that is no query service."""

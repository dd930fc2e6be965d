"""The client of Mnemostream, long-term memory for AI agents.

Names are loaded from their modules when they are first used, so that importing the package costs next to nothing: who
only publishes never loads the RPC client, and the reverse.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mnemostream.blocking import Mnemo as Mnemo
    from mnemostream.client import AsyncMnemo as AsyncMnemo
    from mnemostream.decoding import decode_turn as decode_turn
    from mnemostream.decoding import encode_turn as encode_turn
    from mnemostream.decoding import fingerprint as fingerprint
    from mnemostream.decoding import partition_key as partition_key
    from mnemostream.decoding import split_key as split_key
    from mnemostream.decoding import validate_turn as validate_turn
    from mnemostream.errors import Aborted as Aborted
    from mnemostream.errors import BrokerRefused as BrokerRefused
    from mnemostream.errors import BrokerUnavailable as BrokerUnavailable
    from mnemostream.errors import CallFailed as CallFailed
    from mnemostream.errors import DeadlineExceeded as DeadlineExceeded
    from mnemostream.errors import FailedPrecondition as FailedPrecondition
    from mnemostream.errors import FeedExpired as FeedExpired
    from mnemostream.errors import FeedGap as FeedGap
    from mnemostream.errors import InvalidArgument as InvalidArgument
    from mnemostream.errors import InvalidChange as InvalidChange
    from mnemostream.errors import InvalidTurn as InvalidTurn
    from mnemostream.errors import MnemoClientError as MnemoClientError
    from mnemostream.errors import NotFound as NotFound
    from mnemostream.errors import OutOfRange as OutOfRange
    from mnemostream.errors import PermissionDenied as PermissionDenied
    from mnemostream.errors import ResourceExhausted as ResourceExhausted
    from mnemostream.errors import ServerFault as ServerFault
    from mnemostream.errors import TopicMissing as TopicMissing
    from mnemostream.errors import TurnTooLarge as TurnTooLarge
    from mnemostream.errors import Unauthenticated as Unauthenticated
    from mnemostream.errors import Unavailable as Unavailable
    from mnemostream.feed import ChangeFeed as ChangeFeed
    from mnemostream.feed import changes as changes
    from mnemostream.ids import new_turn_id as new_turn_id
    from mnemostream.ids import uuid7 as uuid7
    from mnemostream.live import LiveSet as LiveSet
    from mnemostream.publisher import KafkaSecurity as KafkaSecurity
    from mnemostream.publisher import Publisher as Publisher
    from mnemostream.publisher import turn as turn
    from mnemostream.redaction import Redaction as Redaction
    from mnemostream.redaction import contains_secrets as contains_secrets
    from mnemostream.redaction import redact as redact
    from mnemostream.redaction import redact_turn as redact_turn
    from mnemostream.redaction import sanitize_lines as sanitize_lines
    from mnemostream.schema import turn_json_schema as turn_json_schema
    from mnemostream.turns import Envelope as Envelope
    from mnemostream.turns import Message as Message
    from mnemostream.turns import Reason as Reason
    from mnemostream.turns import Role as Role
    from mnemostream.turns import Turn as Turn
    from mnemostream.types import Action as Action
    from mnemostream.types import Cause as Cause
    from mnemostream.types import Change as Change
    from mnemostream.types import Compared as Compared
    from mnemostream.types import Decision as Decision
    from mnemostream.types import Explanation as Explanation
    from mnemostream.types import ExportEnd as ExportEnd
    from mnemostream.types import ExportHeader as ExportHeader
    from mnemostream.types import Hit as Hit
    from mnemostream.types import LoggedMessage as LoggedMessage
    from mnemostream.types import LoggedTurn as LoggedTurn
    from mnemostream.types import Memory as Memory
    from mnemostream.types import MemoryPage as MemoryPage
    from mnemostream.types import Mode as Mode
    from mnemostream.types import ModelCall as ModelCall
    from mnemostream.types import Route as Route
    from mnemostream.types import SearchResult as SearchResult
    from mnemostream.types import Source as Source
    from mnemostream.types import State as State
    from mnemostream.types import Statement as Statement
    from mnemostream.types import TurnReport as TurnReport
    from mnemostream.types import TurnState as TurnState
    from mnemostream.types import Weights as Weights

_NAMES: Final = {
    "blocking": ("Mnemo",),
    "feed": ("ChangeFeed", "changes"),
    "client": ("AsyncMnemo",),
    "decoding": ("decode_turn", "encode_turn", "fingerprint", "partition_key", "split_key", "validate_turn"),
    "errors": (
        "Aborted",
        "BrokerRefused",
        "BrokerUnavailable",
        "CallFailed",
        "DeadlineExceeded",
        "FailedPrecondition",
        "FeedExpired",
        "FeedGap",
        "InvalidArgument",
        "InvalidChange",
        "InvalidTurn",
        "MnemoClientError",
        "NotFound",
        "OutOfRange",
        "PermissionDenied",
        "ResourceExhausted",
        "ServerFault",
        "TopicMissing",
        "TurnTooLarge",
        "Unauthenticated",
        "Unavailable",
    ),
    "ids": ("new_turn_id", "uuid7"),
    "live": ("LiveSet",),
    "publisher": ("KafkaSecurity", "Publisher", "turn"),
    "redaction": ("Redaction", "contains_secrets", "redact", "redact_turn", "sanitize_lines"),
    "schema": ("turn_json_schema",),
    "turns": ("Envelope", "Message", "Reason", "Role", "Turn"),
    "types": (
        "Action",
        "Cause",
        "Change",
        "Compared",
        "Decision",
        "Explanation",
        "ExportEnd",
        "ExportHeader",
        "Hit",
        "LoggedMessage",
        "LoggedTurn",
        "Memory",
        "MemoryPage",
        "Mode",
        "ModelCall",
        "Route",
        "SearchResult",
        "Source",
        "State",
        "Statement",
        "TurnReport",
        "TurnState",
        "Weights",
    ),
}
"""By module. A name is added here and above; a test compares the two."""
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}

__all__ = tuple(_MODULES)


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})

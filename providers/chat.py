"""Asking a language model for JSON that keeps a schema: the port that every provider of one implements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message to the model. The first ones are the stable ones, so that providers can cache them."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The JSON schema of the answer, strict: an object at the root, nothing optional, nothing additional.

    name: [a-z_]{1,64}.  One object for each schema: adapters keep its encoded form by identity.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said: text that should be JSON, nobody has looked at it yet."""

    text: str
    whole: bool
    """False: it was cut short."""
    tokens_in: int = 0
    tokens_out: int = 0


class Chat(Protocol):
    """One language model."""

    @property
    def model(self) -> str:
        """Its name, as it goes into decisions."""
        ...

    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        """One answer at temperature 0, where the model takes one. An answer that is none has an empty text.

        Raises ModelTimeout, ModelUnavailable, and Rejected with MODEL_REFUSED.
        """
        ...

"""A chat model behind Anthropic's Messages API."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec
from mnemostream.turns import Reason

from processors.errors import Rejected
from providers.calls import Calls
from providers.chat import AnswerSchema, ChatMessage, Completion
from providers.unwrapping import unwrapped
from providers.ways import Ways, in_words

Form = Literal["format", "tool", "plain"]
"""How the answer's form is asked for: as structured output; as the input of a tool that has to be used, for models
from before that (newer ones refuse to be forced); in words alone."""

_FORMS: Final[tuple[Form, ...]] = ("format", "tool", "plain")

_DISPUTED: Final = frozenset(
    {"output_config", "output_format", "structured output", "json_schema", "tool_choice", "tool use", "tools"}
)
"""What servers name when they refuse a form."""

MAX_TOKENS: Final = 8_192

_CACHED: Final = {"type": "ephemeral"}

_CUT_SHORT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Usage | None = None


class AnthropicChat:
    """`providers.chat.Chat` over HTTP. What form the model takes is found out by asking, and remembered.

    It is asked at temperature 0 and without thinking, where it can be; what is stable is marked for caching.
    """

    def __init__(self, calls: Calls, *, model: str, max_tokens: int = MAX_TOKENS) -> None:
        self._calls = calls
        self._model = model
        self._max_tokens = max_tokens
        self._ways: Ways[Form] = Ways(_FORMS, disputed=_DISPUTED)

    @property
    def model(self) -> str:
        """As it is configured."""
        return self._model

    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        """As `Chat.complete`."""
        body, form = await self._ways.ask(partial(self._send, messages, schema))
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Completion("", whole=True)
        if answer.stop_reason == "refusal":
            raise Rejected(Reason.MODEL_REFUSED, "the model refuses to answer this")
        tokens_in, tokens_out = _tokens(answer.usage)
        text, whole = _text(answer.content), answer.stop_reason not in _CUT_SHORT
        if whole:
            self._ways.look(form, is_object=text.startswith("{"))
        return Completion(text, whole=whole, tokens_in=tokens_in, tokens_out=tokens_out)

    async def _send(self, messages: Sequence[ChatMessage], schema: AnswerSchema, form: Form) -> bytes:
        fields: dict[str, Any] = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "temperature": 0,
            "thinking": {"type": "disabled"},
        }
        match form:
            case "format":
                fields["output_config"] = {"format": {"type": "json_schema", "schema": schema.schema}}
            case "tool":
                tool = {"name": schema.name, "description": "Give the answer.", "input_schema": schema.schema}
                fields["tools"] = [tool]
                fields["tool_choice"] = {"type": "tool", "name": schema.name, "disable_parallel_tool_use": True}
            case "plain":
                messages = in_words(messages, schema)
        fields["system"], fields["messages"] = _split(messages)
        return await self._calls.send("/v1/messages", fields, disputed=_DISPUTED)


def _split(messages: Sequence[ChatMessage]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The system's blocks, the last one the end of what is cached, and the others with one turn for each role."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, str]] = []
    for message in messages:
        content = message.content if message.content.strip() else "(nothing)"
        if message.role == "system":
            system.append({"type": "text", "text": content})
        elif turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += f"\n\n{content}"
        else:
            turns.append({"role": message.role, "content": content})
    if system:
        system[-1]["cache_control"] = _CACHED
    return system, turns


def _text(blocks: Sequence[_Block]) -> str:
    """The input of the tool, else the text: blocks of other types, such as thoughts, may stand before it."""
    for block in blocks:
        if block.type == "tool_use":
            return bytes(block.input).decode("utf-8", "replace")
    return unwrapped("".join(block.text for block in blocks if block.type == "text"))


def _tokens(usage: _Usage | None) -> tuple[int, int]:
    """In and out. What is read from the cache, or written to it, went in too."""
    if usage is None:
        return 0, 0
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    return (usage.input_tokens or 0) + cached, usage.output_tokens or 0

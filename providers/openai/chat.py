"""A chat model behind OpenAI's wire format."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec
from mnemostream.turns import Reason

from processors.errors import ModelUnavailable, Rejected
from providers.calls import Calls
from providers.chat import AnswerSchema, ChatMessage, Completion
from providers.openai.errors import CONTENT_STATUSES
from providers.unwrapping import unwrapped
from providers.ways import Ways, in_words

Form = Literal["json_schema", "json_object", "plain"]
"""How the answer's form is asked for: by a strict schema; as any JSON object, the schema in words; in words alone."""

_FORMS: Final[tuple[Form, ...]] = ("json_schema", "json_object", "plain")

_DISPUTED: Final = frozenset(
    {"response_format", "json_schema", "json_object", "structured output", "structured_output"}
)
"""What servers name when they refuse a form."""

_FORMATS_KEPT: Final = 256


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Error(msgspec.Struct):
    code: int | str | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | None = None


class OpenAIChat:
    """`providers.chat.Chat` over HTTP. What form the server takes is found out by asking, and remembered."""

    def __init__(self, calls: Calls, *, model: str) -> None:
        self._calls = calls
        self._model = model
        self._ways: Ways[Form] = Ways(_FORMS, disputed=_DISPUTED)
        self._formats: dict[int, tuple[AnswerSchema, msgspec.Raw]] = {}

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
        completion = _completion(answer)
        if completion.whole:
            self._ways.look(form, is_object=completion.text.startswith("{"))
        return completion

    async def _send(self, messages: Sequence[ChatMessage], schema: AnswerSchema, form: Form) -> bytes:
        fields: dict[str, Any] = {
            "model": self._model,
            "messages": messages if form == "json_schema" else in_words(messages, schema),
            "temperature": 0,
        }
        if form == "json_schema":
            fields["response_format"] = self._format(schema)
        elif form == "json_object":
            fields["response_format"] = {"type": "json_object"}
        return await self._calls.send("/chat/completions", fields, disputed=_DISPUTED)

    def _format(self, schema: AnswerSchema) -> msgspec.Raw:
        """Encoded once for each schema."""
        known = self._formats.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._formats) >= _FORMATS_KEPT:
                self._formats.clear()
            described: Mapping[str, Any] = {"name": schema.name, "strict": True, "schema": schema.schema}
            encoded = msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": described}))
            known = self._formats[id(schema)] = (schema, encoded)
        return known[1]


def _completion(answer: _Answer) -> Completion:
    tokens_in = tokens_out = 0
    if answer.usage is not None:
        tokens_in, tokens_out = answer.usage.prompt_tokens or 0, answer.usage.completion_tokens or 0
    if not answer.choices:
        if answer.error is not None:
            raise _late_error(answer.error)
        return Completion("", whole=True, tokens_in=tokens_in, tokens_out=tokens_out)
    choice = answer.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise Rejected(Reason.MODEL_REFUSED, "the model refuses to answer this")
    text = choice.message.content or ""
    return Completion(
        unwrapped(text),
        whole=choice.finish_reason != "length",
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


def _late_error(error: _Error) -> Rejected | ModelUnavailable:
    """An error that a gateway noticed after it had answered 200."""
    if error.code in CONTENT_STATUSES:
        return Rejected(Reason.MODEL_REFUSED, f"the model provider answers {error.code} to this request")
    return ModelUnavailable("the model provider answers with an error")

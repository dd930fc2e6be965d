"""Facts from a chat model that speaks OpenAI's format, by strict structured output."""

import secrets
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from mnemostream.turns import Reason

from processors.answers import Dropped, Read, UnusableAnswer, categories_of, read_answer, strict_schema
from processors.errors import Rejected
from processors.extraction import MAX_ANSWERS, ReadAnswer, ReadRequest
from processors.facts import MAX_FACT_BYTES, Reading
from processors.prompts import render
from providers.openai.client import Calls
from providers.prompts import Instructions, load


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


def ignore_dropped(reason: Dropped, count: int) -> None:
    """For those who count nothing."""


class OpenAIReader:
    """`processors.extraction.Reader` over HTTP: one call for a window, at temperature 0 where the model takes it.

    `on_dropped` hears of facts that were not taken, by reason.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        model: str,
        instructions: Instructions | None = None,
        max_fact_bytes: int = MAX_FACT_BYTES,
        on_dropped: Callable[[Dropped, int], None] = ignore_dropped,
    ) -> None:
        self._calls = calls
        self._model = model
        self._instructions = instructions or load("extraction.v1")
        self._max_fact_bytes = max_fact_bytes
        self._on_dropped = on_dropped

    async def read(self, request: ReadRequest) -> ReadAnswer:
        """As `Reader.read`. Tokens and time of all attempts are counted together."""
        categories = categories_of(request)
        prompt = render(
            request, instructions=self._instructions.text, categories=categories, nonce=secrets.token_hex(4)
        )
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        began = time.perf_counter()
        tokens_in = tokens_out = 0
        for attempt in range(1, MAX_ANSWERS + 1):
            completion = await self._complete(messages, categories)
            if completion is not None and completion.usage is not None:
                tokens_in += completion.usage.prompt_tokens
                tokens_out += completion.usage.completion_tokens
            content, usable = _content(completion)
            try:
                read = self._understood(content, request, usable=usable)
            except UnusableAnswer as problem:
                if attempt == MAX_ANSWERS:
                    raise Rejected(
                        Reason.MODEL_ANSWER_UNUSABLE, f"after {MAX_ANSWERS} answers of the model: {problem.rule}"
                    ) from None
                messages = [*messages[:2], *_asked_again(content, problem)]
                continue
            reading = Reading(
                model=self._model,
                prompt_version=self._instructions.version,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                latency_seconds=time.perf_counter() - began,
            )
            return ReadAnswer(read.facts, reading)
        raise AssertionError("the last attempt returns or raises")

    async def _complete(self, messages: list[dict[str, str]], categories: tuple[str, ...]) -> _Completion | None:
        """None: what came back is no completion."""
        fields: dict[str, Any] = {
            "model": self._model,
            "messages": messages,
            "response_format": _response_format(categories),
            "temperature": 0,
        }
        body = await self._calls.ask("/chat/completions", fields)
        try:
            return msgspec.json.decode(body, type=_Completion)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _understood(self, content: str, request: ReadRequest, *, usable: bool) -> Read:
        if not usable:
            raise UnusableAnswer("cut_short", "It was cut short: give fewer and shorter facts.")
        read = read_answer(content, request, max_fact_bytes=self._max_fact_bytes)
        for reason, count in read.dropped.items():
            self._on_dropped(reason, count)
        return read


@lru_cache(maxsize=256)
def _response_format(categories: tuple[str, ...]) -> msgspec.Raw:
    """Encoded once for each set of categories."""
    schema = {"name": "facts", "strict": True, "schema": strict_schema(categories)}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": schema}))


def _content(completion: _Completion | None) -> tuple[str, bool]:
    """The text of the answer, and whether it is whole. Raises Rejected where the model refuses."""
    if completion is None or not completion.choices:
        return "", True
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise Rejected(Reason.MODEL_REFUSED, "the model refuses to read this")
    return choice.message.content or "", choice.finish_reason != "length"


def _asked_again(content: str, problem: UnusableAnswer) -> list[dict[str, str]]:
    return [
        {"role": "assistant", "content": content[:4_000] or "(nothing)"},
        {"role": "user", "content": f"That answer cannot be used. {problem} Answer again, all of it."},
    ]

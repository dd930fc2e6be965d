"""What the scripted model server does with a request: as it is told, in the wire format that it is asked in."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from cli.dev.scripted_answers import scripted_answer, scripted_vector, scripted_vector_base64

Mode = Literal["answer", "error", "garbage", "truncated", "invalid", "foreign", "empty", "refuse", "hang", "disconnect"]
Wire = Literal["chat", "embeddings", "messages"]
Knows = Literal["json_schema", "json_object", "nothing"]

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_FOREIGN = 1_000


class Behaviour(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the server does. `/control` sets what it names and leaves the rest."""

    latency_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Of chat completions and messages."""
    embedding_latency_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    mode: Mode = "answer"
    """Other than `answer`: an error status; text that is no JSON; JSON that ends in the middle; JSON that breaks the
    schema; JSON whose indices were not offered; no content; a refusal; no answer at all; a closed connection."""
    rate: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The share of calls that `mode` applies to, spread evenly."""
    calls: Annotated[int, Meta(ge=0)] | None = None
    """After this many calls back to `answer`; None: until told."""
    endpoints: tuple[Wire, ...] = ("chat", "embeddings", "messages")
    """Where `mode` applies."""
    status: Annotated[int, Meta(ge=400, le=599)] = 503
    message: str = "scripted"
    code: str | None = None
    param: str | None = None
    """The error object's fields, for `mode` error."""
    retry_after: str | None = None
    """The header, for `mode` error."""
    refuses: list[str] = []
    """Parameters that a request may not have (`temperature`): 400 unsupported_parameter."""
    knows: Knows = "json_schema"
    """Forms of answer that it takes. `json_object`: of `response_format` that alone, and of Anthropic's forms tools
    alone; `nothing`: none. Others are refused with 400."""
    wraps: Literal["nothing", "fence", "prose"] = "nothing"
    """What is written around the JSON of an answer in text."""
    dimensions: int | None = None
    """Of vectors, whatever is asked for. None: as asked, else 1536."""
    script: str | list[str] | None = None
    """The content of every answer; or of the next ones, in order. None: see `scripted_answers`."""
    key: str | None = None
    """The API key that requests must carry. None: any, or none."""


class EndpointStats(msgspec.Struct, kw_only=True):
    """What one endpoint saw."""

    calls: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def _endpoints() -> dict[Wire, EndpointStats]:
    return {"chat": EndpointStats(), "embeddings": EndpointStats(), "messages": EndpointStats()}


class Stats(msgspec.Struct, kw_only=True):
    """What came in since the start, or since `/control` was told {"reset": true}."""

    chat_calls: int = 0
    message_calls: int = 0
    embedding_calls: int = 0
    embedded_texts: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    endpoints: dict[Wire, EndpointStats] = msgspec.field(default_factory=_endpoints)
    schemas: dict[str, int] = {}
    """Answered chats by the name of their schema, as far as the request tells it."""


class Failure(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: str | None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self._message, self._code, self._param = message, code, param

    def body(self, wire: Wire) -> bytes:
        """The error object as `wire` has it."""
        if wire == "messages":
            kind = _ANTHROPIC_TYPES.get(self.status, "api_error")
            error = {"type": kind, "message": self._message}
            return msgspec.json.encode({"type": "error", "error": error, "request_id": "req_scripted"})
        fields = {"message": self._message, "type": "scripted", "code": self._code, "param": self._param}
        return msgspec.json.encode({"error": fields})


class ModelServer:
    """The state that all connections share."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.stats = Stats()
        self.last_chat: dict[str, Any] | None = None
        """The request that a chat completion or a message was given for last."""
        self.connections: set[Any] = set()
        self._spread = 0.0

    def control(self, body: bytes) -> None:
        """Apply a `/control` request. Raises msgspec's errors where it names something unknown."""
        change = msgspec.json.decode(body, type=dict[str, Any])
        if change.pop("reset", False):
            self.behaviour, self.stats, self._spread = Behaviour(), Stats(in_flight=self.stats.in_flight), 0.0
        self.behaviour = msgspec.convert({**msgspec.to_builtins(self.behaviour), **change}, Behaviour)

    def begins(self, wire: Wire) -> Mode:
        """Count a call, and say what is done with it."""
        stats, behaviour = self.stats, self.behaviour
        stats.endpoints[wire].calls += 1
        match wire:
            case "chat":
                stats.chat_calls += 1
            case "messages":
                stats.message_calls += 1
            case "embeddings":
                stats.embedding_calls += 1
        if behaviour.mode == "answer" or wire not in behaviour.endpoints or behaviour.calls == 0:
            return "answer"
        self._spread += behaviour.rate
        if self._spread < 1:
            return "answer"
        self._spread -= 1
        if behaviour.calls is not None:
            behaviour.calls -= 1
        stats.failures += 1
        stats.endpoints[wire].failures += 1
        return behaviour.mode

    def answer(self, wire: Wire, body: bytes, mode: Mode) -> bytes:
        """The body of the answer. Raises Failure."""
        request = msgspec.json.decode(body, type=dict[str, Any])
        for name in self.behaviour.refuses:
            if name in request:
                raise Failure(400, f"`{name}` is not supported for this model.", "unsupported_parameter", name)
        match wire:
            case "chat":
                return self._chat(request, len(body), mode)
            case "messages":
                return self._messages(request, len(body), mode)
            case "embeddings":
                return self._embeddings(request, len(body), mode)

    def _chat(self, request: dict[str, Any], size: int, mode: Mode) -> bytes:
        schema = self._chat_form(request)
        prompts = [message["content"] for message in request["messages"]]
        content, cut = self._said(prompts, schema, mode)
        content = self._wrapped(content, mode)
        self.last_chat = request
        tokens_in, tokens_out = self._count("chat", size, content, schema)
        message = {
            "role": "assistant",
            "content": content,
            "refusal": "I cannot help with that." if mode == "refuse" else None,
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length" if cut else "stop"}
        usage = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
        return msgspec.json.encode(
            {
                "id": f"chatcmpl-{self.stats.chat_calls}",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [choice],
                "usage": usage,
            }
        )

    def _chat_form(self, request: dict[str, Any]) -> str | None:
        """The name of the schema that is asked for. Raises Failure where the form is not known, as servers do."""
        asked = request.get("response_format")
        if asked is None:
            return None
        if self.behaviour.knows == "nothing":
            raise Failure(400, "Unrecognized request argument supplied: response_format", None, "response_format")
        if asked["type"] == "json_schema":
            if self.behaviour.knows == "json_object":
                said = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
                raise Failure(400, said, None, "response_format")
            return str(asked["json_schema"]["name"])
        if not any("json" in message["content"].lower() for message in request["messages"]):
            said = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
            raise Failure(400, said, None, "messages")
        return None

    def _messages(self, request: dict[str, Any], size: int, mode: Mode) -> bytes:
        schema, tool = self._messages_form(request)
        system = [block["text"] for block in request.get("system", [])]
        content, cut = self._said([*system, *(turn["content"] for turn in request["messages"])], schema, mode)
        self.last_chat = request
        tokens_in, tokens_out = self._count("messages", size, content, schema)
        text = self._wrapped(content, mode)
        blocks: list[dict[str, Any]] = [] if text is None else [{"type": "text", "text": text}]
        stop = "end_turn"
        if tool is not None and content is not None and mode != "garbage":
            given = {} if cut else msgspec.json.decode(content)
            blocks, stop = [{"type": "tool_use", "id": "toolu_scripted", "name": tool, "input": given}], "tool_use"
        if mode == "refuse":
            stop = "refusal"
        return msgspec.json.encode(
            {
                "id": f"msg_{self.stats.message_calls}",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": blocks,
                "stop_reason": "max_tokens" if cut else stop,
                "stop_sequence": None,
                "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
            }
        )

    def _messages_form(self, request: dict[str, Any]) -> tuple[str | None, str | None]:
        """The name of the schema, and of the tool that has to be used. Raises Failure."""
        knows = self.behaviour.knows
        asked = (request.get("output_config") or {}).get("format")
        if request["max_tokens"] < 1 or request["messages"][0]["role"] != "user":
            raise Failure(400, 'messages: first message must use the "user" role', None)
        if asked is not None:
            if knows != "json_schema":
                raise Failure(400, "output_config.format: structured outputs are not supported by this model.", None)
            return next(iter(asked["schema"]["properties"])), None
        if not request.get("tools"):
            return None, None
        if knows == "nothing":
            raise Failure(400, "tools: tool use is not supported by this model.", None)
        return request["tools"][0]["name"], request["tools"][0]["name"]

    def _said(self, prompts: list[str], schema: str | None, mode: Mode) -> tuple[str | None, bool]:
        """What the model says, and whether it is cut short."""
        script = self.behaviour.script
        if isinstance(script, list):
            content = script.pop(0) if script else scripted_answer(prompts, schema)
        else:
            content = script if script is not None else scripted_answer(prompts, schema)
        match mode:
            case "garbage":
                return "Sure! Here are the facts you asked for: <facts>", False
            case "truncated":
                return content[: max(1, len(content) // 2)], True
            case "invalid":
                return '{"facts": [{"text": "no other field"}]}', False
            case "foreign":
                return _foreign(content), False
            case "empty" | "refuse":
                return None, False
            case _:
                return content, False

    def _wrapped(self, content: str | None, mode: Mode) -> str | None:
        """`content` with what models write around it."""
        if content is None or mode != "answer":
            return content
        match self.behaviour.wraps:
            case "fence":
                return f"Here it is:\n```json\n{content}\n```"
            case "prose":
                return f"Sure, here it is: {content}\nAnything else?"
            case "nothing":
                return content

    def _count(self, wire: Wire, size: int, content: str | None, schema: str | None) -> tuple[int, int]:
        """Tokens in and out: four bytes are one."""
        tokens_in, tokens_out = size // 4, len(content or "") // 4
        stats = self.stats
        stats.tokens_in += tokens_in
        stats.tokens_out += tokens_out
        stats.endpoints[wire].tokens_in += tokens_in
        stats.endpoints[wire].tokens_out += tokens_out
        if wire != "embeddings":
            name = schema or "unnamed"
            stats.schemas[name] = stats.schemas.get(name, 0) + 1
        return tokens_in, tokens_out

    def _embeddings(self, request: dict[str, Any], size: int, mode: Mode) -> bytes:
        """Vectors, as floats or base64."""
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        dimensions = self.behaviour.dimensions or request.get("dimensions") or 1536
        tokens, _ = self._count("embeddings", size, None, None)
        self.stats.embedded_texts += len(texts)
        if mode == "garbage":
            return b"<html>not a model</html>"
        vectors: list[Any]
        if request.get("encoding_format") == "base64":
            vectors = [scripted_vector_base64(text, dimensions) for text in texts]
        else:
            vectors = [memoryview(scripted_vector(text, dimensions)).cast("f").tolist() for text in texts]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        if mode in ("truncated", "empty", "invalid"):
            data = data[:-1]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return msgspec.json.encode({"object": "list", "data": data, "model": request["model"], "usage": usage})


def _foreign(content: str) -> str:
    """The same answer with numbers that the prompt did not offer: of messages, statements and memories."""
    answer = msgspec.json.decode(content)
    for item in (*answer.get("facts", ()), *answer.get("judgements", ())):
        for name in ("messages", "q", "m"):
            if isinstance(item.get(name), list):
                item[name] = [number + _FOREIGN for number in item[name]]
            elif name in item:
                item[name] += _FOREIGN
    return msgspec.json.encode(answer).decode()

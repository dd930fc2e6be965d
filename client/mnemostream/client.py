"""The client: publish what was said, ask what is worth knowing.

    async with AsyncMnemo(api_key=key, bootstrap_servers="localhost:9092", app="acme") as mnemo:
        turn_id = await mnemo.publish(mnemo.turn("user/42", [("user", "I moved to Lisbon.")]))
        for hit in await mnemo.search("user/42", "where does she live?", after_turn=turn_id):
            print(hit.memory.content)

`Mnemo` (mnemostream.blocking) has the same methods without `await`, for programs that have no event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from mnemostream.ids import uuid7
from mnemostream.turns import Message, Turn
from mnemostream.types import (
    Change,
    Explanation,
    ExportLine,
    Filters,
    Memory,
    MemoryPage,
    Mode,
    SearchResult,
    TurnReport,
    Weights,
)

# What speaks to the service and to Kafka is imported when it is first used: it takes several times as long as the rest.
if TYPE_CHECKING:
    from mnemostream.feed import ChangesOptions
    from mnemostream.publisher import KafkaSecurity, Publisher
    from mnemostream.v1.memory_service_connect import MemoryServiceClient

T = TypeVar("T")

DEFAULT_URL: Final = "http://127.0.0.1:7600"


class AsyncMnemo:
    """One service and one cluster, for the life of a program; use it as an async context manager.

    url, api_key: of the query service; the key decides the app that is asked. bootstrap_servers, topic_prefix,
    kafka_security: where `publish` sends; without servers there is nothing to publish to. app: what `turn` fills in.
    timeout_seconds: of each call, beyond what the call itself may wait. Connections are made when they are needed.

    Calls raise a leaf of `mnemostream.errors.CallFailed`. While the service is away they are tried again, up to the
    time-out: reading is safe to repeat, and what tells carries a request id.
    """

    def __init__(
        self,
        *,
        url: str = DEFAULT_URL,
        api_key: str,
        bootstrap_servers: str | None = None,
        app: str | None = None,
        topic_prefix: str = "mnemo.",
        kafka_security: "KafkaSecurity | None" = None,
        timeout_seconds: float = 10.0,
        redact: bool = True,
    ) -> None:
        self._url = url.rstrip("/")
        self._rpc: MemoryServiceClient | None = None
        self._headers = {"authorization": f"Bearer {api_key}"}
        self._app = app
        self._timeout_seconds = timeout_seconds
        self._kafka: dict[str, Any] | None = None
        if bootstrap_servers is not None:
            self._kafka = {
                "bootstrap_servers": bootstrap_servers,
                "topic_prefix": topic_prefix,
                "security": kafka_security,
                "redact": redact,
            }
        self._publisher: Publisher | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect."""
        if self._publisher is not None:
            await self._publisher.stop()
        if self._rpc is not None:
            await self._rpc.close()

    def turn(self, owner: str, messages: Iterable[Message | tuple[str, str]], **fields: Any) -> Turn:
        """A turn of `owner` in this client's app, said now unless told otherwise: as `mnemostream.turn`."""
        from mnemostream.publisher import turn

        return turn(app=_given(self._app, "app"), owner=owner, messages=messages, **fields)

    async def publish(self, turn: Turn, *, traceparent: str | None = None) -> str:
        """The turn's id, once Kafka has the turn. Publishing the same turn again has no second effect.

        Raises InvalidTurn, BrokerUnavailable, BrokerRefused, TopicMissing.
        """
        async with self._starting:
            if self._publisher is None:
                from mnemostream.publisher import Publisher as KafkaPublisher

                self._publisher = KafkaPublisher(**_given(self._kafka, "bootstrap_servers"))
            await self._publisher.start()
        return await self._publisher.publish(turn, traceparent=traceparent)

    async def search(
        self,
        owner: str,
        query: str,
        *,
        limit: int = 10,
        mode: Mode | None = None,
        weights: Weights | None = None,
        after_turn: str | None = None,
        after_turn_seconds: float = 10.0,
        dry_run: bool = False,
        timeout_seconds: float | None = None,
        **filters: Unpack[Filters],
    ) -> SearchResult:
        """The memories that answer `query`, best first.

        after_turn: wait for this turn first, up to `after_turn_seconds` (at most 60). Raises DeadlineExceeded where it
        is not over by then, and FailedPrecondition where it was parked.
        """
        from mnemostream import messages

        request = messages.search_request(
            owner,
            query,
            filters,
            limit=limit,
            mode=mode,
            weights=weights,
            after_turn=after_turn,
            after_turn_seconds=after_turn_seconds,
            dry_run=dry_run,
        )
        waiting = after_turn_seconds if after_turn is not None else 0.0
        return messages.search_result(await self._call("search", request, timeout_seconds, waiting))

    async def get_memory(self, owner: str, memory_id: str, *, timeout_seconds: float | None = None) -> Memory:
        """One memory, live or not. Raises NotFound, also for another owner's."""
        from mnemostream import messages

        request = messages.get_request(owner, memory_id)
        return messages.memory(await self._call("get_memory", request, timeout_seconds))

    async def list_memories(
        self,
        owner: str,
        *,
        page_size: int = 100,
        page_token: str | None = None,
        timeout_seconds: float | None = None,
        **filters: Unpack[Filters],
    ) -> MemoryPage:
        """One page of the owner's memories, in the order in which they were recorded."""
        from mnemostream import messages

        request = messages.list_request(owner, filters, page_size=page_size, page_token=page_token)
        return messages.memory_page(await self._call("list_memories", request, timeout_seconds))

    async def get_turn(
        self, owner: str, turn_id: str, *, wait_seconds: float = 0.0, timeout_seconds: float | None = None
    ) -> TurnReport:
        """How far a turn got; waits for its end up to `wait_seconds` (at most 60), then says how it stands."""
        from mnemostream import messages

        request = messages.turn_request(owner, turn_id, wait_seconds)
        return messages.turn_report(await self._call("get_turn", request, timeout_seconds, wait_seconds))

    async def create_memory(
        self,
        owner: str,
        content: str,
        *,
        data: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        type: str | None = None,  # noqa: A002 (the field's name)
        category: str | None = None,
        importance: int | None = None,
        confidence: float | None = None,
        pinned: bool = False,
        expires_at: datetime | None = None,
        valid_from: datetime | None = None,
        exact: bool = False,
        request_id: str | None = None,
        timeout_seconds: float | None = None,
    ) -> Memory:
        """Remember a statement at once; the memory that it made or confirmed.

        exact: add it without comparing it with what is known. request_id: the same again within 24 hours has no second
        effect; made up for this call where it is not given.
        """
        from mnemostream import messages

        request = messages.create_request(
            owner,
            content,
            data=data,
            tags=tags,
            type=type,
            category=category,
            importance=importance,
            confidence=confidence,
            pinned=pinned,
            expires_at=expires_at,
            valid_from=valid_from,
            exact=exact,
            request_id=request_id if request_id is not None else str(uuid7()),
        )
        return messages.memory(await self._call("create_memory", request, timeout_seconds))

    async def explain(self, memory_id: str, *, owner: str, timeout_seconds: float | None = None) -> Explanation:
        """Why a memory is believed: who said what when, what it replaced, and why, in words and as records.

        Raises NotFound, also for another owner's and for one that is forgotten.
        """
        from mnemostream import messages

        request = messages.explain_request(owner, memory_id)
        return messages.explanation(await self._call("explain_memory", request, timeout_seconds))

    async def delete(self, memory_id: str, *, owner: str, timeout_seconds: float | None = None) -> None:
        """Forget a memory for good, with every version of it: what was received before does not bring it back.

        Raises NotFound where there is none, so also the second time.
        """
        from mnemostream import messages

        request = messages.delete_request(owner, memory_id)
        await self._call("delete_memory", request, timeout_seconds)

    async def export(self, owner: str, *, timeout_seconds: float | None = None) -> AsyncGenerator[ExportLine, None]:
        """Everything that is kept of `owner`, as of one moment, line by line: an ExportHeader, the memories in every
        state, the changes, the turns, the decisions, an ExportEnd.

        With the memories and the header's `seq` one follows the change feed from there: `LiveSet.load` takes both.
        timeout_seconds: how long the next line may take. What breaks off raises; only a whole export has its end.
        """
        from mnemostream import exports
        from mnemostream.calls import stream

        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        method, request = self._service().export_owner, exports.export_request(owner)
        async with aclosing(stream(method, request, headers=self._headers, timeout_seconds=seconds)) as answers:
            async for message in answers:
                line = exports.export_line(message)
                if line is not None:
                    yield line

    def changes(self, **options: Unpack["ChangesOptions"]) -> "AsyncGenerator[Change, None]":
        """The changes of this client's app, from the cluster that it publishes to: as `mnemostream.changes`."""
        from mnemostream.feed import changes

        kafka = _given(self._kafka, "bootstrap_servers")
        where = {name: kafka[name] for name in ("bootstrap_servers", "topic_prefix", "security")}
        return changes(app=_given(self._app, "app"), **where, **options)

    async def _call(self, method: str, request: Any, timeout_seconds: float | None, waiting: float = 0.0) -> Any:
        from mnemostream.calls import call

        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        rpc = getattr(self._service(), method)
        return await call(rpc, request, headers=self._headers, timeout_seconds=seconds + waiting)

    def _service(self) -> "MemoryServiceClient":
        if self._rpc is None:
            from mnemostream.v1.memory_service_connect import MemoryServiceClient

            self._rpc = MemoryServiceClient(self._url, send_compression=None, accept_compression=())
        return self._rpc


def _given(value: T | None, name: str) -> T:
    if value is None:
        raise ValueError(f"the client was made without {name}")
    return value

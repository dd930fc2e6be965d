"""Ways to ask for an answer that keeps a schema: the best that a provider knows."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from providers.calls import Failed
from providers.chat import AnswerSchema, ChatMessage

Way = TypeVar("Way")

_AGAIN_AFTER_SECONDS: Final = 3600.0
"""A provider that knew no better way is asked by the best one again after this: servers are updated, models change."""

_UNCLEAR: Final = frozenset({400, 422, 501})
"""Statuses by which servers refuse what they do not know, often without its name."""

_PASSED_OVER: Final = 2

_log = structlog.get_logger(__name__)


class Ways(Generic[Way]):
    """`ways`, the best first, and how far down a provider has to be asked.

    The next way down is tried where a provider refuses a request and names what belongs to the way of asking
    (`disputed`); where it refuses without saying why, as long as this way has never worked; and after two answers that
    pass over what was asked for, as long as there was none that did not. It is remembered for an hour, and after a
    refusal only when it helped, so that neither a refused text nor a passing fault spoils the answers that follow.
    """

    def __init__(
        self, ways: Sequence[Way], *, disputed: frozenset[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ways = tuple(ways)
        self.disputed = disputed
        self._clock = clock
        self._place = 0
        self._until = 0.0
        self._proven: set[int] = set()
        self._passed_over: dict[int, int] = {}

    async def ask(self, send: Callable[[Way], Awaitable[bytes]]) -> tuple[bytes, Way]:
        """The answer, and the way that brought it. `send` raises Failed.

        Raises ModelUnavailable and Rejected: where no way helps, what the last one said.
        """
        start = self._place if self._clock() < self._until else 0
        for place, way in enumerate(self._ways[start:], start):
            try:
                answer = await send(way)
            except Failed as failed:
                if place + 1 < len(self._ways) and self._leads_down(failed, place):
                    continue
                raise failed.error from None
            if place != start:
                self._remember(place)
            return answer, way
        raise AssertionError("the last way returns or raises")

    def _leads_down(self, failed: Failed, place: int) -> bool:
        if failed.status is None or failed.for_content:
            return False
        if failed.names(self.disputed):
            return True
        return failed.status in _UNCLEAR and not failed.operators_fault and place not in self._proven

    def look(self, way: Way, *, is_object: bool) -> None:
        """Say whether a whole answer was a JSON object, as `way` asks for: servers that do not know a way may as well
        take no notice of it."""
        place = self._ways.index(way)
        if is_object:
            self._proven.add(place)
        elif place not in self._proven and place + 1 < len(self._ways):
            self._passed_over[place] = self._passed_over.get(place, 0) + 1
            if self._passed_over[place] >= _PASSED_OVER:
                self._passed_over[place] = 0
                self._remember(place + 1)

    def _remember(self, place: int) -> None:
        self._place, self._until = place, self._clock() + _AGAIN_AFTER_SECONDS
        _log.info("the model provider does not know how it was asked, it is asked otherwise", way=self._ways[place])


def in_words(messages: Sequence[ChatMessage], schema: AnswerSchema) -> list[ChatMessage]:
    """`messages` with the schema written at the end of the last system message: for providers that take none."""
    encoded = msgspec.json.encode(schema.schema).decode()
    words = f"Answer with one JSON object that keeps this JSON schema, and with nothing else:\n{encoded}"
    place = max((place for place, message in enumerate(messages) if message.role == "system"), default=None)
    if place is None:
        return [ChatMessage("system", words), *messages]
    told = ChatMessage("system", f"{messages[place].content}\n\n{words}")
    return [*messages[:place], told, *messages[place + 1 :]]

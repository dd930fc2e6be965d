"""How pairs of statements are put before a model that judges them: stable text first, the pairs last, as data.

As in `processors.prompts`: one line of JSON for each text, inside delimiters that carry a nonce, and no ids. Memories
are numbered over the whole request, so that a number offered to one question is none of another's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from processors.arbitration import ArbitrationRequest, Offered
from processors.prompts import Prompt, neutralised


def numbered(request: ArbitrationRequest) -> tuple[dict[int, Offered], ...]:
    """For each question what it offers, by the number that the model calls it: each pair has one of its own."""
    found: list[dict[int, Offered]] = []
    first = 0
    for question in request.questions:
        found.append(dict(enumerate(question.offered, start=first)))
        first += len(question.offered)
    return tuple(found)


def render(request: ArbitrationRequest, *, instructions: str, nonce: str) -> Prompt:
    """The prompt for `request`. `instructions` is the stable text; `nonce` is fresh for each call, 8 hex digits."""
    return Prompt(instructions.strip(), "\n".join(_data(request, nonce)))


def _data(request: ArbitrationRequest, nonce: str) -> Iterator[str]:
    zone = _zone(request.profile.time_zone)
    yield f"<pairs-{nonce}>"
    for number, (question, offered) in enumerate(zip(request.questions, numbered(request), strict=True)):
        yield _line(
            {
                "q": number,
                "said": _day(question.stated_at, zone),
                "by": "application" if question.role is None else question.role.value,
                "retracts": question.retracts,
                "text": neutralised(question.text),
            }
        )
        for place, memory in offered.items():
            yield _line(
                {
                    "m": place,
                    "said": _day(memory.stated_at, zone),
                    "live": memory.live,
                    "same_slot": memory.same_slot,
                    "text": neutralised(memory.text),
                }
            )
    yield f"</pairs-{nonce}>"


def _zone(name: str) -> tzinfo:
    """The app's zone; a name that is no zone means UTC."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _day(moment: datetime, zone: tzinfo) -> str:
    """The day on the app's clock."""
    try:
        return moment.astimezone(zone).date().isoformat()
    except OverflowError:
        return moment.date().isoformat()


def _line(fields: dict[str, str | int]) -> str:
    return msgspec.json.encode(fields).decode()

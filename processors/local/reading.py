"""A window read by the rules: what `LocalReader` does, without its thread."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Final

from mnemostream.turns import Message, Role, Turn

from processors.answers import Read, strongest
from processors.cutting import cut_bytes
from processors.dates import later, local_time, start_of_day
from processors.extraction import ReadRequest
from processors.facts import MAX_FACT_BYTES, Fact
from processors.local.generic import plain
from processors.local.sentences import SPECULATION, WEAK, Clause, clauses
from processors.local.table import known
from processors.local.times import Span, Timed, timed

PROMPT_VERSION: Final = "local-1"
"""Raised with every change of the rules that changes what is read."""

_FOR_A_WHILE: Final = re.compile(
    r"\b(?:today|tonight|this (?:week|weekend|month|morning|afternoon|evening)|at the moment|right now|temporarily|"
    r"until (?P<until>[^,.;]+)|for (?:the )?next (?P<next>.+?)(?= (?:and|but)|$))",
    re.IGNORECASE,
)
_LASTING: Final = re.compile(
    r"^I (?:have )?(?:moved|joined|started|got|quit|left|bought|adopted|turned|went|was|met)\b", re.IGNORECASE
)
_DEFAULT_SPAN: Final = timedelta(days=7)


def read_locally(request: ReadRequest, *, max_fact_bytes: int = MAX_FACT_BYTES) -> Read:
    """The facts that users state in the window, the strongest kept; other roles state none."""
    facts = [
        fact
        for index, turn in enumerate(request.turns)
        for place, message in enumerate(turn.messages)
        if message.role is Role.USER and not turn.off_record
        for fact in _facts(request, index, turn, place, message, max_fact_bytes)
    ]
    kept, dropped = strongest(facts, request)
    return Read(kept, dropped)


def _facts(
    request: ReadRequest, index: int, turn: Turn, place: int, message: Message, max_fact_bytes: int
) -> Iterator[Fact]:
    local = local_time(turn, request.profile)
    for clause in clauses(message.content):
        when = timed(clause.text, local.date())
        expires_at = _expiry(clause.text, when, local)
        hedged = clause.confidence <= WEAK
        drafts = [] if _unsettled(clause) or expires_at is not None else known(when.bare) or known(clause.text)
        dated_event = [draft for draft in drafts if draft.attribute == "name" and when.span is not None]
        if not drafts or dated_event:
            generic = plain(
                when, temporary=expires_at is not None, hedged=hedged, doubtful=clause.confidence <= SPECULATION
            )
            drafts = [*drafts, *([generic] if generic is not None else [])]
        for draft in drafts:
            since = None if draft.dated or when.span is None else _moment(when.span, local)
            yield Fact(
                turn=index,
                text=cut_bytes(draft.text, max_fact_bytes),
                category=draft.category,
                importance=draft.importance,
                confidence=clause.confidence,
                role=message.role,
                said_at=turn.said_at,
                subject=draft.subject,
                attribute=draft.attribute,
                messages=(place,),
                valid_from=since,
                expires_at=expires_at if draft.category == "temporary" else None,
            )


def _unsettled(clause: Clause) -> bool:
    """Whether it is planned or only thought of: "I might move to Berlin" says nothing of where somebody lives."""
    return re.search(
        r"^I (?:will|might|may|must|am going to|plan|am (?:moving|relocating|starting|leaving|joining|considering|"
        r"thinking))\b",
        clause.text,
        re.IGNORECASE,
    ) is not None  # fmt: skip


def _moment(span: Span, local: datetime) -> datetime | None:
    """The first moment of `span` in the speaker's zone, never after what was said in the past tense."""
    try:
        return min(datetime.combine(span.start, time(), local.tzinfo).astimezone(UTC), local.astimezone(UTC))
    except OverflowError:
        return None


def _expiry(clause: str, when: Timed, local: datetime) -> datetime | None:
    """When a passing state ends; None where `clause` states none."""
    passing = _FOR_A_WHILE.search(clause)
    if passing is None or _LASTING.search(clause) or not re.match(r"^(?:I|my)\b", clause, re.IGNORECASE):
        return None
    if not re.match(r"^I (?:am|feel|have|cannot|do not|work|will be|need)\b|^my ", clause, re.IGNORECASE):
        return None
    if passing["until"]:
        until = timed(f"on {passing['until']}", local.date()).span or timed(passing["until"], local.date()).span
        return _end(until, local) if until is not None else later(local.astimezone(UTC), _DEFAULT_SPAN)
    if passing["next"]:
        until = timed(f"in {passing['next']}", local.date()).span
        return _end(until, local) if until is not None else later(local.astimezone(UTC), _DEFAULT_SPAN)
    if "moment" in passing[0].lower() or passing[0].lower() in {"right now", "temporarily"}:
        return later(local.astimezone(UTC), _DEFAULT_SPAN) if passing[0].lower() == "temporarily" else None
    return _end(when.span, local) if when.span is not None else later(start_of_day(local), timedelta(days=1))


def _end(span: Span, local: datetime) -> datetime | None:
    try:
        return datetime.combine(span.end, time(), local.tzinfo).astimezone(UTC)
    except OverflowError:
        return None

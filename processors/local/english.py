"""What an English sentence states of its speaker."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from processors.dates import later, start_of_day
from processors.local.circle import no_longer_with
from processors.local.contrasts import taken_apart
from processors.local.draft import Draft, Said
from processors.local.generic import plain
from processors.local.lexicon import key
from processors.local.moments import SHORTLY_AFTER, end_of, start_of
from processors.local.sentences import SPECULATION, WEAK, Clause, clauses_of
from processors.local.table import known
from processors.local.times import Span, Timed, span_of, timed

_FOR_A_WHILE: Final = re.compile(
    r"\b(?:today|tonight|this (?:week|weekend|month|morning|afternoon|evening)|at the moment|right now|temporarily|"
    r"until (?P<until>[^,.;]+)|for (?:the )?next (?P<next>.+?)(?= (?:and|but)|$)|"
    r"for (?P<count>(?:\d{1,2}|an?|two|three|four|a few|a couple of) (?:day|week|month)s?)$)",
    re.IGNORECASE,
)
_LASTING: Final = re.compile(
    r"^I (?:have )?(?:moved|joined|started|got|quit|left|bought|adopted|turned|went|was|met|have been|am allergic)\b",
    re.IGNORECASE,
)
_PASSING_FOR_A_COUNT: Final = re.compile(r"^I (?:am|will be)(?! an? )\b", re.IGNORECASE)
_DEFAULT_SPAN: Final = timedelta(days=7)
_BIRTHDAY: Final = re.compile(r"^(?:my birthday|I was born on)\b", re.IGNORECASE)
_UNSETTLED: Final = re.compile(
    r"^I (?:will(?! not\b)|might|may|must|am going to|plan|am (?:moving|relocating|starting|leaving|joining|"
    r"considering|"
    r"thinking))\b",
    re.IGNORECASE,
)
""" "I might move to Berlin" says nothing of where somebody lives."""
_SETTLED: Final = re.compile(r"^I will (?:be )?(?:(?:live|living|based|reside|residing) in|work(?:ing)? (?:at|for)) ")
_FROM_THEN: Final = re.compile(r"\b(?:from|starting|as of|beginning)\b", re.IGNORECASE)
_DATED_PLAN: Final = re.compile(r"(?:^|_)(?:exam|test|appointment|flight|interview|deadline|hotel)(?:_|$)")
_ONE_VALUE: Final = re.compile(
    r"^(?:job_title|employer|vehicle|home_city|origin|nationality|religion|salary|name|nickname|address|email|phone\w*|"
    r"favorite_\w+|hobby|team)$"
)
_SAID_OF_IT: Final = re.compile(
    r"^The user(?:'s [\w ]+? is|(?: \w+)? (?:works as|works at|lives in|goes by|is from|drives|has|is|earns))? "
    r"(?:an? )?"
)


def statements(sentence: str, local: datetime) -> list[Said]:
    """What `sentence` states, in order."""
    clauses = (replace(whole, text=part) for whole in clauses_of(sentence) for part in taken_apart(whole.text))
    return [said for clause in clauses if (said := statement(clause, local)) is not None]


def statement(clause: Clause, local: datetime) -> Said | None:
    """What one clause states; None where it is nothing to remember."""
    when = timed(clause.text, local.date())
    expires_at, when = _expiry(clause.text, when, local)
    drafts, value = _known(clause, when, local) if expires_at is None else ([], None)
    named_by_event = any(draft.attribute == "name" for draft in drafts) and when.span is not None
    if (not drafts or named_by_event) and not clause.reported:
        hedged, doubtful = clause.confidence <= WEAK, clause.confidence <= SPECULATION
        generic = plain(when, temporary=expires_at is not None, hedged=hedged, doubtful=doubtful)
        drafts = [*drafts, *([generic] if generic is not None else [])]
    if not drafts:
        return None
    drafts = [*drafts, *(parted for draft in drafts for parted in no_longer_with(draft))]
    start = clause.text.rfind(value) if value else -1
    span = (start, start + len(value)) if value and start >= 0 else None
    made = tuple(_finished(draft, clause, when, expires_at, local) for draft in drafts)
    return Said(clause.text, made, span)


def _known(clause: Clause, when: Timed, local: datetime) -> tuple[list[Draft], str | None]:
    if _UNSETTLED.search(clause.text) and not _is_settled(clause, when, local):
        return [], None
    if _BIRTHDAY.match(clause.text):
        return known(clause.text)
    drafts, value = known(when.bare) if not when.bare.endswith(" to") else ([], None)
    if not drafts and when.bare != when.text:
        drafts, value = known(when.text)
        drafts = [replace(draft, dated=True) for draft in drafts]
    return drafts, value


def _finished(draft: Draft, clause: Clause, when: Timed, expires_at: datetime | None, local: datetime) -> Draft:
    ahead = when.span is not None and when.span.start > local.date()
    from_then = ahead and (_FROM_THEN.search(clause.text) or _SETTLED.match(clause.text)) is not None
    since = None if draft.dated or when.span is None else start_of(when.span, local, ahead=from_then)
    ends = expires_at if draft.category == "temporary" else None
    if ahead and when.span is not None and _is_plan(draft):
        last = end_of(when.span, local)
        ends = later(last, SHORTLY_AFTER) if last is not None else None
    attribute = _beside(draft) if clause.added else draft.attribute
    return replace(draft, confidence=clause.confidence, since=since, expires_at=ends, attribute=attribute)


def _is_settled(clause: Clause, when: Timed, local: datetime) -> bool:
    """Whether a future is certain and has a day to begin: "From March 1 I will live in Berlin"."""
    certain = clause.confidence > WEAK and _SETTLED.match(clause.text) is not None
    return certain and when.span is not None and when.span.start > local.date()


def _is_plan(draft: Draft) -> bool:
    """Whether nothing of it holds once its day is over."""
    if draft.retracts:
        return False
    return draft.category == "event" or (draft.dated and _DATED_PLAN.search(draft.attribute or "") is not None)


def _beside(draft: Draft) -> str | None:
    """The slot of what is said to hold as well: "I also work as a yoga teacher" ends no other work."""
    of_another = draft.subject != "user" and draft.attribute not in ("job_title", "employer")
    if draft.attribute is None or of_another or not _ONE_VALUE.match(draft.attribute):
        return draft.attribute
    return f"{draft.attribute}_{key(_SAID_OF_IT.sub('', draft.text))}"


def _expiry(clause: str, when: Timed, local: datetime) -> tuple[datetime | None, Timed]:
    """When a passing state ends, and the clause with its end as a date; None where `clause` states none."""
    passing = _FOR_A_WHILE.search(clause)
    if (
        passing is None
        or _LASTING.search(clause)
        or not re.match(r"^I (?:am|feel|have|cannot|do not|work|will be|need)\b|^my ", clause, re.IGNORECASE)
    ):
        return None, when
    said, whole = next(((passing[name], name) for name in ("until", "next", "count") if passing[name]), ("", ""))
    if whole == "count" and not _PASSING_FOR_A_COUNT.search(clause):
        return None, when
    if whole:
        until = _until(said, local) if whole == "until" else span_of(said, local.date())
        if until is None:
            return later(local.astimezone(UTC), _DEFAULT_SPAN), when
        if whole != "until":
            dated = f"{clause[: passing.start()]}until {until.start.isoformat()}{clause[passing.end() :]}"
            when = Timed(dated, when.bare, until)
        return end_of(until, local), when
    word = passing[0].lower()
    if "moment" in word or word == "right now":
        return None, when
    if word == "temporarily":
        return later(local.astimezone(UTC), _DEFAULT_SPAN), when
    if when.span is not None:
        return end_of(when.span, local), when
    return later(start_of_day(local), timedelta(days=1)), when


def _until(said: str, local: datetime) -> Span | None:
    spans = (timed(f"{word}{said}", local.date()).span for word in ("on ", "", "until "))
    return next((span for span in spans if span is not None), None)


def reread(clause: str, confidence: float, local: datetime) -> Said | None:
    """What `clause` states, once more: for a clause whose value was corrected."""
    return statement(Clause(clause, confidence), local)


def stated(text: str, local: datetime) -> Sequence[Draft]:
    """All that a piece of text states, clause after clause."""
    return [draft for said in statements(text, local) for draft in said.drafts]

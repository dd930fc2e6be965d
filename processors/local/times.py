"""Relative times in a clause, counted from the day on which it was said."""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                  "november", "december")  # fmt: skip
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5,
                   "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `start` until before `end`, and how to say them without looking at a calendar."""

    start: date
    end: date
    text: str


@dataclass(frozen=True, slots=True)
class Timed:
    """A clause with its times as dates (`text`), without its time (`bare`), and the time itself."""

    text: str
    bare: str
    span: Span | None


def _day(day: date) -> Span:
    return Span(day, day + timedelta(days=1), f"on {day.isoformat()}")


def _week(day: date) -> Span:
    monday = day - timedelta(days=day.weekday())
    return Span(monday, monday + timedelta(days=7), f"in the week of {monday.isoformat()}")


def _weekend(day: date) -> Span:
    saturday = day - timedelta(days=day.weekday()) + timedelta(days=5)
    return Span(saturday, saturday + timedelta(days=2), f"on the weekend of {saturday.isoformat()}")


def _month(year: int, month: int) -> Span:
    """Months outside 1 to 12 reach into other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    start = date(year, month, 1)
    return Span(start, start + timedelta(days=monthrange(year, month)[1]), f"in {_MONTHS[month - 1].title()} {year}")


def _year(year: int) -> Span:
    return Span(date(year, 1, 1), date(year + 1, 1, 1), f"in {year}")


def _named(which: str, unit: str, today: date) -> Span:
    """last, this, next; week, month, year, weekend."""
    step = {"last": -1, "this": 0, "next": 1}[which]
    match unit:
        case "week":
            return _week(today + timedelta(weeks=step))
        case "weekend":
            return _weekend(today + timedelta(weeks=step))
        case "month":
            return _month(today.year, today.month + step)
        case _:
            return _year(today.year + step)


def _weekday(which: str, name: str, today: date, *, past: bool) -> Span:
    """`last`: the latest before today. `next`: the first after today. `on`, `this`: by the tense, today included."""
    index = next(place for place, day in enumerate(_DAYS) if day.startswith(name[:3]))
    back, ahead = (today.weekday() - index) % 7, (index - today.weekday()) % 7
    if which == "last":
        return _day(today - timedelta(days=back or 7))
    if which == "next":
        return _day(today + timedelta(days=ahead or 7))
    return _day(today - timedelta(days=back) if past else today + timedelta(days=ahead))


def _moved(count: int, unit: str, today: date) -> Span:
    match unit:
        case "day":
            return _day(today + timedelta(days=count))
        case "week":
            return _day(today + timedelta(weeks=count)) if abs(count) < 1 else _week(today + timedelta(weeks=count))
        case "month":
            return _month(today.year, today.month + count)
        case _:
            return _year(today.year + count)


def _dated(day: int, month: str, year: str | None, today: date, *, past: bool) -> Span:
    """Without a year: the latest in the past tense, else the next."""
    number = next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower()))
    if year is not None:
        return _day(date(int(year), number, day))
    this_year = date(today.year, number, day)
    if past and this_year > today:
        return _day(this_year.replace(year=today.year - 1))
    if not past and this_year < today:
        return _day(this_year.replace(year=today.year + 1))
    return _day(this_year)


_WEEKDAY: Final = r"(monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_MONTH: Final = r"(january|february|march|april|may|june|july|august|september|october|november|december)"
_COUNT: Final = r"(\d{1,3}|a couple of|a few|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_UNIT: Final = r"(day|week|month|year)s?"
_PART: Final = r"(?: (?:morning|afternoon|evening|night))?"

_Find = Callable[[re.Match[str], date, bool], Span]


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]


_FORMS: Final[tuple[tuple[re.Pattern[str], _Find], ...]] = tuple(
    (re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE), find)
    for pattern, find in (
        (r"(?:on |since )?(\d{4})-(\d\d)-(\d\d)", lambda m, _t, _p: _day(date(int(m[1]), int(m[2]), int(m[3])))),
        (r"the day before yesterday", lambda _m, t, _p: _day(t - timedelta(days=2))),
        (r"the day after tomorrow", lambda _m, t, _p: _day(t + timedelta(days=2))),
        (rf"(?:since )?yesterday{_PART}|last night", lambda _m, t, _p: _day(t - timedelta(days=1))),
        (rf"tomorrow{_PART}", lambda _m, t, _p: _day(t + timedelta(days=1))),
        (r"earlier today|today|tonight|this (?:morning|afternoon|evening)", lambda _m, t, _p: _day(t)),
        (rf"(?:since )?(last|next|this(?: coming)?|on|this past) {_WEEKDAY}{_PART}",
         lambda m, t, p: _weekday(_which(m[1]), m[2].lower(), t, past=p)),
        (rf"(until|till|by|before|from) {_WEEKDAY}{_PART}", lambda m, t, _p: _bound(m[1], m[2].lower(), t)),
        (r"(until|till|by|before|at) the end of (?:the|this) (week|month|year)", lambda m, t, _p: _end_of(m[1],
         m[2].lower(), t)),
        (rf"(?:(?<= is )|(?<=ed to )|(?<=ard to )){_WEEKDAY}{_PART}$",
         lambda m, t, _p: _weekday("on", m[1].lower(), t, past=False)),
        (r"(?:since |over |on |during )?(last|this|next) (weekend|week|month|year)",
         lambda m, t, _p: _named(m[1].lower(), m[2].lower(), t)),
        (rf"{_COUNT} {_UNIT} ago", lambda m, t, _p: _moved(-_count(m[1]), m[2].lower(), t)),
        (rf"in {_COUNT} {_UNIT}(?: from now)?", lambda m, t, _p: _moved(_count(m[1]), m[2].lower(), t)),
        ((rf"(?:on |since |(?:starting |beginning )?from |starting (?:on )?|as of |beginning (?:on )?)?(?:the "
         rf")?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (\d{{4}}))?"),
         lambda m, t, p: _dated(int(m[1]), m[2], m[3], t, past=p)),
        ((rf"(?:on |since |(?:starting |beginning )?from |starting (?:on )?|as of |beginning (?:on )?)?{_MONTH} "
         rf"(\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?(?!\d)"),
         lambda m, t, p: _dated(int(m[2]), m[1], m[3], t, past=p)),
        (rf"(?:in|since|last|next|this|from|starting(?: in)?|as of|beginning(?: in)?) {_MONTH}(?: (?:of )?(\d{{4}}))?",
         lambda m, t, p: _in_month(m[1], m[2], t, p)),
        (r"(?:in|since) ((?:19|20)\d\d)", lambda m, _t, _p: _year(int(m[1]))),
    )
)  # fmt: skip


def _which(word: str) -> str:
    word = word.lower()
    return {"this past": "last", "this coming": "next"}.get(word, word)


def _bound(word: str, name: str, today: date) -> Span:
    """ "until Friday" """
    span = _weekday("on", name, today, past=False)
    return Span(span.start, span.end, f"{word.lower()} {span.start.isoformat()}")


def _end_of(word: str, unit: str, today: date) -> Span:
    """ "until the end of the month" """
    last = _named("this", unit, today).end - timedelta(days=1)
    return Span(last, last + timedelta(days=1), f"{'on' if word.lower() == 'at' else word.lower()} {last.isoformat()}")


def _in_month(name: str, year: str | None, today: date, past: bool) -> Span:
    number = _MONTHS.index(name.lower()) + 1
    if year is not None:
        return _month(int(year), number)
    if past:
        return _month(today.year if number <= today.month else today.year - 1, number)
    return _month(today.year if number >= today.month else today.year + 1, number)


_PAST: Final = re.compile(
    r"\b(?:was|were|did|had|went|got|came|saw|met|left|began|born|bought|broke|lost|won|took|made|gave|flew|ran|ate|"
    r"drove|quit|"
    r"\w{2,}ed|ago|since|last|yesterday)\b",
    re.IGNORECASE,
)


_AHEAD: Final = re.compile(
    r"\b(?:am|is|are|be) (?!living|working)\w+ing\b|\bwill\b|\bgoing to\b|\bplan|"
    r"\b(?:was|is|been|got) (?:moved|rescheduled|postponed|pushed(?: back)?|brought forward|delayed|shifted|"
    r"changed) to\b",
    re.IGNORECASE,
)


def span_of(said: str, today: date) -> Span | None:
    """The day that ends a stretch such as "3 days" or "two weeks", counted from `today`; None where it is none."""
    found = re.fullmatch(rf"(?:{_COUNT} )?(day|week|month)s?", said.strip(), re.IGNORECASE)
    if found is None:
        return None
    days = (_count(found[1]) if found[1] else 1) * {"day": 1, "week": 7, "month": 30}[found[2].lower()]
    return _day(today + timedelta(days=days))


def timed(clause: str, today: date) -> Timed:
    """`clause` with its times grounded on `today`. A time that no calendar has stays as it was said."""
    past = _PAST.search(clause) is not None and _AHEAD.search(clause) is None
    text, first, bare = clause, None, clause
    for pattern, find in _FORMS:
        for said in list(pattern.finditer(text))[:4]:
            try:
                span = find(said, today, past)
            except (ValueError, OverflowError):
                continue
            words = span.text
            if said[0].lower().startswith("since"):
                words = "since " + words.removeprefix("on ").removeprefix("in ")
            text = text.replace(said[0], words, 1)
            if first is None:
                first = span
                bare = clause.replace(said[0], "", 1)
    return Timed(_tidy(text), _tidy(bare), first)


def _tidy(text: str) -> str:
    return re.sub(r"\b(until|till|by|before|from|since|for) on (?=\d{4}-)", r"\1 ", " ".join(text.split())).strip(" ,")

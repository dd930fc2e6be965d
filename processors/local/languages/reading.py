"""Plain statements of other languages than English, by the table of each (`processors.local.languages.model`)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from processors.dates import later
from processors.local.draft import Draft, Said
from processors.local.languages.model import KINDS, Kind, Language
from processors.local.lexicon import key
from processors.local.moments import SHORTLY_AFTER, end_of, start_of
from processors.local.times import Span, timed
from processors.local.words import subject_of_one

_LONGEST: Final = 300
"""Characters of a clause that the rules look at."""

_APART: Final = "; "

_QUOTED: Final = re.compile(r"[\"„“”«»「『‚].{2,}[\"“”«»」』]|(?<!\w)'[^']{3,}'(?!\w)")
_NO_PLACE: Final = frozenset(
    {"casa", "hause", "zuhause", "home", "paz", "paix", "frieden", "maison", "الحب", "السلام"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _When:
    span: Span
    passing: bool
    """It says how long something lasts: this week, until Friday."""
    until: bool


def statements(language: Language, sentence: str, local: datetime) -> list[Said]:
    """What `sentence` states of its speaker, in order; nothing where it is none in this language."""
    if not language.speaking.search(sentence) or language.silent.search(sentence) or _QUOTED.search(sentence):
        return []
    found: list[Said] = []
    for pattern, apart in language.contrasts:
        sentence = pattern.sub(apart, sentence, count=1)
    parts = [part for whole in sentence.split(_APART) for part in language.split.split(whole)]
    for part in parts[:20]:
        if part and (said := statement(language, part, local, subject=language.subject if found else "")):
            found.append(said)
    return found


def statement(language: Language, clause: str, local: datetime, *, subject: str = "") -> Said | None:
    """What one clause states; None where no rule fits."""
    text, confidence = _bared(language, clause)
    if not text or len(text) > _LONGEST:
        return None
    when, bare = _timed(language, text, local)
    for pattern, order in language.reorder:
        bare = pattern.sub(order, bare)
    if (birthday := _birthday(language, text, local, confidence)) is not None:
        return birthday
    for said in dict.fromkeys((bare, f"{subject}{bare}")):
        if drafts := tuple(_of_relative(language, said, when, local, confidence)):
            return Said(text, drafts)
        for pattern, kind, template in language.rules:
            found = pattern.match(said)
            if found is None:
                continue
            value = _value(language, found)
            made = tuple(_made(language, kind, template, found, value, when, local, confidence))
            if made:
                start = text.rfind(value) if value else -1
                return Said(text, made, (start, start + len(value)) if start >= 0 else None)
    return None


def _birthday(language: Language, text: str, local: datetime, confidence: float) -> Said | None:
    """A birthday is a date, but none on which something happens."""
    for pattern, kind, template in language.rules:
        if kind == "birthday" and (found := pattern.match(text)):
            value = _value(language, found)
            made = tuple(_made(language, kind, template, found, value, None, local, confidence))
            return Said(text, made, (found.end() - len(value), found.end())) if made else None
    return None


def _bared(language: Language, clause: str) -> tuple[str, float]:
    """The clause without what leads to it, and how sure it is."""
    text, before, confidence = clause.strip(" ,.;:!。，、！；…()"), "", 0.95
    while before != text:
        before = text
        text = language.lead.sub("", text, count=1) if language.lead.match(text) else text
        for hedge, level in language.hedges:
            text, count = hedge.subn("", text)
            if count:
                confidence = min(confidence, level)
    return text.strip(), confidence


def _timed(language: Language, clause: str, local: datetime) -> tuple[_When | None, str]:
    for pattern, english in language.times:
        found = pattern.search(clause)
        if found is None:
            continue
        groups = {name: _term(language, name, (said or "").lower()) for name, said in found.groupdict().items()}
        phrase = english.format(**groups)
        span = timed(phrase.removeprefix("until ") if "until" not in phrase else phrase, local.date()).span
        if span is not None:
            bare = " ".join(f"{clause[: found.start()]} {clause[found.end() :]}".split()).strip(" ,，、")
            if not language.spaced:
                bare = clause[: found.start()].rstrip(" ，,") + clause[found.end() :].lstrip(" ，,")
            passing = phrase.startswith(("this ", "until ", "today", "lasting "))
            return _When(span, passing, phrase.startswith(("until ", "lasting "))), bare
    return None, clause


def _term(language: Language, group: str, said: str) -> str:
    return language.terms.get(f"{group}:{said}", language.terms.get(said, said))


def _value(language: Language, found: re.Match[str]) -> str:
    groups = found.groupdict()
    value = next((groups[name] for name in ("x", "x2", "x3", "x4") if groups.get(name)), "")
    before = ""
    while before != value:
        before, value = value, language.trailing.sub("", value).strip(" ,.;:!。，、！")
    return value


def _made(
    language: Language,
    kind: str,
    template: str,
    found: re.Match[str],
    value: str,
    when: _When | None,
    local: datetime,
    confidence: float,
) -> Iterator[Draft]:
    of = KINDS[kind]
    if "x" in found.groupdict() and (not value or (of.proper and not _proper(value, found.string))):
        return
    if (kind == "event" and when is None) or (kind == "here" and (when is None or not when.passing)):
        return
    if kind == "age" and value.isdigit() and not 3 <= int(value) <= 120:
        return
    values = [value]
    if of.listed:
        parts = [part.strip() for part in language.enumeration.split(value) if part.strip()]
        values = (
            parts if len(parts) <= 4 and all(len(part.split()) <= 3 and len(part) < 30 for part in parts) else values
        )
    said = (found.groupdict().get("p") or "").lower()
    for one in values:
        text = template.format(x=one, p=language.forms.get(said, said), w=found.groupdict().get("w") or "")
        what = found.groupdict().get("w") or ""
        yield _draft(language, of, text, one, when, local, confidence, what=what)
    if title := found.groupdict().get("title"):
        job = language.job_text.format(x=language.trailing.sub("", title))
        yield _draft(language, KINDS["job"], job, title, when, local, confidence)


def _draft(
    language: Language,
    of: Kind,
    text: str,
    value: str,
    when: _When | None,
    local: datetime,
    confidence: float,
    *,
    what: str = "",
) -> Draft:
    text, category = _sentence(text), of.category
    dated = category in {"event", "project", "temporary"}
    if when is not None and dated:
        text = f"{text} {_date(language, when)}" if language.spaced else f"{text}{_date(language, when)}"
        category = "event" if category == "project" else category
    since = start_of(when.span, local) if when is not None and not dated else None
    return Draft(
        text=f"{text}{language.full_stop}",
        category=category,
        importance=of.importance,
        attribute=of.attribute.format(x=key(value), w=key(what)) if of.attribute else None,
        confidence=confidence,
        since=since,
        expires_at=_ends(of, category, when, local),
    )


def _ends(of: Kind, category: str, when: _When | None, local: datetime) -> datetime | None:
    """When a passing state is over, and a plan is no longer worth keeping."""
    if when is None:
        return None
    if of.category == "temporary":
        return end_of(when.span, local)
    ahead = category == "event" and when.span.start > local.date()
    last = end_of(when.span, local) if ahead else None
    return later(last, SHORTLY_AFTER) if last is not None else None


def _of_relative(
    language: Language, clause: str, when: _When | None, local: datetime, confidence: float
) -> Iterator[Draft]:
    found = language.relative.match(clause)
    if found is None:
        return
    kind, rest = found["kind"], found["rest"]
    one = language.relatives.get(kind.lower())
    if one is None:
        return
    my = (found.groupdict().get("my") or "").lower()
    the = language.the.get(kind.lower(), language.the.get(my, ""))
    text = _sentence(language.relative_text.format(kind=kind, rest=rest, the=the))
    attribute = None
    for pattern, name in language.relative_slots:
        if slot := pattern.search(rest):
            attribute = name.format(x=key(slot.groupdict().get("x") or ""))
            break
    name = _named(rest[slot.end() :]) if attribute == "name" and slot is not None else ""
    if when is not None and attribute is None:
        text = f"{text} {_date(language, when)}" if language.spaced else f"{text}{_date(language, when)}"
    yield Draft(
        text=f"{text}{language.full_stop}",
        category="relational",
        importance=6,
        subject=subject_of_one(one, name),
        attribute=attribute,
        confidence=confidence,
        since=start_of(when.span, local) if when is not None and attribute is not None else None,
    )


def _named(rest: str) -> str:
    """The name behind "is called": with its capital, or in a script that has none."""
    found = re.match(r"\W*(?:se\b|是|ا\b)?\W*(?:هو\b|هي\b)?\W*(?P<name>[\w'-]+)", rest)
    return found["name"] if (found and found["name"] != found["name"].lower()) or (found and not rest.isascii()) else ""


def _proper(value: str, clause: str) -> bool:
    first = value[0]
    if value.lower() in _NO_PLACE:
        return False
    return first.upper() == first or (clause == clause.lower() and len(value.split()) <= 2)


def _date(language: Language, when: _When) -> str:
    days = (when.span.end - when.span.start).days
    if when.until:
        return language.until.format(when.span.start.isoformat())
    if days <= 2:
        return language.dates[0].format(when.span.start.isoformat())
    if days == 7:
        return language.dates[1].format(when.span.start.isoformat())
    if days < 40:
        return language.dates[2].format(when.span.start.strftime("%Y-%m"))
    return language.dates[3].format(when.span.start.year)


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(" .,;:!。，、！")


def of_topic(language: Language, topic: str) -> list[Draft]:
    """Retractions of what a topic names: one for each slot, or one without where it has none."""
    name = _sentence(topic)
    bare = re.sub(
        r"^(?:o |a |os |as )?(?:mein|meine|meinen|meiner|meu|minha|mi|mon|ma|mes|mis) ", "", name, flags=re.IGNORECASE
    )
    attributes = language.topics.get(bare.lower(), language.topics.get(name.lower(), ()))
    # A slot is named in English, the same for all: the guards take a word of another language for a name.
    said: dict[str, str | None] = {f"The user's {attribute.replace('_', ' ')}.": attribute for attribute in attributes}
    return [
        Draft(text=text, category="general", importance=10, attribute=attribute, retracts=True)
        for text, attribute in (said or {f"{name}{language.full_stop}": None}).items()
    ]

"""What a language has to say about itself, so that its plainest statements can be read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Rule = tuple[str, str, str]
"""Pattern of a clause, kind of statement, text in the third person. `{x}` is the value, `{p}` its preposition."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the statements of one kind have in common in every language: the same slot as in English."""

    category: str
    importance: int
    attribute: str | None = None
    """`{x}`: what can be true side by side has an attribute of its own."""
    listed: bool = False
    """An enumeration is several statements."""
    proper: bool = False
    """The value begins with a capital, in scripts that have them."""


KINDS: Final[Mapping[str, Kind]] = {
    "home": Kind("identity", 8, "home_city", proper=True),
    "origin": Kind("identity", 7, "origin", proper=True),
    "birthplace": Kind("identity", 7, "birthplace", proper=True),
    "nationality": Kind("identity", 6, "nationality"),
    "employer": Kind("identity", 8, "employer", proper=True),
    "job": Kind("identity", 8, "job_title"),
    "name": Kind("identity", 9, "name", proper=True),
    "age": Kind("identity", 7, "age"),
    "birthday": Kind("identity", 7, "birthday"),
    "allergy": Kind("fact", 10, "allergy_{x}", listed=True),
    "like": Kind("preference", 6, "likes_{x}", listed=True),
    "favorite": Kind("preference", 6, "favorite_{w}"),
    "prefer": Kind("preference", 6, "preference_{x}"),
    "speak": Kind("skill", 6, "speaks_{x}", listed=True),
    "learn": Kind("skill", 5, "learning_{x}"),
    "marital": Kind("relational", 8, "marital_status"),
    "diet": Kind("preference", 8, "diet"),
    "eat": Kind("preference", 8, "eats_{x}"),
    "drink": Kind("preference", 8, "drinks_{x}"),
    "have": Kind("relational", 6),
    "relative": Kind("relational", 6),
    "rule": Kind("rule", 8, "rule_{x}"),
    "plan": Kind("project", 6),
    "event": Kind("event", 6),
    "here": Kind("temporary", 4),
}
""" "plan" is an event where it has a date; "event" needs one; "here" needs an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. All patterns are for the folded clause: NFC, straight quotes, single spaces."""

    speaking: re.Pattern[str]
    """Found in every sentence in which somebody says something of themselves: the others are passed over."""
    silent: re.Pattern[str]
    """Found in questions, hypotheticals and reports of others."""
    lead: re.Pattern[str]
    """What only leads to a statement. Matched at the beginning, again and again."""
    split: re.Pattern[str]
    """Between two clauses. A clause that lost its subject there gets it from `subject`."""
    subject: str = ""
    rules: tuple[tuple[re.Pattern[str], str, str], ...]
    forms: Mapping[str, str]
    """Preposition of a direction → that of a place."""
    prepositions: tuple[str, ...]
    """Of places. A corrected place whose preposition was not said takes the first."""
    job_text: str
    """What a title beside an employer says."""
    relatives: Mapping[str, str]
    """Word for a relative, friend or animal → the same in English, for the subject."""
    relative: re.Pattern[str]
    """A clause about one of them: groups `kind` and `rest`."""
    relative_text: str
    the: Mapping[str, str]
    """Article (or construct form) by word for the relative, or by the word for "my"."""
    relative_slots: tuple[tuple[re.Pattern[str], str], ...]
    times: tuple[tuple[re.Pattern[str], str], ...]
    """A time → how English says it, with the pattern's groups in braces."""
    terms: Mapping[str, str]
    """Numbers, units, days and months of those groups in English; `group:word` where the group decides."""
    dates: tuple[str, str, str, str]
    """How the text says a day, a week, a month, a year."""
    until: str
    enumeration: re.Pattern[str]
    hedges: tuple[tuple[re.Pattern[str], float], ...]
    forget_that: re.Pattern[str]
    """Group `clause`."""
    forget_topic: re.Pattern[str]
    """Group `x`."""
    forget_last: re.Pattern[str]
    correction: re.Pattern[str]
    """Group `x`: the value that was meant."""
    topics: Mapping[str, tuple[str, ...]]
    """Word for a topic → its attributes."""
    trailing: re.Pattern[str]
    spaced: bool = True
    """Words are written with spaces between them."""
    full_stop: str = "."
    contrasts: tuple[tuple[re.Pattern[str], str], ...] = ()
    """What is denied beside what is affirmed → each as a clause of its own, or left out. `;` stands between two."""
    reorder: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Word orders that mean the same, brought into the one that the rules know."""


def compiled(rules: tuple[Rule, ...]) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """The rules with their patterns, each for a whole clause, whatever its case."""
    return tuple((re.compile(rf"(?:{pattern})$", re.IGNORECASE), kind, text) for pattern, kind, text in rules)


def slots(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns with what they stand for, whatever their case."""
    return tuple((re.compile(pattern, re.IGNORECASE), name) for pattern, name in pairs)


def words(pattern: str) -> re.Pattern[str]:
    """`pattern`, whatever its case."""
    return re.compile(pattern, re.IGNORECASE)

"""What is made of a clause on those around somebody: family, friends, animals (see `processors.local.table`)."""

import re
from collections.abc import Iterator
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import in_third, sentence
from processors.local.values import NATIONALITY, POINTING, clean
from processors.local.words import PET, RELATION, subject_of_kind


def named_one(found: re.Match[str]) -> Iterator[Draft]:
    """A relative, friend or animal by name."""
    kind, name = found["kind"].lower(), clean(re.split(r" (?:and|who|which|that|but|because|from) |,", found["x"])[0])
    if not name or len(name.split()) > 4 or POINTING.search(name) or not name[0].isupper():
        return
    yield _named(kind, name)
    for other in _ANOTHER_NAMED.finditer(found["x"]):
        yield _named(other["kind"].lower(), other["x"])


def _named(kind: str, name: str) -> Draft:
    kind = re.sub(r"^(?:new|old|little) (?=\w)", "", kind) if re.fullmatch(PET, kind) else kind
    text = sentence(f"The user's {kind} is called {name}")
    return Draft(text=text, category="relational", importance=7, subject=subject_of_kind(kind), attribute="name")


_ANOTHER_NAMED: Final = re.compile(rf" and an? (?P<kind>{RELATION}|{PET}) (?:called|named) (?P<x>[A-Z][\w'-]+)")


def married(found: re.Match[str]) -> Iterator[Draft]:
    """Married, single and so on."""
    status = {"got married": "married", "got divorced": "divorced", "got engaged": "engaged"}
    said = found["x"].lower()
    partner = f" to {clean(found['who'])}" if found["who"] else ""
    text = sentence(f"The user is {status.get(said, said)}{in_third(partner)}")
    yield Draft(text=text, category="relational", importance=8, attribute="marital_status")


def parted(found: re.Match[str]) -> Iterator[Draft]:
    """The end of a relationship."""
    whom = found.groupdict().get("kind") or found.groupdict().get("who") or "partner"
    text = sentence(f"The user and their {whom.lower().removeprefix('my ')} broke up")
    yield Draft(text=text, category="relational", importance=7, attribute="marital_status")


def has(found: re.Match[str]) -> Iterator[Draft]:
    """An animal, or that there is none any more."""
    kind = re.sub(r"^(?:new|old|little) (?=\w)", "", found["kind"].lower())
    if found["more"] or "no longer" in found[0]:
        verb = "no longer has"
    else:
        verb = "does not have" if "do not" in found[0] else "has"
    text = sentence(f"The user {verb} a {kind}")
    yield Draft(text=text, category="relational", importance=6, attribute="pet_" + kind.replace(" ", "_"))


def named_one_unless_nationality(found: re.Match[str]) -> Iterator[Draft]:
    """ "My wife is Ana", but not "my wife is German"."""
    if not NATIONALITY.match(found["x"]):
        yield from named_one(found)

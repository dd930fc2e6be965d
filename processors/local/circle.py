"""What is made of a clause on those around somebody: family, friends, animals (see `processors.local.table`)."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import in_third, sentence
from processors.local.values import NATIONALITY, POINTING, clean
from processors.local.words import PET, RELATION, can_be_several, subject_of_kind, subject_of_one


def named_one(found: re.Match[str]) -> Iterator[Draft]:
    """A relative, friend or animal by name."""
    kind, name = found["kind"].lower(), clean(re.split(r" (?:and|who|which|that|but|because|from) |,", found["x"])[0])
    if re.sub(r"\bI\b", "i", found.string).islower() and re.search(r"name|call", found[0]) and len(name.split()) == 1:
        name = name.title()
    if not name or len(name.split()) > 4 or POINTING.search(name) or not name[0].isupper():
        return
    yield _named(kind, name)
    for other in _ANOTHER_NAMED.finditer(found["x"]):
        yield _named((other["kind"] or kind).lower(), other["x"])


def _named(kind: str, name: str) -> Draft:
    several = can_be_several(kind)
    if several:
        kind = re.sub(r"^(?:other|second|third|new) (?=\w)", "", kind)
    kind = re.sub(r"^(?:new|old|little) (?=\w)", "", kind) if re.fullmatch(PET, kind) else kind
    text = sentence(f"The user's {kind} is called {name}")
    subject = subject_of_one(kind, name) if several else subject_of_kind(kind)
    return Draft(text=text, category="relational", importance=7, subject=subject, attribute="name")


_ANOTHER_NAMED: Final = re.compile(
    rf" and (?:an? |another |one )?(?:other )?(?:(?P<kind>{RELATION}|{PET}) |one )?(?:called|named) "
    rf"(?P<x>[A-Z][\w'-]+)"
)
_ONE_OF: Final = {"children": "child", "kids": "child", "ponies": "pony", "puppies": "puppy", "mice": "mouse",
                  "babies": "baby", "fish": "fish"}  # fmt: skip


def _single(kinds: str) -> str:
    return _ONE_OF.get(kinds, kinds.removesuffix("s"))


def counted(found: re.Match[str]) -> Iterator[Draft]:
    """How many there are of a kind, and their names where they are told: "I have two kids, Ida and Bo"."""
    kinds, count = found["kinds"].lower(), found["count"].lower()
    kind, names = _single(kinds), found.groupdict().get("names") or ""
    what = {"child": "children"}.get(kind, kinds)
    attribute = f"{what}_count".replace(" ", "_").replace("-", "_")
    text = sentence(f"The user has {count} {found['kinds']}")
    yield Draft(text=text, category="relational", importance=6, attribute=attribute)
    for name in re.split(r",? and |, ", clean(names)) if names else ():
        if re.fullmatch(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?", name):
            yield _named(kind, name)


_EX: Final = re.compile(r"The user's ex-(?P<kind>\w+) (?:is called )?(?P<name>[A-Z][\w-]+)\b")


def no_longer_with(draft: Draft) -> Iterator[Draft]:
    """That who is an ex-wife now was called a wife is taken back."""
    if (ex := _EX.match(draft.text)) and not draft.retracts:
        yield replace(_named(ex["kind"], ex["name"]), dated=True, retracts=True)


def former(found: re.Match[str]) -> Iterator[Draft]:
    """Somebody by name, said the other way round: "Maria is my ex-wife now"."""
    name = clean(found["x"])
    if not POINTING.search(name) and re.fullmatch(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?", name):
        yield _named(found["kind"].lower(), name)


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
    if verb == "no longer has":
        gone = sentence(f"The name of the user's {kind}")
        yield Draft(
            text=gone, category="general", importance=10, subject=subject_of_kind(kind), dated=True, retracts=True
        )


def named_one_unless_nationality(found: re.Match[str]) -> Iterator[Draft]:
    """ "My wife is Ana", but not "my wife is German"."""
    if not NATIONALITY.match(found["x"]):
        yield from named_one(found)

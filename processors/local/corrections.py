"""English sentences that correct the one before: "Sorry, I meant Lisbon."."""

import re
from dataclasses import dataclass
from typing import Final

_STRONG: Final = (
    r"i mean(?:t(?: to (?:say|write|type))?)?|correction|make that|(?:it|that) should (?:be|have been|read)|no,? "
    r"wait|i misspoke|"
    r"scratch that|strike that|sorry|oops|my (?:bad|mistake)|apologies|or rather|rather|typo|wrong"
)
_WEAK: Final = r"no|nope|wait|actually|oh|ah|well|hm+|it's|it is|it's actually|it is actually|that's|not quite"
_CORRECTION: Final = re.compile(
    rf"^(?P<lead>(?:(?:{_STRONG}|{_WEAK})(?![\w'])[\s,.:;!…—–-]*){{1,8}})(?P<x>\S.*)$", re.IGNORECASE
)
_IS_STRONG: Final = re.compile(rf"(?:^|[\s,.:;!…—–-])(?:{_STRONG})(?![\w'])", re.IGNORECASE)
_MIDDLE: Final = re.compile(
    r"\s*(?:,|;|…|\.\.\.|\s[-–]|—|\()\s*(?=(?:(?:no|oh|wait|sorry|actually|oops|well|or)[, ]+){0,4}"
    r"(?:i mean(?!ing)|i meant|scratch that|strike that|correction|make that|no,? wait|rather|sorry,)(?![\w']))"
    r"|\s*(?:,|…|\.\.\.|\s[-–]|—)\s*(?=(?:no|actually),? (?:it's |it is )?\S+[.!]?$)",
    re.IGNORECASE,
)
_NOT_THE_OTHER: Final = re.compile(r"(?:,| -| —)? (?:and )?not (?:in |at )?\S+(?: \S+)?$", re.IGNORECASE)
_POINTING: Final = re.compile(
    r"^(?:it|that|this|so|you|yes|no|well|really|seriously|the (?:same|other|first|last|second|one)|what|why|how|"
    r"come on|"
    r"sorry|nothing|never ?mind|all|just|literally|if|who|when|where|a lot|about|for|but|and|not|i|we|my|is|are)\b",
    re.IGNORECASE,
)
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|would|will|can|could|do|does|did|works?|sounds?|looks?|seems?)\b", re.IGNORECASE
)
_LONGEST_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Correction:
    """What was meant. `strong`: it cannot be anything but a correction."""

    meant: str
    strong: bool


def split_corrections(sentence: str) -> list[str]:
    """The sentence, cut before each correction inside it ("I live in Porto, I mean Lisbon")."""
    return [part for part in _MIDDLE.split(sentence) if part.strip()]


def correction(sentence: str) -> Correction | None:
    """The correction that `sentence` is; None where it is none."""
    found = _CORRECTION.match(sentence.strip())
    if found is None:
        return None
    strong = _IS_STRONG.search(found["lead"]) is not None
    return Correction(found["x"].strip(" .!,;:…)"), strong)


def is_clause(meant: str) -> bool:
    """Whether it is a statement of its own: "I meant I live in Lisbon"."""
    return re.match(r"(?:i|i'm|i've|we|we're|my|our)\b", meant, re.IGNORECASE) is not None


def value_of(meant: str) -> str | None:
    """The new value, without what stands around it: "it's Lisbon, not Porto" → "Lisbon"."""
    value = (
        re.sub(r"^not \S+(?: \S+)?,? (?:but )?(?=\S)", "", meant, flags=re.IGNORECASE)
        if "," in meant or " but " in meant
        else meant
    )
    value = re.sub(
        r"^(?:(?:it's|it is|in|at|to|that's|actually|with|the name is|(?:his|her|its|their) name is|called)\s+)+",
        "",
        value,
        flags=re.IGNORECASE,
    )
    value = _NOT_THE_OTHER.sub("", value)
    value = re.sub(r"[\s,]+(?:instead|actually|sorry|of course|now)$", "", value, flags=re.IGNORECASE).strip(" .,!\"'")
    if not value or len(value.split()) > _LONGEST_WORDS or _POINTING.match(value) or _VERB.search(value):
        return None
    return value


def replaced(clause: str, value: str, known: tuple[int, int] | None, *, strong: bool) -> str | None:
    """`clause` with `value` in the place of what it corrects; None where no place fits."""
    if known is not None:
        old = clause[known[0] : known[1]]
        if strong or _kind(old) == _kind(value):
            return clause[: known[0]] + value + clause[known[1] :]
        return None
    places = list(
        re.finditer(
            {"number": r"\d[\d.,:]*", "name": r"(?<!^)\b[A-Z]\w+(?: [A-Z]\w+)*", "word": r"\w+$"}[_kind(value)], clause
        )
    )
    places = [place for place in places if place[0] != "I"]
    if not places or (not strong and _kind(value) == "word"):
        return None
    last = places[-1]
    return clause[: last.start()] + value + clause[last.end() :]


def _kind(value: str) -> str:
    return "number" if value[:1].isdigit() else "name" if value[:1].isupper() else "word"

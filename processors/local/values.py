"""Values as they stand in a clause: cleaned, told from what only points, taken apart."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from processors.local.draft import Draft

Make = Callable[[re.Match[str]], Iterator[Draft]]
_TRAILING: Final = re.compile(
    r"(?:[\s,]+(?:now|currently|at the moment|these days|nowadays|right now|at present|any ?more|already|actually|"
    r"though|too|"
    r"as well|by the way|please|originally|you know|lol|haha|again|full[- ]time here|so far|for now|since then|"
    r"instead|for good|"
    r"for (?:about |over |almost |more than )?(?:a|an|\d+|two|three|four|five|six|seven|eight|nine|ten|many|several|"
    r"a few|some)"
    r" (?:day|week|month|year)s?(?: now)?|"
    r"(?:together )?with my [\w' ]+|since|until|from|on|in|for|and|but|because|as of|at the end of))+$",
    re.IGNORECASE,
)
POINTING: Final = re.compile(
    r"^(?:it|this|that|these|those|them|him|her|you|your|yours|what|how|the (?:idea|suggestion|plan|sound|way|look|"
    r"answer|first|"
    r"second|last|one|option|other)|both|all|when|where|to (?:know|see|hear|ask|say|think|add|mention|thank))\b",
    re.IGNORECASE,
)
NATIONALITY: Final = re.compile(
    r"^(?:[A-Z][a-z]+(?:ese|ish|ian|ean|can|i)|German|French|Dutch|Greek|Swiss|Welsh|Thai|Czech)$"
)


def clean(value: str) -> str:
    """`value` without what trails it: "Lisbon now, not Porto" → "Lisbon"."""
    value = re.sub(r", (?:and )?not [^,]+$", "", value)
    return _TRAILING.sub("", value.strip(" .,;:!")).strip(" .,;:!")


_AND: Final = re.compile(r",? and |, |,? or ")


def several(things: str, *, words: int = 3) -> list[str]:
    """The things of a short enumeration ("peanuts, shellfish and cats"); one where it is none."""
    parts = [part.strip() for part in _AND.split(things) if part.strip()]
    return parts if len(parts) <= 4 and all(len(part.split()) <= words for part in parts) else [things]

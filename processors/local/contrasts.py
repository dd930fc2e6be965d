"""What a clause says beside what it denies, taken apart: "I like tea, not coffee" states two things.

A "not" that stands behind a value says nothing of that value. So it must not reach the rules with it.
"""

import re
from collections.abc import Iterator
from typing import Final

_NOT_ONLY: Final = re.compile(
    r"(?:(?<=^I )do |\b)not (?:only|just|merely) (?=.*\bbut\b)|(?<=^I )do not (?:only|just|merely) |"
    r"(?<=^I am )not (?:only|just|merely) ",
    re.IGNORECASE,
)
_BUT_ALSO: Final = re.compile(r",? but (?:also |even )?(?:to |in |at )?|,? but .+? as well$", re.IGNORECASE)
_NEITHER: Final = re.compile(
    r"^I (?P<head>am allergic to|am|speak|like|love|eat|drink|have) neither (?P<be>allergic to )?(?:to )?(?P<x>.+?) "
    r"nor (?:to )?(?P<y>.+)$",
    re.IGNORECASE,
)
_NOT_BEHIND: Final = re.compile(
    r"(?:\s*[,;(]\s*(?:but |and |though |yet |although )?|\s+[–—-]+\s+(?:but )?|\s+(?:but|and|though|yet|although) )"
    r"(?:no,? )?(?:certainly |definitely |luckily |fortunately |thankfully )?(?:not|never) "
    r"(?:(?:to|at|in|for|with|of) )?"
    r"(?P<x>[^,;()]+)\)?",
    re.IGNORECASE,
)
_IN_A_WAY: Final = re.compile(
    r"^(?:\w+ly|well|very|much|too|so|always|often|every\w*|yet|really|good|great|any ?more|any longer|when|if|"
    r"because|since|as|before|after|on|that|perfect|sure|only|just|both|all|while|until|anything|everything|a lot)\b|"
    r".*\bones?$",
    re.IGNORECASE,
)
_BUT_TO: Final = re.compile(
    r"^(?P<head>I am (?:not|no longer) allergic to|I am allergic not to) (?P<x>.+?)"
    r"(?:,? but(?: only| rather| still)?|, only|,? (?:rather|just)) to (?P<y>.+)$",
    re.IGNORECASE,
)
_BUT_IS: Final = re.compile(r",? but (?:\w+ ){1,3}(?:is|are) .+$", re.IGNORECASE)
""" "I don't eat meat but fish is fine": what is fine is another matter."""
_DENIED: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), denial)
    for pattern, denial in (
        (
            r"^I (?:am|have been|have become|became) (?!not )(?!no longer )(?:\w+ )?allergic to ",
            "I am not allergic to {}",
        ),
        (r"^I (?:have|suffer from|developed) (?:an? )?(?:\w+ )?allergy to ", "I am not allergic to {}"),
        (r"^I (?:can )?speak ", "I do not speak {}"),
        (r"^I (?:like|enjoy|love|adore|am (?:into|fond of|an? (?:\w+ )?fan of)) ", "I do not like {}"),
        (r"^I (?P<verb>eat|drink) ", "I do not {verb} {}"),
        (r"^I (?:have|own) ", "I do not have {}"),
        (
            r"^I (?:do not|no longer|cannot|never|am|live|work|study|hate|dislike|prefer|drive|moved|come|was born)\b",
            "",
        ),
    )
)
"""How a clause begins, and how it would deny what stands behind a "not"; empty: that is left out."""


def taken_apart(clause: str) -> Iterator[str]:
    """What `clause` affirms and denies, each as a clause of its own; the clause itself where nothing is contrasted."""
    if _NOT_ONLY.search(clause):
        clause = _BUT_ALSO.sub(" and ", _NOT_ONLY.sub("", clause, count=1), count=1)
    if found := _NEITHER.match(clause):
        head = f"{found['head']} {found['be'] or ''}".strip()
        verb = head.replace("am", "am not", 1) if head.startswith("am") else f"do not {head}"
        yield f"I {verb} {found['x']} or {found['y']}"
        return
    if found := _BUT_TO.match(clause):
        yield f"I am not allergic to {found['x']}"
        yield f"I am allergic to {found['y']}"
        return
    if clause.startswith(("I do not", "I cannot", "I never", "I no longer")):
        clause = _BUT_IS.sub("", clause)
    found = _NOT_BEHIND.search(clause)
    if found is None or _IN_A_WAY.match(found["x"]):
        yield clause
        return
    for pattern, denial in _DENIED:
        if begins := pattern.match(clause):
            yield (clause[: found.start()] + clause[found.end() :]).strip()
            if denial and begins.end() <= found.start() and len(found["x"].split()) <= 5:
                yield denial.format(found["x"].strip(), verb=begins.groupdict().get("verb"))
            return
    yield clause

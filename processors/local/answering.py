"""Bare answers to the assistant's questions: "Where do you live?" "In Lisbon.", "Do you live in Porto?" "Yes." """

import re
from typing import Final

from processors.local.words import DIETS

_QUESTIONS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), statement)
    for pattern, statement in (
        (r"what(?:'s| is) your name|what (?:should|can|may) i call you|who am i (?:talking|speaking) (?:to|with)",
         "My name is {}."),
        ((r"where do you live|(?:what|which) city (?:do you live|are you (?:living|based)) in|where are you (?:based|"
         r"living)"),
         "I live in {}."),
        (r"how old are you|what(?:'s| is) your age", "I am {} years old."),
        (r"where do you work|who do you work for|what company do you work", "I work at {}."),
        (r"what do you do(?: for (?:a living|work))?\?|what(?:'s| is) your (?:job|profession|occupation)",
        "I work as {}."),
        (r"where are you (?:originally )?from", "I am from {}."),
        (r"(?:are you allergic|any allerg|have allergies)", "I am allergic to {}."),
        (r"when(?:'s| is) your birthday", "My birthday is {}."),
        (r"what(?:'s| is) your favou?rite (?P<what>[\w ]{2,30})\?", "My favorite {what} is {}."),
    )
)  # fmt: skip
_LEADING: Final = re.compile(
    r"^(?:(?:in|at|as|for|from|to|on|yes|well|it's|it is|oh|um+|sure|of course|just)[\s,:.!]+)+", re.IGNORECASE
)
_NO_ANSWER: Final = re.compile(
    r"\b(?:i|i'm|my|me|you|your|we|no|none|not|never|nothing|why|what|who|how|that|this|it|don't|sorry|thanks?|ok|okay|"
    r"nope|secret|guess|forget|stop|please)\b|\?",
    re.IGNORECASE,
)
_LONGEST_WORDS: Final = 6
_LONGEST_ANSWER: Final = 80
"""Characters of an answer to yes or no."""
_WHETHER: Final = re.compile(
    r"\b(?P<verb>do|are) you (?P<still>(?:still|currently|now) )?(?P<x>(?:(?<=do you )|(?<=still )|(?<=currently )|"
    r"(?<=now ))"
    r"(?:live|work|have|own|drive|speak|play|like|love|enjoy|hate|prefer|eat|drink|smoke|study|teach|take)\b[^?,;]*"
    rf"|(?:an? |allergic to |married|single|divorced|retired|from |based |living |working |learning |"
    rf"(?:{DIETS})\b)[^?,;]*)"
    r"\?$",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(r"\b(?:where|what|who|whom|which|when|how|why)\b", re.IGNORECASE)
_UNSURE: Final = re.compile(
    r"\b(?:or|any|anything|me|it|this|that|these|those|them|question|minute|help)\b", re.IGNORECASE
)
_CONFIRMED: Final = (
    r"(?:i (?:still )?(?:do|am)|i still do|still|that's right|that is right|correct|exactly|indeed|of course)"
)
_YES: Final = re.compile(
    rf"(?:(?:oh,? )?(?:yes|yeah|yep|yup|sure|correct|right|exactly|indeed|absolutely)|"
    rf"{_CONFIRMED})(?:[\s,.!]+{_CONFIRMED})*"
    r"[\s.!]*",
    re.IGNORECASE,
)
_NO: Final = re.compile(
    r"(?:(?:no|nope|nah|not any ?more|not any longer|i do not|i don't|i'm not|i am not)(?:[\s,.!]+|$)){1,2}"
    r"(?:(?:not )?any ?more|any longer)?[\s.!]*",
    re.IGNORECASE,
)
_BUT: Final = re.compile(
    r"(?:no|nope|nah|not any ?more)[\s,.!]+(?:it's |it is )?(?:in |at |for |as )?(?P<x>(?!not\b|never\b|i\b|i'm\b|"
    r"my\b|we\b)"
    r"[^.!?,;]{2,40}?)(?:,? (?:now|these days|nowadays))?[\s.!]*",
    re.IGNORECASE,
)
_HAVING: Final = re.compile(
    r"(?:yes|yeah|yep|yup)[\s,.!]+(?:i have )?(?P<x>(?:one|two|three|four|five|six|\d{1,2})|"
    r"(?:an?|one|two|three|four|five|six|\d{1,2}) [\w' ,-]{2,60}?)[\s.!]*",
    re.IGNORECASE,
)
_ANOTHER_PLACE: Final = re.compile(
    r"(?P<lead>live in|work (?:at|for|as)|drive|living in|based in|working (?:at|for|as)|from) (?P<x>.+)", re.IGNORECASE
)


def as_statement(question: str, answer: str) -> str | None:
    """`answer` as a statement, where `question` ends in one that it answers in a few words; None otherwise."""
    asked = re.split(r"(?<=[.!?])\s+", question.strip()[-300:])[-1]
    if len(answer) <= _LONGEST_ANSWER and not _OPEN.search(asked) and (whether := _WHETHER.search(asked)):
        said = _decided(whether, answer.strip().replace("’", "'"))
        if said is not None:
            return said
    value = _LEADING.sub("", answer.strip()).rstrip(" .!")
    if not value or "\n" in value or len(value.split()) > _LONGEST_WORDS or _NO_ANSWER.search(value):
        return None
    asked = re.split(r"(?<=[.!])\s+", question.strip()[-300:])[-1]
    for pattern, statement in _QUESTIONS:
        if found := pattern.search(asked):
            if "years old" in statement and not value.isdigit():
                return None
            return statement.format(value, **found.groupdict())
    return None


def _decided(whether: re.Match[str], answer: str) -> str | None:
    """Yes, no longer, or something else instead, as a statement."""
    about = re.sub(r"\byour\b", "my", whether["x"].strip())
    if about.startswith("have ") and (having := _HAVING.fullmatch(answer)):
        what = about.removeprefix("have ").removeprefix("any ")
        return f"I have {having['x']} {what}." if having["x"].isalnum() else f"I have {having['x']}."
    if _UNSURE.search(about):
        return None
    be = "am " if whether["verb"].lower() == "are" else ""
    if _YES.fullmatch(answer):
        return f"I {be}{about}."
    if _NO.fullmatch(answer):
        return f"I {be}no longer {about}." if (whether["still"] or "").lower() == "still " else None
    instead, place = _BUT.fullmatch(answer), _ANOTHER_PLACE.fullmatch(about)
    if instead is None or place is None or len(instead["x"].split()) > _LONGEST_WORDS:
        return None
    return f"I {be}{place['lead']} {instead['x']}."

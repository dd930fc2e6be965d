"""Bare answers to the assistant's questions: "Where do you live?" "In Lisbon." """

import re
from typing import Final

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


def as_statement(question: str, answer: str) -> str | None:
    """`answer` as a statement, where `question` ends in one that it answers in a few words; None otherwise."""
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

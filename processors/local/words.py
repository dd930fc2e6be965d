"""Alternatives of the patterns: who is near to somebody, what they eat, what an assistant does."""

import re
from typing import Final

RELATION: Final = (
    r"(?:mother-in-law|father-in-law|sister-in-law|brother-in-law|ex-wife|ex-husband|(?:older |younger |elder |"
    r"other |second |third |new |"
    r"little |big |eldest |youngest |twin |half[- ])?(?:step)?(?:wife|husband|partner|"
    r"girlfriend|"
    r"boyfriend|fianc[eé]e?|spouse|sister|brother|mother|father|mom|mum|dad|son|daughter|child|kid|baby|grandmother|"
    r"grandfather|grandma|grandpa|granddaughter|grandson|aunt|uncle|cousin|niece|nephew|"
    r"(?:best |close |old )?friend|roommate|flatmate|housemate|neighbou?r|boss|manager|"
    r"colleague|"
    r"coworker|co-worker|parents|children|kids|siblings|grandparents|in-laws|ex|mentor|therapist|doctor|dentist|"
    r"teacher|landlord))"
)
PET: Final = (
    r"(?:new |old |little |other |second |third )?(?:dog|cat|puppy|kitten|rabbit|bunny|hamster|parrot|bird|budgie|"
    r"fish|goldfish|horse|pony|"
    r"turtle|"
    r"tortoise|lizard|snake|guinea pig|ferret|rat|mouse|labrador|golden retriever|poodle|beagle|pet)"
)
DIETS: Final = (
    r"vegan|vegetarian|pescatarian|pescetarian|gluten[- ]free|lactose[- ]intolerant|gluten[- ]intolerant|celiac|"
    r"coeliac|"
    r"dairy[- ]free|kosher|halal|keto|flexitarian"
)
ANSWERING: Final = (
    r"answer|reply|respond|speak|talk|write|call|address|use|keep|be|explain|give|include|add|format|end|start|show|"
    r"send|cite|translate|round|remind|ask|suggest|recommend|mention|share|make|assume|repeat|apologi[sz]e|greet|"
    r"refer|convert|tell"
)
PLAN: Final = (
    r"(?:\w+ ){0,3}(?:trip|flight|exam|test|interview|appointment|meeting|concert|wedding|party|holiday|vacation|call|"
    r"visit|dinner|lunch|surgery|operation|presentation|conference|deadline|date|game|match|class|course|lesson|"
    r"booking|"
    r"reservation|event|festival|check-?up|session)"
)
"""What has a date, and can be moved or called off."""

_SAME_ONE: Final = {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "kid": "child",
    "kids": "children",
    "puppy": "dog",
    "kitten": "cat",
    "bunny": "rabbit",
    "spouse": "partner",
}


_ONE_OF_SEVERAL: Final = re.compile(
    r"(?:(?:older|younger|elder|other|second|third|new|little|big|twin|half|close|old)[ -])*(?:step)?(?:brother|sister|"
    r"son|daughter|child|kid|baby|grandmother|grandfather|grandma|grandpa|granddaughter|grandson|aunt|uncle|cousin|"
    r"niece|nephew|friend|roommate|flatmate|housemate|neighbou?r|colleague|coworker|co-worker|(?:brother|sister)-in-law"
    rf"|mentor|teacher|{PET})"
)
_FURTHER: Final = re.compile(r"^(?:other|second|third|new) (?=\w)")


def can_be_several(kind: str) -> bool:
    """Whether somebody can have more than one of `kind`: brothers and dogs, but one wife and one boss."""
    return _ONE_OF_SEVERAL.fullmatch(kind.lower()) is not None


def subject_of_kind(kind: str) -> str:
    """The subject that stands for one of the user's: the same for "mum" and "mother"."""
    name = re.sub(r"^(?:new|old|little) (?=\w)", "", kind.lower())
    further = re.match(r"(?:other|second|third) ", name)
    name = name.removeprefix(further[0]) if further else name
    return f"user's {further[0] if further else ''}{_SAME_ONE.get(name, name)}"


def subject_of_one(kind: str, name: str) -> str:
    """The subject that stands for the one of `kind` by that name, where there can be several: `user's brother tom`."""
    if not name or not can_be_several(kind):
        return subject_of_kind(kind)
    return f"{subject_of_kind(_FURTHER.sub('', kind.lower()))} {' '.join(name.casefold().split())}"


def without_name(subject: str) -> str:
    """`subject` without the name of the one: `user's brother` of `user's brother tom`."""
    one = re.match(rf"user's (?:{RELATION}|{PET})(?= \w)", subject)
    return one[0] if one else subject

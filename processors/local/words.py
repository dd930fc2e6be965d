"""Alternatives of the patterns: who is near to somebody, what they eat, what an assistant does."""

import re
from typing import Final

RELATION: Final = (
    r"(?:mother-in-law|father-in-law|sister-in-law|brother-in-law|ex-wife|ex-husband|(?:older |younger |elder |"
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
    r"(?:new |old |little )?(?:dog|cat|puppy|kitten|rabbit|bunny|hamster|parrot|bird|budgie|fish|goldfish|horse|pony|"
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


def subject_of_kind(kind: str) -> str:
    """The subject that stands for one of the user's: the same for "mum" and "mother"."""
    name = re.sub(r"^(?:new|old|little) (?=\w)", "", kind.lower())
    return f"user's {_SAME_ONE.get(name, name)}"

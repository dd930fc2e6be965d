"""What is made of a clause on what changed in somebody's life, or is counted: doses, pay, a car sold, an end of work
(see `processors.local.table`)."""

import re
from collections.abc import Iterator
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import about_user, sentence
from processors.local.lexicon import key
from processors.local.values import POINTING, clean

CAR: Final = (
    r"(?-i:(?:Toyota|Tesla|BMW|Audi|Mercedes(?:-Benz)?|Volkswagen|VW|Ford|Honda|Nissan|Mazda|Kia|Hyundai|Fiat|Renault|"
    r"Peugeot|Citro[eë]n|Opel|Skoda|Škoda|Seat|Volvo|Subaru|Suzuki|Mitsubishi|Porsche|Ferrari|Jeep|Chevrolet|Chevy|"
    r"Dacia|Mini|Lexus|Jaguar|Land Rover|Polestar|BYD|Rivian|Cadillac|Dodge|Buick|Vespa|Harley(?:-Davidson)?|Yamaha|"
    r"Ducati|Kawasaki))"
)


def dose(found: re.Match[str]) -> Iterator[Draft]:
    """How much somebody takes of a medicine: one slot for each medicine."""
    medicine = clean(
        re.split(r"(?:^| )(?:daily|every|twice|once|each|per|a day|in the|at night|for)\b", found["what"] or "")[0]
    )
    if POINTING.search(medicine):
        return
    attribute = f"dose_{key(medicine)}" if medicine else "dose"
    text = about_user(re.sub(r"^I am taking\b|^I am (?:up to|down to|on)\b", "I take", clean(found[0])))
    yield Draft(text=text, category="fact", importance=8, attribute=attribute)


def dose_gone(found: re.Match[str]) -> Iterator[Draft]:
    """A medicine that is taken no longer."""
    if not POINTING.search(found["what"]):
        text = sentence(f"The user no longer takes {found['what']}")
        yield Draft(text=text, category="fact", importance=8, attribute=f"dose_{key(found['what'])}")


def pay(found: re.Match[str]) -> Iterator[Draft]:
    """What somebody earns."""
    text = sentence(f"The user earns {clean(found['x'])}")
    yield Draft(text=text, category="fact", importance=7, attribute="salary")


def eats_again(found: re.Match[str]) -> Iterator[Draft]:
    """The end of a diet: "I eat meat again"."""
    food = clean(found["x"]).lower()
    yield Draft(text=sentence(f"The user eats {food} again"), category="preference", importance=8, attribute="diet")
    yield Draft(
        text=sentence(f"The user does not eat {food}"),
        category="preference",
        importance=8,
        attribute=f"eats_{key(food)}",
        dated=True,
        retracts=True,
    )


def car(found: re.Match[str]) -> Iterator[Draft]:
    """A vehicle that somebody has, by its make."""
    text = sentence(f"The user has {clean(found['x'])}")
    yield Draft(text=text, category="fact", importance=5, attribute="vehicle")


def car_gone(found: re.Match[str]) -> Iterator[Draft]:
    """A vehicle sold."""
    text = sentence(f"The user no longer has their {clean(found['x'])}")
    yield Draft(text=text, category="fact", importance=5, attribute="vehicle")


def goes_by(found: re.Match[str]) -> Iterator[Draft]:
    """A name to be called by, beside the name."""
    name = clean(re.split(r" (?:and|but|from|by|for|with|please)\b|,", found["x"])[0])
    if (
        name
        and len(name.split()) <= 3
        and not POINTING.search(name)
        and not re.match(r"(?:an?|the|not) ", name.lower())
    ):
        name = name if name != name.lower() else name.title()
        text = sentence(f"The user goes by {name}")
        yield Draft(text=text, category="identity", importance=8, attribute="nickname")


def rescheduled(found: re.Match[str]) -> Iterator[Draft]:
    """A plan at another time: it replaces the one with the time before (`processors.local_arbitration`)."""
    what = clean(found["what"])
    text = sentence(f"The user's {what} was moved to {re.sub(r'^on ', '', clean(found['x']))}")
    yield Draft(
        text=text,
        category="event",
        importance=6,
        attribute=key(re.split(r" (?:with|to|at|in|for|on) ", what)[0]),
        dated=True,
    )


def cancelled(found: re.Match[str]) -> Iterator[Draft]:
    """A plan given up: taken back, past events with the same words are not."""
    parts = found.groupdict()
    what = clean(parts.get("what") or f"trip to {parts['x']}")
    text = sentence(f"The user's planned {what}")
    yield Draft(text=text, category="event", importance=10, retracts=True, dated=True)

"""What is made of a clause on what somebody can have, eat, like, speak and want (see `processors.local.table`)."""

import re
from collections.abc import Iterator
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import in_third, sentence
from processors.local.lexicon import key
from processors.local.values import POINTING, Make, clean, several

_END_OF_AN_ALLERGY: Final = re.compile(
    r",? (?:so|which|please|therefore|though|although|but|however|rather than|instead of)\b|"
    r",? (?:and|yet) not\b|, not\b|,? no longer$|\s*\(",
    re.IGNORECASE,
)
""" "nuts, not milk": what stands behind the value says nothing of it."""
_GONE: Final = re.compile(r"^[^,(]+ no longer$", re.IGNORECASE)


def allergy(found: re.Match[str]) -> Iterator[Draft]:
    """An allergy, or that there is none."""
    things = clean(_END_OF_AN_ALLERGY.split(found["x"])[0])
    before = found[0][: found.start("x")]
    denied = "not" if re.search(r"\b(?:not|never|no longer)\b", before) or _GONE.search(found["x"]) else ""
    for thing in several(things):
        thing = re.sub(
            r"^(?:pea|tree )?nut$|^(?:egg|cat|dog|bee|wasp|almond|walnut|cashew|soybean|tomato)$", r"\g<0>s", thing
        )
        if thing and not POINTING.search(thing):
            text = sentence(f"The user is {denied} allergic to {thing}")
            yield Draft(text=text, category="fact", importance=10, attribute=f"allergy_{key(thing)}")


def diet(found: re.Match[str]) -> Iterator[Draft]:
    """What kind of eater they are."""
    denied = re.search(r" (no longer|not) ", found[0])
    text = sentence(f"The user is {denied[1] if denied else ''} {found['x'].lower()}")
    yield Draft(text=text, category="preference", importance=8, attribute="diet")


def avoided(found: re.Match[str]) -> Iterator[Draft]:
    """What they never eat or drink."""
    thing = clean(found["x"])
    if thing and not POINTING.search(thing):
        verb = found["verb"].lower()
        text = sentence(f"The user does not {verb} {in_third(thing)}")
        yield Draft(text=text, category="preference", importance=8, attribute=f"{verb}s_{key(thing)}")


LIKING: Final = {
    "like": "likes",
    "enjoy": "likes",
    "love": "loves",
    "adore": "loves",
    "hate": "hates",
    "detest": "hates",
    "despise": "hates",
    "cannot stand": "hates",
    "loathe": "hates",
    "dislike": "dislikes",
    "do not like": "dislikes",
    "do not enjoy": "dislikes",
    "do not love": "does not love",
    "do not hate": "does not hate",
    "no longer like": "no longer likes",
    "no longer love": "no longer loves",
    "no longer hate": "no longer hates",
    "no longer enjoy": "no longer likes",
    "am a big fan of": "loves",
    "am a huge fan of": "loves",
    "am a fan of": "likes",
    "am not a fan of": "dislikes",
    "am into": "likes",
    "am fond of": "likes",
    "used to like": "used to like",
    "used to love": "used to love",
    "used to hate": "used to hate",
    "used to enjoy": "used to like",
}


def opinion(found: re.Match[str]) -> Iterator[Draft]:
    """Likes and dislikes, in five degrees."""
    verb, things = LIKING[found["verb"].lower()], clean(found["x"])
    if verb == "dislikes" and re.search(r"\bany ?(?:more|longer)\b", found["x"]):
        verb = "no longer likes"
    things = re.sub(r"\s+(?:a lot|very much|so much|most of all|the most|more than anything)$", "", things)
    for thing in several(things):
        if thing and not POINTING.search(thing):
            text = sentence(f"The user {verb} {in_third(thing)}")
            yield Draft(text=text, category="preference", importance=6, attribute=f"likes_{key(thing)}")


def preference(found: re.Match[str]) -> Iterator[Draft]:
    """One thing over another."""
    thing = clean(found["x"])
    if not thing or POINTING.search(thing):
        return
    chosen, _, other = re.sub(r" (?:to|rather than|instead of|more than) ", " over ", thing, count=1).partition(
        " over "
    )
    text = sentence(f"The user prefers {in_third(chosen)}" + (f" over {in_third(other)}" if other else ""))
    yield Draft(text=text, category="preference", importance=6, attribute="preference_" + _between(chosen, other))


def _between(chosen: str, other: str) -> str:
    """One slot for two things, whichever of them is preferred."""
    return "_".join(sorted(key(thing) for thing in (chosen, other) if thing))


def own(found: re.Match[str]) -> Iterator[Draft]:
    """ "my favourite X is Y", "my car is a Y": the words before "is" name the slot."""
    what, value = found["what"].lower().strip(), clean(found["x"])
    what = re.sub(r"\b(?:new|current) ", "", what).replace("favourite", "favorite")
    if said := re.search(r"^not .+?, (?:it is |but )(?P<new>.+)$", value):
        value = clean(said["new"])
    if (
        not value
        or len(what.split()) > 4
        or _FLEETING.match(value)
        or POINTING.search(value)
        or not _LASTING_PROPERTY.search(what)
    ):
        return
    category = "preference" if "favorite" in what else "identity" if what in _ABOUT_ONESELF else "fact"
    text = sentence(f"The user's {what} is {in_third(value)}")
    attribute = {"job": "job_title", "car": "vehicle"}.get(what) or key(what.replace("colour", "color"))
    yield Draft(text=text, category=category, importance=7 if category == "identity" else 6, attribute=attribute)


_FLEETING: Final = re.compile(
    r"^(?:slow|broken|down|dead|fast|full|empty|late|ready|old|great|good|bad|fine|nice|here|gone|correct|wrong|fun|"
    r"lost|"
    r"not (?:working|here|ready|good)|acting|running|the (?:end|beginning|part|one))\b",
    re.IGNORECASE,
)
_ABOUT_ONESELF: Final = frozenset(
    {
        "birthday",
        "nationality",
        "native language",
        "mother tongue",
        "date of birth",
        "surname",
        "last name",
        "first name",
        "nickname",
        "pronouns",
        "religion",
        "star sign",
    }
)
_LASTING_PROPERTY: Final = re.compile(
    r"favorite|birthday|nationality|language|tongue|name|pronouns|religion|sign|hobby|car|bike|phone|laptop|computer|"
    r"budget|"
    r"address|street|zip|postcode|blood type|shoe size|size|height|weight|salary|degree|major|university|school|team|"
    r"diet|"
    r"anniversary|wedding|deadline|goal|dream|landlord|time zone|timezone|email|job|employer|company|code|number|"
    r"operating system|editor|stack|project|thesis|flight|hotel|appointment|exam|interview|policy|insurance|bank|"
    r"doctor|dentist"
)


def speaks(found: re.Match[str]) -> Iterator[Draft]:
    """Languages."""
    speaks = "does not speak" if found[0].lower().startswith(("i do not", "i cannot", "i no longer")) else "speaks"
    for language in several(clean(found["x"]), words=5):
        name = re.sub(r"^(?:a (?:bit|little)(?: of)?|some|basic|also|both) ", "", language)
        if name and name[0].isupper():
            text = sentence(f"The user {speaks} {language}")
            attribute = f"speaks_{key(re.split(r' (?:at|with|on|but|to|as) ', name)[0])}"
            yield Draft(text=text, category="skill", importance=6, attribute=attribute)


def doing(category: str, importance: int, words: str, attribute: str) -> Make:
    """A maker for what somebody does about a thing."""

    def make(found: re.Match[str]) -> Iterator[Draft]:
        thing = clean(found["x"])
        if thing and not POINTING.search(thing):
            text = sentence(f"The user {words} {in_third(thing)}")
            yield Draft(text=text, category=category, importance=importance, attribute=f"{attribute}_{key(thing)}")

    return make


def vehicle(found: re.Match[str]) -> Iterator[Draft]:
    """What they drive."""
    text = sentence(f"The user drives {clean(found['x'])}")
    yield Draft(text=text, category="fact", importance=5, attribute="vehicle")


def rule(found: re.Match[str]) -> Iterator[Draft]:
    """What the assistant shall do or leave."""
    wish = re.sub(
        r"\b(?:my|me|I)\b", lambda word: {"my": "their", "me": "them"}.get(word[0].lower(), "they"), clean(found["x"])
    )
    wish = re.sub(r"\byour\b", "its", wish[:1].lower() + wish[1:])
    lead = (found.groupdict().get("lead") or "").lower()
    match lead:
        case "never" | "do not" | "stop" | "avoid" | "no more":
            text = f"The user wants the assistant never to {_plain(wish)}"
        case "always":
            text = f"The user wants the assistant to always {wish}"
        case _:
            text = f"The user wants the assistant to {_plain(wish)}"
    yield Draft(text=sentence(text), category="rule", importance=8, attribute=f"rule_{key(wish)}")


def _plain(wish: str) -> str:
    """The infinitive of what may begin with a gerund ("using emojis")."""
    first, _, rest = wish.partition(" ")
    known = {
        "using": "use",
        "calling": "call",
        "asking": "ask",
        "sending": "send",
        "writing": "write",
        "giving": "give",
        "adding": "add",
        "being": "be",
        "repeating": "repeat",
        "apologizing": "apologize",
        "mentioning": "mention",
    }
    return f"{known.get(first.lower(), first)} {rest}".strip()


def wanted(found: re.Match[str]) -> Iterator[Draft]:
    """ "I want you to always …" is a rule; "I want you to write a poem" is a request."""
    wish = found["x"].removeprefix("you to ")
    inner = re.match(r"(?:(?P<lead>always|never|stop|avoid) )(?P<x>.+)$", wish, re.IGNORECASE)
    if inner is not None:
        yield from rule(inner)


def slotted(text: str, category: str, importance: int, attribute: str, *, dated: bool = False) -> Make:
    """A maker for what is said in one way: `text` and `attribute` with `{x}`, the value."""

    def make(found: re.Match[str]) -> Iterator[Draft]:
        value = clean(found.groupdict().get("x") or "")
        if not POINTING.search(value):
            said = sentence(text.format(x=in_third(value)))
            slot = attribute.format(x=key(value))
            yield Draft(text=said, category=category, importance=importance, attribute=slot, dated=dated)

    return make


def favorite(found: re.Match[str]) -> Iterator[Draft]:
    """ "Jazz is my favourite music" """
    what = found["what"].lower()
    text = sentence(f"The user's favorite {what} is {in_third(clean(found['x']))}")
    attribute = f"favorite_{key(what.replace('colour', 'color'))}"
    yield Draft(text=text, category="preference", importance=6, attribute=attribute)


def no_allergy(found: re.Match[str]) -> Iterator[Draft]:
    """An allergy that there is not."""
    for thing in several(clean(found["x"] or found["y"])):
        text = sentence(f"The user is not allergic to {thing}")
        yield Draft(text=text, category="fact", importance=10, attribute=f"allergy_{key(thing)}")

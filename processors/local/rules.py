"""What is made of a clause whose wording is known (see `processors.local.table`).

Rewordings of one statement give one text ("I'm based in Lisbon", "I live in Lisbon now"), so that it is seen to be said
again. Subject and attribute are one slot, so what can be true side by side has attributes of its own
(`allergy_peanuts`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import in_third, sentence
from processors.local.words import PET

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
_NOT_A_PLACE: Final = re.compile(
    r"^(?:an?|my|the (?:same|moment|past|end|middle|city|countryside|suburbs|next|new|other|office|hospital)|fear|"
    r"peace|"
    r"constant|love|hope|this|that|here|there|it|them|home|bed|work|your|another|one|two|different|version|plan)\b",
    re.IGNORECASE,
)
_POINTING: Final = re.compile(
    r"^(?:it|this|that|these|those|them|him|her|you|your|yours|what|how|the (?:idea|suggestion|plan|sound|way|look|"
    r"answer|first|"
    r"second|last|one|option|other)|both|all|when|where|to (?:know|see|hear|ask|say|think|add|mention|thank))\b",
    re.IGNORECASE,
)
_JOB_ENDING: Final = re.compile(
    r"(?:er|or|ist|ian|eer|nurse|chef|cook|architect|pilot|judge|clerk|agent|analyst|assistant|attorney|consultant|"
    r"doctor|"
    r"surgeon|vet|student|intern|freelancer|lead|head|ceo|cto|cfo|coo|sre|founder|co-founder|secretary|guard|model|"
    r"guide|coach|"
    r"midwife|paramedic|scientist|accountant|nanny|baker|tailor|priest|monk|officer|specialist|executive|technician|"
    r"dba|"
    r"civil servant|au pair|researcher|fellow|trainee|apprentice|carpenter)$",
    re.IGNORECASE,
)
_NOT_A_JOB: Final = re.compile(
    r"(?:^(?:big|huge|great|bit|little|lot|early|night|morning|fan|member|user|first|long|slow|fast|good|bad|"
    r"beginner|lover|"
    r"heavy|light|former|ex|better|father|mother|sister|brother|smoker|drinker|vegetarian|number|customer|newcomer|"
    r"believer)\b"
    r"|(?:lover|fan|person|customer|user|owner|smoker|drinker|beginner|learner|loner|sleeper|riser|sister|brother|"
    r"mother|"
    r"father|daughter|eater|believer|newcomer|winner|survivor|member|foreigner|reader|listener|admirer|follower|runner|"
    r"swimmer|hiker|gamer|minor|senior|junior|danger|matter)$)",
    re.IGNORECASE,
)
_NATIONALITY: Final = re.compile(
    r"^(?:[A-Z][a-z]+(?:ese|ish|ian|ean|can|i)|German|French|Dutch|Greek|Swiss|Welsh|Thai|Czech)$"
)


def key(text: str) -> str:
    """The part of an attribute that says which one: a few words of `text` in snake_case."""
    words = re.findall(r"\w+", text.casefold())
    kept = [word for word in words if word not in {"a", "an", "the", "very", "much", "really", "my", "to"}]
    return "_".join(kept[:4])


def _clean(value: str) -> str:
    return _TRAILING.sub("", value.strip(" .,;:!")).strip(" .,;:!")


def _place(value: str) -> str | None:
    place = _clean(
        re.split(r",? (?:where|which|with|because|when|after|before|as|to (?:be|live|work|study))\b", value)[0]
    )
    if not place or _NOT_A_PLACE.search(place) or len(place.split()) > 6:
        return None
    return place if place != place.lower() else place.title()


def home(found: re.Match[str]) -> Iterator[Draft]:
    """Where somebody lives now."""
    if place := _place(found["x"]):
        yield Draft(
            text=sentence(f"The user lives in {place}"), category="identity", importance=8, attribute="home_city"
        )


def no_home(found: re.Match[str]) -> Iterator[Draft]:
    """Where they live no longer."""
    if place := _place(found["x"]):
        text = sentence(f"The user no longer lives in {place}")
        yield Draft(text=text, category="identity", importance=7, attribute="home_city")


def origin(found: re.Match[str]) -> Iterator[Draft]:
    """Where they come from."""
    if (place := _place(found["x"])) and place[0].isupper():
        born = "born" in found[0].lower()
        text = sentence(f"The user {'was born in' if born else 'is from'} {place}")
        yield Draft(text=text, category="identity", importance=7, attribute="birthplace" if born else "origin")


def job(found: re.Match[str]) -> Iterator[Draft]:
    """Employer and profession, each a fact of its own."""
    parts = found.groupdict()
    employer, title = parts.get("at"), parts.get("title")
    if employer and not _NOT_A_PLACE.search(employer := _clean(re.split(r" (?:as|doing|where|and) ", employer)[0])):
        text = sentence(f"The user works at {employer}")
        yield Draft(text=text, category="identity", importance=8, attribute="employer")
    if title and not _POINTING.search(title := _clean(re.sub(r"^(?:an?|the) ", "", title))):
        yield profession(title)


def profession(title: str) -> Draft:
    """`title` as a profession."""
    article = "an" if title[0].lower() in "aeiou" else "a"
    text = sentence(f"The user works as {article} {in_third(title)}")
    return Draft(text=text, category="identity", importance=8, attribute="job_title")


def no_job(found: re.Match[str]) -> Iterator[Draft]:
    """Where they work no longer."""
    employer = _clean(found["x"])
    if employer and not _NOT_A_PLACE.search(employer) and not _POINTING.search(employer) and employer[0].isupper():
        text = sentence(f"The user no longer works at {employer}")
        yield Draft(text=text, category="identity", importance=8, attribute="employer")


def is_a(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am a nurse" and "I am a nurse at a hospital", but not "I am a big fan"."""
    title, _, employer = _clean(found["x"]).partition(" at ")
    title = _clean(title)
    if _JOB_ENDING.search(re.split(r" (?:in|for|of|with|from|on) ", title)[0]) and not _NOT_A_JOB.search(title):
        yield profession(title)
        if employer and employer[0].isupper():
            text = sentence(f"The user works at {_clean(employer)}")
            yield Draft(text=text, category="identity", importance=8, attribute="employer")


def name(found: re.Match[str]) -> Iterator[Draft]:
    """What they are called."""
    name = _clean(re.split(r" (?:and|but|from|by|for)\b|,", found["x"])[0])
    if (
        name
        and len(name.split()) <= 4
        and not _POINTING.search(name)
        and not name.lower().startswith(("a ", "the ", "not "))
    ):
        name = name if name != name.lower() else name.title()
        yield Draft(text=sentence(f"The user's name is {name}"), category="identity", importance=9, attribute="name")


def introduced(found: re.Match[str]) -> Iterator[Draft]:
    """A name or a nationality after "I am"."""
    if _NATIONALITY.match(found["x"]):
        text = sentence(f"The user is {found['x']}")
        yield Draft(text=text, category="identity", importance=6, attribute="nationality")
    elif not re.match(
        r"(?:Not|Very|So|In|On|At|The|A|An|Going|From|Sorry|Sure|Fine|Here|Back|OK|Okay|I)\b", found["x"]
    ):
        yield from name(found)


def age(found: re.Match[str]) -> Iterator[Draft]:
    """Years."""
    if 3 <= (years := int(found["x"])) <= 120:
        text = sentence(f"The user is {years} years old")
        yield Draft(text=text, category="identity", importance=7, attribute="age")


def birthday(found: re.Match[str]) -> Iterator[Draft]:
    """The day, as it was said."""
    text = sentence(f"The user's birthday is {_clean(found['x'])}")
    yield Draft(text=text, category="identity", importance=7, attribute="birthday", dated=True)


def allergy(found: re.Match[str]) -> Iterator[Draft]:
    """An allergy, or that there is none."""
    thing = _clean(re.split(r",? (?:so|which|please|therefore|though)\b", found["x"])[0])
    thing = re.sub(
        r"^(?:pea|tree )?nut$|^(?:egg|cat|dog|bee|wasp|almond|walnut|cashew|soybean|tomato)$", r"\g<0>s", thing
    )
    if thing and not _POINTING.search(thing):
        denied = "not" if re.search(r"\bnot\b|\bno longer\b", found[0][: found.start("x")]) else ""
        text = sentence(f"The user is {denied} allergic to {thing}")
        yield Draft(text=text, category="fact", importance=10, attribute=f"allergy_{key(thing)}")


def diet(found: re.Match[str]) -> Iterator[Draft]:
    """What kind of eater they are."""
    denied = re.search(r" (no longer|not) ", found[0])
    text = sentence(f"The user is {denied[1] if denied else ''} {found['x'].lower()}")
    yield Draft(text=text, category="preference", importance=8, attribute="diet")


def avoided(found: re.Match[str]) -> Iterator[Draft]:
    """What they never eat or drink."""
    thing = _clean(found["x"])
    if thing and not _POINTING.search(thing):
        verb = found["verb"].lower()
        text = sentence(f"The user does not {verb} {in_third(thing)}")
        yield Draft(text=text, category="preference", importance=8, attribute=f"{verb}s_{key(thing)}")


def named_one(found: re.Match[str]) -> Iterator[Draft]:
    """A relative, friend or animal by name."""
    kind, name = found["kind"].lower(), _clean(re.split(r" (?:and|who|which|that|but|because|from) |,", found["x"])[0])
    if not name or len(name.split()) > 4 or _POINTING.search(name) or not name[0].isupper():
        return
    kind = re.sub(r"^(?:new|old|little) (?=\w)", "", kind) if re.fullmatch(PET, kind) else kind
    text = sentence(f"The user's {kind} is called {name}")
    yield Draft(text=text, category="relational", importance=7, subject=f"user's {kind}", attribute="name")


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
    "no longer like": "no longer likes",
    "am a big fan of": "loves",
    "am a huge fan of": "loves",
    "am a fan of": "likes",
    "am not a fan of": "dislikes",
    "am into": "likes",
    "am fond of": "likes",
}


def opinion(found: re.Match[str]) -> Iterator[Draft]:
    """Likes and dislikes, in five degrees."""
    verb, thing = LIKING[found["verb"].lower()], _clean(found["x"])
    thing = re.sub(r"\s+(?:a lot|very much|so much|most of all|the most|more than anything)$", "", thing)
    if thing and not _POINTING.search(thing):
        text = sentence(f"The user {verb} {in_third(thing)}")
        yield Draft(text=text, category="preference", importance=6, attribute=f"opinion_{key(thing)}")


def preference(found: re.Match[str]) -> Iterator[Draft]:
    """One thing over another."""
    thing = _clean(found["x"])
    if not thing or _POINTING.search(thing):
        return
    chosen, _, other = re.sub(r" (?:to|rather than|instead of|more than) ", " over ", thing, count=1).partition(
        " over "
    )
    text = sentence(f"The user prefers {in_third(chosen)}" + (f" over {in_third(other)}" if other else ""))
    yield Draft(text=text, category="preference", importance=6, attribute=f"prefers_{key(chosen)}")


def own(found: re.Match[str]) -> Iterator[Draft]:
    """ "my favourite X is Y", "my car is a Y": the words before "is" name the slot."""
    what, value = found["what"].lower().strip(), _clean(found["x"])
    what = re.sub(r"\b(?:new|current) ", "", what).replace("favourite", "favorite")
    if not value or len(what.split()) > 4 or _POINTING.search(value) or not _LASTING_PROPERTY.search(what):
        return
    category = "preference" if "favorite" in what else "identity" if what in _ABOUT_ONESELF else "fact"
    text = sentence(f"The user's {what} is {in_third(value)}")
    yield Draft(text=text, category=category, importance=7 if category == "identity" else 6, attribute=key(what))


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
    languages = _clean(found["x"])
    if languages and languages[0].isupper():
        text = sentence(f"The user speaks {languages}")
        yield Draft(text=text, category="skill", importance=6, attribute=f"speaks_{key(languages)}")


def doing(category: str, importance: int, words: str, attribute: str) -> Make:
    """A maker for what somebody does about a thing."""

    def make(found: re.Match[str]) -> Iterator[Draft]:
        thing = _clean(found["x"])
        if thing and not _POINTING.search(thing):
            text = sentence(f"The user {words} {in_third(thing)}")
            yield Draft(text=text, category=category, importance=importance, attribute=f"{attribute}_{key(thing)}")

    return make


def vehicle(found: re.Match[str]) -> Iterator[Draft]:
    """What they drive."""
    text = sentence(f"The user drives {_clean(found['x'])}")
    yield Draft(text=text, category="fact", importance=5, attribute="vehicle")


def married(found: re.Match[str]) -> Iterator[Draft]:
    """Married, single and so on."""
    status = {"got married": "married", "got divorced": "divorced", "got engaged": "engaged"}
    said = found["x"].lower()
    partner = f" to {_clean(found['who'])}" if found["who"] else ""
    text = sentence(f"The user is {status.get(said, said)}{in_third(partner)}")
    yield Draft(text=text, category="relational", importance=8, attribute="marital_status")


def rule(found: re.Match[str]) -> Iterator[Draft]:
    """What the assistant shall do or leave."""
    wish = re.sub(
        r"\b(?:my|me|I)\b", lambda word: {"my": "their", "me": "them"}.get(word[0].lower(), "they"), _clean(found["x"])
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


def introduced_by_capital(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am Ana", "I am Portuguese": only where it is written with a capital."""
    name = re.match(r"(?P<x>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)(?=$|,| and\b| from\b)", found["x"])
    if name is not None:
        yield from introduced(name)

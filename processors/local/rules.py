"""What is made of a clause on who somebody is, where they live and what they work as (see `processors.local.table`).

Rewordings of one statement give one text ("I'm based in Lisbon", "I live in Lisbon now"), so that it is seen to be said
again. Subject and attribute are one slot, so what can be true side by side has attributes of its own
(`allergy_peanuts`).
"""

import re
from collections.abc import Iterator
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import in_third, sentence
from processors.local.values import NATIONALITY, POINTING, clean

_NOT_A_PLACE: Final = re.compile(
    r"^(?:an?|my|the (?:shire|cloud|same|moment|past|present|future|end|middle|city|countryside|suburbs|next|new|"
    r"other|office|hospital)|fear|"
    r"peace|"
    r"with|near|constant|misery|poverty|luxury|denial|love|hope|this|that|here|there|it|them|home|bed|work|your|"
    r"another|one|two|different|version|plan)\b",
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
_RELIGION: Final = re.compile(
    r"^(?:buddhist|christian|catholic|muslim|hindu|jew|atheist|agnostic|protestant|mormon|sikh)$", re.IGNORECASE
)


def _place(value: str) -> str | None:
    place = clean(
        re.split(r",? (?:where|which|with|because|when|after|before|as|for|to (?:be|live|work|study))\b", value)[0]
    )
    if not place or _NOT_A_PLACE.search(place) or len(place.split()) > 6:
        return None
    return place if place != place.lower() else place.title()


def home(found: re.Match[str]) -> Iterator[Draft]:
    """Where somebody lives now."""
    if place := _place(found["x"]):
        where = "near" if found.groupdict().get("near") else "in"
        yield Draft(
            text=sentence(f"The user lives {where} {place}"), category="identity", importance=8, attribute="home_city"
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
    if employer and not _NOT_A_PLACE.search(employer := clean(re.split(r" (?:as|doing|where|and) ", employer)[0])):
        text = sentence(f"The user works at {employer}")
        yield Draft(text=text, category="identity", importance=8, attribute="employer")
    if title and not POINTING.search(title := clean(re.sub(r"^(?:an?|the) ", "", title))):
        yield profession(title)


def profession(title: str) -> Draft:
    """`title` as a profession."""
    article = "an" if title[0].lower() in "aeiou" else "a"
    text = sentence(f"The user works as {article} {in_third(title)}")
    return Draft(text=text, category="identity", importance=8, attribute="job_title")


def no_job(found: re.Match[str]) -> Iterator[Draft]:
    """Where they work no longer."""
    employer = clean(found["x"])
    if employer and not _NOT_A_PLACE.search(employer) and not POINTING.search(employer) and employer[0].isupper():
        text = sentence(f"The user no longer works at {employer}")
        yield Draft(text=text, category="identity", importance=8, attribute="employer")


def is_a(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am a nurse" and "I am a nurse at a hospital", but not "I am a big fan"."""
    yield from _is_a(found["x"])


def _is_a(value: str) -> Iterator[Draft]:
    value, place = _without_origin(clean(value))
    title, _, employer = value.partition(" at ")
    title = clean(title)
    if re.search(r"\bstudent$|\bstudent of\b", title):
        text = sentence(f"The user is a {title}" + (f" at {clean(employer)}" if employer else ""))
        yield Draft(text=text, category="identity", importance=7, attribute="job_title")
    elif _RELIGION.search(title):
        yield Draft(text=sentence(f"The user is a {title}"), category="identity", importance=6, attribute="religion")
    elif _JOB_ENDING.search(re.split(r" (?:in|for|of|with|from|on) ", title)[0]) and not _NOT_A_JOB.search(title):
        yield profession(title)
        if employer and employer[0].isupper():
            text = sentence(f"The user works at {clean(employer)}")
            yield Draft(text=text, category="identity", importance=8, attribute="employer")
    else:
        return
    if place:
        yield _comes_from(place)


def _without_origin(value: str) -> tuple[str, str]:
    """ "a nurse from Braga" is two statements."""
    found = re.match(r"(?P<what>.+?) from (?P<place>[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)$", value)
    return (found["what"], found["place"]) if found else (value, "")


def _comes_from(place: str) -> Draft:
    return Draft(text=sentence(f"The user is from {place}"), category="identity", importance=7, attribute="origin")


def introduced_at_length(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am Ana, 34, a software engineer from Braga" """
    parts = re.split(r",? and |, ", clean(found["x"]))
    told = [draft for part in parts for draft in _of_part(part)]
    if told and not NATIONALITY.match(found["name"]):
        text = sentence(f"The user's name is {found['name']}")
        yield Draft(text=text, category="identity", importance=9, attribute="name")
        yield from told


def _of_part(part: str) -> Iterator[Draft]:
    if years := re.fullmatch(r"(?:aged )?(\d{1,3})(?: years old)?", part):
        if 3 <= int(years[1]) <= 120:
            text = sentence(f"The user is {int(years[1])} years old")
            yield Draft(text=text, category="identity", importance=7, attribute="age")
    elif job := re.match(r"(?:an?|the) (?P<x>.+?)(?: (?P<lives>(?:who lives|living|based) in .+))?$", part):
        yield from _is_a(job["x"])
        yield from _of_part(job["lives"]) if job["lives"] else ()
    elif lives := re.match(r"(?:living|based|who lives) in (?P<x>.+)$|from (?P<y>[A-Z].+)$", part):
        if lives["y"]:
            yield _comes_from(lives["y"])
        else:
            yield from home(lives)


def name(found: re.Match[str]) -> Iterator[Draft]:
    """What they are called."""
    name = clean(re.split(r" (?:and|but|from|by|for|with|spelled)\b|,", found["x"])[0])
    if (
        name
        and len(name.split()) <= 4
        and not POINTING.search(name)
        and not name.lower().startswith(("a ", "the ", "not "))
    ):
        name = name if name != name.lower() else name.title()
        yield Draft(text=sentence(f"The user's name is {name}"), category="identity", importance=9, attribute="name")


def introduced(found: re.Match[str]) -> Iterator[Draft]:
    """A name or a nationality after "I am"."""
    if NATIONALITY.match(found["x"]):
        text = sentence(f"The user is {found['x']}")
        yield Draft(text=text, category="identity", importance=6, attribute="nationality")
    elif not re.match(
        r"(?:Not|Very|So|In|On|At|The|A|An|Going|From|Sorry|Sure|Fine|Here|Back|OK|Okay|I)\b", found["x"]
    ):
        yield from name(found)


def name_and_age(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am Ana, 34" """
    yield Draft(
        text=sentence(f"The user's name is {found['name']}"), category="identity", importance=9, attribute="name"
    )
    if 3 <= (years := int(found["years"])) <= 120:
        text = sentence(f"The user is {years} years old")
        yield Draft(text=text, category="identity", importance=7, attribute="age")


def age(found: re.Match[str]) -> Iterator[Draft]:
    """Years."""
    if 3 <= (years := int(found["x"])) <= 120:
        text = sentence(f"The user is {years} years old")
        yield Draft(text=text, category="identity", importance=7, attribute="age")


def birthday(found: re.Match[str]) -> Iterator[Draft]:
    """The day, as it was said."""
    text = sentence(f"The user's birthday is {clean(found['x'])}")
    yield Draft(text=text, category="identity", importance=7, attribute="birthday", dated=True)


def introduced_by_capital(found: re.Match[str]) -> Iterator[Draft]:
    """ "I am Ana", "I am Portuguese": only where it is written with a capital."""
    name = re.match(r"(?P<x>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)(?=$|,| and\b| from\b)", found["x"])
    if name is not None:
        yield from introduced(name)


def street(found: re.Match[str]) -> Iterator[Draft]:
    """A home with its number."""
    text = sentence(f"The user lives at {clean(found['x'])}")
    yield Draft(text=text, category="identity", importance=7, attribute="address")


def no_title(found: re.Match[str]) -> Iterator[Draft]:
    """What they work as no longer."""
    title = clean(found["x"])
    if _JOB_ENDING.search(title) and not _NOT_A_JOB.search(title):
        article = "an" if title[0].lower() in "aeiou" else "a"
        text = sentence(f"The user no longer works as {article} {title}")
        yield Draft(text=text, category="identity", importance=8, attribute="job_title")

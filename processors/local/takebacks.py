"""English sentences in which somebody takes something back: "forget that I live in Lisbon", "scratch that"."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import sentence
from processors.local.lexicon import key
from processors.local.words import PET, RELATION, subject_of_kind


class Reach(Enum):
    """How much of what was said before is taken back."""

    LAST = "last"
    """The last statement, or the last message with one."""
    NO_LONGER = "no longer"
    """The last statement, since it holds no more."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Exactly one of the three: what came before, a clause whose statement is taken back, or a topic."""

    reach: Reach | None = None
    clause: str | None = None
    topic: str | None = None


_ASKING: Final = (
    r"^(?:(?:ok|okay|hey|hi|so|and|well|actually|please|also|just|kindly|can you|could you|would you|will you|i "
    r"want you to|"
    r"i'd like you to|you can|you should|you may|let's)[,\s]+){0,6}"
)
_VERB: Final = (
    r"(?:forget|erase|delete|remove|disregard|ignore|unlearn|drop|discard|stop remembering|don't "
    r"remember|do not remember)"
)
_SAID: Final = (
    r"(?:said|told you|mentioned|wrote|shared|just said|just told you|just mentioned|have told you|'ve "
    r"told you|ever told you)"
)
_POLITE: Final = r"(?:[,\s]+(?:please|now|ok|okay|thanks|from your memory|for me|again))*[.!?…\s]*$"

_EVERYTHING: Final = re.compile(
    rf"{_ASKING}{_VERB} (?:about )?(?:(?:everything|anything|all|all of it|all of this|all of that)"
    rf"(?: (?:that )?i(?: have|'ve)? ?{_SAID}(?: so far| before| to you| until now)?)?|"
    rf"(?:everything|all) (?:(?:that )?you (?:know|have|stored|saved|remember) )?(?:about|on) me|all (?:of )?my "
    rf"(?:personal )?(?:data|memories|information|info|facts))(?: so far)?{_POLITE}",
    re.IGNORECASE,
)
_LAST: Final = re.compile(
    rf"{_ASKING}(?:{_VERB} (?:about )?(?:that|this|what i(?: have|'ve)? ?{_SAID}(?: to you| earlier| before)?|(?:my|"
    rf"the) last "
    rf"(?:message|sentence|statement|thing(?: i said)?)|the previous (?:message|statement)|that last (?:part|bit|one))"
    rf"|(?:scratch|strike) that|i take (?:that|it) back|take that back){_POLITE}",
    re.IGNORECASE,
)
_NO_LONGER: Final = re.compile(
    r"^(?:actually|well|sorry|no|hm+|oh|wait|and|but)?[,\s]*(?:that|this|it)(?:'s| is)? (?:not|no longer|isn't) "
    r"(?:true|the case|right|correct|valid|accurate)(?P<now>(?: any ?more| any longer| now)?)[.!\s]*$",
    re.IGNORECASE,
)
_OF_CLAUSE: Final = re.compile(
    rf"{_ASKING}(?:{_VERB}|never ?mind) (?:about )?(?:the fact )?(?:that |how )?(?P<clause>(?:i|i'm|i've|im|we|"
    rf"we're|we've|my|our)\b.+)$",
    re.IGNORECASE,
)
_OF_TOPIC: Final = re.compile(
    rf"{_ASKING}(?:{_VERB}|never ?mind|i take back) (?:(?:what|everything|anything|all|whatever)(?: that)? i(?: "
    rf"have|'ve)? "
    rf"?{_SAID}(?: to you| "
    rf"earlier| before)? (?:about|regarding|concerning)|(?:everything|anything|all|what|"
    rf"whatever)(?: that)? you(?:'ve| have)? (?:know|knew|saved|stored|noted|remembered|remember|have|learned|"
    rf"recorded|kept|"
    rf"keep)(?: so far)? (?:about|on)|(?:everything|anything|all) about|about|the "
    rf"(?:thing|part|bit|stuff|"
    rf"story) about) (?P<x>.+?){_POLITE}",
    re.IGNORECASE,
)
_OF_MINE: Final = re.compile(
    rf"{_ASKING}(?:forget|erase|delete|remove|unlearn|don't remember|do not remember|stop remembering) (?P<x>(?:my|"
    rf"where i|how old i|when i|what i do)\b.+?)"
    rf"{_POLITE}",
    re.IGNORECASE,
)
_UNWANTED: Final = re.compile(
    r"^(?:please )?i (?:do not|don't) want you to (?:remember|know|keep|store|save)(?: that| about)? "
    r"(?P<x>.+?)[.!\s]*$",
    re.IGNORECASE,
)
_NOT_OURS: Final = re.compile(
    r"\b(?:instructions?|prompts?|files?|folders?|lines?|rows?|columns?|tables?|code|functions?|tests?|branch|"
    r"errors?|comments?|"
    r"images?|account|app|password|the (?:first|second|third|last) (?:paragraph|question|one)|question|request)\b",
    re.IGNORECASE,
)


def take_back(said: str) -> TakeBack | None:
    """What `said` takes back; None where it takes back nothing."""
    if _EVERYTHING.match(said):
        return TakeBack(reach=Reach.ALL)
    if _LAST.match(said):
        return TakeBack(reach=Reach.LAST)
    if _NO_LONGER.match(said):
        return TakeBack(reach=Reach.NO_LONGER)
    if found := _UNWANTED.match(said):
        about = found["x"]
        return (
            TakeBack(clause=about)
            if re.match(r"(?:i|i'm|we|my .+ (?:is|are))\b", about, re.IGNORECASE)
            else TakeBack(topic=about)
        )
    if found := _OF_TOPIC.match(said):
        return None if _NOT_OURS.search(found["x"]) else TakeBack(topic=found["x"])
    if found := _OF_CLAUSE.match(said):
        clause = re.sub(_POLITE, "", found["clause"], flags=re.IGNORECASE)
        mine = _OF_MINE.match(said)
        if mine is not None and not re.search(r"\b(?:is|are|lives?|works?|has)\b", mine["x"]):
            return None if _NOT_OURS.search(mine["x"]) else TakeBack(topic=mine["x"])
        return TakeBack(clause=clause)
    if found := _OF_MINE.match(said):
        return None if _NOT_OURS.search(found["x"]) else TakeBack(topic=found["x"])
    return None


_TOPICS: Final[tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = tuple(
    (re.compile(rf"^(?:{pattern})$", re.IGNORECASE), attributes)
    for pattern, attributes in (
        (r"(?:job|work|employment|career|working life|current job|new job)|where i work|what i do(?: for a living)?",
         ("job_title", "employer")),
        (r"employer|company|workplace", ("employer",)),
        (r"job title|profession|occupation|role|position", ("job_title",)),
        (r"home|city|home city|place|residence|where i live|living (?:place|situation)|location", ("home_city",)),
        (r"address|home address|street", ("address",)),
        (r"age|how old i am", ("age",)), (r"(?:full |real |first )?name", ("name",)),
        (r"birthday|date of birth|birth date|when i was born", ("birthday",)),
        (r"where i(?: am|'m) from|origin|home ?town|home country", ("origin",)), (r"nationality|citizenship", (
         "nationality",)),
        (r"diet", ("diet",)), (r"marriage|marital status|relationship status", ("marital_status",)),
        ((r"(?:monthly |yearly |annual )?(?:salary|income|pay|wages?|earnings)|how much i (?:earn|make)|what i "
         r"(?:earn|make)"),
         ("salary",)),
        (r"phone(?: number)?|mobile(?: number)?", ("phone_number",)), (r"e-?mail(?: address)?", ("email",)), (
         r"car|vehicle", ("vehicle",)),
    )
)  # fmt: skip
_ALLERGY: Final = re.compile(r"^(?:allergy to (?P<x>.+)|(?P<y>\w+) allergy)$", re.IGNORECASE)
_FAVORITE: Final = re.compile(r"^favou?rite (?P<x>.+)$", re.IGNORECASE)
_ONE: Final = re.compile(rf"^(?P<kind>{RELATION}|{PET})(?:'s (?P<what>\w+))?(?: \w+)?$", re.IGNORECASE)
_IMPORTANCE: Final = 10


def of_topic(topic: str) -> list[Draft]:
    """Retractions of all that a topic names: one for each slot, or one without where it has none."""
    name = " ".join(topic.split()).strip(" .,!?'\"")
    mine = re.match(r"(?:my|our) (?P<x>.+)$", name, re.IGNORECASE)
    about = mine["x"] if mine else name
    if not name or len(name) > 200:
        return []
    if mine and (one := _ALLERGY.match(about)):
        thing = one["x"] or one["y"]
        return [_taken_back(f"The user is allergic to {thing}", attribute=f"allergy_{key(thing)}")]
    text = f"The user's {about}" if mine else _spoken(name)
    if mine and (favorite := _FAVORITE.match(about)):
        return [_taken_back(f"The user's favorite {favorite['x']}", attribute=f"favorite_{key(favorite['x'])}")]
    if mine and (relative := _ONE.match(about)):
        return [
            _taken_back(
                text, subject=subject_of_kind(relative["kind"]), attribute=relative["what"] and relative["what"].lower()
            )
        ]
    for pattern, attributes in _TOPICS:
        if pattern.match(about if mine else name):
            first, *others = attributes
            more = [_taken_back(f"The user's {one.replace('_', ' ')}", attribute=one) for one in others]
            return [_taken_back(text, attribute=first), *more]
    return [_taken_back(text)]


_KINDS: Final = {
    "allergies": "allergy_", "likes and dislikes": "likes_", "tastes": "likes_", "likes": "likes_",
    "dislikes": "likes_",
    "languages": "speaks_", "medication": "dose", "medications": "dose", "medicines": "dose", "pets": "pet_",
}  # fmt: skip


def kind_of(draft: Draft) -> str | None:
    """How the attributes begin of all that a retraction without a slot names: `allergy_` of "The user's allergies."."""
    named = re.match(r"The user's (?:food )?(?P<what>.+)\.$", draft.text)
    return _KINDS.get(named["what"].lower()) if named and draft.attribute is None else None


_OFF_RECORD: Final = re.compile(
    r"\boff[ -]the[ -]record\b|\b(?:this|that|it|all of this) (?:stays|remains|is|must stay|should stay|has to stay|"
    r"needs to "
    r"stay)(?: strictly| just)? between (?:us|you and me|the two of us)\b|\bkeep (?:this|that|it) between (?:us|you "
    r"and me)\b"
    r"|^(?:just |strictly )?between (?:us|you and me)\s*[,:—–-]"
    r"|\b(?:do not|don't|never|dont) (?:save|store|record|keep|note|log|memori[sz]e|write down) (?:any of )?(?:it|"
    r"this|that)\b"
    r"(?=\s*(?:[.:,;!)—–-]|$|please\b|ok\b|okay\b|anywhere\b|down\b|in your memory\b|to (?:your )?memory\b))"
    r"|^\W*(?:please,? )?(?:do not|don't|dont) (?:remember|memori[sz]e) (?:it|this|that|the following|what "
    r"i)\b[^:.!?\n]{0,40}"
    r"[:.!,—–-]\s*\w"
    r"|\bdas bleibt unter uns\b|\bspeicher(?:e|n sie)? das nicht\b|\bfica (?:só )?entre nós\b|\bnão (?:guardes?|"
    r"graves?|guarde|grave) ist?o\b|\bqueda entre nosotros\b|\bno (?:guardes|grabes) esto\b|\breste entre nous\b|"
    r"不要(?:保存|记住|记录)这|别记",
    re.IGNORECASE,
)


def off_record(message: str) -> bool:
    """Whether the speaker asks that nothing of `message` is kept."""
    return _OFF_RECORD.search(message.replace("’", "'")) is not None


def _spoken(name: str) -> str:
    where = {
        "where i live": "Where the user lives",
        "where i work": "Where the user works",
        "how old i am": "How old the user is",
    }
    return where.get(name.lower(), re.sub(r"\bi\b", "the user", name[:1].upper() + name[1:]))


def _taken_back(text: str, *, subject: str = "user", attribute: str | None = None) -> Draft:
    return Draft(
        text=sentence(text),
        category="general",
        importance=_IMPORTANCE,
        subject=subject,
        attribute=attribute,
        retracts=True,
    )

"""Judging pairs by slot and guards alone, without a model.

Nothing is merged by rules: an UPDATE is the new statement where it holds every word of the known one and more. What the
rules cannot tell apart stands side by side, for a near-duplicate is better than a loss.
"""

import re
from typing import Final
from uuid import UUID

from processors.arbitration import Judgement, Offered, Question
from processors.guards import Difference, invented, says_more
from processors.guards.tokens import tokens
from processors.routing import Action

PROMPT_VERSION: Final = "local-arbitration-2"
"""Of the rules, as prompts have one: raised with every change of what they say."""

_TURNED: Final = frozenset({Difference.NEGATION, Difference.TENSE})
"""What turns a statement into its contrary where the rest is the same."""
_DETAIL: Final = frozenset({Difference.NUMBER, Difference.UNIT, Difference.DATE, Difference.NAME, Difference.WORDING})
"""What one of two statements may have beyond the other without speaking against it."""

_MANY: Final = """
    achievement achievements activity activities allergy allergies ambition aunt award awards belief beliefs book books
    brother brothers cat cats certificate certification child children collection colleague colleagues condition
    conditions contact contacts cousin cousins daughter daughters degree degrees dietary_restriction
    dietary_restrictions dislike dislikes dog dogs event events experience experiences food foods food_preference friend
    friends goal goals grandchild grandchildren grandparents habit habits hate hates hobby hobbies illness instrument
    instruments interest interests intolerance intolerances kid kids language languages languages_spoken like likes love
    loves medication medications movie movies music neighbor neighbour neighbors neighbours nephew nephews niece nieces
    parents pet pets plan plans possession possessions preference preferences project projects purchase purchases
    relative relatives restriction restrictions rule rules sibling siblings sister sisters skill skills song songs
    spoken_language spoken_languages sport sports symptom symptoms task tasks tool tools travel trip trips uncle uncles
    visit visited visits wish wishes
"""
_SEVERAL: Final = frozenset(_MANY.split())
"""Attributes that can have several values at once, as models name them."""

_PAST: Final = "used former formerly previously anymore longer ex was were had"
_OVER: Final = frozenset(_PAST.split())
"""Words by which a statement is about what was: "used" before "to" alone, and "was" not in "was hired"."""

_FILLING: Final = """
    a an again the user 's their his her my your our its i he she they we you it that this of to in on at for from
    with about and or as by also is are be been being has have having does do did gets got what where when who how which
    o os um uma de do da dos das em na que é está tem seu sua usuário usuária
    der die das ein eine einen einem einer des den dem ist sind hat haben zu im nutzer nutzerin
    el la los las un una del en es tiene su usuario usuaria le les une du et est sa utilisateur
    用 户 再 还 了 的 是 已 经 就 也 المستخدم المستخدمة
"""
_ABOUT_NOTHING: Final = frozenset(_FILLING.split())
"""Words that do not say what a statement is about."""

_IN_PORTUGUESE: Final = "os um uma em do da dos das ao é está mora não utilizador utilizadora usuário usuária"
_PORTUGUESE: Final = frozenset(_IN_PORTUGUESE.split())
"""Beside one of these "no" denies nothing: it is "in the"."""

_GONE: Final = re.compile(r"The user (?:no longer has|does not have) (?:an? |any )?(?P<kind>[\w ]+?)s?\.$")
_EX: Final = re.compile(r"The user's ex-(?P<kind>wife|husband|girlfriend|boyfriend|partner)(?P<rest>.*)")
_MOVED: Final = re.compile(r"The user's (?P<what>.+?) was moved to ")
_HAS_PLAN: Final = re.compile(r"The user has an? [^.]*\b(?:on|in) [^.]*\d{4}")
_DATE: Final = re.compile(r"\d{4}|\b(?:on|in) [A-Z]")
_GOING_SOMEWHERE: Final = re.compile(r"\bgoing to (?=[A-Z])")
_PLANNED: Final = re.compile(r"The user's planned ")
_PAST_FORM_WORDS: Final = "was were had did went flew came got saw met left took drove passed failed spent ate"
_PAST_FORMS: Final = frozenset(_PAST_FORM_WORDS.split())
_GONE_THERE: Final = frozenset({"travelled", "traveled", "visited", "earned", "holidayed"})
_ENDING_IN_ED: Final = frozenset({"planned", "need", "scheduled", "booked", "wed", "red", "bed", "invited", "moved"})
_SAID_IN_SEVERAL_WAYS: Final = {
    "salary": "earn earns earning earnings income wage wages pay paid paycheck",
    "trip": "go going goes fly flying flies flight travel travelling traveling visit visiting journey vacation holiday",
    "allergy": "allergic allergies",
    "appointment": "appt",
    "child": "children kid kids",
    "name": "called named",
}
"""Words of one topic, as speakers take it back and as it was said."""

_ASKING: Final = re.compile(r"^(?:where|what|when|who|which|how) ", re.IGNORECASE)
"""At its beginning a capital makes no name of it: "Where the user lives"."""


def judge(question: Question) -> dict[UUID, Judgement]:
    """A judgement for every memory that `question` offers."""
    pair = _of_retraction if question.retracts else _of_statement
    return {memory.memory_id: pair(question, memory) for memory in question.offered}


def holds_several(attribute: str | None) -> bool:
    """Whether `attribute` can have several values at once: a second hobby does not end the first."""
    return attribute in _SEVERAL


def _of_statement(question: Question, memory: Offered) -> Judgement:
    if not memory.differences:
        return _same(question, memory)
    if memory.live and (reason := _ended(question.text, memory.text)):
        return Judgement(Action.DELETE, reason)
    if memory.live and _is_another_plan(question.text, memory.text):
        return Judgement(Action.ADD, "there can be more than one plan of a kind")
    if not memory.live:
        return Judgement(Action.ADD, "what is known from before says something else")
    if memory.same_slot:
        return _same_slot(question, memory)
    if _turned(question, memory):
        return Judgement(Action.DELETE, "the newer statement says the contrary in the same words")
    return Judgement(Action.ADD, "by rules alone it is another statement: " + _named(memory.differences))


def _same(question: Question, memory: Offered) -> Judgement:
    """The guards see no difference, or only more of the same."""
    if not memory.live:
        return Judgement(Action.NOOP, "what is known from before says it already")
    if says_more(memory.text, question.text):
        return Judgement(Action.UPDATE, "the newer statement says the same and more", question.text)
    return Judgement(Action.NOOP, "it is known already")


def _same_slot(question: Question, memory: Offered) -> Judgement:
    """Two statements about one attribute of one subject that differ."""
    of_slot = _slot_name(question)
    if _denies(question.text, memory.text):
        if _hits(question.text, memory.text, question.attribute):
            return Judgement(Action.DELETE, f"the newer statement says that it is not so, or no longer: {of_slot}")
        return Judgement(Action.ADD, f"the newer statement denies something else about {of_slot}")
    if holds_several(question.attribute):
        if _denies(memory.text, question.text) and _hits(memory.text, question.text, question.attribute):
            return Judgement(Action.DELETE, f"the newer statement says the contrary about {of_slot}")
        return Judgement(Action.ADD, f"there can be more than one of {of_slot}")
    if memory.differences <= _DETAIL:
        if says_more(memory.text, question.text):
            return Judgement(Action.UPDATE, "the newer statement says the same and more", question.text)
        if says_more(question.text, memory.text):
            return Judgement(Action.NOOP, "what is known says the same and more")
    return Judgement(Action.DELETE, f"the newer statement about {of_slot} replaces it")


def _of_retraction(question: Question, memory: Offered) -> Judgement:
    """Taken back is what has the slot, or all of the words, and no other value; dormant or not."""
    stands = Judgement(Action.ADD, "it is not what the speaker takes back")
    if invented(_ASKING.sub("", question.text), [memory.text]):
        return stands
    if _EX.match(memory.text) and not _EX.match(question.text) and not memory.same_slot:
        return Judgement(Action.ADD, "it is about who is an ex by now")
    planned = _PLANNED.match(question.text) is not None
    if planned and _is_past(memory.text):
        return Judgement(Action.ADD, "it is no plan that could be given up")
    topic = _topic(question.text)
    if memory.same_slot or (topic and topic <= _topic(memory.text)):
        return Judgement(Action.DELETE, "the speaker takes it back")
    return stands


def _ended(text: str, known: str) -> str | None:
    """Why `known` holds no longer where `text` says so in other words; None where it says nothing of it."""
    if (gone := _GONE.match(text)) and re.match(rf"The user's (?:\w+ )?{re.escape(gone['kind'])} is called ", known):
        return f"there is no {gone['kind']} any more"
    if (ex := _EX.match(text)) and (one := re.match(rf"The user's {ex['kind']}\b(?P<rest>.*)", known)):
        names = invented(ex["rest"], []) - _TURNED - {Difference.WORDING}
        if names and not invented(ex["rest"], [one["rest"]]) - _TURNED - {Difference.WORDING}:
            return f"what was a {ex['kind']} is an ex-{ex['kind']} now"
    if (moved := _MOVED.match(text)) and not _is_past(known) and _DATE.search(known):
        topic = _topic(moved["what"])
        if topic and topic <= _topic(known):
            return "it is at another time now"
    return None


def _is_another_plan(text: str, known: str) -> bool:
    """Whether `text` has a plan of a kind for another day, or moves another one of that kind."""
    return _MOVED.match(text) is not None or (_HAS_PLAN.match(text) is not None and _DATE.search(known) is not None)


def _is_past(text: str) -> bool:
    said = [token.key for token in tokens(text)]
    return any(key in _PAST_FORMS or (key.endswith("ed") and key not in _ENDING_IN_ED) for key in said)


def _topic(text: str) -> frozenset[str]:
    """What `text` is about, with one word for what is said in several ways: pay and salary, a trip and flying."""
    going = {_stem(token.key) for token in tokens(text) if token.key in _GONE_THERE}
    content = _content(text) | ({"trip"} if _GOING_SOMEWHERE.search(text) else set())
    return frozenset(_ONE_WORD.get(word, word) if word not in going else word for word in content) - {""}


def _turned(question: Question, memory: Offered) -> bool:
    """Whether nothing but a negation or the tense tells the two apart."""
    if not memory.differences & _TURNED or memory.differences - _TURNED - {Difference.WORDING}:
        return False
    content = _content(question.text)
    return bool(content) and content == _content(memory.text)


def _denies(text: str, other: str) -> bool:
    """Whether `text` says that something is not, or is no longer, so, and `other` does not."""
    return (_is_denial(text) and not _is_denial(other)) or _is_past_of(text, other)


def _is_denial(text: str) -> bool:
    said = tokens(text)
    keys = [token.key for token in said]
    harmless = frozenset() if _PORTUGUESE.isdisjoint(keys) else frozenset({"no"})
    if any(token.kind is Difference.NEGATION and token.key not in harmless for token in said):
        return True
    return any(_is_over(key, following) for key, following in zip(keys, [*keys, ""][1:], strict=True))


def _is_over(word: str, following: str) -> bool:
    if word in ("was", "were"):
        return not following.endswith("ed") and following != "born"
    return word in _OVER and (word != "used" or following == "to")


def _is_past_of(text: str, other: str) -> bool:
    """ "lived" beside "lives"."""
    forms = {_stem(token.key): token.key for token in tokens(other)}
    return any(
        token.key.endswith("ed") and not forms.get(_stem(token.key), "ed").endswith("ed") for token in tokens(text)
    )


def _hits(denial: str, other: str, attribute: str | None) -> bool:
    """Whether what `denial` denies is what `other` says: all that it is about, or all of its names and numbers."""
    topic = _content(denial) - set(map(_stem, (attribute or "").split("_")))
    if topic <= _content(other):
        return True
    values = invented(denial, []) - _TURNED
    return bool(values) and not invented(denial, [other]) - _TURNED


def _content(text: str) -> frozenset[str]:
    """The words that say what `text` is about, whatever their endings and whether it says so or denies it."""
    return frozenset(
        _stem(token.key)
        for token in tokens(text)
        if token.kind not in _TURNED and token.key not in _ABOUT_NOTHING and token.key not in _OVER
    )


def _stem(word: str) -> str:
    """English endings off, where enough is left: lives, lived and living are one."""
    for ending in ("ies", "ing", "ed", "es", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def _slot_name(question: Question) -> str:
    if question.subject is None or question.attribute is None:
        return "the same subject and attribute"
    return f"{question.subject}'s {question.attribute.replace('_', ' ')}"


def _named(differences: frozenset[Difference]) -> str:
    return ", ".join(sorted(differences)) + " differ"


_ONE_WORD: Final = {
    _stem(word): _stem(one) for one, words in _SAID_IN_SEVERAL_WAYS.items() for word in (one, *words.split())
} | {"planned": "", "plann": "", "plan": ""}

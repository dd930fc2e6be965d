"""Plain statements in the first person that no rule of the table knows: kept as they are, in the third person."""

import re
from typing import Final

from processors.local.draft import Draft
from processors.local.grammar import about_user, is_past, verb_of
from processors.local.lexicon import key
from processors.local.times import Timed
from processors.local.words import PET, PLAN, RELATION, subject_of_one

_SKIPPED: Final = """
    think guess see know understand mean wonder hope agree disagree thank appreciate say said ask asked try tried
    look looked checked check tell told show feel believe suppose forget remember notice assume apologize
    apologise recommend suggest request expect care mind bet swear promise repeat doubt could should would shall
    must heard hear noticed thought understood meant wish imagine figured realized realised wanted needed
"""
_SKIPPED_VERBS: Final = frozenset(_SKIPPED.split())
_PASSING: Final = re.compile(
    r"^I (?:am|was|feel|have been)(?: not| very| so| too| a bit| a little| really| quite| pretty| all)*"
    r" (?:tired|fine|good|great|well|ok|okay|sorry|happy|glad|here|back|sure|ready|bored|hungry|confused|curious|"
    r"interested|"
    r"excited|afraid(?! of)|done|aware|right|wrong|serious|new here|stuck|lost|late|busy|thirsty|sleepy|sad|angry|"
    r"upset|"
    r"worried|"
    r"\d+ ?% sure|\d+ (?:minutes?|hours?) late|moving (?:the|this|that|these|those|it|all|some)|grateful|thankful|"
    r"impressed|surprised|in|on|at|looking|trying|wondering|asking|thinking|talking|referring|"
    r"kidding|having"
    r" (?:trouble|problems|issues)|getting(?! (?:married|divorced|a |an |my ))|going crazy|feeling|just|only|all "
    r"ears|listening|waiting|stressed|"
    r"exhausted|free)\b",
    re.IGNORECASE,
)
_REQUEST: Final = re.compile(
    r"^I (?:want|need)(?! to (?:learn|become|visit|travel|move|buy|start|run|quit|stop|lose|save|study|climb|finish|"
    r"get (?:fit|"
    r"married|better|a))\b)|^I (?:have|had|got) (?:an? |another |one |some |no |two |a few )?(?:quick |more |other |"
    r"simple )?"
    r"(?:question|problem|issue|idea|doubt|clue|request|favou?r|thought|feeling|look|point|to (?:ask|go|say|admit|"
    r"run))s?\b"
    r"|^I (?:get|got|have|had|see|am getting) .*\b(?:errors?|exceptions?|tracebacks?|bugs?|warnings?)\b"
    r"|^I (?:do not|cannot|did not) (?:want to (?:say|talk|discuss|answer|share|tell)|know|think|understand|see|"
    r"mean|care|remember|mind|want you|have (?:time|any)|"
    r"get)\b"
    r"|^I (?:have )?(?:read|heard|seen) (?:somewhere|that|about|in|on)\b"
    r"|^I (?:will|am going to) (?:try|let|think|check|see|take a look|get back|be (?:back|right)|ask|wait|do (?:it|"
    r"that|this)|keep)"
    r"\b",
    re.IGNORECASE,
)
_BARE: Final = re.compile(
    r"^I (?:am|do|have|was|did|will|can|would|could|should|cannot)(?: not)?(?: either| too| yet)?$"
    r"|^I (?:(?:have|had|was|am) )?(?:almost|nearly|came close to|was about to|got close to)\b(?! (?:always|every|"
    r"never|all|"
    r"\d|certain|sure))"
    r"|^I am (?:the (?:pope|queen|king|president|tooth fairy|emperor|tsar|sultan|batman|devil)|(?:king|queen) of|"
    r"batman|"
    r"santa|superman|spider-?man|god|napoleon|jesus|darth vader)\b",
    re.IGNORECASE,
)
"""An answer without its question, what almost was, and who nobody is."""
_PLACELESS: Final = re.compile(
    r"^I live (?:in|for|on) (?:fear|the moment|the past|the present|denial|hope|peace|constant|my head|the cloud|"
    r"the edge)\b"
    r"|^I (?:like|love|prefer|hate|enjoy|dislike) (?:the|that|this) (?:first|second|third|last|other|one|option|"
    r"idea|way|answer)\b",
    re.IGNORECASE,
)
_ADDRESSED: Final = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_POINTING_ONLY: Final = re.compile(
    r"^I(?: \w+){1,3} (?:it|this|that|them|these|those|so|too|one|here|there|something|anything|stuff|things|him|her)$"
    r"|^I \w+(?:ed)? (?:it|this|that|them|these|those)\b",
    re.IGNORECASE,
)
_PLAN: Final = re.compile(
    r"^I (?:am going to|am planning to|plan to|am about to|intend to|will|am planning on|am hoping to|"
    r"hope to) (?P<x>.+)$",
    re.IGNORECASE,
)
_HAPPENING: Final = re.compile(r"^I am (?P<x>\w+ing .+)$|^I have (?P<y>an? .+|my .+)$", re.IGNORECASE)
_DATED: Final = re.compile(rf"^I have (?:an? |my )(?P<what>{PLAN})\b", re.IGNORECASE)
_RELATIVE: Final = re.compile(
    rf"^my (?P<kind>{RELATION}|{PET})\b(?! name)(?:,? (?P<name>(?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])[\w-]+)?)\b)?(?!')",
    re.IGNORECASE,
)
_WITH_SOMEBODY: Final = re.compile(
    rf"\b(?:{RELATION}s?|children)\b|"
    rf"\b(?:my|an?|the|another|one|two|three|four|five|\d+|some|many) (?:\w+ )?(?:{PET})s?\b",
    re.IGNORECASE,
)
_OF_FOOD: Final = frozenset(
    {"eat", "ate", "cook", "cooked", "order", "ordered", "fry", "grill", "catch", "caught", "drink"}
)
_SLOTS_OF_OTHERS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), attribute)
    for pattern, attribute in (
        (r"\b(?:lives?|is living|moved|is based) (?:in|to)\b", "home_city"),
        (r"\bworks (?:at|for)\b|\bgot a job (?:at|with)\b|\bjoined (?-i:[A-Z])", "employer"),
        (r"\bworks as\b|\bis an? \w+(?:er|or|ist|ian|nurse|chef)\b", "job_title"),
        (r"\bis \d+(?: years old)?\b|\bturned \d+", "age"),
        (r"\bbirthday is\b", "birthday"),
        (r"\bis allergic to (?P<x>[\w ]+)", "allergy_{x}"),
    )
)
_TRANSIENT_OTHERS: Final = re.compile(
    r"^my (?:question|problem|point|idea|guess|mistake|bad|apologies|understanding|code|issue|request|god|goodness|"
    rf"first|next|last|other(?! (?:{RELATION}|{PET}))|only|favou?rite (?:part|bit|one|answer|option))\b"
    r"|^my [\w ]+ (?:is|are) (?:slow|broken|down|dead|full|late|ready|fine|good|great|bad|nice|gone|correct|wrong|"
    r"working)\b",
    re.IGNORECASE,
)


def plain(clause: Timed, *, temporary: bool, hedged: bool, doubtful: bool) -> Draft | None:
    """`clause` in the third person; None where it is nothing to remember."""
    text, words = clause.text, clause.text.split()
    if len(words) < 3 or len(words) > 45 or _ADDRESSED.search(text):
        return None
    if words[0] == "I":
        return _of_user(clause, temporary=temporary, hedged=hedged, doubtful=doubtful)
    if words[0].lower() == "my":
        return _of_others(clause, temporary=temporary)
    return None


def _of_user(clause: Timed, *, temporary: bool, hedged: bool, doubtful: bool) -> Draft | None:
    text = clause.text
    verb = verb_of(text)
    if _PLACELESS.search(text):
        return None
    if _BARE.match(text):
        return None
    if not verb or verb in _SKIPPED_VERBS or _REQUEST.search(text) or _POINTING_ONLY.search(text):
        return None
    was_there = clause.span is not None and re.match(r"^I (?:was|am) (?:in|at|on) (?!it|that|this|time|my way)", text)
    if _PASSING.search(text) and not temporary and not was_there:
        return None
    ahead = clause.span is not None
    if (plan := _PLAN.match(text)) and not _goes_somewhere(plan):
        lead = (
            "I might"
            if doubtful
            else "I will"
            if re.match(r"^I will be\b", text)
            else "I plan on"
            if "planning on" in text
            else "I plan to"
        )
        planned = about_user(f"{lead} {plan['x']}")
        return Draft(text=planned, category="event" if ahead else "project", importance=6, dated=True)
    past = is_past(verb, timed_past=ahead)
    category, importance = "fact", 4
    if temporary:
        category, importance = "temporary", 4
    elif ahead and (past or was_there or _HAPPENING.match(text)):
        category, importance = "event", 5
    elif _WITH_SOMEBODY.search(text) and verb not in _OF_FOOD:
        category, importance = "relational", 6
    elif past or (ahead and re.match(r"^I (?:have to|need to|must) ", text)):
        category = "event"
    elif verb in {"can", "play", "know"}:
        category, importance = "skill", 5
    elif verb in {"want", "need"}:
        category, importance = "project", 5
    if hedged:
        importance = max(1, importance - 1)
    attribute = key(plan["what"]) if category == "event" and (plan := _DATED.match(text)) else None
    said = about_user(text, timed_past=ahead)
    return Draft(text=said, category=category, importance=importance, attribute=attribute, dated=True)


def _goes_somewhere(plan: re.Match[str]) -> bool:
    """ "I am going to Greece" has no verb but going."""
    there = plan["x"][0].isupper() or re.match(r"(?:an?|the|my) ", plan["x"]) is not None
    return plan[0].lower().startswith("i am going to ") and there


def _slot_of_other(text: str) -> str | None:
    for pattern, name in _SLOTS_OF_OTHERS:
        if slot := pattern.search(text):
            return name.format(x=key(slot.groupdict().get("x") or ""))
    return None


def _of_others(clause: Timed, *, temporary: bool) -> Draft | None:
    if _TRANSIENT_OTHERS.search(clause.text) or not re.search(
        r"\s(?:is|was|has|had|lives|works|got|went|left|began|bought|came|took|won|lost|became|\w+s|\w+ed)\s"
        r"|\s(?:died|retired|left|graduated|moved)$",
        clause.text,
    ):
        return None
    text = about_user(clause.text)
    found = _RELATIVE.match(clause.text)
    if found is None:
        category = "temporary" if temporary else "event" if clause.span is not None else "context"
        return Draft(text=text, category=category, importance=5, dated=True)
    attribute = _slot_of_other(clause.text)
    category = "temporary" if temporary else "event" if clause.span is not None and attribute is None else "relational"
    subject = subject_of_one(found["kind"], found["name"] or "")
    return Draft(text=text, category=category, importance=6, subject=subject, attribute=attribute, dated=True)

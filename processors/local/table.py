"""The table of what is known by its wording. The first rule that fits a clause makes its facts."""

import re
from typing import Final

from processors.local.draft import Draft
from processors.local.rules import (
    Make,
    age,
    allergy,
    avoided,
    birthday,
    diet,
    doing,
    home,
    introduced_by_capital,
    is_a,
    job,
    married,
    name,
    named_one,
    no_home,
    no_job,
    opinion,
    origin,
    own,
    preference,
    rule,
    speaks,
    vehicle,
    wanted,
)
from processors.local.words import ANSWERING, DIETS, PET, RELATION

_RULES: Final[tuple[tuple[re.Pattern[str], Make], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), make)
    for pattern, make in (
        # What the assistant shall do. A single request is none: it needs "always", "never", "from now on" …
        ((rf"^(?:please |from now on,? |in (?:the )?future,? |going forward,? )*(?P<lead>always|"
         rf"never)(?: please)? (?P<x>(?:{ANSWERING})\b.+)$"), rule),
        ((rf"^(?:please )?(?:from now on|in (?:the )?future|going forward),? (?:please )?(?P<lead>do not|stop|"
         rf"avoid)? ?(?P<x>(?:{ANSWERING}|using|calling|asking)\b.+)$"), rule),
        ((rf"^(?:please )?(?P<x>(?:{ANSWERING})\b.+),? (?:from now on|in (?:the )?future|going forward|every time|"
         rf"at all times)$"), rule),
        ((r"^(?:please )?(?P<lead>do not|stop|avoid|no more) (?P<x>(?:use|using|call|calling|adding|sending|being|"
         r"repeating|apologi[sz]ing|mention|mentioning) .+)$"), rule),
        ((r"^(?:please )?(?P<x>(?:keep|make) (?:your|the) (?:answers?|replies|responses?|messages?|"
         r"explanations?) .+)$"), rule),
        ((r"^(?:please )?(?P<x>(?:answer|reply|respond|speak|talk|write)(?: to)?(?: me)? (?:only )?(?:in [A-Z]\w+|"
         r"briefly|concisely|formally|informally)\b.*)$"), rule),
        (r"^I (?:want|need|prefer|would like|expect) (?P<x>(?=you )you to .+)$", wanted),
        (r"^(?:please )?call me (?P<x>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)$", name),
        # Who.
        (r"^my (?:full |first )?name(?: is|'s) (?P<x>.+)$", name),
        (r"^(?:I am called|people call me|friends call me|everyone calls me|I go by) (?P<x>.+)$", name),
        (r"^I (?:am|have turned|turned|just turned) (?P<x>\d{1,3})(?: years? old)?(?: years? of age)?$", age),
        (r"^my age is (?P<x>\d{1,3})$", age),
        ((r"^(?:my birthday is|I was born)(?: on)? (?P<x>(?:the )?\d.*|(?:january|february|march|april|may|june|july|"
         r"august|september|october|november|december)\b.*)$"), birthday),
        # Where.
        ((r"^I (?:live|am living|am based|reside|am residing|have lived|have been living|was living|am settled|"
         r"settled) (?:in|at|near) (?P<x>.+)$"), home),
        (r"^I (?:have )?(?:moved|relocated)(?: back| over| away)?(?: here)?(?: from .+?)? to (?P<x>.+)$", home),
        (r"^my (?:new )?(?:home|home city|hometown now|place) is (?:now )?in (?P<x>.+)$", home),
        (r"^(?:my )?home is (?:now )?(?:in )?(?P<x>.+)$", home),
        ((r"^I (?:no longer live|do not live|have left|moved (?:away|out) from|"
         r"moved out of) (?:in )?(?P<x>.+)$"), no_home),
        (r"^I (?:am|come|am coming) (?:originally )?from (?P<x>.+)$", origin),
        (r"^I (?:was )?(?:originally )?(?:born|grew up)(?: and raised)? in (?P<x>[A-Z].+)$", origin),
        # Work.
        ((r"^I (?:work|am working|am employed|have been working) as (?P<title>an? .+?|[\w -]+?)(?: (?:at|for|"
         r"with) (?P<at>[A-Z].*))?$"), job),
        ((r"^I (?:work|am working|am employed|have been working|started working|started to work|began working|started|"
         r"started work|start working) (?:at|for|with) (?P<at>[A-Z].*?)(?: as (?P<title>.+))?$"), job),
        ((r"^I (?:have )?(?:started|got|found|landed|accepted|took|have)? ?(?:an?|my|the)? ?(?:new )?(?:job|position|"
         r"role)(?: offer)? (?:at|with) (?P<at>[A-Z].*?)(?: as (?P<title>.+))?$"), job),
        ((r"^I (?:have )?(?:joined|was hired by|have been hired by|got hired by|"
         r"got hired at) (?P<at>[A-Z].*?)(?: as (?P<title>.+))?$"), job),
        (r"^I (?:have )?(?:switched|changed|moved)(?: jobs| companies)? from [A-Z].*? to (?P<at>[A-Z].*)$", job),
        (r"^my (?:new |current )?(?:employer|company|workplace) is (?:now )?(?P<at>.+)$", job),
        ((r"^my (?:new |current )?(?:job|profession|occupation|job title|role) is (?:now )?(?P<title>an? .+|[\w ]+er|"
         r"[\w ]+ist)$"), job),
        (r"^I (?:was|got|have been) promoted to (?P<title>.+)$", job),
        ((r"^I (?:have )?(?:left|quit|resigned from|no longer work (?:at|for)|do not work (?:at|for)|"
         r"stopped working (?:at|for)|(?:was|got) (?:laid off|fired) (?:from|by)|"
         r"retired from) (?:my job at )?(?P<x>.+)$"), no_job),
        # Body.
        ((r"^I (?:am|have been|have become|became) (?:not |no longer )?(?:\w+ly |very |"
         r"deathly )?allergic to (?P<x>.+)$"), allergy),
        (r"^I (?:have|suffer from|developed|was diagnosed with) (?:an? )?(?:\w+ )?allergy to (?P<x>.+)$", allergy),
        (r"^I (?:have|suffer from) an? (?:severe |bad |serious |mild )?(?P<x>\w+) allergy$", allergy),
        ((rf"^I (?:am|became|have become|went|have gone|turned)(?: not| no longer)? (?:an? )?(?:strict |"
         rf"strictly )?(?P<x>{DIETS})(?: now)?$"), diet),
        (r"^I (?:do not|never|no longer|cannot|stopped) (?P<verb>eat|drink)(?:ing)? (?P<x>.+)$", avoided),
        # Others.
        ((rf"^my (?P<kind>{RELATION}|{PET})(?:'s name is| is called| is named|'s called|"
         rf" goes by) (?P<x>.+)$"), named_one),
        (rf"^the name of my (?P<kind>{RELATION}|{PET}) is (?P<x>.+)$", named_one),
        ((rf"^I (?:have|own|got|adopted|bought) (?:an? |one )?(?P<kind>{RELATION}|{PET}),? (?:called|named|"
         rf"whose name is|by the name of) (?P<x>.+)$"), named_one),
        (r"^I (?:am|was|have been) (?P<x>married|single|divorced|engaged|widowed)(?: to (?P<who>.+))?$", married),
        (r"^I (?P<x>got married|got divorced|got engaged)(?: to (?P<who>.+))?$", married),
        # Taste.
        ((r"^I (?P<verb>like|enjoy|love|adore|hate|detest|despise|cannot stand|loathe|dislike|do not like|"
         r"do not enjoy|no longer like|am a big fan of|am a huge fan of|am a fan of|am not a fan of|am into|"
         r"am fond of) (?P<x>.+)$"), opinion),
        (r"^I (?:much |strongly |generally )?prefer (?P<x>.+)$", preference),
        # Skills, projects, things.
        (r"^I (?:can )?speak (?:fluent |some |native )?(?P<x>[A-Z].+?)(?: fluently| natively| well)?$", speaks),
        (r"^I am fluent in (?P<x>[A-Z].+)$", speaks),
        ((r"^I (?:am learning|am studying|study|have started learning|started learning|"
         r"am taking lessons in) (?P<x>.+)$"), doing("skill", 5, "is learning", "learning")),
        ((r"^I (?:am working on|am building|"
         r"am developing) (?P<x>.+)$"), doing("project", 6, "is working on", "project")),
        (r"^I (?:drive|am driving) (?P<x>an? .+)$", vehicle),
        (r"^my (?P<what>(?:\w+ ){0,3}\w+) is (?:now |called |named )?(?P<x>.+)$", own),
        (r"^I (?:am|have been|became|have become) an? (?P<x>.+)$", is_a),
        (r"^I am (?P<x>.+)$", introduced_by_capital),
    )
)  # fmt: skip


def known(clause: str) -> list[Draft]:
    """What the first rule that fits makes of `clause`; nothing where none fits."""
    for pattern, make in _RULES:
        found = pattern.match(clause)
        if found is not None and (drafts := list(make(found))):
            return drafts
    return []

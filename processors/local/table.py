"""The table of what is known by its wording. The first rule that fits a clause makes its facts."""

import re
from typing import Final

from processors.local.changes import (
    CAR,
    cancelled,
    car,
    car_gone,
    dose,
    dose_gone,
    eats_again,
    goes_by,
    pay,
    rescheduled,
)
from processors.local.circle import counted, former, has, married, named_one, named_one_unless_nationality, parted
from processors.local.draft import Draft
from processors.local.habits import (
    allergy,
    avoided,
    diet,
    doing,
    favorite,
    no_allergy,
    opinion,
    own,
    preference,
    rule,
    slotted,
    speaks,
    vehicle,
    wanted,
)
from processors.local.rules import (
    age,
    birthday,
    home,
    introduced_at_length,
    introduced_by_capital,
    is_a,
    job,
    name,
    name_and_age,
    no_home,
    no_job,
    no_title,
    origin,
    street,
)
from processors.local.values import Make
from processors.local.words import ANSWERING, DIETS, PET, PLAN, RELATION

_COUNT: Final = r"one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}"

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
        (r"^(?:please )?call me (?P<x>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)(?:,? please)?$", goes_by),
        (r"^(?:please )?address me as (?P<x>.+)$",
         slotted("The user wants the assistant to address them as {x}", "rule", 8, "rule_address")),
        # Who.
        (r"^(?:I am|my name is) (?P<name>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?), (?P<x>.+)$",
         introduced_at_length),
        (r"^my (?:full |first )?name(?: is|'s) (?P<x>.+)$", name),
        (r"^I am called (?P<x>.+)$", name),
        (r"^(?:(?:my )?(?:people|friends|family|everyone|everybody) calls? me|I go by) (?P<x>.+)$", goes_by),
        (r"^my nickname is (?P<x>.+)$", goes_by),
        ((r"^I (?:am|have turned|turned|just turned) (?P<x>\d{1,3})(?: years? old)?(?: years? of age)?(?: now| today|"
         r" already)?$"), age),
        (r"^my age is (?P<x>\d{1,3})$", age),
        ((r"^(?:my birthday is|I was born)(?: on)? (?P<x>(?:the )?\d.*|(?:january|february|march|april|may|june|july|"
         r"august|september|october|november|december)\b.*)$"), birthday),
        (r"^(?:you can |you may |please )?call me (?P<x>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)(?:,? please)?$", goes_by),
        (r"^my name is not (?P<w>.+?), (?:it is|but) (?P<x>.+)$", name),
        (r"^my name is (?P<x>not .+)$", slotted("The user's name is {x}", "identity", 8, "name")),
        (r"^I was born in (?P<x>(?:19|20)\d\d)$", slotted("The user was born in {x}", "identity", 7, "birth_year")),
        (
            (r"^(?:I am|my name is) (?P<name>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?) (?:and )?(?:I am "
            r")?(?P<x>from [A-Z].+)$"),
            introduced_at_length,
        ),
        # Plans that change.
        ((rf"^(?:my|the) (?P<what>{PLAN}(?: (?:with|to|at|in|for|on) .+?)?) (?:is|was|has been|got) (?:now )?"
         r"(?:moved|rescheduled|postponed|pushed(?: back)?|brought forward|delayed|shifted|changed) (?:to|until) "
         r"(?P<x>.+)$"), rescheduled),
        ((rf"^(?:my|the) (?P<what>{PLAN}(?: (?:with|to|at|in|for) .+?)?) (?:is|was|has been|got) (?:now )?"
         r"(?:cancell?ed|called off|off)$"), cancelled),
        ((rf"^I (?:have )?(?:had to )?(?:cancell?(?:ed)?|called off) (?:my|the) (?P<what>{PLAN}(?: (?:with|to|at|in|"
         rf"for) "
         r".+?)?)$"), cancelled),
        ((r"^I (?:am not|am no longer) (?:going|flying|travell?ing) to (?P<x>(?-i:[A-Z])[\w' -]+?)(?: after all| any "
         r"?more"
         r"| any longer)?$"), cancelled),
        ((r"^I (?:will not be|will not|am not) (?:going|travell?ing|flying|visiting|go|visit|travel|fly)(?: to)? "
         r"(?P<x>(?-i:[A-Z])[\w' -]+?)(?: after all| any ?more)?$"), cancelled),
        # Where.
        (r"^I will (?:be )?(?:live|living|based|reside|residing) in (?P<x>.+)$", home),
        (r"^(?:I live|I am living|I reside) at (?P<x>\d.+|[A-Z][\w' ]+ \d+.*)$", street),
        ((r"^I (?:have )?(?:moved|relocated) (?:in)?to (?:an? |my )?(?:\w+ )?(?:place|flat|apartment|house|home|"
         r"condo) in "
         r"(?P<x>[A-Z].+)$"), home),
        ((r"^I (?:live|am living) in (?:an? |my )(?:\w+ )*?(?:place|flat|apartment|house|condo|room) in "
         r"(?P<x>[A-Z].+)$"), home),
        (r"^my home ?town is (?P<x>[A-Z].+)$", slotted("The user's hometown is {x}", "identity", 7, "origin")),
        ((r"^I (?:live|am living|am based|reside|am residing|have lived|have been living|was living|am settled|"
         r"settled) (?:in|at|(?P<near>near)) (?P<x>.+)$"), home),
        (r"^I (?:have )?(?:moved|relocated)(?: back| over| away)?(?: here)?(?: from .+?)? to (?P<x>.+)$", home),
        (r"^my (?:new )?(?:home|home city|hometown now|place) is (?:now )?in (?P<x>.+)$", home),
        (r"^(?:my )?home is (?:now )?(?:in )?(?P<x>.+)$", home),
        ((r"^I (?:no longer live|do not live|am not living|am no longer living|have left|moved (?:away|out) from|"
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
        ((r"^I am the (?P<title>(?:head|director|vp|chief|manager|ceo|cto|cfo|owner|founder) .+?|ceo|cto|cfo|owner|"
         r"founder) (?:at|of) (?P<at>[A-Z].*)$"),
         job),
        (r"^I am (?P<name>(?-i:[A-Z])\w+),? (?:and )?(?P<years>\d{1,3})(?: years old)?$", name_and_age),
        (r"^I (?:am not|am no longer) (?:an? )(?P<x>.+? ?)(?:any ?more|any longer)$", no_title),
        (r"^I (?:am no longer|no longer work as|do not work as) (?:an? )(?P<x>.+)$", no_title),
        (r"^I (?:have )?(?:quit|left|resigned from) my (?:job|position)$", slotted("The user quit their job",
         "identity", 8, "employer")),
        ((r"^I (?:am|have been) (?:now )?(?:at|with) (?P<at>(?-i:[A-Z])\w+(?: [A-Z]\w+)?)(?: now)? as (?P<title>an? "
         r".+)$"),
         job),
        (r"^I (?:have )?(?:lost my job|been (?:laid off|fired)|(?:was|got) (?:laid off|fired|made redundant))$",
         slotted("The user lost their job", "identity", 8, "employer")),
        (r"^I am (?P<x>unemployed|between jobs|out of work|self-employed)$", slotted("The user is {x}", "identity",
         7, "employer")),
        ((r"^I (?:(?:am|have|have been|got|was) )?(?:now )?(?P<x>retired)(?: now)?(?: early)?(?: from (?:work|my job|"
         r"working|nursing|teaching))?$"), slotted("The user is {x}", "identity", 8, "job_title")),
        ((r"^I (?:earn|make) (?P<x>(?:about |around |roughly |over |almost )?(?:[$€£¥] ?)?\d[\d.,]* ?k?\b ?(?:[$€£¥]|"
         r"euros?|"
         r"dollars?|pounds?|eur|usd|gbp|an? (?:year|month|week|hour)|per (?:year|month|week|hour)|net|gross|before|"
         r"after|"
         r"monthly|yearly|annually|$).*)$"), pay),
        (r"^I (?:earn|make) (?P<x>[$€£¥] ?\d[\d.,]* ?k?.*)$", pay),
        (r"^I (?:study|am studying|major in) (?P<x>\w+(?: \w+)?)(?: at [A-Z].*)$", slotted("The user studies {x}",
         "fact", 6, "field_of_study")),
        (r"^I will (?:be )?work(?:ing)? (?:at|for) (?P<at>(?-i:[A-Z]).*)$", job),
        # Body.
        (r"^I (?:no longer take|am no longer taking|(?:have )?stopped taking|am off) (?P<what>[\w-]+)(?: any ?more)?$",
         dose_gone),
        ((r"^I (?:have|was diagnosed with|suffer from) (?P<x>(?:type \d )?diabetes|asthma|celiac disease|epilepsy|"
         r"migraines?|hypertension|"
         r"high blood pressure|depression|anxiety|arthritis|adhd|insomnia)$"), slotted("The user has {x}", "fact", 8,
         "condition_{x}")),
        ((r"^I (?:take|am taking|am (?:up to |down to )?on) (?P<x>\d[\d.,]* ?(?:mg|mcg|µg|g|ml|iu|units?|tablets?|"
         r"pills?|drops)"
         r"\b)(?: of)? ?(?P<what>.*)$"), dose),
        ((r"^I (?:take|am taking|am (?:now )?on) (?P<what>(?!my\b)[\w-]+(?: [\w-]+)?),? (?P<x>\d[\d.,]* ?(?:mg|mcg|"
         r"µg|ml|iu)"
         r"\b)(?: .*)?$"), dose),
        ((r"^my (?P<what>\w+) (?:dose|dosage) (?:is|was (?:raised|increased|lowered|reduced|changed) to)(?: now)? "
         r"(?P<x>\d.*)$"), dose),
        (r"^I (?:have )?(?:outgrew|outgrown|got over|lost) my (?:allergy to (?P<x>.+)|(?P<y>\w+) allergy)$",
         no_allergy),
        ((r"^I (?:have )?(?:(?:am|started|began|went back to|gone back to|am back to|resumed) )?eat(?:ing)? (?P<x>meat|"
         r"fish|dairy|eggs|chicken|everything|animal products) again$"), eats_again),
        (r"^my (?:allergy to (?P<x>.+)|(?P<y>\w+) allergy) (?:is|has) (?:gone|gone away|cured|over|disappeared)$",
         no_allergy),
        ((r"^I (?:do not have|have no) (?:an? )?allergy to (?P<x>.+)$|^I (?:do not have|no longer have) an? "
         r"(?P<y>\w+) allergy$"), no_allergy),
        ((r"^I (?:am|have been|have become|became) (?:not |no longer )?(?:(?!hardly|barely|scarcely|nearly|"
         r"formerly|previously|supposedly)\w+ly |very )?allergic to (?P<x>.+)$"), allergy),
        (r"^I (?:have|suffer from|developed|was diagnosed with) (?:an? )?(?:\w+ )?allergy to (?P<x>.+)$", allergy),
        (r"^I (?:have|suffer from) an? (?:severe |bad |serious |mild )?(?P<x>\w+) allergy$", allergy),
        ((rf"^I (?:am|have been|became|have become|went|have gone|turned)(?: not| no longer)? (?:an? )?(?:strict |"
         rf"strictly )?(?P<x>{DIETS})(?: now)?(?: any ?more)?$"), diet),
        (r"^I (?:do not|never|no longer|cannot|stopped) (?P<verb>eat|drink)(?:ing)? (?P<x>.+)$", avoided),
        # Others.
        (r"^I have no (?P<x>kids|children)$", slotted("The user has no {x}", "relational", 6, "children_count")),
        (r"^I do not have (?:any )?(?P<x>kids|children)$",
         slotted("The user does not have {x}", "relational", 6, "children_count")),
        ((rf"^I (?:have|got) (?P<count>{_COUNT}) (?P<kinds>children|(?:{RELATION}|{PET})s?)(?: (?:already|now|in "
          rf"total))?"
          r"(?:(?:,| called| named|:|,? whose names are) (?P<names>(?-i:[A-Z])[\w', -]+))?$"), counted),
        ((rf"^my (?P<count>{_COUNT}) (?P<kinds>children|(?:{RELATION}|{PET})s?),? (?:called |named |are (?:called |"
          rf"named )?)?"
          r"(?P<names>(?-i:[A-Z])[\w'-]+(?:, (?-i:[A-Z])[\w'-]+)*,? and (?-i:[A-Z])[\w'-]+)\b.*$"), counted),
        ((rf"^(?P<x>(?-i:[A-Z])[\w'-]+) is (?:now )?my (?P<kind>ex-(?:wife|husband|girlfriend|boyfriend|partner)|"
         rf"{RELATION})"
         r"(?: now)?$"), former),
        ((rf"^I (?:have|got|adopted|bought) (?:an? |one |another )?(?P<kind>{PET}),? (?:and )?(?:her|his|its) name is "
         rf"(?P<x>.+)$"), named_one),
        ((rf"^I (?:have|own|do not have|no longer have) (?:an? |any |another |my )?(?P<kind>{PET})s?(?P<more> any "
         rf"?more)?$"), has),
        (rf"^my (?P<kind>{RELATION}) and I (?:broke up|split up|separated|are (?:no longer together|separated))$",
         parted),
        (r"^I (?:broke up|split up|separated)(?: with (?P<who>my \w+))?$", parted),
        (rf"^my (?P<kind>{RELATION}|{PET}) is (?P<x>[A-Z][a-z]+)$", named_one_unless_nationality),
        (r"^(?P<x>.+) is my favou?rite (?P<what>\w+(?: \w+)?)$", favorite),
        ((rf"^my (?P<kind>{RELATION}|{PET})(?:'s name is| is called| is named|'s called|"
         rf" goes by) (?P<x>.+)$"), named_one),
        (rf"^the name of my (?P<kind>{RELATION}|{PET}) is (?P<x>.+)$", named_one),
        ((rf"^I (?:have|own|got|adopted|bought) (?:an? |one |another )?(?P<kind>{RELATION}|{PET}),? (?:called|named|"
         rf"whose name is|by the name of) (?P<x>.+)$"), named_one),
        (r"^I (?:am|was|have been) (?P<x>married|single|divorced|engaged|widowed)(?: to (?P<who>.+))?$", married),
        (r"^I (?P<x>got married|got divorced|got engaged)(?: to (?P<who>.+))?$", married),
        # Taste.
        (r"^I (?P<verb>used to (?:like|love|hate|enjoy)) (?P<x>.+)$", opinion),
        ((r"^I (?P<verb>like|enjoy|love|adore|hate|detest|despise|cannot stand|loathe|dislike|do not like|"
         r"do not enjoy|do not love|do not hate|no longer (?:like|love|hate|enjoy)|am a big fan of|am a huge fan of|"
         r"am a fan of|am not a fan of|am into|"
         r"am fond of) (?P<x>.+)$"), opinion),
        (r"^I (?:much |strongly |generally )?prefer (?P<x>.+)$", preference),
        (r"^I smoke$", slotted("The user smokes", "fact", 6, "smoking")),
        (r"^I (?:do not|never) smoke(?: any ?more)?$", slotted("The user does not smoke", "fact", 6, "smoking")),
        (r"^I no longer smoke$", slotted("The user no longer smokes", "fact", 6, "smoking")),
        (r"^I (?:have )?(?:quit|stopped|given up|gave up) smoking$", slotted("The user quit smoking", "fact", 6,
         "smoking")),
        ((rf"^I (?:have )?(?:traded|swapped|exchanged)(?: in)? (?:my|the) .+? for (?P<x>(?:an? |my )?(?:\w+ "
         rf"){{0,2}}?{CAR}\b.*)$"), car),
        (r"^I (?:have |got |bought |have bought |have got )an? new car,? (?P<x>an? .+)$", car),
        # Skills, projects, things.
        (r"^I (?:do not|cannot|no longer) speak (?:any )?(?P<x>[A-Z].+)$", speaks),
        (r"^I (?:can )?speak (?:fluent |some |native )?(?P<x>[A-Z].+?)(?: fluently| natively| well)?$", speaks),
        (r"^I am fluent in (?P<x>[A-Z].+)$", speaks),
        ((r"^I (?:am learning|am studying|study|have started learning|started learning|"
         r"am taking lessons in) (?P<x>.+)$"), doing("skill", 5, "is learning", "learning")),
        ((r"^I (?:am working on|am building|"
         r"am developing) (?P<x>.+)$"), doing("project", 6, "is working on", "project")),
        (r"^I (?:drive|am driving) (?P<x>an? .+)$", vehicle),
        ((rf"^I (?:have|own|bought|got|have bought|purchased|picked up) (?P<x>(?:an? |my )?(?:\w+ "
         rf"){{0,2}}?{CAR}\b(?: [\w-]+){{0,3}})$"),
         car),
        ((rf"^I (?:have )?(?:sold|scrapped|got rid of|gave away|wrecked|totall?ed|no longer (?:have|own|drive)) "
         rf"(?:my|an?|the) "
         rf"(?P<x>(?:\w+ ){{0,2}}?{CAR}\b(?: [\w-]+){{0,3}}|car)$"), car_gone),
        (r"^my (?P<what>(?:\w+ ){0,3}\w+) is (?:now |called |named )?(?P<x>.+)$", own),
        (r"^I (?:am|have been|became|have become) an? (?P<x>.+)$", is_a),
        (r"^I am (?P<x>.+)$", introduced_by_capital),
    )
)  # fmt: skip


def known(clause: str) -> tuple[list[Draft], str | None]:
    """What the first rule that fits makes of `clause`, and the value in it; nothing where none fits."""
    for pattern, make in _RULES:
        found = pattern.match(clause)
        if found is not None and (drafts := list(make(found))):
            groups = found.groupdict()
            return drafts, next((groups[name] for name in ("x", "at", "title") if groups.get(name)), None)
    return [], None

"""From a message to the clauses that state something in the first person, with how sure the speaker is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

EXPLICIT: Final = 0.95
STRONG: Final = 0.80
WEAK: Final = 0.60
SPECULATION: Final = 0.40

_LONGEST: Final = 600
"""Characters of a clause that the rules look at: no person states more in one breath."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement: contractions written out, "we" read as "I", without what only leads to it."""

    text: str
    confidence: float
    reported: bool = False
    """Others say it of the speaker: only what is known by its wording counts."""
    added: bool = False
    """It is said to hold beside what is known: "also", "another"."""


_FLAGS: Final = re.IGNORECASE
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"\"([^\"\n]*)\"|(?<!\w)'([^'\n]{3,})'(?!\w)")
_FIRST_PERSON: Final = re.compile(r"\b(?:i|i'm|i'll|i've|i'd|my|me|we|our|mine)\b", _FLAGS)
_STATING: Final = re.compile(
    r"\b(?:i|i'm|im|ive|i'll|i've|i'd|my|me|we|we're|our|home|always|never|please|from now on|future|answer|reply|"
    r"respond|keep|"
    r"do not|don't|avoid|stop|no more|speak|talk|write|every time|going forward|cancell?ed|called off|rescheduled|"
    r"postponed|"
    r"moved to)\b",
    _FLAGS,
)
_ABBREVIATION: Final = re.compile(
    r"\b(dr|mr|mrs|ms|prof|st|vs|no(?=\.\s*\d)|e\.g|i\.e|approx|a\.m|p\.m|jr|sr|"
    r"\d{1,2}(?=\. (?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)))\.",
    _FLAGS,
)
_DOT: Final = "\u2024"
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…;])[\"')\]]*\s+|(?<=[。！？؟；])[”』」]?\s*|\n+")
_ITEM: Final = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.)]|\|)\s")
_PLAYED: Final = re.compile(
    r"\brole-?play|\b(?:let's|let us) pretend\b|^(?:ok,? )?you be (?:the|an?) |^(?:oh,? |haha,? )?(?:yeah|sure),? "
    r"right\b(?! now)"
    r"|^(?:(?:now|ok|okay|so|hey),? )*(?:you are|you're) (?:now )?(?:an? |the |my )(?!great|good|nice|helpful|smart|"
    r"really|"
    r"very|wonderful|lovely|genius|star|lifesaver|amazing|best|friend)[\w' -]{1,40}?,? (?:and|while) (?:i'm|i am) |"
    r"^(?:so |ok |okay )?(?:let's|let us) (?:say|pretend|imagine|play|assume|suppose)\b|^(?:pretend|"
    r"imagine|suppose|"
    r"supposing|assume|hypothetically|say i)\b|\bmy (?:character|persona|avatar) (?:is|in)\b|\b(?:here is|here's) "
    r"(?:a|an|my|the) "
    r"(?:poem|story|song|draft|script|email|letter|cover letter|text|prompt|bio of)\b|^(?:stell dir vor|nehmen wir "
    r"an|angenommen|"
    r"imaginemos|imagina|imagine|imaginons|supongamos|suponha|suponhamos|finge|finja|tu so|digamos|假设|假装|想象|"
    r"لنفترض|تخيل|تظاهر)",
    re.IGNORECASE,
)
_OTHERS_TO_WORK_ON: Final = re.compile(
    r"^(?:por favor,? |bitte |请|帮我|请帮我|من فضلك )?(?:traduz\w*|traduc\w*|traduis\w*|übersetze?\w*|translate|"
    r"翻译|ترجم|corrige|"
    r"korrigiere|reescreve|resume)[^:：]{0,80}[:：]",
    re.IGNORECASE,
)
_JOKE: Final = re.compile(r"\b(?:just|only) (?:kidding|joking)\b|\b(?:i'm|i am) (?:kidding|joking)\b|\bjk\b", _FLAGS)
_TEXT_TO_WORK_ON: Final = re.compile(
    r"^(?:please |can you |could you |would you )*(?:translate|rewrite|rephrase|summari[sz]e|proofread|correct|edit|"
    r"fix|write|"
    r"continue|role-?play|pretend|imagine|act as|compose|draft|tell me a)\b.*?(?P<rest>:)?\s*$",
    _FLAGS,
)
_REPORTED: Final = re.compile(
    r"\b(?:said|says|told|tells|asked|asks|claim(?:s|ed)|wrote|writes|texted|mention(?:s|ed)|explain(?:s|ed)|"
    r"insist(?:s|ed)|"
    r"argue[sd]?|announced|according to|quote|thinks|believes|character|the (?:song|lyrics|poem|story|novel|article|"
    r"book) goes)\b",
    _FLAGS,
)
_SAID_OF_THE_USER: Final = re.compile(
    r"^(?:(?:so|well|actually|and|but|today|yesterday|now|last \w+|this \w+),? )*"
    r"(?:(?P<expert>(?:my|the|our|an?) (?:\w+ )?(?:doctors?|gp|allergist|physician|dentist|nurse|therapist|specialist|"
    r"optician|tests?|results?|lab))|(?P<near>(?:my|our) \w+(?: (?-i:[A-Z])\w+)?)|he|she|they|(?-i:Dr\.? )?"
    r"(?!(?:people|nobody|some|others|many|it|this|that|who|what|every\w+|no|none|most)\b)(?-i:[A-Z])\w+) "
    r"(?:(?:just|also|now|even|has|have) )*"
    r"(?:(?:(?:told|tells|informed) (?:me|us)|confirmed|confirms)(?: that)?|"
    r"(?:says?|said|shows?|showed)(?: to me)? that|"
    r"(?(expert)(?:says?|said|shows?|showed)|(?!))|"
    r"(?P<thinks>(?(expert)|(?(near)|(?!)))(?:thinks?|believes?|suspects?))(?: that)?) "
    r"(?=(?:i|i'm|i've|we|we're|we've)\b)",
    _FLAGS,
)
"""Behind it, "I" is who is speaking. "Ana said I live in Rome" may be Ana's words, so that it counts for nothing."""
_BACK_TO_NOW: Final = re.compile(r"^(I) was ((?:not |no longer )?(?:\w+ly )?allergic\b)", _FLAGS)
""" "She said I was allergic" says it of now."""
_UNREAL: Final = re.compile(
    r"^as an? (?:ai|language model|assistant|pirate|robot|wizard)\b|\b(?:if|unless|suppose|supposing|imagine|what "
    r"if|hypothetically|pretend|let's say|say i|wish|would|could|should|"
    r"in theory|in (?:my|the|this|our|a) (?:novel|story|book|game|dream|film|movie|script|campaign|poem|song)|as "
    r"though|assuming|otherwise|in a story|for example|e\.g)\b",
    _FLAGS,
)
_ASKED: Final = re.compile(
    r"^(?:who|what|whats|where|when|why|which|whose|how|can|could|would|will|shall|should|may|might|do|does|did|is|"
    r"are|am|was|"
    r"were|has|have|any|anyone|tell me|show me|explain|give me|help me|find|list|recommend|suggest)\b(?! i (?:live|"
    r"work))",
    _FLAGS,
)
_SPLIT: Final = re.compile(
    r"(?:\s*,\s*|\s+)(?:and|but|so|because|since|although|though|while|plus|also)\s+(?:then\s+|that\s+|now\s+)?"
    r"(?=(?:i|we|i'm|i've|i'll|we're|we've|my|our|(?:please |just |you can )?call me|friends call me|everyone calls "
    r"me|people call me)\b)"
    r"|\s*,\s*(?=(?:i|we|i'm|i've|i'll|we're|we've|my|our|(?:please |just |you can )?call me|friends call me|"
    r"everyone calls me|people call me)\b)"
    r"|\s+[-–—]+\s+|\s*—\s*|\s*\((?=i\b|my\b)",
    _FLAGS,
)
_ELIDED: Final = re.compile(
    r"(?:\s*,\s*|\s+)(?:and|but)\s+(?:also\s+|now\s+|then\s+)?"
    r"(?=(?:am|work|live|own|drive|speak|play|love|like|hate|prefer|study|started|moved|joined|got|bought|adopted|"
    r"enjoy|"
    r"teach|dislike|quit|left|cannot|can't|don't|do not|have (?:an?|two|three|been)|work(?:ing)?) )",
    _FLAGS,
)
_TAG: Final = re.compile(
    r",? (?:don't|do not|am|aren't|isn't|ain't|didn't|haven't|wasn't|right|correct|do|did) ?(?:i|it|we|not)?\?$", _FLAGS
)
_QUESTION_PART: Final = re.compile(r"\s*(?:,\s*(?:so|and|but)?|;|\s(?:so|and|but))\s+", _FLAGS)
_MARKER: Final = re.compile(
    r"^(?:actually|well|so|also|and|but|or|oh|ah|okay|ok|hey|hi|hello|yes|yeah|yep|no|nope|btw|by the way|fyi|"
    r"anyway|it turns out(?: that)?|turns out(?: that)?|hence|therefore|instead|"
    r"honestly|currently|now|nowadays|right now|these days|at the moment|to be honest|just so you know|for the record|"
    r"for context|for your information|in fact|in case you missed it|as you know|as i (?:said|mentioned)(?: before|"
    r" earlier)?|"
    r"like i said|again|good news|bad news|great news|news|update|correction|guess what|big news|sorry|wait|"
    r"(?:please |just )?(?:note|remember|keep in mind|don't forget|do not forget|bear in mind)(?: that)?|"
    r"one more thing|"
    r"(?:i )?(?:forgot|should|wanted|want|just wanted) to (?:mention|say|add|tell you|let you know)(?: you)?(?: that)?|"
    r"i should (?:mention|add|say)(?: that)?|i want you to (?:know|remember)(?: that)?|let me (?:tell you|"
    r"add)(?: that)?|"
    r"thanks|thank you|first|second|finally|because|since|although|though|unfortunately|luckily|fortunately|sadly|"
    r"happily|"
    r"recently|lately|previously|originally|personally|basically|generally speaking|(?:so,? )?(?:a (?:bit|little) "
    r")?(?:more )?about me|as of (?:last|this) \w+|good (?:morning|afternoon|evening)|"
    r"(?:hi|hello|hey) (?:there|again|everyone|all)|all right|alright|fun fact|about me)\b(?!')[\s,:;.!–—-]*",
    _FLAGS,
)
_HEDGES: Final[tuple[tuple[re.Pattern[str], float], ...]] = tuple(
    (re.compile(pattern, _FLAGS), confidence)
    for pattern, confidence in (
        (r"^(?:maybe|perhaps|possibly|who knows,?)\s+", SPECULATION),
        (r"^(?:i am|i'm) (?:not sure,? but|unsure,? but)\s+", SPECULATION),
        ((r"^(?:i think|i believe|i guess|i suppose|i feel like|i'd guess|as far as i know,?|probably|if i remember"
         r" correctly,?|apparently,?)(?: that)?\s+"), WEAK),
        (r"^(?:i am|i'm) (?:pretty|fairly|quite|almost) (?:sure|certain)(?: that)?\s+", STRONG),
        (r"^(?:i am|i'm) (?:sure|certain|positive)(?: that)?\s+", EXPLICIT),
    )
)  # fmt: skip
_INNER_HEDGES: Final[tuple[tuple[re.Pattern[str], float], ...]] = (
    (
        re.compile(
            r"\b(?:might|(?<=i )may|(?<=we )may|(?<=he )may|(?<=she )may|(?<=they )may|(?<=it )may|maybe|perhaps|"
            r"possibly|(?:am )?(?:considering|thinking (?:about|"
            r"of)))\b",
            _FLAGS,
        ),
        SPECULATION,
    ),
    (re.compile(r"\b(?:probably|kind of|sort of|i think|i guess|not sure)\b", _FLAGS), WEAK),
    (re.compile(r"\b(?:usually|mostly|generally|typically|tend to|normally)\b", _FLAGS), STRONG),
)
_WRITTEN_OUT: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, _FLAGS), full)
    for pattern, full in (
        (r"\bwe're\b", "I am"), (r"\bwe are\b", "I am"), (r"\bwe were\b", "I was"), (r"\bwe've\b", "I have"),
        (r"\bwe'll\b", "I will"), (r"\bwe'd\b", "I would"), (r"\bwe\b", "I"), (r"\bours\b", "mine"), (r"\bour\b", "my"),
        (r"\bi'm\b|\bim\b", "I am"), (r"\bi've\b|\bive\b", "I have"), (r"\bi'll\b", "I will"), (r"\bi'd\b", "I would"),
        (r"\bcan't\b|\bcan not\b", "cannot"), (r"\bwon't\b", "will not"), (r"\b(\w+)n't\b", r"\1 not"),
        (r"\bgonna\b", "going to"), (r"\bwanna\b", "want to"), (r"\bgotta\b", "have to"), (r"\bi\b", "I"),
        (r"\b(he|she|it|there|who|that)'s\b", r"\1 is"), (r"\bI have got\b", "I have"),
    )
)  # fmt: skip
_FILLER: Final = re.compile(
    r"^(I(?: am| have| was)?) (?:(?:now|currently|just|recently|finally|also|really|actually|still|already|"
    r"absolutely|totally|"
    r"truly|definitely|literally|simply|basically|presently|honestly|happily|officially|even) )+",
    _FLAGS,
)
_TIME_FIRST: Final = re.compile(
    r"^((?:this|last|next|on|in|since|from|starting|as of|beginning|today|tomorrow|yesterday|tonight|during|until|"
    r"two|three|\d+|a|every|"
    r"earlier)\b[\w' -]{0,40}?(?:, (?:19|20)\d\d)?)"
    r",?\s+((?:I|my)\b.+)$",
    _FLAGS,
)
_TIME_BEFORE_COMMA: Final = re.compile(
    r"^((?:(?:from|starting|as of|beginning|on|in|since|next|last)\b[\w' ]{0,20}?\b(?:january|february|march|april|"
    r"may|june|"
    r"july|august|september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|week|"
    r"month|"
    r"year|weekend|20\d\d)\b[\w ]{0,12}?(?:, 20\d\d)?|tomorrow|next week)),\s+(?=(?:i|i'm|i'll|we|we'll|my|our)\b)",
    _FLAGS,
)
_ADDED: Final = re.compile(
    r"^(?!.*\b(?:moved|relocated)\b).*\b(?:also|another|as well|additionally|in addition|on the side|(?:second|"
    r"side) job)\b",
    _FLAGS,
)
_AGAINST_FILLER: Final = re.compile(r"^(I do not|I no longer) (?:really|actually|even|currently) ", _FLAGS)


def sentences(message: str) -> list[str]:
    """The sentences of `message` that its author may say of themselves, in order, none twice: without code, quoted
    lines, pasted lists, jokes taken back, and what is only given to be worked on. Linear in its length."""
    plain = message.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    plain = _CODE.sub("\n", plain)
    lines = [line for line in plain.split("\n") if not line.lstrip().startswith(">") and "[REDACTED]" not in line]
    if sum(_ITEM.match(line) is not None for line in lines) > 1:
        lines = [line for line in lines if not _ITEM.match(line)]
    found: list[str] = []
    for line in lines:
        for part in _SENTENCE_END.split(_ABBREVIATION.sub(lambda dotted: dotted[1] + _DOT, line)):
            sentence = part.replace(_DOT, ".").strip(" \t*-•#_")
            if _JOKE.search(sentence):
                if found:
                    found.pop()
            elif _PLAYED.search(sentence) or _OTHERS_TO_WORK_ON.match(sentence):
                return list(dict.fromkeys(found))
            elif working := _TEXT_TO_WORK_ON.match(sentence):
                if working["rest"]:
                    return list(dict.fromkeys(found))
            elif ":" in sentence and _TEXT_TO_WORK_ON.match(sentence.partition(":")[0]):
                return list(dict.fromkeys(found))
            elif sentence:
                found.append(sentence)
    return list(dict.fromkeys(found))


def clauses_of(sentence: str) -> Iterator[Clause]:
    """The clauses of a sentence that state something in the first person, or ask something of the assistant."""
    if _STATING.search(sentence):
        yield from _clauses_of(sentence)


def _clauses_of(sentence: str) -> Iterator[Clause]:
    if any(_FIRST_PERSON.search(quote[1] or quote[2] or "") for quote in _QUOTED.finditer(sentence)):
        return
    sentence = _QUOTED.sub(lambda quote: quote[1] or quote[2] or "", sentence)
    if len(sentence) > _LONGEST * 4:
        return
    parts = [sentence]
    if sentence.rstrip().endswith("?"):
        if _TAG.search(sentence):
            return
        # What leads to a question may be a statement: "I live in Lisbon, what is there to see?"
        parts = _QUESTION_PART.split(sentence)[:-1]
        if any(_ASKED.match(part) for part in parts):
            return
    if any(_UNREAL.search(part) for part in parts) and not _is_rule(sentence):
        return
    for part in map(_joined, parts):
        reported = _SAID_OF_THE_USER.match(part)
        if reported is not None:
            part = _BACK_TO_NOW.sub(r"\1 am \2", part[reported.end() :])
        if _REPORTED.search(part):
            continue
        subject_known = False
        for piece in _SPLIT.split(part):
            for place, text in enumerate(_ELIDED.split(piece)):
                said = text if place == 0 or not subject_known else f"I {text}"
                clause = _clause(said)
                if clause is not None:
                    subject_known = clause.text.startswith("I ")
                    if reported is not None:
                        level = WEAK if reported["thinks"] else STRONG
                        clause = replace(clause, confidence=min(clause.confidence, level), reported=True)
                    yield clause


def _joined(part: str) -> str:
    """`part` with the time that leads it on the same side of a comma: "From March 1, 2027, I live in Berlin"."""
    return _TIME_BEFORE_COMMA.sub(r"\1 ", part)


def _is_rule(sentence: str) -> bool:
    return re.match(r"^(?:please\b|from now on|in (?:the )?future\b|always\b|never\b)", sentence, _FLAGS) is not None


def _clause(text: str) -> Clause | None:
    text = text.strip(" ,;:)(")
    confidence, added = EXPLICIT, _ADDED.search(text) is not None
    before = ""
    while before != text:
        before = text
        text = _MARKER.sub("", text)
        for hedge, level in _HEDGES:
            text, count = hedge.subn("", text)
            if count:
                confidence = min(confidence, level)
    for pattern, full in _WRITTEN_OUT:
        text = pattern.sub(full, text)
    for hedge, level in _INNER_HEDGES:
        if hedge.search(text):
            confidence = min(confidence, level)
    text = re.sub(r"\bprobably |(?<=^I )(?:kind|sort) of |(?<=^I )(?:kinda|sorta) ", "", text)
    text = _TIME_FIRST.sub(
        r"\2 \1", re.sub(r"^(?:starting|as of) (?=next|in|on|this|tomorrow)", "", text.rstrip(" .!;:,…"), flags=_FLAGS)
    )
    text = _AGAINST_FILLER.sub(r"\1 ", _FILLER.sub(r"\1 ", text))
    text = " ".join(text.split()).rstrip(" .!;:,…")
    if not text or len(text) > _LONGEST or _ASKED.match(text):
        return None
    return Clause(text, confidence, added=added)

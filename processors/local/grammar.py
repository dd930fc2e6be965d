"""From the first person to the third."""

import re
from typing import Final

_PAST_FORMS: Final = """
    was were had did went got came saw met left began bought broke lost won took made gave flew ran ate drank
    drove quit became built caught chose drew fell felt forgot found grew held kept knew learnt led lent lit meant
    paid rode rose sang sat sent slept sold spent spoke stood stole swam taught thought threw told understood wore
    woke wrote read hurt hid beat cut put set hit bet shut cost let
"""
_PAST: Final = frozenset(_PAST_FORMS.split())
_SAME_IN_PRESENT: Final = frozenset({"read", "hurt", "beat", "cut", "put", "set", "hit", "bet", "shut", "cost", "let"})
_ENDING_IN_ED: Final = frozenset({"need", "feed", "speed", "breed", "seed", "proceed", "exceed", "succeed", "bleed"})
_MODALS: Final = frozenset({"can", "cannot", "will", "might", "may", "must", "could", "should", "would", "shall"})
_ADVERB_WORDS: Final = """
    usually often always never sometimes rarely mostly generally typically normally regularly occasionally no
    longer only mainly frequently hardly recently once both all almost just still even ever already also quite
    seldom soon now then not
"""
_ADVERBS: Final = frozenset(_ADVERB_WORDS.split())
_VERBS_IN_LY_WORDS: Final = "rely apply reply supply fly comply multiply imply bully rally tally ally"
_VERBS_IN_LY: Final = frozenset(_VERBS_IN_LY_WORDS.split())
_IRREGULAR: Final = {"am": "is", "have": "has", "do": "does", "are": "is"}

_THEY: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"\bI am\b", "they are"), (r"\bI was\b", "they were"), (r"\bI\b", "they"), (r"\bmyself\b", "themselves"),
        (r"\bmy\b", "their"), (r"\bme\b", "them"), (r"\bmine\b", "theirs"),
    )
)  # fmt: skip


def is_past(verb: str, *, timed_past: bool) -> bool:
    """Whether `verb` is a past form. Those that look like the present count as past beside a time in the past."""
    verb = verb.lower()
    if verb in _SAME_IN_PRESENT:
        return timed_past
    return verb in _PAST or (verb.endswith("ed") and verb not in _ENDING_IN_ED and len(verb) > 3)


def conjugated(verb: str, *, timed_past: bool = False) -> str:
    """The third person of `verb`, which is said of "I"."""
    lower = verb.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower in _MODALS or is_past(lower, timed_past=timed_past):
        return lower
    if re.search(r"(?:s|x|z|ch|sh|o)$", lower):
        return lower + "es"
    if re.search(r"[^aeiou]y$", lower):
        return lower[:-1] + "ies"
    return lower + "s"


def _is_adverb(word: str) -> bool:
    word = word.lower().strip(",")
    return word in _ADVERBS or (word.endswith("ly") and word not in _VERBS_IN_LY)


def verb_of(clause: str) -> str:
    """The first verb said of "I": in lower case, adverbs passed over. Empty where there is none."""
    for word in clause.split()[1:]:
        if not _is_adverb(word):
            return word.lower().strip(",")
    return ""


def about_user(clause: str, *, timed_past: bool = False) -> str:
    """A clause that begins with "I" or "my", in the third person, as a sentence."""
    first, _, rest = clause.partition(" ")
    if first.lower() == "my":
        return sentence(f"The user's {_they(rest)}")
    words = rest.split(" ")
    place = next((place for place, word in enumerate(words) if not _is_adverb(word)), 0)
    verb = words[place]
    words[place] = conjugated(verb, timed_past=timed_past)
    done = [*words[: place + 1], _they(" ".join(words[place + 1 :]))]
    return sentence("The user " + " ".join(part for part in done if part))


def _they(text: str) -> str:
    for pattern, words in _THEY:
        text = pattern.sub(words, text)
    return text


def in_third(text: str) -> str:
    """A part of a clause in which "I" and "my" may occur: "a friend of mine" → "a friend of theirs"."""
    return _they(text)


def sentence(text: str) -> str:
    """`text` with a full stop and single spaces."""
    text = " ".join(text.split()).rstrip(" .,;:!")
    return f"{text}."

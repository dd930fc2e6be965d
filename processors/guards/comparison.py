"""What differs between two statements, and what a text says that its sources do not."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from processors.guards import words
from processors.guards.kinds import Difference
from processors.guards.tokens import Token, capitalised, folded, tokens

_NOTHING: Final[frozenset[Difference]] = frozenset()
_NEGATING: Final = ("un", "dis", "in", "im", "ir", "il", "non", "mis", "de")
YEAR: Final = re.compile(r"#(?:19|20)\d\d")
_ENDING_OF_A_VERB: Final = ("ed", "ing", "ly")
_KNOWN: Final = (words.PLAIN, words.KINDS, words.THIRD_PERSON, words.OPINIONS)
_MAKEABLE: Final = frozenset(
    {Difference.NUMBER, Difference.UNIT, Difference.DATE, Difference.NAME, Difference.NEGATION}
)
"""What a model must not make up."""
PERHAPS_A_NAME: Final = (None, Difference.TENSE, Difference.CERTAINTY)
"""Will and May are people too."""
_PARTICLES: Final = frozenset("的了和与與及在是有也都并並且而对對跟到从從为為着") | frozenset(
    ["في", "من", "على", "إلى", "عن", "مع", "هو", "هي", "كما", "أيضا", "أيضاً", "الذي", "التي", "هذا", "هذه", "ثم", "أن"]
)
_GLUED: Final = "وفبلك"
"""Arabic words that are written as the first letter of the next."""


def differences(old: str, new: str) -> frozenset[Difference]:
    """In what `old` and `new` differ; empty where they say the same, or one says the same and harmlessly more.

    Case, Unicode's compatible writings, punctuation and articles do not count. `differences(a, b)` is
    `differences(b, a)`: what was added to the one was dropped from the other.
    """
    before, after = tokens(old), tokens(new)
    if [token.key for token in before] == [token.key for token in after]:
        return _NOTHING
    dropped, added = _beyond(before, after), _beyond(after, before)
    leftover = [before[place] for place in dropped] + [after[place] for place in added]
    perhaps_names = any(token.kind in PERHAPS_A_NAME for token in leftover)
    kinds = _kinds(leftover, frozenset((*names_of(old), *names_of(new))) if perhaps_names else frozenset())
    if not dropped or not added:
        less, more = (before, after) if added else (after, before)
        runs = _insertions(less, more)
        if runs is None:
            return (kinds - {Difference.WORDING}) | {Difference.ORDER}
        harmless = kinds <= {Difference.WORDING} and _is_harmless(more, runs)
        return _NOTHING if harmless else kinds
    common = [token.key for place, token in enumerate(before) if place not in dropped]
    if common != [token.key for place, token in enumerate(after) if place not in added]:
        return kinds | {Difference.ORDER}
    return kinds


def says_more(old: str, new: str) -> bool:
    """Whether `new` holds all that `old` says, in its order, and something besides."""
    return bool(_insertions(tokens(old), tokens(new)))


def invented(text: str, sources: Sequence[str]) -> frozenset[Difference]:
    """The numbers, units, dates, names and negations of `text` that no source holds.

    Also NEGATION where every source denies something and `text` denies nothing, and UNIT where a number has got
    another's unit. A name in a script without capitals is any word or sign that no source has.
    """
    said = [tokens(source) for source in sources]
    held = {part for statement in said for token in statement for part in parts_of(token.key)}
    measured = {pair for statement in said for pair in _measures(statement)}
    # "is 35", of somebody who was 34 years old, are years.
    measured |= {(said_last.key, "~year") for said_last in _last_numbers(said) if "~year" in held}
    own = tokens(text)
    names = frozenset(names_of(text))
    found = {kind for token in _without_one_of(own) if token.key not in held for kind in _makings(token, names, held)}
    if any(pair not in measured for pair in _measures(own)):
        found.add(Difference.UNIT)
    if said and all(map(_denies, said)) and not _denies(own):
        found.add(Difference.NEGATION)
    return frozenset(found & _MAKEABLE)


def _beyond(one: Sequence[Token], other: Sequence[Token]) -> set[int]:
    """The places in `one` of what `other` does not hold as often. The last occurrences count as too many."""
    left = Counter(token.key for token in other)
    places = set()
    for place, token in enumerate(one):
        if left[token.key]:
            left[token.key] -= 1
        else:
            places.add(place)
    return places


def _insertions(less: Sequence[Token], more: Sequence[Token]) -> list[tuple[int, int]] | None:
    """The runs of `more` that `less` does not have; None where `less` is not in it, word by word in its order."""
    runs: list[tuple[int, int]] = []
    known, start = 0, 0
    for place, token in enumerate(more):
        if known < len(less) and token.key == less[known].key:
            if start < place:
                runs.append((start, place))
            known, start = known + 1, place + 1
    if known < len(less):
        return None
    if start < len(more):
        runs.append((start, len(more)))
    return runs


def _is_harmless(more: Sequence[Token], runs: Iterable[tuple[int, int]]) -> bool:
    """Whether runs of plain words only say more of the same, wherever they stand.

    Behind a negation or an "only" more words can say less, so there none is harmless.
    """
    if any(token.kind in _NARROWING or token.key in words.EXCLUSIVE for token in more):
        return False
    return all(_goes_on(more, start, end) or _describes(more, start, end) for start, end in runs)


_NARROWING: Final = (Difference.NEGATION, Difference.CERTAINTY)


def _describes(more: Sequence[Token], start: int, end: int) -> bool:
    """Adjectives between "a" and its noun: "a dog", "a small brown dog"."""
    return (
        more[start].indefinite
        and end < len(more)
        and more[end].kind is None
        and all(token.key in words.MODIFIERS for token in more[start:end])
    )


def _goes_on(more: Sequence[Token], start: int, end: int) -> bool:
    """At the end: "… and plays chess", or more of a thing that "a" has just introduced."""
    if end < len(more) or start == 0 or end - start < 2 or more[start - 1].kind is not None:
        return False
    if not all(token.key in words.PLAIN for token in more[start:end]):
        return False
    if more[start].key == "and":
        return True
    opinion = any(token.key in words.OPINIONS for token in more[:start])
    return more[start].key in words.CONNECTORS and more[start - 1].indefinite and not opinion


def _kinds(leftover: Sequence[Token], names: frozenset[str]) -> frozenset[Difference]:
    """What words that only one of two texts has change; WORDING for those of no other kind."""
    keys = {token.key for token in leftover}
    return frozenset(kind for token in leftover for kind in _kinds_of(token, names, keys))


def _kinds_of(token: Token, names: frozenset[str], keys: set[str]) -> Iterator[Difference]:
    key = token.key
    if token.kind is Difference.NUMBER and YEAR.fullmatch(key):
        yield Difference.DATE
    elif token.kind is not None:
        yield token.kind
    if key in names and token.kind in PERHAPS_A_NAME:
        yield Difference.NAME
    elif token.kind is None:
        if any(_is_negated(key, prefix, keys) for prefix in _NEGATING):
            yield Difference.NEGATION
        elif key.endswith("ed") and not keys.isdisjoint((key[:-1], key[:-2], key[:-1] + "s", key[:-2] + "s")):
            yield Difference.TENSE
        else:
            yield Difference.WORDING


def _is_negated(key: str, prefix: str, keys: set[str]) -> bool:
    """Whether the word, with or without `prefix` ("likes", "dislikes"), has its opposite among `keys`."""
    if key.endswith("less") and not keys.isdisjoint((key[:-4], key[:-4] + "ful")):
        return True
    bare = key.removeprefix(prefix)
    if bare != key and (bare in keys or bare.removesuffix("s") in keys):
        return True
    return prefix + key in keys or prefix + key + "s" in keys


def names_of(text: str) -> Iterator[str]:
    """Words that are probably names: capitals inside a sentence, or at its start where the word is not known.

    German nouns all have capitals: there, only what stands where a name would.
    """
    if text.isupper():
        return
    german = not _GERMAN.isdisjoint(folded(text).split())
    for word, before, first in capitalised(text):
        if german:
            if before in _BEFORE_A_GERMAN_NAME:
                yield word
        elif not first or not (word.endswith(_ENDING_OF_A_VERB) or any(word in known for known in _KNOWN)):
            yield word


_GERMAN_WORDS: Final = """
    ist und nicht hat der das ein eine wohnt heißt heisst arbeitet mag trinkt isst
"""
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_BEFORE_A_GERMAN_NAME_WORDS: Final = """
    heißt heisst namens in aus nach bei von herr frau dr und mit bruder schwester hund katze chef chefin
"""
_BEFORE_A_GERMAN_NAME: Final = frozenset(_BEFORE_A_GERMAN_NAME_WORDS.split())


def parts_of(key: str) -> Iterator[str]:
    """`key`, and the coarser dates that it holds: who says 2026-10-15 says October."""
    yield key
    if key.startswith("@") and "-" in key:
        *year, month, day = key[1:].split("-")
        if year:
            yield from (f"@{month}-{day}", f"@{year[0]}-{month}", f"@m{month}", f"#{year[0]}", f"#{int(day)}th")
        elif len(month) == 4:
            yield from (f"#{month}", f"@m{day}")
        else:
            yield from (f"@m{month}", f"#{int(day)}th")
    elif _is_caseless(key):
        yield from _bare(key)


def _is_caseless(key: str) -> bool:
    return key[0].isalpha() and key.lower() == key.upper()


def _bare(word: str) -> Iterator[str]:
    """An Arabic word without what is written together with it."""
    for start in (word, word[1:] if word[0] in _GLUED else word):
        if bare := start.removeprefix("ال"):
            yield bare


def _measures(statement: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Each number with the unit behind it."""
    for number, unit in pairwise(statement):
        if number.kind is Difference.NUMBER and unit.kind is Difference.UNIT:
            yield number.key, unit.key


def _last_numbers(said: Sequence[Sequence[Token]]) -> Iterator[Token]:
    return (one[-1] for one in said if one and one[-1].kind is Difference.NUMBER)


def _without_one_of(statement: Sequence[Token]) -> Iterator[Token]:
    """All but the "one" of "one of", which counts nothing."""
    for place, token in enumerate(statement):
        if token.key == "#1" and place + 1 < len(statement) and statement[place + 1].key == "of":
            continue
        yield token


def _denies(statement: Sequence[Token]) -> bool:
    return any(token.kind is Difference.NEGATION for token in statement)


def _makings(token: Token, names: frozenset[str], held: set[str]) -> Iterator[Difference]:
    """What a word that no source has makes up."""
    if _is_caseless(token.key) and token.kind not in _MAKEABLE:
        if token.key not in _PARTICLES and held.isdisjoint(_bare(token.key)):
            yield Difference.NAME
    else:
        yield from _kinds_of(token, names, held)

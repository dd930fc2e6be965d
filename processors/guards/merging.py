"""What a merged text does to the two that it is made of: what it leaves out, turns round, or counts wrongly."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from processors.guards import words
from processors.guards.comparison import PERHAPS_A_NAME, YEAR, names_of, parts_of
from processors.guards.kinds import Difference
from processors.guards.tokens import Token, tokens

_LIGHT_WORDS: Final = """
    a an and or nor to of in at on for with from by as is has does do be it that this there any very really so too
    also who which whose
    de do da dos das em na no nas nos um uma o os as que é e ou é tem à ao a com para
    der die das den dem ein eine einen ist hat und oder gegen im am zu mit bei als
    el la los las un una es tiene y le les du des une est au aux d'
    في من على إلى هو هي و
    的 是 有 在 和 也 对 對
"""
_LIGHT: Final = frozenset(_LIGHT_WORDS.split())
"""They say nothing of their own."""
_TURNING_WORDS: Final = """
    and but while although though however und aber e mas y pero et mais sondern 但 而
"""
_TURNING: Final = frozenset(_TURNING_WORDS.split())
"""Behind these a denial does not reach."""
_EITHER_WORDS: Final = """
    or nor ou oder o ni nem noch
"""
_EITHER: Final = frozenset(_EITHER_WORDS.split())
_PASSED_OVER_WORDS: Final = """
    now currently already jetzt agora maintenant ahora
"""
_PASSED_OVER: Final = frozenset(_PASSED_OVER_WORDS.split())
_FORMS_OF_BE_WORDS: Final = """
    is has ist hat é tem es tiene est a
"""
_FORMS_OF_BE: Final = frozenset(_FORMS_OF_BE_WORDS.split())
_RUN: Final = 2
_RUN_OF_SIGNS: Final = 4
"""Words of what is denied that are compared; more where each sign is one."""
_NEAR: Final = 3
"""Words from a relative to their name."""
_NAMING_WORDS: Final = """
    called named name heißt namens chama chamado chamada llama appelle
"""
_NAMING: Final = frozenset(_NAMING_WORDS.split())
_NO_RELATIVES_WORDS: Final = """
    user users 's it they them their he she his her who whose people someone
"""
_NO_RELATIVES: Final = frozenset(_NO_RELATIVES_WORDS.split())


class Held(NamedTuple):
    """A number with its unit, a date or a name, and what stands around it."""

    kind: Difference
    keys: tuple[str, ...]
    left: tuple[str, ...]
    right: str | None


def forgotten(known: str, new: str, merged: str) -> frozenset[Difference]:
    """The kinds of what `merged` leaves out of `known`, without what `new` says in its place.

    A number, date or name may go where another of its kind that only `new` has stands in the same place of `merged`; a
    denial where `new` affirms what it denies.
    """
    said = {part for token in tokens(merged) for part in parts_of(token.key)}
    before = {part for token in tokens(known) for part in parts_of(token.key)}
    arrived = [one for one in _held(merged) if not before.issuperset(one.keys)]
    found = set()
    for gone in _held(known):
        if said.issuperset(gone.keys):
            continue
        place = next((place for place, one in enumerate(arrived) if _takes_the_place(one, gone)), None)
        if place is None:
            found.add(gone.kind)
        else:
            del arrived[place]
    affirmed = _affirmed(tokens(new))
    denied = _denials(tokens(known))
    if denied and not _denials(tokens(merged)) and not all(affirmed.issuperset(run) for run in denied):
        found.add(Difference.NEGATION)
    return frozenset(found)


def turned_round(merged: str, known: str, new: str | None) -> bool:
    """Whether `merged` affirms what a source denies, or denies what one affirms. What `new` affirms is no longer
    denied, whatever was known; None: there is nothing new."""
    text, old, late = tokens(merged), tokens(known), tokens(new or "")
    denials, affirmed = _denials(text), _affirmed(text)
    late_denials, late_affirmed = _denials(late), _affirmed(late)
    standing = [run for run in _denials(old) if not late_affirmed.issuperset(run)]
    if any(affirmed.issuperset(run) and run not in denials for run in (*standing, *late_denials)):
        return True
    sources = (_affirmed(old), late_affirmed)
    denied = (*_denials(old), *late_denials)
    return any(run not in denied and any(source.issuperset(run) for source in sources) for run in denials)


def miscounted(merged: str, sources: Sequence[str]) -> bool:
    """Whether a number or a name has got to another thing than in the sources: "2 cats" and "3 dogs" swapped."""
    counted = {pair for source in sources for pair in _counted(source)}
    things = {thing for thing, _ in counted}
    return any(thing in things and (thing, number) not in counted for thing, number in _counted(merged))


def _held(text: str) -> Iterator[Held]:
    statement = [token for token in tokens(text) if token.key not in _PASSED_OVER]
    names = frozenset(names_of(text)) if any(letter.isupper() for letter in text) else frozenset()
    kinds = [_kind(token, names) for token in statement]
    place = 0
    while place < len(statement):
        kind, start = kinds[place], place
        place += 1
        if kind is None:
            continue
        if kind is Difference.NUMBER:
            place += place < len(statement) and kinds[place] is Difference.UNIT
        elif kind is not Difference.UNIT:
            while place < len(statement) and kinds[place] is kind:
                place += 1
        keys = tuple(token.key for token in statement[start:place])
        yield Held(kind, keys, _left(statement, start), _right(statement, place))


def _kind(token: Token, names: frozenset[str]) -> Difference | None:
    if token.kind is Difference.NUMBER:
        return Difference.DATE if YEAR.fullmatch(token.key) else Difference.NUMBER
    if token.kind in (Difference.DATE, Difference.UNIT):
        return token.kind
    return Difference.NAME if token.key in names and token.kind in PERHAPS_A_NAME else None


def _left(statement: Sequence[Token], start: int) -> tuple[str, ...]:
    """The word before, with the one before it where that says nothing ("lives in")."""
    if start == 0:
        return ()
    near = statement[start - 1].key
    if near not in _LIGHT and near not in _NAMING:
        return (_stem(near),)
    before = (one.key for one in reversed(statement[: start - 1]) if one.key not in _LIGHT and one.key not in _NAMING)
    return _stem(next(before, "")), near


def _right(statement: Sequence[Token], end: int) -> str | None:
    """The word behind, where it says something."""
    if end == len(statement) or statement[end].key in _LIGHT or statement[end].key in _TURNING:
        return None
    return _stem(statement[end].key)


def _takes_the_place(one: Held, gone: Held) -> bool:
    if one.kind is not gone.kind:
        return False
    if one.right is not None and one.right == gone.right:
        return True
    if not one.left or one.left != gone.left:
        return False
    if one.kind is not Difference.NUMBER:
        return True
    if one.right is not None and gone.right is not None:
        return False
    units = {*one.keys[1:], *gone.keys[1:]}
    both = len(one.keys) == len(gone.keys)
    if len(units) < 2 and (both or units == {"~year"}):
        return True
    return both and one.left[-1] not in _FORMS_OF_BE


def _says_something(token: Token) -> bool:
    heavy = token.kind in (None, Difference.NUMBER, Difference.UNIT, Difference.DATE, Difference.WORDING)
    return heavy and token.key not in _LIGHT and token.key not in _EITHER and token.key != "'s"


def _stem(key: str) -> str:
    return key.removesuffix("s") if len(key) > 3 and key.isascii() else key


def _runs(statement: Sequence[Token]) -> Iterator[tuple[int, ...]]:
    """The places of what each denial is about: the words behind it, each of an "or" by itself; where there is none, the
    words before it."""
    for place, token in enumerate(statement):
        if token.kind is not Difference.NEGATION:
            continue
        run: list[int] = []
        for at in range(place + 1, len(statement)):
            word = statement[at]
            if word.key in _TURNING or word.kind is Difference.NEGATION:
                break
            if word.key in _EITHER and run:
                if after := _next_word(statement, at + 1):
                    yield (run[0], after) if len(run) > 1 else (after,)
            elif _says_something(word) and len(run) < _longest(word):
                run.append(at)
        if not run:
            run = _before(statement, place)
        if run:
            yield tuple(run)


def _next_word(statement: Sequence[Token], start: int) -> int:
    """The place of the next word that says something; 0 where there is none."""
    return next((at for at in range(start, len(statement)) if _says_something(statement[at])), 0)


def _before(statement: Sequence[Token], place: int) -> list[int]:
    run: list[int] = []
    for at in range(place - 1, -1, -1):
        word = statement[at]
        if word.key in _TURNING or word.kind is Difference.NEGATION or len(run) == _longest(word):
            break
        if _says_something(word):
            run.insert(0, at)
    return run


def _longest(token: Token) -> int:
    return _RUN if token.key[0].isascii() or len(token.key) > 1 else _RUN_OF_SIGNS


def _denials(statement: Sequence[Token]) -> list[frozenset[str]]:
    runs = (frozenset(_stem(statement[at].key) for at in run) for run in _runs(statement))
    return list(dict.fromkeys(runs))


def _affirmed(statement: Sequence[Token]) -> frozenset[str]:
    denied = {at for run in _runs(statement) for at in run}
    return frozenset(
        _stem(token.key) for at, token in enumerate(statement) if at not in denied and _says_something(token)
    )


def _counted(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each thing with its number: "2 cats", "5 mg of aspirin", "Rex is 5"; each relative with the name behind."""
    names = frozenset(names_of(text))
    statement = [token for token in tokens(text) if token.key not in words.MODIFIERS and token.key != "of"]
    last_name, relative, near = "", "", 0
    for place, token in enumerate(statement):
        if token.kind is Difference.SUBJECT and token.key not in _NO_RELATIVES:
            relative, near = token.key, place
        if token.key in names:
            if relative and place - near <= _NEAR and not last_name:
                yield f"{relative} called", (token.key,)
            last_name, relative = token.key, ""
        elif token.key not in _FORMS_OF_BE and token.kind is None:
            last_name = ""
        if token.kind is not Difference.NUMBER or YEAR.fullmatch(token.key):
            continue
        number = [token.key]
        behind = statement[place + 1 : place + 3]
        if behind and behind[0].kind is Difference.UNIT:
            number.append(behind.pop(0).key)
        if behind and behind[0].kind in (None, Difference.SUBJECT) and behind[0].key not in _LIGHT:
            yield _stem(behind[0].key), tuple(number)
        if last_name:
            yield f"{last_name} is", (token.key,)

"""A statement as the sequence of what it says: numbers, dates and units in one writing, articles left out."""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from processors.guards import numbers, tables, words
from processors.guards.kinds import Difference

_SHORT: Final = 600
"""Characters of a text that is compared with several others, one after the other."""


class Token(NamedTuple):
    """One word, number, date or sign."""

    key: str
    """Equal for equal meanings: `#5000`, `@10-15`, `~kg`, or the word in lower case."""
    kind: Difference | None
    """What changes where it is changed; None for a word like any other."""
    indefinite: bool = False
    """Whether "a" or "an" stands before it."""


_PUNCTUATION: Final = r"""\s_.,;:!?'"()\[\]{}`*|/\\“”‘’«»‹›„‚–—―‐‑−·•…。、，！？：；「」『』【】《》〈〉¿¡؟،؛"""
_UNSEEN: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe0e\ufe0f\ufeff"
_PIECE: Final = re.compile(
    r"(?P<face>[:;=][-']?[()\[\]|/\\]|(?<!\w)[:;=]-?[dpo](?!\w)|</?3)"
    r"|(?P<number>(?:(?<![\w.,)%])[-−])?\d(?:[\d.,:/'’٫٬–-]*\d)?)"
    r"|(?P<grade>(?<![^\W_])(?:[a-z]|ab)[+−-]++(?![^\W_]))"
    r"|(?P<prime>(?<=\d)(?:''|′′|[\"”″]|['’′])(?!\w))"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
    r"|(?P<money>[$€£¥₹₽₩₺₿%])"
    rf"|(?P<sign>[^\w{_PUNCTUATION}{_UNSEEN}-])"
)
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MAX_DIGITS: Final = 15
"""Longer ones are compared as they are written."""
_MAX_HAN: Final = 12
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_DAY: Final = re.compile(r"[0-9]{1,2}")
_SCALABLE: Final = re.compile(r"[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.[0-9]*[1-9]")
_HOUR: Final = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2}))?")


def folded(text: str) -> str:
    """`text` in NFKC, its case folded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def tokens(text: str) -> tuple[Token, ...]:
    """What `text` says, in its order. In linear time; of what is as short as a memory the last ones are remembered."""
    return _remembered(text) if len(text) <= _SHORT else tuple(_Reading(text).read())


@lru_cache(maxsize=1_024)
def _remembered(text: str) -> tuple[Token, ...]:
    return tuple(_Reading(text).read())


class _Reading:
    """One pass over a text's pieces."""

    def __init__(self, text: str) -> None:
        self._folded = folded(text)
        found = list(_PIECE.finditer(self._folded))
        self._texts = [match[0] for match in found]
        self._groups = [match.lastgroup for match in found]
        self._spans = [match.span() for match in found]
        self._out: list[Token] = []
        self._commas_are_decimal = not tables.COMMAS_ARE_DECIMAL.isdisjoint(self._texts)
        self._portuguese = not words.PORTUGUESE.isdisjoint(self._texts)
        self._french = not words.FRENCH.isdisjoint(self._texts)
        self._indefinite = False

    def read(self) -> list[Token]:
        """The tokens."""
        place = 0
        while place < len(self._texts):
            text, group = self._texts[place], self._groups[place]
            if group == "word":
                place = self._word(place, text)
            elif group == "number":
                place = self._number(place)
            elif group == "grade":
                self._add(text.replace("−", "-"), None)
                place += 1
            elif group == "prime":
                self._prime(place, text)
                place += 1
            elif group == "money":
                place = self._money(place, text)
            else:
                self._add("and" if text == "&" else text, None if text == "&" else Difference.WORDING)
                place += 1
        return self._out

    def _add(self, key: str, kind: Difference | None) -> None:
        self._out.append(Token(key, kind, self._indefinite))
        self._indefinite = False

    def _text(self, place: int) -> str:
        return self._texts[place] if place < len(self._texts) else ""

    def _glued(self, place: int) -> bool:
        """Whether nothing stands between a piece and the one before it."""
        return place < len(self._spans) and self._spans[place][0] == self._spans[place - 1][1]

    def _word(self, place: int, word: str) -> int:
        if word not in _SPECIAL and word.isascii() and word.isalpha():
            self._out.append(Token(word, words.KINDS.get(word), self._indefinite))
            self._indefinite = False
            return place + 1
        if word == "no" and self._portuguese:
            self._add(word, None)
            return place + 1
        if word == "mon" and self._french:
            self._add(word, Difference.SUBJECT)
            return place + 1
        if word == "no" and self._folded.startswith(",", self._spans[place][1]):
            # "No, sugar is fine" answers; "no sugar is fine" denies.
            self._add("no,", Difference.NEGATION)
            return place + 1
        if "’" in word:
            word = word.replace("’", "'")
        if not word.isascii() and _HAN.search(word):
            self._signs(word)
            return place + 1
        if word in _NOT_ONLY_A_WORD and (after := self._more_than_a_word(place, word)):
            return after
        if "'" in word and (base := word.removesuffix("'s")) != word and word not in words.CONTRACTED:
            self._plain(base)
            self._add("'s", Difference.SUBJECT)
        else:
            for written in words.CONTRACTED.get(word, (word,)):
                self._plain(written)
        return place + 1

    def _more_than_a_word(self, place: int, word: str) -> int:
        """Where reading goes on behind an article, a number, a date or a unit; 0 where `word` is only a word."""
        if word == "the":
            return place + 1
        if word in ("a", "an"):
            return self._article(place)
        if (month := tables.NEAR_A_NUMBER.get(word)) and (after := self._month(place, month)):
            return after
        if (value := self._spoken(place)) is not None:
            return self._valued(*value)
        behind_number = bool(self._out) and (self._out[-1].kind is Difference.NUMBER or self._out[-1].key == "°")
        if behind_number and (unit := tables.MEASURES.get(word) or tables.AFTER_A_NUMBER.get(word)):
            self._add(unit, Difference.UNIT)
        elif word in tables.MEASURES:
            # "an hour" is not "hours": without a number the plural counts.
            self._add(word, Difference.UNIT)
        else:
            return 0
        return place + 1

    def _article(self, place: int) -> int:
        following = self._text(place + 1)
        if (
            not following
            or following in words.NOT_BEHIND_A
            or (self._out and self._out[-1].key in words.AFTER_A_LETTER)
        ):
            return 0
        if following == "m" and self._out and self._out[-1].kind is Difference.NUMBER:
            return 0
        self._indefinite = True
        return place + 1

    def _plain(self, word: str) -> None:
        before = self._out[-1].key if self._out else None
        word = words.WRITINGS.get(word) or tables.WEEKDAYS.get(word, word)
        if before == "to" and len(self._out) > 1 and self._out[-2].key in words.BEFORE_FOOD:
            word = words.PLURALS.get(word, word)
        if word in words.THIRD_PERSON and (before is None or before in words.BEFORE_VERB):
            word = words.THIRD_PERSON[word]
        elif (
            before == "is" and word in words.GERUNDS and (len(self._out) < 2 or self._out[-2].key in words.BEFORE_VERB)
        ):
            self._out.pop()
            word = words.GERUNDS[word]
        self._add(word, words.KINDS.get(word))

    def _signs(self, word: str) -> None:
        """Scripts that write no spaces: sign by sign, numerals together."""
        for numeral, run in groupby(word, numbers.HAN.__contains__):
            signs = "".join(run)
            value = numbers.han_number(signs) if numeral and len(signs) <= _MAX_HAN else None
            if value is not None:
                self._add(f"#{value}", Difference.NUMBER)
            else:
                for sign in signs:
                    self._add(sign, Difference.NUMBER if numeral else words.KINDS.get(sign))

    def _money(self, place: int, sign: str) -> int:
        """ "$5 million" is read as "5 million dollars"; a prefix ("US$") stays a word before it."""
        unit = tables.CURRENCIES.get(sign, sign)
        after = place + 1
        if sign != "%" and after < len(self._groups) and self._groups[after] == "number":
            after = self._number(after, behind_money=True)
        self._add(unit, Difference.UNIT)
        return after

    def _prime(self, place: int, sign: str) -> None:
        """Feet or inches behind a number, but not the end of what a quotation mark has opened."""
        start = self._spans[place][0]
        opened = self._folded.rfind({"”": "“", "’": "‘"}.get(sign, sign), 0, start)
        if opened >= 0 and not self._folded[opened + 1].isspace() and not self._folded[:opened][-1:].isalnum():
            return
        self._add("~foot" if sign in "'’′" else "~inch", Difference.UNIT)

    def _is_unit(self, place: int) -> bool:
        """Whether a unit, money or a scale stands there. Some words are units only where written together."""
        word = self._text(place)
        if word in tables.AFTER_A_NUMBER:
            return self._glued(place) or word not in tables.ALSO_OTHERWISE
        return word in tables.MEASURES or word in tables.MONEY or word in numbers.SCALES or word == "°"

    def _number(self, place: int, *, behind_money: bool = False) -> int:
        written = numbers.in_ascii(self._texts[place]).replace("−", "-")
        after = place + 1
        following = self._text(after)
        glued = self._glued(after)
        if time := self._clock(written, after):
            self._add(time[0], Difference.DATE)
            return time[1]
        if written.isdigit() and len(written) <= _MAX_DIGITS:
            if glued and following in ("st", "nd", "rd", "th"):
                return self._valued(int(written), True, after + 1)
            if not written.startswith("0") or len(written) <= 2:
                if glued and following == "s":
                    self._add(f"@{written}s", Difference.DATE)
                    return after + 1
                if self._day(int(written), after):
                    return self._valued(int(written), False, after)
        behind_money = behind_money or (bool(self._out) and self._out[-1].key in tables.MONEY)
        measured = behind_money or self._is_unit(after)
        key = numbers.number_key(written, commas_are_decimal=self._commas_are_decimal, measured=measured)
        key, after = self._scaled(key, after)
        self._add(key, Difference.DATE if key.startswith("@") else Difference.NUMBER)
        return after

    def _scaled(self, key: str, after: int) -> tuple[str, int]:
        """A number with the "thousand" or "k" behind it."""
        digits = key[1:]
        while (
            (scale := numbers.SCALES.get(self._text(after)))
            and len(digits) <= _MAX_DIGITS
            and _SCALABLE.fullmatch(digits)
            and (self._text(after) != "k" or self._glued(after))
        ):
            value = Decimal(digits) * scale
            digits = f"{value.normalize():f}"
            after += 1
        return key[0] + digits, after

    def _clock(self, written: str, after: int) -> tuple[str, int] | None:
        """A time of day with its "am", "p.m." or "Uhr", as `@22:30`, and where reading goes on."""
        following = self._text(after)
        half = following[:1]
        if following in ("a", "p") and self._text(after + 1) == "m":
            end = after + 2
        elif following in ("am", "pm", "uhr", "o'clock", "o’clock"):
            end = after + 1
        else:
            return None
        found = _HOUR.fullmatch(written)
        if not found or int(found[1]) > 23 or (half in "ap" and not 1 <= int(found[1]) <= 12):
            return None
        hour = int(found[1]) % 12 + (12 if half == "p" else 0) if half in "ap" else int(found[1])
        return f"@{hour}:{found[2] or '00'}", end

    def _spoken(self, place: int) -> tuple[int, bool, int] | None:
        """The value of number words from `place` on, whether it is an ordinal, and where reading goes on."""
        total, part, seen, ordinal = 0, 0, "", False
        start = place
        while word := self._text(place):
            if word in numbers.TENS and seen in ("", "hundred", "and"):
                part, seen = part + numbers.TENS[word], "tens"
            elif (ones := numbers.ONES.get(word)) is not None and (
                seen in ("", "hundred", "and") or (seen == "tens" and 0 < ones < 10)
            ):
                part, seen = part + ones, "ones"
            elif word in numbers.ORDINALS and (seen == "" or (seen == "tens" and numbers.ORDINALS[word] < 10)):
                part, ordinal, place = part + numbers.ORDINALS[word], True, place + 1
                break
            elif word in numbers.FOREIGN and seen == "":
                part, seen = numbers.FOREIGN[word], "ones"
            elif word in ("hundred", "hundert") and seen in ("", "ones", "tens") and part < 100:
                part, seen = (part or 1) * 100, "hundred"
            elif word in numbers.SCALES and word != "k" and word not in ("hundred", "hundert") and total == 0:
                total, part, seen = (part or 1) * numbers.SCALES[word], 0, "hundred"
            elif word == "and" and seen == "hundred" and self._text(place + 1) in _COUNTED:
                seen = "and"
            else:
                break
            place += 1
        return None if place == start else (total + part, ordinal, place)

    def _valued(self, value: int, ordinal: bool, after: int) -> int:
        """Emit a number, with the month that may follow it."""
        if day := self._day(value, after):
            month, after = day
            year, after = self._year(after)
            self._add(numbers.date_key(year, month, value), Difference.DATE)
        elif not ordinal and (time := self._clock(str(value), after)):
            self._add(time[0], Difference.DATE)
            return time[1]
        else:
            self._add(f"#{value}th" if ordinal else f"#{value}", Difference.NUMBER)
        return after

    def _day(self, value: int, after: int) -> tuple[int, int] | None:
        """The month behind a day's number ("15 October", "15th of October", "15 de outubro")."""
        if not 1 <= value <= 31:
            return None
        if self._text(after) in ("of", "de"):
            after += 1
        month = tables.NEAR_A_NUMBER.get(self._text(after))
        return None if month is None else (month, after + 1)

    def _year(self, place: int) -> tuple[int | None, int]:
        after = place + 1 if self._text(place) in ("of", "de") else place
        if _YEAR.fullmatch(self._text(after)):
            return int(self._text(after)), after + 1
        return None, place

    def _month(self, place: int, month: int) -> int:
        """A month with the day or the year behind it; 0 where a word that can be a month stands alone."""
        year, after = self._year(place + 1)
        if year is not None:
            self._add(numbers.date_key(year, month, None), Difference.DATE)
            return after
        written, after = self._text(place + 1), place + 2
        day: int | None = None
        if _DAY.fullmatch(written):
            day = int(written)
            if self._text(after) in ("st", "nd", "rd", "th") and self._glued(after):
                after += 1
        elif (spoken := self._spoken(place + 1)) is not None and spoken[1]:
            day, _, after = spoken
        if day is not None and 1 <= day <= 31 and not self._clock(written, after):
            year, after = self._year(after)
            self._add(numbers.date_key(year, month, day), Difference.DATE)
            return after
        if self._text(place) in tables.MONTHS:
            self._add(f"@m{month:02}", Difference.DATE)
            return place + 1
        return 0


_COUNTED: Final = frozenset({*numbers.ONES, *numbers.TENS})
_NOT_ONLY_A_WORD: Final = frozenset(
    {"the", "a", "an", *tables.NEAR_A_NUMBER, *tables.MEASURES, *tables.AFTER_A_NUMBER, *numbers.ONES, *numbers.TENS}
    | {*numbers.ORDINALS, *numbers.FOREIGN, *numbers.SCALES}
)

_SPECIAL: Final = _NOT_ONLY_A_WORD.union(
    ("no", "mon"), words.CONTRACTED, words.WRITINGS, words.PLURALS, words.THIRD_PERSON, words.GERUNDS, tables.WEEKDAYS
)
"""Words that may be read as something else than they are written."""


def capitalised(text: str) -> Iterator[tuple[str, str, bool]]:
    """The words of `text` that begin with a capital, folded; the word before each; whether it begins a sentence."""
    text = unicodedata.normalize("NFKC", text)
    end, before = 0, ""
    for found in _LETTERS.finditer(text):
        word = folded(found[0])
        if found[0][0].isupper():
            first = not before or bool(_SENTENCE_END.search(text, end, found.start()))
            yield word.replace("’", "'").removesuffix("'s"), before, first
        end, before = found.end(), word


_LETTERS: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SENTENCE_END: Final = re.compile(r"[.!?\n]")

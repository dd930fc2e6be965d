"""Numbers, dates and times written in digits; numbers written in words."""

import re
import unicodedata
from typing import Final

_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "millions": 1_000_000, "k": 1000}
_OTHER_SCALES: Final = {"tausend": 1000, "hundert": 100}
_ENGLISH_WORDS: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
"""
_ENGLISH: Final = tuple(_ENGLISH_WORDS.split())
_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS_WORDS: Final = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
"""
_ORDINALS: Final = tuple(_ORDINALS_WORDS.split())

# Words that mean something else in a language nearby are left out ("elf", "once", "sept", "dos", "quince", "mil").
_FOREIGN: Final = {
    2: "zwei deux", 3: "três tres drei trois", 4: "quatro vier cuatro quatre", 5: "cinco fünf cinq", 6: "seis sechs",
    7: "sete sieben siete", 8: "oito acht ocho huit", 9: "nove neun nueve neuf", 10: "dez zehn diez dix",
    11: "onze", 12: "zwölf doce douze", 13: "treze dreizehn trece treize", 14: "catorze quatorze vierzehn catorce",
    15: "quinze fünfzehn", 16: "dezesseis sechzehn", 20: "vinte zwanzig veinte vingt",
    30: "trinta dreißig dreissig treinta trente", 40: "quarenta vierzig cuarenta quarante",
    50: "cinquenta fünfzig cincuenta cinquante", 60: "sessenta sechzig sesenta soixante",
    70: "setenta siebzig", 80: "oitenta achtzig ochenta", 90: "noventa neunzig", 100: "cem hundert cien",
}  # fmt: skip

ONES: Final = {word: value for value, word in enumerate(_ENGLISH)}
TENS: Final = {word: 10 * place for place, word in enumerate(_TENS, start=2)}
ORDINALS: Final = {word: place for place, word in enumerate(_ORDINALS, start=1)}
SCALES: Final = {**_SCALES, **_OTHER_SCALES}
FOREIGN: Final = {word: value for value, words in _FOREIGN.items() for word in words.split()}
HAN: Final = {
    **{sign: place for place, sign in enumerate("零一二三四五六七八九")},
    "〇": 0, "两": 2, "兩": 2, "十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "亿": 100_000_000,
}  # fmt: skip

_ISO: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DOTTED: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_SLASHED: Final = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::00)?")
_COMMA_GROUPS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}")
_DOT_GROUPS: Final = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
_OTHER_GROUPS: Final = re.compile(r"[1-9]\d{0,2}(?:['’٬]\d{3})+(?:[.,٫]\d+)?")
_DECIMAL: Final = re.compile(r"(\d+)[.,٫](\d+)")


def in_ascii(written: str) -> str:
    """Digits of any script as 0–9."""
    if written.isascii():
        return written
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in written)


def number_key(written: str, *, commas_are_decimal: bool, measured: bool) -> str:
    """What digits with their signs mean: `#5000`, `@2026-10-15`, `@10:30`.

    What has two readings ("5.000", "03/04/2026") is its writing, so that it equals neither. Zeros at the end count
    unless it is `measured`: "5.0 kg" is "5 kg", but 3.1 is not 3.10 where it may be a version.
    """
    if written.isdigit():
        return "#" + written
    if found := _ISO.fullmatch(written):
        return date_key(int(found[1]), int(found[2]), int(found[3]))
    if found := _DOTTED.fullmatch(written):
        return date_key(int(found[3]), int(found[2]), int(found[1]))
    if found := _SLASHED.fullmatch(written):
        first, second = int(found[1]), int(found[2])
        if first > 12 >= second:
            return date_key(int(found[3]), second, first)
        if second > 12 >= first:
            return date_key(int(found[3]), first, second)
        return "@" + written
    if (found := _CLOCK.fullmatch(written)) and int(found[1]) < 24:
        return f"@{int(found[1])}:{found[2]}"
    return "#" + _plain(written, commas_are_decimal=commas_are_decimal, measured=measured)


def _plain(written: str, *, commas_are_decimal: bool, measured: bool) -> str:
    dotted, commaed = _DOT_GROUPS.fullmatch(written), _COMMA_GROUPS.fullmatch(written)
    one_group = written.count(".") + written.count(",") == 1
    if commaed and (not commas_are_decimal or not one_group):
        written, measured = written.replace(",", ""), True
    elif dotted and (commas_are_decimal or not one_group):
        written, measured = written.replace(".", "").replace(",", "."), True
    elif _OTHER_GROUPS.fullmatch(written):
        written, measured = re.sub("['’٬]", "", written), True
    elif dotted or commaed:
        return written
    if found := _DECIMAL.fullmatch(written):
        decimals = found[2].rstrip("0") if measured else found[2]
        return f"{found[1]}.{decimals}" if decimals else found[1]
    return written.replace("–", "-")


def date_key(year: int | None, month: int, day: int | None) -> str:
    """`@2026-10-15`, `@10-15` without a year, `@2026-10` without a day."""
    parts = [f"{year}"] if year is not None else []
    parts.append(f"{month:02}")
    if day is not None:
        parts.append(f"{day:02}")
    return "@" + "-".join(parts)


def han_number(written: str) -> int | None:
    """The value of Chinese numerals: 三十五 → 35. None for digits read one by one (二〇二六)."""
    total, ones = 0, None
    section = 0
    for sign in written:
        value = HAN[sign]
        if value >= 10_000:
            total, section, ones = (total + section + (ones or 0)) * value, 0, None
        elif value >= 10:
            section, ones = section + (1 if ones is None else ones) * value, None
        elif ones is None or ones == 0:
            ones = value
        else:
            return None
    return total + section + (ones or 0)

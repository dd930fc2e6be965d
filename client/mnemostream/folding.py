"""A text as a pattern for secrets reads it: the same signs whatever way they are encoded.

Full-width and mathematical letters, digits of any script, odd spaces and dashes become ASCII; signs that have no width
go; letters of other scripts that stand for Latin ones in a Latin word become these. Only what is searched is folded,
never what is kept.
"""

import re
import unicodedata
from typing import Final

_TABLE_BELOW: Final = 0x20000
"""What lies above is not kept in the table, which bounds it; there are no letters or digits to fold there."""
_WITH_ACCENT: Final = re.compile("[A-Za-z][\u0300-\u0303\u0308\u0327]")
_CONTROLS_THAT_PART: Final = frozenset([0x0B, 0x1C, 0x1D, 0x1E, 0x1F, 0x85])
"""Controls that Unicode counts as space and RE2 does not."""
_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԌԚԜвкмнтαεικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոցɑɡı",
    "aeopcyxijshdqwlABEKMHOPCTYXIJSGQWbkmhtaeikvoptuxwcjABEZHIKMNOPTYXousngagi",
)
"""Letters of Cyrillic, Greek and Armenian, and odd Latin ones, that look like a letter of ASCII."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LETTER: Final = re.compile("[A-Za-z]")
_DISGUISED: Final = re.compile("[A-Za-z][{0}]|[{0}][A-Za-z]".format("".join(map(chr, _LOOK_ALIKE))))
"""Where a word changes scripts."""


def foldings(text: str) -> tuple[str, ...]:
    """The ways to read `text`: one, or two where invisible signs may stand for nothing or for a space."""
    if text.isascii():
        return (text.translate(_TABLE),)
    if _INVISIBLE.search(text) is None:
        return (_folded(text),)
    return _folded(_INVISIBLE.sub("", text)), _folded(_INVISIBLE.sub(" ", text))


def _folded(text: str) -> str:
    plain = _WITH_ACCENT.sub(lambda match: unicodedata.normalize("NFC", match.group()), text.translate(_TABLE))
    return _WORD.sub(_latin, plain) if _DISGUISED.search(plain) else plain


def _latin(match: re.Match[str]) -> str:
    """A word of Latin letters and of such as look like them, all in Latin; any other word as it is."""
    word = match.group()
    latin = word.translate(_LOOK_ALIKE)
    return latin if latin != word and latin.isascii() and _LETTER.search(word) else word


class _Table(dict[int, int | str | None]):
    """What becomes of a code point, worked out when it is first seen."""

    def __missing__(self, code: int) -> int | str | None:
        becomes = _becomes(chr(code)) if code < _TABLE_BELOW else code
        if code < _TABLE_BELOW:
            self[code] = becomes
        return becomes


def _becomes(sign: str) -> int | str | None:
    code = ord(sign)
    if code in _CONTROLS_THAT_PART:
        return " "
    if code < 0x80:
        return code
    match unicodedata.category(sign):
        case "Cf":
            return None
        case "Nd":
            return str(unicodedata.decimal(sign))
        case "Zs" | "Zl" | "Zp":
            return " "
        case "Pd":
            return "-"
        case _ if sign == "\u2212":
            return "-"
        case _:
            plain = unicodedata.normalize("NFKC", sign)
            return plain if plain.isascii() and plain.strip() else code


_TABLE: Final = _Table()

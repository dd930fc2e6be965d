"""Whether what a pattern caught is a secret: checksums, and the difference between a value and a word about one.

Each check gets the groups that its pattern captured (the whole match where it captured none) and the rest of the line.
"""

import re
from typing import Final

_COUNTRIES: Final = {
    15: "NO",
    16: "BE",
    18: "DK FI FK FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
"""By the length of their IBANs, from the registry of ISO 13616."""
_IBAN_LENGTHS: Final = {country: length for length, names in _COUNTRIES.items() for country in names.split()}
_CARD: Final = re.compile(
    r"4[0-9]{15}(?:[0-9]{3})?|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|62[0-9]{14,17}|(?:50|5[6-9]|6[0-9])[0-9]{14}"
)
"""The prefixes and lengths that card networks issue; without them one number in ten of 16 digits would pass Luhn."""
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INNER_CAPITAL: Final = re.compile(r"[a-z][A-Z]")
_IDENTIFIER_PATH: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+[\[\])]*")
_REFERENCE: Final = re.compile(r"[<${%\[(]|https?://|process\.env|os\.environ", re.IGNORECASE)
_ABOUT_CODE: Final = re.compile(r"pass|pwd|secret|token|value|field|input|config|env|string|hash", re.IGNORECASE)
_DESCRIBES: Final = re.compile(r"(?:ed|ing|able|ible|ful|less|ous|ly)$")
_WRAPPING: Final = "\"'`“”‘’«»,;:)]}"
_SHORTEST_PASSWORD: Final = 4
_WORDS_IN_A_PHRASE: Final = 4
_GLUE: Final = frozenset(
    ["a", "an", "and", "are", "as", "at", "be", "but", "for", "i", "in", "is", "it", "my", "not", "of", "or", "so"]
)
_WORDS_ABOUT: Final = """
about above absent again all already also alt always an and any anything available bad base64 basic because been
before being below best better blank bool boolean both broken but bytes can case-insensitive case-sensitive clear
complex complicated confidential correct correcta correta crucial dead default different difficult down débil easy
either else empty enough errada essential even every everything faible falsch false fine for forte fraca from fuerte
fun given gone good great half hard hash hashes here hidden high how important in-progress incorrect incorrecta
incorrecte insecure insegura int integer invalid it its just kept key known kurz lame lang last leer left less like
local long lost lower lowercase mandatory maybe mine missing more most much must muy my neu never new nicht nil no
none not nothing now null obvious off okay old on once only open optional ours out over overdue perfect permanent
plain plaintext please poor possible present private public quite random rather reset richtig right safe same
schwach secret secretstr secure segura sehr sensitive set short sicher simple so some something sometimes somewhere
soon stark still str string strong stuck such super sure temporary terrible text that the their them then there
these they this those to token too trivial true true/false type ugly unclear undefined under unique unknown unsafe
unsicher until up upper uppercase useful useless valid value varchar very visible weak weird well what when where
which who why will wise with without wrong yes yet you your yours
"""
_NOT_A_SECRET: Final = frozenset(_WORDS_ABOUT.split())
"""What people write behind "password is" when they talk about one, and names of types and constants in code."""


def is_card_number(groups: tuple[str, ...], _rest: str) -> bool:
    """A number that a card network issues, with the right check digit (Luhn)."""
    digits = re.sub(r"[ -]", "", groups[0])
    if _CARD.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(int(digit) for digit in digits[-1::-2]) + sum(value - 9 if value > 9 else value for value in doubled)
    return total % 10 == 0


def is_iban(groups: tuple[str, ...], _rest: str) -> bool:
    """An account number of its country's length with the right check digits (ISO 13616, mod 97)."""
    compact = re.sub(r"[ -]", "", groups[0]).upper()
    length = _IBAN_LENGTHS.get(compact[:2])
    if length is None or len(compact) < length:
        return False
    account = compact[4:length] + compact[:4]
    return int("".join(str(int(sign, 36)) for sign in account)) % 97 == 1


def looks_random(groups: tuple[str, ...], _rest: str) -> bool:
    """A made-up string rather than words or an identifier: digits among letters, or long with mixed case."""
    value = groups[0].strip(_WRAPPING)
    if _is_reference(value) or len(value) < 8 or not any(sign.isalpha() for sign in value):
        return False
    digits = sum(sign.isdigit() for sign in value)
    if digits >= 2 or (digits == 1 and len(value) >= 20):
        return True
    return len(value) >= 20 and value.isalnum() and not (value.islower() or value.isupper() or value.istitle())


def is_written_out(groups: tuple[str, ...], _rest: str) -> bool:
    """A password inside an address, and not a sign that stands for one."""
    return not _is_reference(groups[0])


def is_password(groups: tuple[str, ...], rest: str) -> bool:
    """What stands behind "password is" is one, and not a word about it ("wrong", "required", a type, a variable).

    groups: the label, the opening quote or nothing, the value up to the next space.
    """
    label, quote, raw = groups
    value = raw.strip(_WRAPPING).rstrip(".!?") or raw
    word = value.casefold()
    if "phrase" in label.casefold() and _is_phrase((raw + rest).casefold().split()):
        return True
    if word in _NOT_A_SECRET or _is_reference(value):
        return False
    if len(value) < _SHORTEST_PASSWORD:
        return False
    if _PLAIN_WORD.fullmatch(value) is None:
        return True
    if _INNER_CAPITAL.search(value):
        return _ABOUT_CODE.search(value) is None
    if quote:
        return raw.rstrip(",;)]}.")[-1:] in _WRAPPING
    ends_here = not rest.strip() or raw[-1] in ".,;!?\"'" or rest.lstrip()[:1] in ",;)-–"
    return ends_here and _DESCRIBES.search(word) is None and _ABOUT_CODE.search(word) is None


def _is_phrase(words: list[str]) -> bool:
    """Words strung together as no sentence is."""
    return len(words) >= _WORDS_IN_A_PHRASE and _GLUE.isdisjoint(words)


def _is_reference(value: str) -> bool:
    """A placeholder, a variable, a call: it stands for a secret and holds none."""
    return (
        len(set(value)) <= 1
        or "(" in value
        or _REFERENCE.match(value) is not None
        or _IDENTIFIER_PATH.fullmatch(value) is not None
        or value.casefold().startswith(("your_", "your-", "xxxx", "****", "....", "[redacted"))
    )

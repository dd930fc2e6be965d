"""Whether what a pattern caught is the number of an account or of a person: by length, prefix and check digits.

Each check gets the groups that its pattern captured and the rest of the line.
"""

import re
from itertools import islice
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
    28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
"""By the length of their IBANs, from the registry of ISO 13616."""
_IBAN_LENGTHS: Final = {country: length for length, names in _COUNTRIES.items() for country in names.split()}
_IBAN_START: Final = re.compile(r"(?<![A-Z0-9])[A-Z]{2} ?[0-9]{2}")
_IBAN_GAPS: Final = re.compile(r"[ .-]+")
_IBAN_SIGN: Final = re.compile(r"[^ .-]")
_CARD: Final = re.compile(
    r"4[0-9]{15}(?:[0-9]{3})?|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|62[0-9]{14,17}|(?:50|5[6-9]|6[0-9])[0-9]{14}"
)
"""The prefixes and lengths that card networks issue; without them one number in ten of 16 digits would pass Luhn."""
_CARD_GROUPS: Final = frozenset(
    [
        *((size,) for size in range(14, 20)),
        *((size * (1,)) for size in range(14, 17)),
        *[
            (4, 4, 4, 4),
            (4, 4, 4, 4, 3),
            (4, 6, 5),
            (4, 6, 4),
            (8, 8),
            (4, 4, 8),
            (8, 4, 4),
            (4, 8, 4),
            (4, 12),
            (12, 4),
        ],
        *[(6, 10), (6, 13), 8 * (2,)],
    ]
)
"""How people write the number of a card; any other row of numbers is a row of numbers."""
_LONGEST_CARD: Final = 19
_DIGITS_IN_AN_ACCOUNT: Final = 0.45
"""The least share of digits in an IBAN; letters and digits of a sentence have less."""


def is_card_number(groups: tuple[str, ...], rest: str) -> bool:
    """Holds a number that a card network issues, with the right check digit (Luhn), grouped as people group it."""
    numbers = re.findall(r"[0-9]+", groups[0])
    gaps = [*re.findall(r"[^0-9]+", groups[0]), ""]
    if rest[:1].isalnum() or rest[:1] == "_" or re.match(r"-\w", rest):
        numbers.pop()
    for start in range(len(numbers)):
        digits = ""
        sizes: tuple[int, ...] = ()
        for number, gap in zip(numbers[start:], gaps[start:], strict=False):
            digits, sizes = digits + number, (*sizes, len(number))
            if len(digits) > _LONGEST_CARD:
                break
            if sizes in _CARD_GROUPS and _CARD.fullmatch(digits) and len(set(digits)) > 1 and _luhn(digits):
                return True
            if gap != gaps[start]:
                break
    return False


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(int(digit) for digit in digits[-1::-2]) + sum(value - 9 if value > 9 else value for value in doubled)
    return total % 10 == 0


def is_iban(groups: tuple[str, ...], rest: str) -> bool:
    """Holds an account number of its country's length with the right check digits (ISO 13616, mod 97)."""
    text = groups[0].upper() + rest[:1].upper()
    return any(_begins_with_iban(text[match.start() :]) for match in _IBAN_START.finditer(text))


def _begins_with_iban(text: str) -> bool:
    length = _IBAN_LENGTHS.get(text[:2])
    if length is None:
        return False
    compact = _IBAN_GAPS.sub("", text)
    account = compact[:length]
    if len(account) < length or not (account.isascii() and account.isalnum()) or not _ends_at_gap(text, length):
        return False
    if sum(map(str.isdigit, account)) < _DIGITS_IN_AN_ACCOUNT * length:
        return False
    return int("".join(str(int(sign, 36)) for sign in account[4:] + account[:4])) % 97 == 1


def _ends_at_gap(text: str, length: int) -> bool:
    """Whether no letter or digit follows directly upon the first `length` of `text`."""
    ends = [match.end() for match in islice(_IBAN_SIGN.finditer(text), length)]
    return not text[ends[-1] : ends[-1] + 1].isalnum()


def is_cpf(groups: tuple[str, ...], _rest: str) -> bool:
    """A Brazilian taxpayer's number with the right two check digits (mod 11)."""
    digits = [int(sign) for sign in groups[0] if sign.isdigit()]
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    return all(
        sum(digit * (size + 1 - place) for place, digit in enumerate(digits[:size])) * 10 % 11 % 10 == digits[size]
        for size in (9, 10)
    )


def is_social_security_number(groups: tuple[str, ...], _rest: str) -> bool:
    """A number that the US could have given out: no part of it is all zeros, and 666 is never given."""
    digits = re.sub(r"[^0-9]", "", groups[0])
    return len(digits) == 9 and digits[:3] not in {"000", "666"} and digits[3:5] != "00" and digits[5:] != "0000"

"""Whether what a pattern caught is a secret: checksums, and the difference between a value and a word about one.

Each check gets the groups that its pattern captured (the whole match where it captured none) and the rest of the line.
"""

import base64
import re
from itertools import pairwise
from typing import Final

from mnemostream.secret_words import ABOUT_ONE, ENDS_ABROAD, ENDS_ENGLISH, GLUE, OF_PHRASES, TOPICS

_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INNER_CAPITAL: Final = re.compile(r"[a-z][A-Z]")
_IDENTIFIER_PATH: Final = re.compile(r"[&*@]?[A-Za-z_]\w*(?:(?:\??\.|->|::)[A-Za-z_]\w*)+(?:[\[\])!?;,]|\(.*)*")
_CALL: Final = re.compile(r"[A-Za-z_][\w.:>-]*\(")
_TYPE: Final = re.compile(
    r"[&*]?(?:\[\])?(?:str|string|bytes?|optional|option|secretstr|mapped|annotated|union|list|literal|char|text|any|"
    r"n?varchar|int|bool|final|(?:not)?required|unknown|password|null)(?:[\[<({!?|\]].*)?",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(r"[A-Za-z_]*_[A-Za-z_]*")
_REFERENCE: Final = re.compile(
    r"[<${%\[(]|\.\.\.|…|[a-z]+://|process\.env|os\.environ|vault:|secret:|!(?:ref|sub|vault|env|getatt)\b"
    r"|(?:\.{0,2}|~)/\w+/|[a-z_]+\[",
    re.IGNORECASE,
)
_STANDS_FOR_ONE: Final = (
    *(
        "your_",
        "your-",
        "my_password",
        "xxxx",
        "****",
        "....",
        "----",
        "[redacted",
        "redacted",
        "<redacted",
        "example_",
    ),
    *("change_me", "insert_", "replace_", "todo", "…", "•", "●"),
)
_ABOUT_CODE: Final = re.compile(r"pass|pwd|secret|token|value|field|input|config|env|string|hash", re.IGNORECASE)
_NAME_IN_CODE: Final = re.compile(
    r"pass(?:w|_|$)|pwd|token|hash|input|field|param|arg|env|cfg|config|user|value|str|key|credential|auth|from|get",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(r"[A-Za-z]+[|/,:;]")
_SIZE: Final = re.compile(r"[0-9]{1,4}(?:[-–+][0-9]{0,4})?")
_UNIT: Final = re.compile(
    r"\s*(?:or more |to \d+ |bis \d+ |a \d+ )?(?:char|bit|byte|digit|letter|symbol|word|day|hour|minute|month|year"
    r"|zeichen|stellen|car[aá]ct|lettre|caratteri|tekens|символ|dias|días|jours|tage)",
    re.IGNORECASE,
)
_ENDS_ENGLISH: Final = re.compile(ENDS_ENGLISH)
_ENDS_ABROAD: Final = re.compile(f"{ENDS_ENGLISH}|{ENDS_ABROAD}")
_ENGLISH_LABEL: Final = re.compile(r"pass|pwd|pw|seed|recovery|security|secret|answer", re.IGNORECASE)
_ENGLISH_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|be|been|set|changed|reset|updated)\b|[:=：>]|['’]s", re.IGNORECASE
)
_TWO_MEANINGS: Final = frozenset(["parola", "parolă", "parola chiave", "mdp"])
"""Labels that are common words as well: a password behind them has to look like one."""
_SENTENCE_GOES_ON: Final = re.compile(
    r"\s+(?:and|but|so|for|if|please|btw|by the way|ok|okay|thanks|don['’]t|do not|just|in case|und|aber|y|e|et|mas"
    r"|mais|pero|ma|en|и)\b",
    re.IGNORECASE,
)
_NAMED_SCHEME: Final = re.compile(
    r"(?:sha|md|argon|pbkdf|bcrypt|scrypt|oauth|base|aes|rsa|utf|rfc|iso|nist|cve|http|tls|ssl|web|v|w|q|p|ntlm|win"
    r"|windows|python|php|http|id|ipv|s)-?[0-9][\w.-]*|argon2id?|1password|[0-9]+(?:st|nd|rd|th|[a-z]{1,7})"
    r"|[0-9]{1,4}(?:[-/:.][0-9A-Za-z]+)+|[a-z]+[0-9]{1,3}[.)]?",
    re.IGNORECASE,
)
_INNER_SIGN: Final = re.compile(r"\w[!@#$%^&*?]\w")
_OF_CODE: Final = re.compile(r"[()=/\\|:]")
_DATE_OR_VERSION: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*|v?[0-9]+(?:\.[0-9A-Za-z]+)+|[a-z_]+[0-9]{1,2}", re.IGNORECASE
)
_SHORTEST_KEY_OF_DIGITS: Final = 10
_STANDARD: Final = re.compile(
    r"(?:sha|md|argon|pbkdf|aes|hmac|iso|rfc|cve|utf|nist)[-_]?[0-9].*|[0-9]+[-:.][0-9].*", re.IGNORECASE
)
_ADDRESS: Final = re.compile(
    r"[^@\s]*@(?:[\w-]+\.)+\w+|(?:[\w-]+\.)+[A-Za-z]{2,6}(?:[:/].*)?|[#$€£]?[0-9.,]+[%€$kKmM]?"
)
_WRAPPING: Final = "\"'`“”‘’«»„「」『』,;:)]}*|\\"
_SHORTEST_PASSWORD: Final = 4
_SHORTEST_STRONG: Final = 6
_WORDS_IN_A_PHRASE: Final = 4
_WORDS_IN_A_SPOKEN_PHRASE: Final = 3
_OF_WORDS: Final = re.compile("phrase| words", re.IGNORECASE)
_LAST_OF_SENTENCE: Final = re.compile(r"[.!?;,](?:\s|$)")
_ARTICLES: Final = frozenset(["a", "an", "the"])
_WORD_IN_QUOTES: Final = re.compile(r"[\w'’!@#$%&*-]+")
_WORDS_IN_QUOTES: Final = range(2, 9)
_WORDS_AFTER_A_LABEL: Final = 14
_JOINS: Final = frozenset(
    [
        *["is", "was", "are", "to", "now", "be", "-", "->", ">", "|", "=", ":"],
        *["ist", "war", "lautet", "es", "era", "é", "e", "est", "è", "je", "là", "это"],
    ]
)


def looks_random(groups: tuple[str, ...], _rest: str) -> bool:
    """A made-up string rather than words or an identifier: digits among letters, or long and jumbled."""
    value = groups[-1].strip(_WRAPPING)
    if len(value) < 8 or not any(map(str.isalpha, value)):
        return False
    digits = sum(map(str.isdigit, value))
    made_up = digits >= 2 or (digits == 1 and len(value) >= 20) or (len(value) >= 20 and _is_unspeakable(value))
    return made_up and not is_reference(value)


def _is_unspeakable(value: str) -> bool:
    return value.isalnum() and (_is_jumbled(value) or (len(value) >= 24 and value.islower()))


def is_labelled_key(groups: tuple[str, ...], rest: str) -> bool:
    """What stands behind "token:" is one: made up, and neither a date nor a version nor a name in code."""
    value = groups[-1].strip(_WRAPPING)
    if _DATE_OR_VERSION.fullmatch(value):
        return False
    if value.isdigit():
        return len(value) >= _SHORTEST_KEY_OF_DIGITS
    return looks_random((value,), rest) or (len(value) >= 8 and _is_strong(value))


def is_bare_aws_secret(groups: tuple[str, ...], _rest: str) -> bool:
    """Forty signs of base64 that are no words, no path and no hash."""
    value = groups[0]
    mixed = any(map(str.islower, value)) and any(map(str.isupper, value)) and any(map(str.isdigit, value))
    return mixed and _runs(value) >= 16 and not _says_something(value)


def is_wrapped_key(groups: tuple[str, ...], _rest: str) -> bool:
    """Base64 of a private key's block, as Kubernetes and CI variables hold them."""
    value = groups[0][:200]
    return b"PRIVATE KEY" in base64.b64decode(value[: len(value) // 4 * 4])


def is_written_out(groups: tuple[str, ...], _rest: str) -> bool:
    """A password inside an address or a header, and not a sign or a word that stands for one."""
    value = groups[-1]
    return not is_reference(value) and re.sub(r"[^a-z]", "", value.casefold()) not in _IN_EXAMPLES


_IN_EXAMPLES: Final = frozenset(
    ["authentication", "authorization", "credentials", "required", "accesstoken", "yourtoken"]
)


def is_password(groups: tuple[str, ...], rest: str) -> bool:
    """What stands behind "password is" is one, and not a word about it ("wrong", "required", a type, a variable).

    groups: the label, what joins it to the value, the opening quote or nothing, the value up to the next space.
    """
    label, means, quote, raw = groups
    value = raw.strip(_WRAPPING).rstrip(".!?") or raw
    word = value.casefold()
    if _OF_WORDS.search(label):
        words = _LAST_OF_SENTENCE.split((raw + rest).casefold(), maxsplit=1)[0].split()
        if _is_phrase((raw + rest).casefold().split()) or (_ENGLISH_VERB.search(means) and _is_spoken_phrase(words)):
            return True
    if word in ABOUT_ONE or is_reference(value) or len(value) < _SHORTEST_PASSWORD:
        return False
    if label.casefold() in _TWO_MEANINGS:
        return _is_strong(value)
    if _PLAIN_WORD.fullmatch(value) is None:
        return not _is_rule_or_code(value, rest, quoted=bool(quote))
    if _INNER_CAPITAL.search(value):
        return _ABOUT_CODE.search(value) is None
    if quote:
        return raw.rstrip(",;)]}.")[-1:] in _WRAPPING
    english = _ENGLISH_LABEL.match(label) and _ENGLISH_VERB.search(means)
    ends_here = (
        not rest.strip() or raw[-1] in ".,;!?\"'" or rest.lstrip()[:1] in ",;)-–(" or _SENTENCE_GOES_ON.match(rest)
    )
    describes = (_ENDS_ENGLISH if english else _ENDS_ABROAD).search(word)
    return bool(ends_here) and describes is None and _ABOUT_CODE.search(word) is None


def is_quoted_phrase(groups: tuple[str, ...], _rest: str) -> bool:
    """Several words in quotes behind a label: a password, unless they say something about one."""
    phrase = next(filter(None, groups[::-1])).casefold().strip()
    words = phrase.rstrip(".!?").split()
    if (
        len(words) not in _WORDS_IN_QUOTES
        or not GLUE.isdisjoint(words)
        or not all(map(_WORD_IN_QUOTES.fullmatch, words))
    ):
        return False
    if words[0] in ABOUT_ONE - {"correct"} or _ENDS_ENGLISH.search(words[0]):
        return False
    return not any(map(_ABOUT_CODE.search, words))


def is_password_by_itself(groups: tuple[str, ...], _rest: str) -> bool:
    """A password near its label, without the words that would make it one: it has to look like one."""
    return _is_strong(groups[-1].strip(_WRAPPING).rstrip(".!?"))


def is_password_further_on(groups: tuple[str, ...], _rest: str) -> bool:
    """A password further on in its label's sentence, right behind the label or behind a word that joins them.

    It has to look like one, and what follows the label must not make another thing of it (the password policy).
    """
    before = ""
    for place, raw in enumerate(groups[0].split()[:_WORDS_AFTER_A_LABEL]):
        word = raw.strip(_WRAPPING).rstrip(".!?").casefold()
        if place <= 2 and word in TOPICS:
            return False
        if (place == 0 or before in _JOINS or before.endswith((":", "="))) and _is_strong(
            raw.strip(_WRAPPING).rstrip(".!?")
        ):
            return True
        if raw[-1] in ".!?;":
            return False
        before = raw.casefold()
    return False


def is_code(groups: tuple[str, ...], rest: str) -> bool:
    """A short number that opens something, and neither a year's date nor part of a longer number."""
    return re.match(r"[./-]?[0-9]|%|\s*(?:€|\$|eur\b|usd\b|km\b|kg\b)", rest, re.IGNORECASE) is None and bool(groups)


def is_session_cookie(groups: tuple[str, ...], _rest: str) -> bool:
    """A cookie's value is given, and it is no sign that stands for one."""
    value = groups[-1].strip(_WRAPPING)
    return len(value) >= 4 and not is_reference(value) and value.casefold() not in ABOUT_ONE


def is_reference(value: str) -> bool:
    """A placeholder, a variable, a call: it stands for a secret and holds none."""
    return (
        (len(set(value)) <= 1 and not value.isdigit())
        or _REFERENCE.match(value) is not None
        or _CALL.match(value) is not None
        or value.rstrip(_WRAPPING).endswith(("…", "..."))
        or _IDENTIFIER_PATH.fullmatch(value) is not None
        or value.casefold().startswith(_STANDS_FOR_ONE)
    )


def _is_rule_or_code(value: str, rest: str, *, quoted: bool) -> bool:
    """Not a plain word, and yet no password: a size, a type, a name in code, a choice of words about one."""
    if _SIZE.fullmatch(value) and (_UNIT.match(rest) or re.fullmatch(r"[0-9]{1,3}[-–+][0-9]{0,3}", value)):
        return True
    if _CHOICE.match(value):
        first = re.split(r"[^a-z]", value.casefold(), maxsplit=1)[0]
        if first in ABOUT_ONE or _ENDS_ENGLISH.search(first):
            return True
    if not quoted and _VARIABLE.fullmatch(value) and _NAME_IN_CODE.search(value):
        return True
    return _TYPE.fullmatch(value) is not None or (_ADDRESS.fullmatch(value) is not None and not value.isdigit())


def _is_strong(value: str) -> bool:
    """Looks like a password by itself: letters with digits or signs; no address, version, date, name of a scheme."""
    if len(value) < _SHORTEST_STRONG or not any(map(str.isalpha, value)):
        return False
    if not (any(map(str.isdigit, value)) or _INNER_SIGN.search(value)):
        return False
    if (len(value) < 7 and _NAMED_SCHEME.fullmatch(value)) or _OF_CODE.search(value) or _STANDARD.fullmatch(value):
        return False
    return not is_reference(value) and _ADDRESS.fullmatch(value) is None


def _is_phrase(words: list[str]) -> bool:
    """Words strung together as no sentence is."""
    return len(words) >= _WORDS_IN_A_PHRASE and GLUE.isdisjoint(words)


def _is_spoken_phrase(words: list[str]) -> bool:
    """Three words and more, perhaps with a few of a sentence among them, that say nothing about a passphrase."""
    own = words[1:] if words[:1] and words[0] in _ARTICLES else words
    if len(own) < _WORDS_IN_A_SPOKEN_PHRASE or not OF_PHRASES.isdisjoint(own):
        return False
    if own[0] in ABOUT_ONE | GLUE | TOPICS or _ENDS_ENGLISH.search(own[0]):
        return False
    glue = sum(word in GLUE for word in own)
    about = sum(word in ABOUT_ONE and word not in GLUE for word in own)
    return glue * (3 if len(own) > _WORDS_IN_A_PHRASE else 4) <= len(own) and about * 4 <= len(own)


def _runs(value: str) -> int:
    """How often the kind of sign changes along `value`."""
    kinds = ["9" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.islower() else sign for sign in value]
    return 1 + sum(left != right for left, right in pairwise(kinds))


def _is_jumbled(value: str) -> bool:
    return _runs(value) * 3 >= len(value)


def _says_something(value: str) -> bool:
    """Whether base64 `value` is text that somebody wrote."""
    decoded = base64.b64decode(value + "=" * (-len(value) % 4))
    return all(32 <= byte < 127 or byte in b"\r\n\t" for byte in decoded) or _is_utf8_prose(decoded)


def _is_utf8_prose(decoded: bytes) -> bool:
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(sign.isprintable() or sign.isspace() for sign in text)

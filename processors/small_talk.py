"""Turns that hold nothing to remember, so that no model is asked about them."""

import re
from collections.abc import Sequence
from typing import Final

from mnemostream.turns import Role, Turn

from processors.records import ContextMessage

_PHRASES: Final = (
    r"hi|hii+|hello|hey+|yo|hiya|howdy|greetings|good (?:morning|afternoon|evening|night|day)|morning|evening|gm|gn"
    r"|(?:hi|hello|hey|thanks?|thank you|bye|good (?:morning|evening|night)) (?:there|again|everyone|all|you|"
    r"assistant|bot)"
    r"|how are you(?: (?:doing|today|doing today))?|how(?:'s| is) it going|what(?:'s| is) up|sup|are you there"
    r"|thanks?|thank you|thx|ty|many thanks|thanks? (?:a lot|so much|a bunch|again|a million)"
    r"|thank you (?:so much|very much|a lot|again)|much appreciated|cheers|appreciate it|i appreciate (?:it|that)"
    r"|ok|okay|okey|k|kk|sure|alright|all right|fine|right|yes|yep|yeah|yup|no|nope|nah|great|good|nice|cool|perfect"
    r"|awesome|excellent|wonderful|brilliant|lovely|amazing|super|got it|i see|makes sense|understood|sounds good"
    r"|that(?:'s| is) (?:great|good|nice|fine|all|it|perfect|helpful|right)|(?:very|really) helpful|no problem|np"
    r"|you(?:'re| are) welcome|welcome|never ?mind|please|go on|continue|go ahead|wow|oh|ah|hm+|haha+|lol|hehe+"
    r"|bye|bye bye|goodbye|good bye|see (?:you|ya)(?: (?:later|soon|tomorrow|around))?|later|"
    r"talk (?:to you )?(?:later|soon)"
    r"|have a (?:good|great|nice) (?:day|evening|night|weekend|one)|take care|good luck|test|testing|ping"
    # The same in the languages that are asked for most.
    r"|ol[aá]|oi|bom dia|boa (?:tarde|noite)|obrigad[oa]|muito obrigad[oa]|tchau|at[eé] logo|tudo bem|sim|n[aã]o"
    r"|hallo|guten (?:morgen|tag|abend)|gute nacht|danke(?: sch[oö]n| sehr)?|vielen dank|tsch[uü]ss|ja|nein|servus|moin"
    r"|hola|buenos d[ií]as|buenas(?: (?:tardes|noches))?|(?:muchas )?gracias|adi[oó]s|bonjour|salut|bonsoir|merci|"
    r"au revoir"
    r"|ciao|grazie|buongiorno|你好|您好|谢谢|谢谢你|再见|早上好|晚安|こんにちは|ありがとう|ありがとうございます|おはよう"
    r"|مرحبا|شكرا|السلام عليكم|مع السلامة"
)
_ONE: Final = re.compile(rf"(?:{_PHRASES})", re.IGNORECASE)
_SIGNS: Final = re.compile(r"[^\w\s,.;:!?…¡¿。、！？،؟~–—\-()*\"“”'’]+")
_SPLIT: Final = re.compile(r"[,.;:!?…¡¿。、！？،؟~–—\n()*\"“”]+|\s-\s|\band\b", re.IGNORECASE)
_LONGEST: Final = 160
"""Characters of a message that may still be small talk."""


def needs_no_reading(turn: Turn, context: Sequence[ContextMessage] = ()) -> bool:
    """Whether nothing in `turn` can be worth a memory: no user's or tool's message says more than a greeting,
    thanks, or a word of assent. An assistant's answer alone is not about the owner.

    A bare yes or no after a question of the assistant, in the turn or at the end of `context`, does say something.
    """
    if turn.off_record:
        return True
    asked = bool(context) and context[-1].role is Role.ASSISTANT and _asks(context[-1].content)
    for message in turn.messages:
        if message.role is Role.ASSISTANT:
            asked = _asks(message.content)
        elif message.role is not Role.SYSTEM and (
            not is_small_talk(message.content) or (asked and _has_words(message.content))
        ):
            return False
    return True


def is_small_talk(text: str) -> bool:
    """Whether `text` is nothing but greetings, thanks, assent, signs and emoji."""
    if len(text) > _LONGEST:
        return not text.strip()
    plain = _SIGNS.sub(" ", text.replace("’", "'"))
    parts = [part.strip(" '-") for part in _SPLIT.split(plain)]
    return all(not part or _is_phrases(part) for part in parts)


def _is_phrases(part: str) -> bool:
    """Whether `part` is one phrase, or a few in a row ("ok great thanks")."""
    words = part.split()
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + 6), start, -1):
            if _ONE.fullmatch(" ".join(words[start:end])):
                start = end
                break
        else:
            return False
    return True


def _asks(text: str) -> bool:
    return any(mark in text for mark in "?？؟")


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)

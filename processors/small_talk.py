"""Turns that hold nothing to remember, so that no model is asked about them."""

import re
import unicodedata
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
    r"|ol[aá]|oi|bom dia|boa (?:tarde|noite)|(?:muito )?obrigad[oa]|valeu|de nada|beleza|tchau"
    r"|at[eé] (?:logo|amanh[aã])|tudo bem|sim|n[aã]o|claro|certo|entendi|[oó]timo"
    r"|hallo|hi zusammen|guten (?:morgen|tag|abend)|gute nacht|danke(?: sch[oö]n| sehr| dir| ihnen)?|vielen dank|bitte"
    r"(?: sch[oö]n| sehr)?|alles klar|verstanden|genau|gut|tsch(?:[uü]|ue)ss|tschüß|bis (?:dann|bald|morgen)|ja|nein|"
    r"servus|moin(?: moin)?|gr(?:[uü]|ue)(?:ß|ss) gott"
    r"|hola|buen(?:os|as)(?: (?:d[ií]as|tardes|noches))?|(?:muchas )?gracias|vale|de acuerdo|hasta (?:luego|ma[nñ]ana)"
    r"|adi[oó]s|bonjour|bonsoir|salut|coucou|(?:bonne )?(?:journ[eé]e|soir[eé]e)|merci(?: beaucoup| bien)?|de rien"
    r"|d'accord|[cç]a va|oui|non|au revoir|[aà] bient[oô]t"
    r"|ciao|grazie(?: mille)?|prego|buon(?:giorno|asera|anotte)|va bene|arrivederci"
    r"|привет|здравствуйте|спасибо|пока|да|нет|хорошо|ладно|merhaba|teşekkür(?:ler| ederim)|tamam"
    r"|你好|您好|大家好|嗨|(?:谢|謝){2}(?:你|您)?|多谢|不客气|好的?|嗯+|哈+|明白了?|知道了|没问题|再见|拜拜|早上好|早安|晚安|晚上好"
    r"|こんにちは|こんばんは|ありがとう(?:ございます|ございました)?|おはよう(?:ございます)?|おやすみ(?:なさい)?|はい|うん|いいえ|了解"
    r"(?:です|しました)?|안녕(?:하세요)?|감사합니다|고마워요?|네|नमस्ते|धन्यवाद|शुक्रिया|ठीक है"
    r"|مرحبا|أهلا(?: وسهلا)?|اهلا(?: وسهلا)?|شكرا(?: جزيلا| لك)?|السلام عليكم|وعليكم السلام|صباح (?:الخير|النور)"
    r"|مساء (?:الخير|النور)|مع السلامة|نعم|لا|حسنا|تمام|عفوا|طيب"
)
_ONE: Final = re.compile(rf"(?:{_PHRASES})", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]")
_SIGNS: Final = re.compile(r"[^\w\s,.;:!?…¡¿。、！？،؟~–—\-()*\"“”'’]+")
_SPLIT: Final = re.compile(r"[,.;:!?…¡¿。、！？،؟~–—\n()*\"“”]+|\s-\s|\band\b", re.IGNORECASE)
_MARKS: Final = re.compile("[\u0640\u064b-\u0652\ufe00-\ufe0f\u200b-\u200f]")
"""What a greeting may be written with or without: Arabic vowel marks and tatweel, what is not seen."""
_ANSWERS: Final = re.compile(r"[\w👍👎👌✅✔❌✖🙅🙆]")
"""Words, and signs that are a yes or a no."""
_LONGEST: Final = 160
"""Characters of a message that may still be small talk."""


def needs_no_reading(turn: Turn, context: Sequence[ContextMessage] = ()) -> bool:
    """Whether nothing in `turn` can be worth a memory: no user's or tool's message says more than a greeting,
    thanks, or a word of assent. An assistant's answer alone is not about the owner.

    A bare yes or no, in a word or a sign, after a question of the assistant, in the turn or at the end of `context`,
    does say something.
    """
    if turn.off_record:
        return True
    asked = bool(context) and context[-1].role is Role.ASSISTANT and _asks(context[-1].content)
    for message in turn.messages:
        if message.role is Role.ASSISTANT:
            asked = _asks(message.content)
        elif message.role is not Role.SYSTEM and (
            not is_small_talk(message.content) or (asked and _answers(message.content))
        ):
            return False
    return True


def is_small_talk(text: str) -> bool:
    """Whether `text` is nothing but greetings, thanks, assent, signs and emoji."""
    if not _says_words(text):
        return True
    if len(text) > _LONGEST:
        return False
    plain = _SIGNS.sub(" ", _MARKS.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'"))
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


def _says_words(text: str) -> bool:
    return _WORD.search(text) is not None


def _answers(text: str) -> bool:
    return _ANSWERS.search(text) is not None

"""Which one a slot is about: the last part of attributes such as `allergy_peanuts`, the same in every language."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

_SAME: Final[Mapping[str, str]] = {
    word: english
    for english, said in {
        "peanuts": "peanut amendoim amendoins erdnuss erdnüsse erdnüssen 花生 الفول_السوداني فول_سوداني cacahuete "
        "cacahuetes maní "
        "cacahuète cacahuètes arachide arachides amendoíns",
        "nuts": "nut nozes nüsse nüssen nuss 坚果 المكسرات مكسرات nueces noix frutos_secos",
        "walnuts": "walnut walnüsse walnüssen 核桃 الجوز جوز",
        "shrimp": "shrimps prawns prawn camarão camarões garnelen 虾 الروبيان الجمبري جمبري gambas camarones crevettes",
        "shellfish": "seafood marisco mariscos frutos_do_mar meeresfrüchte meeresfrüchten 海鲜 贝类 المأكولات_البحرية "
        "المحار fruits_de_mer",
        "fish": "peixe fisch 鱼 السمك سمك pescado poisson",
        "eggs": "egg ovos ei eier eiern 鸡蛋 البيض بيض huevo huevos œuf œufs oeufs",
        "milk": "leite milch 牛奶 الحليب حليب leche lait",
        "pollen": "pólen pollen 花粉 حبوب_اللقاح polen",
        "cats": "cat gatos gato katzen katze katzenhaare 猫 القطط gatos chats chat",
        "dogs": "dog cães cachorros hunde hund 狗 الكلاب perros chiens",
        "penicillin": "penicilina penizillin penicillin 青霉素 البنسلين pénicilline",
        "gluten": "glúten 麸质 الغلوتين الجلوتين",
        "strawberries": "strawberry morangos morango erdbeeren erdbeere 草莓 الفراولة fresas fraises",
        "coffee": "café kaffee 咖啡 القهوة قهوة",
        "tea": "chá tee 茶 الشاي شاي té thé",
        "chocolate": "schokolade 巧克力 الشوكولاتة الشوكولاته chocolat",
        "meat": "carne fleisch 肉 اللحم لحم اللحوم viande",
        "pork": "carne_de_porco porco schweinefleisch 猪肉 لحم_الخنزير cerdo porc",
        "beer": "cerveja bier 啤酒 البيرة cerveza bière",
        "wine": "vinho wein 葡萄酒 النبيذ vino vin",
        "alcohol": "álcool alkohol 酒 الكحول alcool",
        "football": "soccer futebol fußball fussball 足球 كرة_القدم fútbol foot",
        "music": "música musik 音乐 الموسيقى musique",
        "color": "colour cor farbe 颜色 couleur اللون",
        "food": "comida essen 食物 食品 comida plat الطعام",
        "english": "inglês englisch 英语 英文 الإنجليزية الانجليزية inglés anglais",
        "german": "alemão deutsch 德语 الألمانية الالمانية alemán allemand",
        "french": "francês französisch 法语 الفرنسية francés français",
        "spanish": "espanhol spanisch 西班牙语 الإسبانية الاسبانية español espagnol",
        "portuguese": "português portugiesisch 葡萄牙语 البرتغالية portugués portugais",
        "chinese": "mandarin chinês chinesisch 中文 汉语 普通话 الصينية chino chinois",
        "arabic": "árabe arabisch 阿拉伯语 العربية arabe",
        "japanese": "japonês japanisch 日语 اليابانية japonés japonais",
    }.items()
    for word in said.split()
}
"""Slot name of what is most often disliked, not tolerated, spoken and drunk."""

_LEFT_OUT: Final = frozenset(
    {"a", "an", "the", "very", "much", "really", "my", "to", "all", "o", "os", "as", "el", "la", "los", "las", "le",
    "les",
     "l", "d", "der", "die", "das", "den", "dem"}
)  # fmt: skip


_MOST_WORDS: Final = 6
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_SIGNS: Final[Mapping[str, str]] = {"+": "plus", "#": "sharp"}


def key(text: str) -> str:
    """The part of an attribute that says which one: a few words of `text` in snake_case. Symbols and emoji are words
    of it by their names ("C++" is `c_plus_plus`); never empty."""
    found = [name for token in _TOKEN.findall(text.casefold()) if (name := _word(token))]
    kept = [word for word in found if word not in _LEFT_OUT]
    name = "_".join((kept or found)[:_MOST_WORDS]).strip("_")
    return _SAME.get(name, name) or "_".join(map(_name, text.strip()[:_MOST_WORDS])) or "one"


def _word(token: str) -> str:
    """What stands for `token` in a slot: nothing for punctuation, nor for what only shapes the emoji before it."""
    if token[0].isalnum() or token[0] == "_":
        return token.strip("_")
    if token in _SIGNS:
        return _SIGNS[token]
    return _name(token) if unicodedata.category(token) in {"So", "Sm", "Sc"} else ""


def _name(character: str) -> str:
    named = unicodedata.name(character, f"u{ord(character):x}").lower()
    return re.sub(r"\W+", "_", named).strip("_")

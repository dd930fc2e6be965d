"""Units and months by their writings, and what a word at a place may be besides a word."""

from typing import Final

_MEASURES: Final = """
    kg:kg,kgs,kilo,kilos,kilogram,kilograms,kilogramme,kilogrammes g:gram,grams,gramme,grammes
    mg:mg,milligram,milligrams
    km:km,kms,kilometre,kilometres,kilometer,kilometers,quilômetros cm:cm,centimetre,centimetres,centimeter,centimeters
    mm:mm,millimetre,millimetres m:metre,metres,meter,meters mile:mile,miles foot:foot,feet lb:lb,lbs
    ounce:ounce,ounces,oz litre:litre,litres,liter,liters ml:ml,millilitre,millilitres gallon:gallon,gallons
    hour:hour,hours,hr,hrs minute:minute,minutes,mins second:seconds,secs day:day,days week:week,weeks
    month:month,months
    year:year,years,yr,yrs decade:decade,decades century:century,centuries
    dollar:dollar,dollars,dólar,dólares euro:euro,euros percent:percent,prozent gb:gb,gigabyte,gigabytes
    mb:mb,megabyte,megabytes tb:tb,terabyte,terabytes mph:mph kmh:kmh kcal:kcal
"""
_AFTER_A_NUMBER: Final = (
    "m:m g:g l:litre h:hour min:minute s:second ft:foot mi:mile in:inch c:celsius f:fahrenheit t:ton"
)

MEASURES: Final[dict[str, str]] = {
    word: "~" + entry.partition(":")[0] for entry in _MEASURES.split() for word in entry.partition(":")[2].split(",")
}
AFTER_A_NUMBER: Final[dict[str, str]] = {
    entry.partition(":")[0]: "~" + entry.partition(":")[2] for entry in _AFTER_A_NUMBER.split()
}
"""Short forms that are units only behind a number."""

CURRENCIES: Final = {"$": "~dollar", "€": "~euro", "%": "~percent"}
"""Signs that have a word of one meaning; another ("£", "R$") stands for itself."""

_MONEY_WORDS: Final = """
    $ € £ ¥ ₹ ₽ ₩ ₺ ₿ % usd eur gbp brl chf jpy cny inr cad aud pounds pound francs pesos yen yuan rupees reais
"""
MONEY: Final = frozenset(_MONEY_WORDS.split())
"""Beside a number."""
ALSO_OTHERWISE: Final = frozenset(["in", "c", "f", "t", "s"])
"""Units only where nothing stands between them and the number."""

_MONTHS: Final = (
    "january janeiro januar jänner enero janvier",
    "february fevereiro februar febrero février",
    "march março märz marzo mars",
    "april abril avril",
    "may maio mai mayo",
    "june junho juni junio juin",
    "july julho juli julio juillet",
    "august agosto août",
    "september setembro septiembre septembre",
    "october outubro oktober octubre octobre",
    "november novembro noviembre novembre",
    "december dezembro dezember diciembre décembre",
)
_SHORT: Final = (
    "jan ene", "feb fev", "mar mär", "apr abr avr", "", "jun", "jul", "aug ago", "sep sept set", "oct okt out",
    "nov", "dec dez dic déc",
)  # fmt: skip
_ALSO_WORDS: Final = frozenset(["may", "march", "mars", "mai"])

MONTHS: Final[dict[str, int]] = {
    word: place for place, words in enumerate(_MONTHS, start=1) for word in words.split() if word not in _ALSO_WORDS
}
NEAR_A_NUMBER: Final[dict[str, int]] = {
    word: place
    for place, words in enumerate(zip(_MONTHS, _SHORT, strict=True), start=1)
    for word in " ".join(words).split()
}
"""Months and their short forms, many of them words ("may", "out", "set") unless a day or a year stands beside them."""

WEEKDAYS: Final = {"tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday", "thur": "thursday"} | {
    "thurs": "thursday",
    "fri": "friday",
}
_COMMAS_ARE_DECIMAL: Final = """
    ist und nicht für eine einen der das wohnt kostet verdient não uma em está para por los las une dans avec
"""
COMMAS_ARE_DECIMAL: Final = frozenset(_COMMAS_ARE_DECIMAL.split())
"""A text with one of these writes thousands with a point and decimals with a comma."""

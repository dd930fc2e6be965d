"""German."""

from typing import Final

from processors.local.languages.model import Language, compiled, slots, words

_JOB = (
    r"(?:\w*(?:arzt|ärztin|lehrer|ingenieur|krankenpfleger|krankenschwester|pfleger|anwalt|anwältin|koch|köchin|bäcker|"
    r"student|architekt|programmierer|entwickler|designer|journalist|polizist|verkäufer|psycholog|mechaniker|tischler|"
    r"maler|musiker|künstler|schauspieler|übersetzer|berater|buchhalter|elektriker|friseur|wissenschaftler|forscher|"
    r"professor|schriftsteller|kellner|pilot|fotograf|techniker|krankenpflegerin|erzieher|sanitäter|manager)(?:e?in|"
    r"e)?)"
)
_WHERE = r"(?P<p>in der|in den|in|im|auf|an der|am)"

GERMAN: Final = Language(
    speaking=words(r"\b(?:ich|mein|meine|meiner|meinem|meinen|mir|mich|vergiss|vergessen|ignorier\w*|lösch\w*|"
                   r"entschuldigung|sorry|korrektur|quatsch|nein|stimmt|antworte|wir)\b"),
    silent=words(
        r"\?|^(?:wer|wo|wann|wie|warum|wieso|weshalb|welche[rsn]?|was|woher|wohin)\b|"
        r"\b(?:wenn ich|falls|angenommen|nehmen wir an|stell dir vor|stellen wir uns vor|hätte|wäre|würde|könnte|"
        r"möchte gern wissen|sagte|sagt|sagten|gesagt, dass|meinte,? (?:dass|er|sie)|erzählte|behauptet\w*|schrieb|"
        r"laut|"
        r"übersetze?|zum beispiel|tu so|als ob|als ich|wünschte|scherz|spaß|hast du|du)\b"
    ),
    lead=words(
        r"(?:hallo|hi|hey|guten (?:tag|morgen|abend)|übrigens|also|ach|na ja|naja|ja|und|aber|auch|eigentlich|"
        r"tatsächlich|"
        r"merk dir,? dass|merke dir,? dass|bitte merk dir,? dass|denk daran,? dass|danke|leider|zum glück|momentan|"
        r"zurzeit|"
        r"derzeit|jetzt|inzwischen|mittlerweile|außerdem)\b[\s,:;!.]*"
    ),
    split=words(
        r"(?:,\s*|\s+)(?:und|aber|denn|sondern)\s+(?=(?:ich|mein|meine|wohne|arbeite|bin|habe|mag|liebe|hasse|spreche|"
        r"heiße|esse|trinke|lebe)\b)|,\s*(?=(?:ich|mein|meine)\b)"
    ),
    subject="ich ",
    reorder=(
        (words(r"^wir (\w+?)en (?=(?:in|im|nach)\b)"), r"ich \1e "),
        (words(r"^(wohne|lebe|arbeite|bin|habe|fliege|fahre|reise|ziehe|heirate|mag|liebe|esse|trinke|spreche|lerne|"
         r"werde|"
               r"komme|heiße|hasse) ich (.+)$"), r"ich \1 \2"),
        (words(r"^ich (.+) (wohne|lebe|arbeite|bin|habe|mag|liebe|esse|trinke|spreche|lerne|heiße|hasse)$"),
         r"ich \2 \1"),
        (words(r"^ich (wohne|lebe|arbeite|bin|mag|liebe|esse|trinke|spreche|lerne|habe) (?:jetzt|nun|derzeit|momentan|"
               r"zurzeit|gerade|inzwischen|mittlerweile|auch|seit .+? Jahren|aktuell|wirklich|sehr|am liebsten|"
               r"übrigens) "),
         r"ich \1 "),
    ),
    contrasts=slots((
        (r"\bnicht nur (.+?),? sondern auch (?:gegen |auf )?", r"\1 und "),
        ((r"\b(ich bin (?:\w+ )?allergisch (?:gegen|auf) [^,(]+?)(?:,| \(|,? aber| und)(?: aber| und| doch)? nicht "
         r"(?:gegen |auf )?([^,()]+)\)?"), r"\1; ich bin nicht allergisch gegen \2"),
        ((r"\b(ich (?:bin nicht allergisch|habe keine allergie) (?:gegen|auf) [^,(]+?),? (?:sondern |aber |nur )+"
         r"(?:gegen |auf )([^,()]+)"),
         r"\1; ich bin allergisch gegen \2"),
        ((r"\b(ich (mag|esse|trinke|spreche) [^,(]+?)(?:,| \(|,? aber| und)(?: aber| und| doch)? (?:nicht|keine?n?) "
         r"(?!(?:sehr|so|gut|viel|oft|immer|mehr|gern|fließend)\b)([^,()]+)\)?"), r"\1; ich \2 kein \3"),
        (r"(?<=\w)(?:,| \()\s*(?:aber |und )?(?:nicht|kein\w*) [^,()]+\)?$", ""),
    )),
    rules=compiled((
        (rf"ich (?:wohne|lebe) nicht (?:mehr |länger )?{_WHERE} (?P<x>.+)", "home", ("Der Nutzer wohnt nicht mehr "
         "{p} {x}")),
        (rf"ich (?:wohne|lebe) (?:nicht (?:mehr|länger) )?{_WHERE} (?P<x>.+)", "home", "Der Nutzer wohnt {p} {x}"),
        (r"ich bin (?:von .+? )?(?P<p>nach|in die) (?P<x>.+?) (?:um)?gezogen", "home", "Der Nutzer wohnt {p} {x}"),
        (r"ich (?:komme|stamme) (?:ursprünglich )?(?P<p>aus der|aus dem|aus) (?P<x>.+)", "origin",
        "Der Nutzer kommt {p} {x}"),
        (r"ich (?:bin|wurde) (?:am )?(?P<x>\d.+?) geboren", "birthday", "Der Nutzer hat am {x} Geburtstag"),
        (r"ich (?:bin|wurde) (?P<p>in) (?P<x>\D+?) geboren", "birthplace", "Der Nutzer wurde {p} {x} geboren"),
        (r"ich arbeite nicht (?:mehr |länger )(?P<p>bei der|beim|bei|für) (?P<x>.+)", "employer",
         "Der Nutzer arbeitet nicht mehr {p} {x}"),
        (r"ich arbeite als (?P<x>.+?)(?: (?:bei|beim|für|in) .+)?", "job", "Der Nutzer arbeitet als {x}"),
        (r"ich arbeite (?P<p>bei der|beim|bei|für) (?P<x>.+?)(?: als (?P<title>.+))?", "employer",
        "Der Nutzer arbeitet {p} {x}"),
        (r"ich habe (?P<p>bei der|beim|bei) (?P<x>.+?) gekündigt", "employer", ("Der Nutzer arbeitet nicht mehr {p} "
         "{x}")),
        (r"ich habe (?P<p>bei der|beim|bei) (?P<x>.+?) (?:angefangen|begonnen)", "employer", ("Der Nutzer arbeitet "
         "{p} {x}")),
        (rf"ich bin (?:eine? |von beruf )?(?P<x>{_JOB})(?: (?:bei|von beruf).*)?", "job", ("Der Nutzer arbeitet als "
         "{x}")),
        (r"mein beruf ist (?P<x>.+)", "job", "Der Nutzer arbeitet als {x}"),
        (r"mein name ist (?P<x>.+)|ich heiße (?P<x2>.+)", "name", "Der Nutzer heißt {x}"),
        (r"ich (?:bin|wurde) (?:gerade )?(?P<x>\d{1,3})(?: jahre alt)?(?: geworden)?", "age", ("Der Nutzer ist {x} "
         "Jahre alt")),
        (r"mein geburtstag ist (?:am |der )?(?P<x>.+)|ich habe am (?P<x2>.+?) geburtstag", "birthday",
         "Der Nutzer hat am {x} Geburtstag"),
        ((r"ich bin (?:nicht|nicht mehr) (?:mehr )?allergisch (?:gegen|auf) (?P<x>.+)|"
         r"ich habe keine(?: (?P<w>\w+))? allergie (?:mehr )?gegen (?P<x2>.+)|"
         r"ich bin gegen (?P<x3>.+?) (?:nicht|nicht mehr) allergisch"), "allergy", ("Der Nutzer ist nicht allergisch "
         "gegen {x}")),
        ((r"ich bin (?:\w+ )?allergisch (?:gegen|auf) (?P<x>.+)|ich habe eine (?:\w+ )?allergie gegen (?P<x2>.+)|"
         r"ich bin gegen (?P<x3>.+?) allergisch|ich habe eine (?P<x4>\w+?)allergie"), "allergy", ("Der Nutzer ist "
         "allergisch gegen {x}")),
        ((r"ich (?:mag|liebe) (?P<x>.+?) (?:nicht(?: mehr)?|überhaupt nicht|gar nicht)|"
         r"ich mag (?:kein|keine|keinen) (?P<x2>.+?)(?: mehr)?"), "like", "Der Nutzer mag {x} nicht"),
        (r"ich (?:mag|liebe) (?P<x>.+?)(?: sehr| total| gern)?|ich (?:trinke|esse) (?:sehr )?gerne? (?P<x2>.+)", "like",
         "Der Nutzer mag {x}"),
        (r"ich (?:hasse|verabscheue) (?P<x>.+)", "like", "Der Nutzer hasst {x}"),
        (r"mein(?:e)? lieblings(?P<w>\w+) ist (?P<x>.+)", "favorite", "Des Nutzers Lieblings{w} ist {x}"),
        (r"ich bevorzuge (?P<x>.+)|ich trinke lieber (?P<x2>.+)", "prefer", "Der Nutzer bevorzugt {x}"),
        (r"ich spreche (?:kein|keine) (?P<x>.+)", "speak", "Der Nutzer spricht kein {x}"),
        (r"ich spreche (?:fließend |gut )?(?P<x>.+?)(?: fließend)?", "speak", "Der Nutzer spricht {x}"),
        (r"ich lerne (?:gerade )?(?P<x>.+)", "learn", "Der Nutzer lernt {x}"),
        (r"ich bin (?P<x>(?:mit \w+ )?verheiratet(?: mit .+)?|ledig|single|geschieden|verlobt(?: mit .+)?|verwitwet)",
         "marital", "Der Nutzer ist {x}"),
        (r"ich habe (?:(?P<w>.+) )?geheiratet", "marital", "Der Nutzer ist verheiratet"),
        ((r"ich bin (?P<p>kein |keine |nicht mehr )?(?P<x>vegetarier|vegetarierin|veganer|veganerin|vegan|vegetarisch|"
         r"laktoseintolerant|glutenintolerant)"), "diet", "Der Nutzer ist {p} {x}"),
        (r"ich esse (?:kein|keine|keinen) (?P<x>.+?)(?: mehr)?", "eat", "Der Nutzer isst {x} nicht"),
        (r"ich trinke (?:kein|keine|keinen) (?P<x>.+?)(?: mehr)?", "drink", "Der Nutzer trinkt {x} nicht"),
        ((r"ich habe (?P<x>(?:einen?|eine|zwei|drei|vier|\d) (?:\w+ )?(?:hund|katze|kater|sohn|tochter|töchter|söhne|"
         r"kind|"
         r"kinder|bruder|brüder|schwester|schwestern|vogel|hamster|kaninchen|pferd|hunde|katzen|enkel|"
         r"geschwister)\b.*)"),
         "have", "Der Nutzer hat {x}"),
        (r"ich bin (?P<x>(?:in|im|auf|krank|verreist)\b.*)", "here", "Der Nutzer ist {x}"),
        ((r"ich habe (?P<x>(?:einen|eine|ein) (?:\w*termin|\w*prüfung|\w*besprechung|meeting|\w*gespräch|\w*klausur|"
         r"\w*flug|"
         r"verabredung|operation)\b.*)"), "event", "Der Nutzer hat {x}"),
        (r"ich (?P<p>fliege|fahre|reise|ziehe) (?P<x>.+)", "plan", "Der Nutzer {p} {x}"),
        ((r"ich (?:werde|will|plane,?) (?P<x>.+ (?:ziehen|umziehen|heiraten|reisen|fliegen|fahren|besuchen|anfangen|"
         r"laufen|"
         r"kaufen))"), "plan", "Der Nutzer plant: {x}"),
        (r"ich heirate(?P<w> .+)?", "event", "Der Nutzer heiratet"),
        (r"ich war (?P<x>(?:in|im|auf|beim)\b.+)", "event", "Der Nutzer war {x}"),
        (r"(?:bitte )?antworte(?: mir)? (?:bitte )?(?:immer|in zukunft|ab jetzt) (?P<x>.+)", "rule",
         "Der Nutzer möchte, dass der Assistent immer {x} antwortet"),
    )),
    forms={"nach": "in", "in die": "in der", "fliege": "fliegt", "fahre": "fährt", "reise": "reist", "ziehe": "zieht"},
    prepositions=("in", "im", "in der", "bei"),
    job_text="Der Nutzer arbeitet als {x}",
    relatives={
        "schwester": "sister", "bruder": "brother", "mutter": "mother", "vater": "father", "tochter": "daughter",
        "sohn": "son", "frau": "wife", "ehefrau": "wife", "mann": "husband", "ehemann": "husband", "freundin":
        "girlfriend",
        "freund": "boyfriend", "oma": "grandmother", "opa": "grandfather", "chef": "boss", "chefin": "boss",
        "tante": "aunt",
        "onkel": "uncle", "cousin": "cousin", "cousine": "cousin", "hund": "dog", "katze": "cat", "kater": "cat",
        "eltern": "parents", "verlobte": "fiancée", "verlobter": "fiancé",
    },
    relative=words(
        r"(?P<my>meine|mein) (?P<kind>schwester|bruder|mutter|vater|tochter|sohn|ehefrau|frau|ehemann|mann|freundin|"
        r"freund|"
        r"oma|opa|chefin|chef|tante|onkel|cousine|cousin|hund|katze|kater|eltern|verlobter|verlobte)"
        r"(?P<rest>(?: [A-Z]\w+)? (?:heißt|wohnt|wohnen|lebt|leben|arbeitet|arbeiten|ist|sind|hat|mag|spricht|liebt|"
        r"wurde|"
        r"studiert|zieht)\b.+)$"
    ),
    the={"meine": "Die", "mein": "Der"},
    relative_text="{the} {kind} des Nutzers{rest}",
    relative_slots=slots((
        (r"\bheißt\b", "name"), (r"\b(?:wohnen|leben|wohnt|lebt)\b", "home_city"), (r"\barbeitet als\b", "job_title"),
        (r"\barbeitet (?:bei|für|beim)\b", "employer"), (r"\bist \d+", "age"),
        (r"allergisch (?:gegen|auf) (?P<x>.+)", "allergy_{x}"), (rf"\bist (?:eine? )?{_JOB}", "job_title"),
    )),
    times=slots((
        (r"\b(?:in der )?(?:letzten?|vorigen?) woche\b", "last week"), (r"\b(?:im )?(?:letzten|vorigen) monat\b",
         "last month"),
        (r"\b(?:im )?(?:letzten|letztes|vorigen) jahre?s?\b", "last year"), (r"\bvorgestern\b", ("the day before "
         "yesterday")),
        (r"\bgestern\b", "yesterday"), (r"\bübermorgen\b", "the day after tomorrow"), (r"\bmorgen\b", "tomorrow"),
        (r"\bheute\b", "today"), (r"\b(?:in der )?nächsten? woche\b", "next week"), (r"\b(?:im )?nächsten monat\b",
         "next month"),
        (r"\b(?:im )?nächsten? jahr\b|\bnächstes jahr\b", "next year"), (r"\b(?:in )?diese[rn]? woche\b", "this week"),
        (r"\b(?:in )?diesen monat\b", "this month"),
        (r"\bvor (?P<n>\d+|einem|einer|zwei|drei|vier|fünf|sechs) (?P<u>tag|woche|monat|jahr)(?:en|e|n)?\b",
         "{n} {u} ago"),
        (r"\bin (?P<n>\d+|einem|einer|zwei|drei|vier|fünf|sechs) (?P<u>tag|woche|monat|jahr)(?:en|e|n)?\b",
        "in {n} {u}"),
        (r"\bbis (?:zum )?(?P<day>montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b", "until {day}"),
        ((r"\b(?:am (?:nächsten |kommenden )?|nächsten |kommenden )(?P<day>montag|dienstag|mittwoch|donnerstag|"
         r"freitag|samstag|"
         r"sonntag)\b"), "on {day}"),
        (r"\bletzten (?P<day>montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b", "last {day}"),
        (r"\bseit (?P<year>(?:19|20)\d\d)\b|\bseit (?P<n>\d+|zwei|drei|vier|fünf|sechs|zehn) jahren\b", "in {year}"),
        ((r"\bam (?P<d>\d{1,2})\. (?P<month>januar|februar|märz|april|mai|juni|juli|august|september|oktober|"
         r"november|dezember)"
         r"(?! geburtstag| geboren)\b"), "on {d} {month}"),
        (r"\bim (?P<month>januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b",
         "in {month}"),
    )),
    terms={
        "einem": "one", "einer": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six",
        "tag": "day", "woche": "week", "monat": "month", "jahr": "year", "montag": "monday", "dienstag": "tuesday",
        "mittwoch": "wednesday", "donnerstag": "thursday", "freitag": "friday", "samstag": "saturday", "sonntag":
        "sunday",
        "januar": "january", "februar": "february", "märz": "march", "mai": "may", "juni": "june", "juli": "july",
        "oktober": "october", "dezember": "december",
    },
    dates=("am {}", "in der Woche vom {}", "im Monat {}", "im Jahr {}"),
    until="bis {}",
    enumeration=words(r",\s*|\s+und\s+"),
    hedges=((words(r"^(?:vielleicht|möglicherweise|eventuell)\s+"), 0.40),
            (words(r"^(?:ich (?:glaube|denke|vermute),? (?:dass )?|wahrscheinlich\s+)"), 0.60)),
    forget_that=words(r"(?:bitte )?(?:vergiss|vergessen sie|ignoriere?|lösche?)(?: bitte)?,? dass (?P<clause>.+)$"),
    forget_topic=words(
        r"(?:bitte )?(?:vergiss|vergessen sie|ignoriere?|lösche?)(?: bitte)?,? (?:was ich (?:dir |ihnen )?(?:vorhin "
        r")?(?:über |"
        r"von |zu )(?P<x>.+?) (?:gesagt|erzählt) habe|(?P<x2>mein(?:e|en|er)? .+))$"),
    forget_last=words(
        r"(?:bitte )?(?:vergiss|ignoriere?|lösche?)(?: bitte)?,? (?:das|was ich (?:gerade |eben )?gesagt habe)(?: "
        r"bitte)?$|"
        r"^das stimmt nicht mehr$"),
    correction=words(
        r"(?:(?:nein|sorry|entschuldigung|quatsch|moment|ach|doch)[\s,.:]+)*(?:ich meine|ich meinte|korrektur|"
        r"besser gesagt|"
        r"entschuldigung|sorry|nein,? doch|quatsch)[\s,:]+(?:es ist )?(?:(?P<p>in|bei) )?(?P<x>[^,]+)$"),
    topics={"job": ("job_title", "employer"), "arbeit": ("job_title", "employer"), "beruf": ("job_title",),
    "name": ("name",),
            "namen": ("name",), "alter": ("age",), "geburtstag": ("birthday",), "adresse": ("address",),
            "wohnort": ("home_city",), "arbeitgeber": ("employer",)},
    trailing=words(
        r"[\s,]+(?:jetzt|zurzeit|derzeit|momentan|mehr|auch|inzwischen|seit (?:\w+ )?jahren|mit mein\w* .+|und|"
        r"bitte|umgezogen)$"),
)  # fmt: skip

"""Spanish."""

from typing import Final

from processors.local.languages.model import Language, compiled, slots, words

_JOB = (
    r"(?:enfermer|médic|ingenier|cociner|abogad|psicólog|arquitect|bomber|carpinter|veterinari|farmacéutic|mecánic|"
    r"músic|"
    r"fotógraf|empresari|bibliotecari|economist|periodist|dentist|artist|programador|profesor|maestr|desarrollador|"
    r"pintor|"
    r"escritor|traductor|actor|vendedor|contador|investigador|analist|diseñador|gerente|estudiante|chef|policía|piloto|"
    r"científic|camarer|panader|electricist|taxist|consultor)"
)
_DAYS = r"(?P<day>lunes|martes|miércoles|jueves|viernes|sábado|domingo)"
_MONTHS = r"(?P<month>enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)"

SPANISH: Final = Language(
    speaking=words(
        r"\b(?:yo|me|mí|mi|mis|vivo|resido|trabajo|soy|tengo|adoro|amo|odio|detesto|prefiero|hablo|mudé|nací|estoy|voy|"
        r"como|bebo|olvid\w+|ignor\w+|borra|perdón|digo|decir|dejé|fui|aprendo|estudio|cumplo|casé|no|eso|responde)\b"
    ),
    silent=words(
        r"[?¿]|^(?:quién|dónde|cuándo|cómo|por qué|cuál|cuánto)\b|\b(?:si yo|si viv\w+|si fuera|si tuviera|imagina|"
        r"imaginemos|supón|supongamos|digamos|finge|gustaría|querría|viviría|sería|tendría|ojalá|dijo|dice|dicen|contó|"
        r"preguntó|según|traduce|traducir|personaje|por ejemplo|broma|cuando era|tú|usted)\b"
    ),
    lead=words(
        r"(?:hola|buenos días|buenas tardes|buenas noches|buenas|en realidad|bueno|bien|pues|entonces|ah|y|pero|"
        r"también|"
        r"actualmente|ahora|hoy en día|por cierto|recuerda que|gracias|desafortunadamente|por suerte|yo|desde "
        r"entonces)\b"
        r"[\s,:;!.¡]*|¡"
    ),
    split=words(
        r"(?:,\s*|\s+)(?:y|pero|porque)\s+(?=(?:yo|vivo|trabajo|soy|tengo|me|adoro|odio|hablo|prefiero|estoy|no|mi|"
        r"ya no)\b)|"
        r",\s*(?=(?:yo|vivo|trabajo|soy|tengo|me|adoro|odio|hablo|prefiero|estoy|mi|ahora)\b)"
    ),
    contrasts=slots((
        (r"\bno s[oó]lo (.+?),? sino también (?:a las |a los |a la |al |a )?", r"\1 y "),
        ((r"\b(?<!no )(soy (?:muy )?alérgic([oa]) (?:al|a) [^,(]+?)(?:,| \(|,? pero| y)(?: pero| y)? no "
         r"(?:soy )?(al |a )([^,()]+)\)?"), r"\1; no soy alérgic\2 \3\4"),
        (r"\b(no soy alérgic([oa]) (?:al|a) [^,(]+?),? (?:sino|pero sí) (?:solo |sólo )?(al |a )([^,()]+)",
         r"\1; soy alérgic\2 \3\4"),
        (r"\b(?<!no )((me gustan?) [^,(]+?)(?:,| \(|,? pero| y)(?: pero| y)? no ((?:el|la|los|las) [^,()]+)\)?",
         r"\1; no \2 \3"),
        (r"(?<=\w)(?:,| \()\s*(?:pero |y )?no (?:en|el|la|los|las|al?|del?|con) [^,()]+\)?$", ""),
    )),
    rules=compiled((
        (r"ya no vivo en (?P<x>.+)|no vivo (?:más )?en (?P<x2>.+)", "home", "El usuario ya no vive en {x}"),
        ((r"(?:vivo|resido|estoy viviendo) en (?P<x>.+)|(?:me mudé|nos mudamos|me he mudado)(?: de(?:sde)? .+?)? a "
         r"(?P<x2>.+)"),
         "home", "El usuario vive en {x}"),
        (r"(?:ya no|no) trabajo (?:más )?(?P<p>en|para) (?P<x>.+)", "employer", "El usuario ya no trabaja {p} {x}"),
        (r"dejé (?:mi trabajo|mi empleo|de trabajar) en (?P<x>.+)", "employer", "El usuario ya no trabaja en {x}"),
        (r"(?:trabajo|estoy trabajando) (?:como|de) (?P<x>.+?)(?: en .+)?", "job", "El usuario trabaja como {x}"),
        (r"(?:trabajo|estoy trabajando|empecé a trabajar) (?P<p>en|para) (?P<x>.+?)(?: como (?P<title>.+))?",
         "employer",
         "El usuario trabaja {p} {x}"),
        (rf"soy (?:un |una )?(?P<x>{_JOB}\w*(?: [\w ]+)?)", "job", "El usuario trabaja como {x}"),
        (r"(?:mi nombre es|me llamo) (?P<x>.+)", "name", "El usuario se llama {x}"),
        (r"(?:tengo|cumplí) (?P<x>\d{1,3}) años", "age", "El usuario tiene {x} años"),
        (r"mi cumpleaños es (?:el )?(?P<x>.+)|cumplo años el (?P<x2>.+)|nací el (?P<x3>\d.+)", "birthday",
         "El cumpleaños del usuario es el {x}"),
        (r"nací en (?P<x>\D+)", "birthplace", "El usuario nació en {x}"),
        (r"(?:soy|vengo) de (?P<x>.+)", "origin", "El usuario es de {x}"),
        (r"soy (?P<x>español|española|mexican[oa]|argentin[oa]|colombian[oa]|chilen[oa]|peruan[oa])", "nationality",
         "El usuario es {x}"),
        (r"(?:ya no|no) (?:soy alérgic[oa]|tengo alergia) (?P<p>al|a los|a las|a la|a) (?P<x>.+)", "allergy",
         "El usuario no es alérgico {p} {x}"),
        (r"(?:soy (?:muy )?alérgic[oa]|tengo alergia) (?P<p>al|a los|a las|a la|a) (?P<x>.+)", "allergy",
         "El usuario es alérgico {p} {x}"),
        (r"(?:ya no|no) me gustan? (?:nada )?(?P<x>.+)", "like", "Al usuario no le gusta {x}"),
        (r"me (?:gustan?|encantan?)(?: mucho)? (?P<x>.+)|(?:adoro|amo) (?P<x2>.+)",
         "like", "Al usuario le gusta {x}"),
        (r"(?:odio|detesto) (?P<x>.+)", "like", "El usuario odia {x}"),
        (r"mi (?P<w>\w+) (?P<p>(?:favorit|preferid)[oa]) es (?:el |la )?(?P<x>.+)", "favorite",
         "El usuario tiene como {w} {p}: {x}"),
        (r"prefiero (?P<x>.+)", "prefer", "El usuario prefiere {x}"),
        (r"no hablo (?P<x>.+)", "speak", "El usuario no habla {x}"),
        (r"hablo (?P<x>.+?)(?: con fluidez)?", "speak", "El usuario habla {x}"),
        (r"(?:estoy aprendiendo|aprendo) (?:a )?(?P<x>.+)", "learn", "El usuario está aprendiendo {x}"),
        (r"(?:estoy|soy) (?P<x>(?:casad|solter|divorciad|viud|prometid)[oa](?: con .+)?)", "marital",
        "El usuario está {x}"),
        (r"me casé(?P<w> .+)?", "marital", "El usuario está casado"),
        (r"(?P<p>no )?soy (?P<x>vegetarian[oa]|vegan[oa]|intolerante a la lactosa|celíac[oa])", "diet",
        "El usuario {p}es {x}"),
        (r"(?:ya no|no|nunca) como (?P<x>.+)", "eat", "El usuario no come {x}"),
        (r"(?:ya no|no|nunca) bebo (?P<x>.+)", "drink", "El usuario no bebe {x}"),
        ((r"tengo (?P<x>(?:un|una|dos|tres|cuatro|\d) (?:herman|hij|perr|gat|niet|prim|conej|caball|sobrin|tí[oa]|"
         r"bebé).*)"), "have",
         "El usuario tiene {x}"),
        (r"estoy (?P<x>(?:en|de vacaciones|de viaje|enferm[oa])\b.*)", "here", "El usuario está {x}"),
        (r"tengo (?P<x>(?:un|una) (?:cita|reunión|examen|entrevista|vuelo|viaje|boda|cirugía|consulta)\b.*)", "event",
         "El usuario tiene {x}"),
        (r"(?:voy a|me voy a) (?P<x>.+)", "event", "El usuario va a {x}"),
        (r"(?:fui|viajé) a (?P<x>.+)", "event", "El usuario fue a {x}"),
        (r"(?:por favor,? )?(?:responde|contesta)(?:me)? siempre (?P<x>.+)", "rule", ("El usuario quiere que el "
         "asistente responda siempre {x}")),
    )),
    forms={},
    prepositions=("en",),
    job_text="El usuario trabaja como {x}",
    relatives={
        "hermana": "sister", "hermano": "brother", "madre": "mother", "mamá": "mother", "padre": "father", "papá":
        "father",
        "hija": "daughter", "hijo": "son", "esposa": "wife", "mujer": "wife", "esposo": "husband", "marido": "husband",
        "novia": "girlfriend", "novio": "boyfriend", "abuela": "grandmother", "abuelo": "grandfather", "jefe": "boss",
        "jefa": "boss", "amigo": "friend", "amiga": "friend", "tío": "uncle", "tía": "aunt", "perro": "dog",
        "gato": "cat",
        "perra": "dog", "gata": "cat", "primo": "cousin", "prima": "cousin",
    },
    relative=words(
        r"mi (?P<kind>hermana|hermano|madre|mamá|padre|papá|hija|hijo|esposa|mujer|esposo|marido|novia|novio|abuela|"
        r"abuelo|"
        r"jefe|jefa|amigo|amiga|tío|tía|perro|gato|perra|gata|primo|prima)(?P<rest>(?: [A-Z]\w+)? (?:se llama|vive|"
        r"trabaja|tiene|"
        r"es|habla|nació|murió|estudia|está)\b.+)$"
    ),
    the={"madre": "La", "mujer": "La", "mamá": "La", "hermana": "La", "hija": "La", "esposa": "La", "novia": "La",
    "abuela": "La",
         "jefa": "La", "amiga": "La", "tía": "La", "perra": "La", "gata": "La", "prima": "La", "": "El"},
    relative_text="{the} {kind} del usuario{rest}",
    relative_slots=slots((
        (r"se llama", "name"), (r"\bvive\b", "home_city"), (r"\btrabaja (?:como|de)\b", "job_title"),
         (r"\btrabaja\b", "employer"),
        (r"tiene \d+ años", "age"), (r"alérgic[oa] (?:al|a los|a las|a la|a) (?P<x>.+)", "allergy_{x}"),
        (rf"\bes (?:un |una )?{_JOB}", "job_title"),
    )),
    times=slots((
        (r"la semana pasada", "last week"), (r"el mes pasado", "last month"), (r"el año pasado", "last year"),
        (r"\banteayer\b", "the day before yesterday"), (r"\bayer\b", "yesterday"), (r"\bpasado mañana\b",
        "the day after tomorrow"),
        (r"(?<!la )\bmañana\b", "tomorrow"), (r"\bhoy\b(?! en día)", "today"), ((r"la (?:próxima semana|semana que "
         r"viene)"), "next week"),
        (r"el (?:próximo mes|mes que viene)", "next month"), (r"el (?:próximo año|año que viene)", "next year"),
        (r"\besta semana", "this week"), (r"\beste mes", "this month"),
        (r"hace (?P<n>\d+|un|una|dos|tres) (?P<u>día|semana|mes|año)(?:e?s)?", "{n} {u} ago"),
        (rf"hasta el (?:próximo )?{_DAYS}", "until {day}"),
        (rf"el (?:próximo )?{_DAYS}(?: que viene)?\b", "on {day}"), (r"desde (?:el )?(?P<year>(?:19|20)\d\d)",
         "in {year}"),
        (rf"el (?P<d>\d{{1,2}}) de {_MONTHS}(?! de)", "on {d} {month}"), (rf"en {_MONTHS}", "in {month}"),
    )),
    terms={
        "un": "one", "una": "one", "dos": "two", "tres": "three", "día": "day", "semana": "week", "mes": "month",
        "año": "year",
        "lunes": "monday", "martes": "tuesday", "miércoles": "wednesday", "jueves": "thursday", "viernes": "friday",
        "sábado": "saturday", "domingo": "sunday", "enero": "january", "febrero": "february", "marzo": "march",
        "abril": "april",
        "mayo": "may", "junio": "june", "julio": "july", "agosto": "august", "septiembre": "september", "octubre":
        "october",
        "noviembre": "november", "diciembre": "december",
    },
    dates=("el {}", "en la semana del {}", "en {}", "en {}"),
    until="hasta el {}",
    enumeration=words(r",\s*|\s+[ye]\s+"),
    hedges=((words(r"^(?:quizás?|tal vez|a lo mejor)\s+"), 0.40),
    (words(r"^(?:creo que|pienso que|probablemente)\s+"), 0.60)),
    forget_that=words(r"(?:por favor,? )?(?:olvida|ignora|borra) que (?:yo )?(?P<clause>.+)$"),
    forget_topic=words(r"(?:por favor,? )?(?:olvida|ignora|borra) (?:lo que (?:te )?dije (?:sobre|de) (?P<x>.+)|"
    r"(?P<x2>mi .+))$"),
    forget_last=words(r"(?:por favor,? )?(?:olvida|ignora|borra) (?:eso|esto|lo que (?:acabo de decir|dije))$|^eso "
    r"ya no es (?:verdad|cierto)$"),
    correction=words(
        r"(?:(?:no|perdón|perdona|espera|bueno)[\s,.:]+)*(?:quiero decir|quise decir|digo|corrección|mejor dicho|"
        r"perdón)[\s,:]+"
        r"(?:es )?(?:(?P<p>en) )?(?P<x>[^,]+)$"),
    topics={"trabajo": ("job_title", "employer"), "empleo": ("job_title", "employer"), "nombre": ("name",),
    "edad": ("age",),
            "cumpleaños": ("birthday",), "dirección": ("address",), "ciudad": ("home_city",)},
    trailing=words(r"[\s,]+(?:ahora|actualmente|hoy en día|más|ya|también|por favor|desde|desde hace .+|con mi .+)$"),
)  # fmt: skip

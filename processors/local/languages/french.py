"""French."""

from typing import Final

from processors.local.languages.model import Language, compiled, slots, words

_JOB = (
    r"(?:infirmi|médecin|ingénieur|cuisini|avocat|psychologue|architecte|pompi|charpenti|vétérinaire|pharmacien|"
    r"mécanicien|"
    r"musicien|photographe|économiste|journaliste|dentiste|artiste|programmeu|professeur|enseignant|développeu|peintre|"
    r"écrivain|traduct|act(?:eur|rice)|vendeu|comptable|cherch(?:eur|euse)|analyste|graphiste|designer|étudiant|"
    r"chef|policier|"
    r"pilote|scientifique|serveu|boulang|électricien|instit)"
)
_DAYS = r"(?P<day>lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
_MONTHS = r"(?P<month>janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
_OF = r"(?:à l'|à la |au |aux |à |à les )"

FRENCH: Final = Language(
    speaking=words(r"\b(?:je|j'|moi|me|m'|mon|ma|mes|oublie[rz]?|ignore[rz]?|efface[rz]?|pardon|désolée?|non|ce|c'|"
    r"réponds|nous)"),
    silent=words(
        r"\?|^(?:qui|où|quand|comment|pourquoi|quel|quelle|combien|est-ce)\b|\b(?:si j|si je|imagine[rz]?|imaginons|"
        r"suppose[rz]?|"
        r"supposons|disons|fais semblant|aimerais|voudrais|vivrais|habiterais|serais|aurais|dit|disent|raconté|"
        r"demandé|selon|"
        r"traduis|traduire|personnage|par exemple|blague|plaisante|quand j'étais|tu|(?<!-)vous)\b"
    ),
    lead=words(
        r"(?:bonjour|salut|bonsoir|coucou|en fait|en réalité|eh bien|bon|alors|ah|et|mais|aussi|actuellement|"
        r"maintenant|"
        r"au fait|souviens-toi que|rappelle-toi que|merci|malheureusement|heureusement|moi)\b[\s,:;!.]*"
    ),
    split=words(r"(?:,\s*|\s+)(?:et|mais|car)\s+(?=(?:je|j'|mon|ma|mes)\b)|,\s*(?=(?:je|j'|mon|ma)\b)"),
    contrasts=slots((
        (r"\bpas seulement (.+?),? mais aussi (?:aux |au |à la |à l'|à )?", r"\1 et "),
        ((r"\b(je suis (?:très )?allergique (?:aux|au|à) [^,(]+?)(?:,| \(|,? mais| et)(?: mais| et)? pas "
         r"(aux |au |à la |à l'|à )([^,()]+)\)?"), r"\1; je ne suis pas allergique \2\3"),
        (r"\b(je ne suis pas allergique (?:aux|au|à) [^,(]+?),? mais (?:seulement )?(aux |au |à la |à l'|à )([^,()]+)",
         r"\1; je suis allergique \2\3"),
        (r"\b(je parle [^,(]+?)(?:,| \(|,? mais| et)(?: mais| et)? pas (?!très|bien|trop)(?:l'|le |du )?([^,()]+)\)?",
         r"\1; je ne parle pas \2"),
        (r"(?<=\w)(?:,| \(|,? mais)\s*(?:mais |et )?pas (?:aux?|à|le|la|les|en|du|de|dans|chez|l')\b[^,()]+\)?$", ""),
    )),
    rules=compiled((
        ((r"je n'habite (?:plus|pas) (?P<p>à|en|au|aux) (?P<x>.+)|je ne vis (?:plus|pas) (?P<w>à|en|au|aux) "
         r"(?P<x2>.+)"), "home",
         "L'utilisateur n'habite plus {p} {x}"),
        (r"j'habite (?:actuellement |maintenant )?(?P<p>à|en|au|aux) (?P<x>.+)", "home", ("L'utilisateur habite {p} "
         "{x}")),
        ((r"je vis (?:actuellement |maintenant )?(?P<p>à|en|au|aux) (?P<x>.+)|"
         r"j'ai (?:déménagé|emménagé)(?: de .+?)? (?:à|en|au|aux) (?P<x2>.+)"), "home", "L'utilisateur habite {p} {x}"),
        (r"je ne travaille plus (?P<p>chez|à la|à l'|à|au|pour) ?(?P<x>.+)|j'ai quitté (?P<x2>.+)", "employer",
         "L'utilisateur ne travaille plus {p} {x}"),
        (r"je (?:travaille|bosse) comme (?P<x>.+?)(?: (?:chez|à|au) .+)?", "job", "L'utilisateur travaille comme {x}"),
        (r"je (?:travaille|bosse) (?P<p>chez|à la|à|au|pour) (?P<x>.+?)(?: comme (?P<title>.+))?", "employer",
         "L'utilisateur travaille {p} {x}"),
        (rf"je suis (?:un |une )?(?P<x>{_JOB}\w*(?: [\w ]+)?)", "job", "L'utilisateur travaille comme {x}"),
        (r"(?:mon nom est|je m'appelle) (?P<x>.+)", "name", "L'utilisateur s'appelle {x}"),
        (r"j'ai (?:eu )?(?P<x>\d{1,3}) ans", "age", "L'utilisateur a {x} ans"),
        (r"mon anniversaire est (?:le )?(?P<x>.+)|je suis née? le (?P<x2>.+)", "birthday", ("L'anniversaire de "
         "l'utilisateur est le {x}")),
        (r"je suis née? (?P<p>à|en|au) (?P<x>\D+)", "birthplace", "L'utilisateur est né {p} {x}"),
        (r"je viens (?P<p>de|du|d'|des) ?(?P<x>.+)|je suis originaire (?:de |du |d')(?P<x2>.+)", "origin",
         "L'utilisateur vient {p} {x}"),
        (r"je suis (?P<x>française?|belge|suisse|canadien(?:ne)?|marocaine?|algérien(?:ne)?)", "nationality",
         "L'utilisateur est {x}"),
        (rf"je ne suis (?:pas|plus) allergique (?P<p>{_OF})(?P<x>.+)", "allergy", ("L'utilisateur n'est pas "
         "allergique {p}{x}")),
        (rf"je suis (?:très )?allergique (?P<p>{_OF})(?P<x>.+)", "allergy",
         "L'utilisateur est allergique {p}{x}"),
        (r"je n'aime (?:pas|plus|pas du tout) (?P<x>.+)", "like", "L'utilisateur n'aime pas {x}"),
        (r"j'(?:aime|adore)(?: beaucoup| bien)? (?P<x>.+)", "like", "L'utilisateur aime {x}"),
        (r"je déteste (?P<x>.+)", "like", "L'utilisateur déteste {x}"),
        (r"(?:mon|ma) (?P<w>\w+) (?:préférée?|favorite?) est (?:le |la )?(?P<x>.+)", "favorite", ("L'utilisateur a "
         "pour {w} préféré : {x}")),
        (r"je préfère (?P<x>.+)", "prefer", "L'utilisateur préfère {x}"),
        (r"je ne parle pas (?:le |l'|du )?(?P<x>.+)", "speak", "L'utilisateur ne parle pas {x}"),
        (r"je parle (?:couramment )?(?:le |l')?(?P<x>.+?)(?: couramment)?", "speak", "L'utilisateur parle {x}"),
        (r"j'apprends (?:le |la |l'|à )?(?P<x>.+)", "learn", "L'utilisateur apprend {x}"),
        (r"je suis (?P<x>mariée?(?: avec .+| à .+)?|célibataire|divorcée?|veuf|veuve|fiancée?)", "marital",
         "L'utilisateur est {x}"),
        (r"je me suis mariée?(?P<w> .+)?", "marital", "L'utilisateur est marié"),
        (r"je suis (?P<x>végétarien(?:ne)?|végane?|vegan|intolérante? au lactose|c(?:o|œ)eliaque)", "diet",
         "L'utilisateur est {x}"),
        (r"je ne mange (?:pas|plus|jamais) (?:de |d')(?P<x>.+)", "eat", "L'utilisateur ne mange pas de {x}"),
        (r"je ne bois (?:pas|plus|jamais) (?:de |d')(?P<x>.+)", "drink", "L'utilisateur ne boit pas de {x}"),
        ((r"j'ai (?P<x>(?:un|une|deux|trois|quatre|\d) (?:sœur|soeur|frère|fils|fille|enfant|chien|chat|lapin|cheval|"
         r"cousin|bébé).*)"),
         "have", "L'utilisateur a {x}"),
        (r"je suis (?P<x>(?:à|en|au|malade)\b.*)", "here", "L'utilisateur est {x}"),
        (r"j'ai (?P<x>(?:un|une) (?:rendez-vous|réunion|examen|entretien|vol|voyage|mariage|opération)\b.*)", "event",
         "L'utilisateur a {x}"),
        (r"je (?:vais|pars) (?P<x>.+)", "event", "L'utilisateur va {x}"),
        (r"(?:s'il te plaît,? )?réponds(?:-moi)? toujours (?P<x>.+)", "rule", ("L'utilisateur veut que l'assistant "
         "réponde toujours {x}")),
    )),
    forms={"": "à"},
    prepositions=("à", "en", "au", "aux"),
    job_text="L'utilisateur travaille comme {x}",
    relatives={
        "sœur": "sister", "soeur": "sister", "frère": "brother", "mère": "mother", "père": "father", "fille":
        "daughter",
        "fils": "son", "femme": "wife", "mari": "husband", "copine": "girlfriend", "copain": "boyfriend",
        "grand-mère": "grandmother", "grand-père": "grandfather", "patron": "boss", "ami": "friend", "amie": "friend",
        "oncle": "uncle", "tante": "aunt", "chien": "dog", "chat": "cat", "cousin": "cousin", "cousine": "cousin",
    },
    relative=words(
        r"(?P<my>mon|ma) (?P<kind>sœur|soeur|frère|grand-mère|grand-père|mère|père|fille|fils|femme|mari|copine|"
        r"copain|patron|"
        r"amie|ami|oncle|tante|chien|chat|cousine|cousin)(?P<rest>(?: [A-Z]\w+)? (?:s'appelle|habite|vit|travaille|"
        r"a|est|parle|aime)\b.+)$"
    ),
    the={"ma": "La", "mon": "Le"},
    relative_text="{the} {kind} de l'utilisateur{rest}",
    relative_slots=slots((
        (r"s'appelle", "name"), (r"\b(?:habite|vit)\b", "home_city"), (r"\btravaille comme\b", "job_title"),
        (r"\btravaille\b", "employer"), (r"\ba \d+ ans", "age"), (rf"allergique {_OF}(?P<x>.+)", "allergy_{x}"),
        (rf"\best (?:un |une )?{_JOB}", "job_title"),
    )),
    times=slots((
        (r"la semaine dernière", "last week"), (r"le mois dernier", "last month"),
         (r"l'année dernière|l'an dernier", "last year"),
        (r"\bavant-hier\b", "the day before yesterday"), (r"\bhier\b", "yesterday"), (r"\baprès-demain\b",
        "the day after tomorrow"),
        (r"\bdemain\b", "tomorrow"), (r"\baujourd'hui\b", "today"), (r"la semaine prochaine", "next week"),
        (r"le mois prochain", "next month"), (r"l'année prochaine|l'an prochain", "next year"), (r"\bcette semaine",
         "this week"),
        (r"\bce mois(?:-ci)?", "this month"), (r"il y a (?P<n>\d+|une?|deux|trois) (?P<u>jour|semaine|mois|an)s?",
         "{n} {u} ago"),
        (rf"jusqu'à {_DAYS}", "until {day}"), (rf"\b(?:ce |le )?{_DAYS}(?: prochain)?\b", "on {day}"),
        (r"depuis (?P<year>(?:19|20)\d\d)", "in {year}"), (rf"le (?P<d>\d{{1,2}})(?:er)? {_MONTHS}", "on {d} {month}"),
        (rf"en {_MONTHS}", "in {month}"),
    )),
    terms={
        "un": "one", "une": "one", "deux": "two", "trois": "three", "jour": "day", "semaine": "week",
        "mois": "month", "an": "year",
        "lundi": "monday", "mardi": "tuesday", "mercredi": "wednesday", "jeudi": "thursday", "vendredi": "friday",
        "samedi": "saturday", "dimanche": "sunday", "janvier": "january", "février": "february", "mars": "march",
        "avril": "april",
        "mai": "may", "juin": "june", "juillet": "july", "août": "august", "septembre": "september", "octobre":
        "october",
        "novembre": "november", "décembre": "december",
    },
    dates=("le {}", "dans la semaine du {}", "en {}", "en {}"),
    until="jusqu'au {}",
    enumeration=words(r",\s*|\s+et\s+"),
    hedges=((words(r"^(?:peut-être que|peut-être)\s+"), 0.40), (words(r"^(?:je crois que|je pense que|"
    r"probablement)\s+"), 0.60)),
    forget_that=words(r"(?:s'il te plaît,? )?(?:oublie|ignore|efface)z? (?:que |qu')(?P<clause>(?:je|j').+)$"),
    forget_topic=words(
        r"(?:s'il te plaît,? )?(?:oublie|ignore|efface)z? (?:ce que j'ai dit (?:sur|de|à propos de) (?P<x>.+)|"
        r"(?P<x2>(?:mon|ma) .+))$"),
    forget_last=words(r"(?:s'il te plaît,? )?(?:oublie|ignore|efface)z? (?:ça|cela|ce que (?:je viens de dire|j'ai "
    r"dit))$|^ce n'est plus vrai$"),
    correction=words(
        r"(?:(?:non|pardon|désolée?|attends|enfin)[\s,.:]+)*(?:je veux dire|je voulais dire|plutôt|correction|"
        r"pardon)[\s,:]+"
        r"(?:c'est )?(?:(?P<p>à|en|au) )?(?P<x>[^,]+)$"),
    topics={"travail": ("job_title", "employer"), "emploi": ("job_title", "employer"), "nom": ("name",), "âge": (
    "age",),
            "anniversaire": ("birthday",), "adresse": ("address",), "ville": ("home_city",)},
    trailing=words(r"[\s,]+(?:maintenant|actuellement|aussi|s'il te plaît|depuis|depuis .+|avec (?:ma|mon|mes) .+)$"),
)  # fmt: skip

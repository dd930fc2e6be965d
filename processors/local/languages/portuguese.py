"""Portuguese, of both sides of the Atlantic."""

from typing import Final

from processors.local.languages.model import Language, compiled, slots, words

_JOB = (
    r"(?:enfermeir|médic|engenheir|cozinheir|advogad|psicólog|arquitet|bombeir|carpinteir|veterinári|funcionári|"
    r"secretári|farmacêutic|mecânic|músic|fotógraf|empresári|estagiári|bibliotecári|economist|jornalist|dentist|"
    r"artist|motorist|programador|professor|desenvolvedor|pintor|escritor|tradutor|ator|vendedor|contador|pesquisador|"
    r"investigador|administrador|analist|designer|gerente|estudante|chef|policial|polícia|piloto|atriz|cientist|"
    r"padeir|electricist|eletricist|garçom|barista)"
)
_TO = r"(?P<p>para o|para a|para os|para as|para|pro|pra)"
_AT = r"(?P<p>em|no|na|nos|nas)"

PORTUGUESE: Final = Language(
    speaking=words(
        r"\b(?:eu|me|mim|meu|minha|meus|minhas|moro|vivo|resido|trabalho|sou|tenho|gosto|adoro|amo|odeio|detesto|"
        r"prefiro|falo|chamo-me|mudei|mudámos|nasci|estou|vou|como|bebo|esque[cç]\w+|ignor\w+|saí|fui|prefiro|"
        r"aprendo|estudo|faço|casei|desculp\w+|dizer|aliás|responda|responde|não|sofro|mudo|comecei|corrijo|correção)\b"
    ),
    silent=words(
        r"\?|^(?:quem|onde|quando|como (?:é|está|posso|se)|por que|porque é que|qual|quais|quanto|será)\b|"
        r"\b(?:se eu|caso eu|imagin[ae]|imaginemos|suponha|suponhamos|supondo|digamos|finj[ao]|gostaria|gostava|queria|"
        r"teria|moraria|viveria|seria|oxalá|tomara|disse|diz|dizem|falou|contou|perguntou|afirm\w+|segundo|traduz\w*|"
        r"personagem|por exemplo|brincadeira|talvez eu (?:pudesse|devesse)|quando eu era|tu|você)\b"
    ),
    lead=words(
        r"(?:olá|oi|bom dia|boa tarde|boa noite|na verdade|bem|bom|então|ah|e|mas|também|atualmente|agora|hoje em dia|"
        r"aliás|por sinal|só para saberes?|lembre-se(?: de)? que|lembra-te(?: de)? que|sabe|obrigad[oa]|infelizmente|"
        r"felizmente|recentemente|afinal|eu|desde então)\b[\s,:;!.]*"
    ),
    split=words(
        r"(?:,\s*|\s+)(?:e|mas|porque|que)\s+(?=(?:eu|moro|vivo|trabalho|sou|tenho|gosto|adoro|odeio|detesto|falo|"
        r"prefiro|estou|não|meu|minha|o meu|a minha|já não|me chamo|chamo-me|agora)\b)|"
        r",\s*(?=(?:eu|moro|vivo|trabalho|sou|tenho|gosto|adoro|odeio|falo|prefiro|estou|meu|minha|o meu|a minha|"
        r"não (?:moro|vivo|trabalho|sou|tenho|gosto|falo|como|bebo|estou)|"
        r"agora)\b)"
    ),
    contrasts=slots((
        (r"\bnão (?=sou só )", ""),
        (r"\b(?:não )?só (.+?),? mas também (?:aos? |às? |a |d[eoa]s? )?", r"\1 e "),
        ((r"\b(?<!não )(sou (?:muito )?alérgic([oa]) (?:aos|às|ao|à|a) [^,(]+?)(?:,| \(|,? mas| e)(?: mas| e)? não "
         r"(?:sou )?(?:aos |às |ao |à |a )?([^,()]+)\)?"), r"\1; não sou alérgic\2 a \3"),
        (r"\b(não sou alérgic([oa]) (?:aos|às|ao|à|a) [^,(]+?),? (?:mas |sim |só |apenas )+(?:aos|às|ao|à|a) ([^,()]+)",
         r"\1; sou alérgic\2 a \3"),
        (r"\b(?<!não )((gosto|falo|como|bebo) [^,(]+?)(?:,| \(|,? mas| e)(?: mas| e)? não ((?:d[eoa]s? )[^,()]+)\)?",
         r"\1; não \2 \3"),
        ((r"\b(?<!não )((falo|como|bebo) [^,(]+?)(?:,| \(|,? mas| e)(?: mas| e)? não "
         r"(?!(?:muito|bem|sempre|mais|gosto|como|bebo|falo|sou|tenho|moro|estou)\b)([^,()]+)\)?"), r"\1; não \2 \3"),
        (r"(?<=\w)(?:,| \()\s*(?:mas |e )?não (?:n?[oa]s?|em|d[eoa]s?|aos?|às?|para|com) [^,()]+\)?$", ""),
    )),
    rules=compiled((
        (rf"(?:já não|não) (?:moro|vivo|resido) (?:mais )?{_AT} (?P<x>.+)", "home", "O usuário já não mora {p} {x}"),
        (rf"(?:moro|vivo|resido|estou (?:a (?:viver|morar)|morando|vivendo)) {_AT} (?P<x>.+)", "home",
         "O usuário mora {p} {x}"),
        (rf"(?:me mudei|mudei-me|mudei|mudámo-nos|nos mudamos|fui viver|fui morar)(?: d[eoa]s? .+?)? {_TO} (?P<x>.+)",
         "home", "O usuário mora {p} {x}"),
        (r"(?:já não|não) trabalho (?:mais )?(?P<p>na|no|em|para a|para o|para) (?P<x>.+)", "employer",
         "O usuário já não trabalha {p} {x}"),
        (r"(?:saí|fui demitid[oa]|fui despedid[oa]) (?P<p>da|do|de) (?P<x>.+)", "employer",
         "O usuário já não trabalha {p} {x}"),
        (r"(?:trabalho|estou trabalhando|estou a trabalhar|comecei a trabalhar) como (?P<x>.+?)(?: (?:na|no|em) .+)?",
         "job", "O usuário trabalha como {x}"),
        ((r"(?:trabalho|estou trabalhando|estou a trabalhar|comecei a trabalhar) (?P<p>na|no|em|para a|para o|para) "
         r"(?P<x>.+?)(?: como (?P<title>.+))?"), "employer", "O usuário trabalha {p} {x}"),
        (rf"sou (?:um |uma )?(?P<x>{_JOB}\w*(?: [\w ]+)?)", "job", "O usuário trabalha como {x}"),
        (r"(?:o )?meu nome é (?P<x>.+)|(?:me chamo|chamo-me) (?P<x2>.+)|sou [oa] (?P<x3>[A-Z]\w+(?: [A-Z]\w+)?)",
         "name",
         "O nome do usuário é {x}"),
        (r"(?:tenho|fiz) (?P<x>\d{1,3}) anos(?: de idade)?", "age", "O usuário tem {x} anos"),
        ((r"(?:o )?meu aniversário é (?:em |a |no dia |dia )?(?P<x>.+)|faço anos (?:em |a |no dia |dia )(?P<x2>.+)|"
         r"nasci (?:em|a|no dia|dia) (?P<x3>\d.+)"), "birthday", "O aniversário do usuário é {x}"),
        (r"nasci (?P<p>em|no|na) (?P<x>\D+)", "birthplace", "O usuário nasceu {p} {x}"),
        (r"(?:sou|venho) (?P<p>de|do|da|dos|das) (?P<x>.+)", "origin", "O usuário é {p} {x}"),
        (r"sou (?P<x>brasileir[oa]|portugues[oa]?|português|angolan[oa]|moçambican[oa]|espanhol[a]?|alem[ãa]o?)",
         "nationality", "O usuário é {x}"),
        ((r"(?:já não|não) (?:sou (?:mais )?alérgic[oa]|tenho (?:mais )?alergia) (?:mais )?(?:aos|às|ao|à|a) "
         r"(?P<x>.+)"), "allergy",
         "O usuário não é alérgico a {x}"),
        ((r"(?:sou (?:muito |gravemente )?alérgic[oa]|tenho (?:uma )?alergia|sofro de alergia) (?:aos|às|ao|à|a) "
         r"(?P<x>.+)"), "allergy", "O usuário é alérgico a {x}"),
        (r"(?:já não|não) (?:gosto|adoro) (?:mais |nada |muito )*(?:d[eoa]s? )?(?P<x>.+)", "like",
         "O usuário não gosta de {x}"),
        (r"(?:gosto|adoro|amo)(?: muito| imenso| bastante)*(?: d[eoa]s?| o| a| os| as)? (?P<x>.+)", "like",
         "O usuário gosta de {x}"),
        (r"(?:odeio|detesto)(?: o| a| os| as)? (?P<x>.+)", "like", "O usuário detesta {x}"),
        (r"(?:a minha|minha|o meu|meu) (?P<w>\w+) (?P<p>(?:favorit|preferid)[oa]) é (?:o |a )?(?P<x>.+)", "favorite",
         "O usuário tem como {w} {p}: {x}"),
        (r"prefiro (?P<x>.+)", "prefer", "O usuário prefere {x}"),
        (r"(?:não) falo (?:nada de )?(?P<x>.+)", "speak", "O usuário não fala {x}"),
        (r"falo (?:fluentemente )?(?P<x>.+?)(?: fluentemente| fluente)?", "speak", "O usuário fala {x}"),
        (r"(?:estou aprendendo|estou a aprender|ando a aprender|aprendo) (?:a )?(?P<x>.+)", "learn",
         "O usuário está aprendendo {x}"),
        (r"sou (?P<x>(?:casad|solteir|divorciad|viúv)[oa](?: com .+)?)|estou (?P<x2>noiv[oa](?: d[eoa] .+)?)",
         "marital", "O usuário é {x}"),
        (r"(?:me casei|casei-me|casei)(?: com (?P<w>.+))?", "marital", "O usuário é casado"),
        (r"(?P<p>não )?sou (?:mais )?(?P<x>vegetarian[oa]|vegan[oa]|intolerante (?:à lactose|ao glúten)|celíac[oa])",
         "diet", "O usuário {p}é {x}"),
        (r"(?:já não|não|nunca) como (?:mais )?(?P<x>.+)", "eat", "O usuário não come {x}"),
        (r"(?:já não|não|nunca) bebo (?:mais )?(?P<x>.+)", "drink", "O usuário não bebe {x}"),
        ((r"tenho (?P<x>(?:um|uma|dois|duas|três|quatro|\d) (?:irm|filh|cão|cães|gat|cachorr|cadel|net|prim|pássar|"
         r"coelh|sobrinh|ti[oa]|bebé|bebê).*)"), "have", "O usuário tem {x}"),
        (r"estou (?P<x>(?:em|no|na|de férias|doente|viajando|a viajar)\b.*)", "here", "O usuário está {x}"),
        ((r"tenho (?P<x>(?:um|uma) (?:consulta|reunião|exame|prova|entrevista|voo|viagem|casamento|encontro|jantar|"
         r"cirurgia)\b.*)"), "event", "O usuário tem {x}"),
        (r"vou (?:me mudar|mudar-me) (?P<x>.+)", "plan", "O usuário vai se mudar {x}"),
        ((r"vou (?P<x>(?:viajar|mudar|visitar|casar|começar|fazer|correr|voar|comprar|ir|para|ao|à)\b"
         r".*)"), "plan", "O usuário vai {x}"),
        (r"(?:fui|viajei) (?P<x>(?:a|ao|à|para)\b.+)", "event", "O usuário foi {x}"),
        (r"(?:por favor,? )?(?:responda|responde|fala|fale|escreva|escreve)(?:-me|me)? sempre (?P<x>.+)", "rule",
         "O usuário quer que o assistente responda sempre {x}"),
    )),
    forms={"para o": "no", "para a": "na", "para os": "nos", "para as": "nas", "para": "em", "pro": "no", "pra": "em"},
    prepositions=("em", "no", "na", "nos", "nas"),
    job_text="O usuário trabalha como {x}",
    relatives={
        "irmã": "sister", "irmão": "brother", "mãe": "mother", "pai": "father", "filha": "daughter", "filho": "son",
        "esposa": "wife", "mulher": "wife", "marido": "husband", "namorada": "girlfriend", "namorado": "boyfriend",
        "avó": "grandmother", "avô": "grandfather", "chefe": "boss", "amigo": "friend", "amiga": "friend",
        "tio": "uncle", "tia": "aunt", "primo": "cousin", "prima": "cousin", "gato": "cat", "gata": "cat",
        "cão": "dog", "cachorro": "dog", "cadela": "dog", "pais": "parents", "noiva": "fiancée", "noivo": "fiancé",
    },
    relative=words(
        r"(?:(?:a|o|os) )?(?P<my>meu|minha|meus) (?P<kind>irmão|irmã|mãe|pais|pai|filha|filho|esposa|mulher|marido|"
        r"namorada|"
        r"namorado|avó|avô|chefe|amigo|amiga|tio|tia|primo|prima|gato|gata|cão|cachorro|cadela|noiva|noivo)"
        r"(?P<rest>(?: [A-Z]\w+)? (?:chama-se|se chama|mora|moram|vive|vivem|trabalha|trabalham|tem|é|são|fala|gosta|"
        r"adora|nasceu|morreu|faz|estuda|está)\b.+)$"
    ),
    the={"minha": "A", "meu": "O", "meus": "Os"},
    relative_text="{the} {kind} do usuário{rest}",
    relative_slots=slots((
        (r"chama", "name"), (r"\b(?:mora|vive)m?\b", "home_city"), (r"\btrabalham? como\b", "job_title"),
        (r"\btrabalham?\b", "employer"), (r"tem \d+ anos", "age"), (r"alérgic[oa] (?:aos|às|ao|à|a) (?P<x>.+)",
         "allergy_{x}"), (rf"é (?:um |uma )?{_JOB}", "job_title"),
    )),
    times=slots((
        (r"(?:na )?semana passada|(?:na )?última semana", "last week"), (r"(?:no )?mês passado", "last month"),
        (r"(?:no )?ano passado", "last year"), (r"\banteontem\b", "the day before yesterday"),
        (r"\bontem\b", "yesterday"), (r"\bdepois de amanhã\b", "the day after tomorrow"), (r"\bamanhã\b", "tomorrow"),
        (r"\bhoje\b(?! em dia)", "today"), (r"(?:na )?(?:próxima semana|semana que vem)", "next week"),
        (r"(?:no )?(?:próximo mês|mês que vem)", "next month"), (r"(?:no )?(?:próximo ano|ano que vem)", "next year"),
        (r"\b(?:nesta|esta) semana", "this week"), (r"\b(?:neste|este) mês", "this month"),
        (r"há (?P<n>\d+|um|uma|dois|duas|três) (?P<u>dia|semana|mês|mes|ano)(?:e?s)?(?: atrás)?", "{n} {u} ago"),
        (r"até (?:à |a )?(?:próxima )?(?P<day>segunda|terça|quarta|quinta|sexta|sábado|domingo)(?:-feira)?",
        "until {day}"),
        ((r"(?:na |no )?(?:próxima |próximo )?(?P<day>segunda|terça|quarta|quinta|sexta|sábado|domingo)(?:-feira)?"
         r"(?: que vem)?\b"), "on {day}"),
        (r"(?:desde|em) (?P<year>(?:19|20)\d\d)", "in {year}"),
        ((r"(?:em |no dia |a |dia )?(?P<d>\d{1,2}) de (?P<month>janeiro|fevereiro|março|abril|maio|junho|julho|agosto|"
         r"setembro|outubro|novembro|dezembro)(?! de)"), "on {d} {month}"),
        (r"em (?P<month>janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro)",
         "in {month}"),
    )),
    terms={
        "um": "one", "uma": "one", "dois": "two", "duas": "two", "três": "three", "dia": "day", "semana": "week",
        "mês": "month", "mes": "month", "ano": "year", "segunda": "monday", "terça": "tuesday", "quarta": "wednesday",
        "quinta": "thursday", "sexta": "friday", "sábado": "saturday", "domingo": "sunday", "janeiro": "january",
        "fevereiro": "february", "março": "march", "abril": "april", "maio": "may", "junho": "june", "julho": "july",
        "agosto": "august", "setembro": "september", "outubro": "october", "novembro": "november",
        "dezembro": "december",
    },
    dates=("em {}", "na semana de {}", "em {}", "em {}"),
    until="até {}",
    enumeration=words(r",\s*|\s+e\s+|\s+nem\s+(?:d[eoa]s? )?"),
    hedges=((words(r"^(?:talvez|quem sabe|se calhar)\s+"), 0.40),
            (words(r"^(?:acho que|creio que|penso que|provavelmente|parece que)\s+"), 0.60)),
    forget_that=words(
        r"(?:por favor,? )?(?:esque[cç][ea](?:-te)?|ignor[ea]|apag(?:a|ue))(?: de)? que (?:eu )?(?P<clause>.+)$"),
    forget_topic=words(
        r"(?:por favor,? )?(?:esque[cç][ea](?:-te)?(?: d)?|ignor[ea]|apag(?:a|ue))\s*(?:o que (?:eu )?(?:te |lhe )?"
        r"disse (?:sobre|d[aoe]) |d?[oa]? ?)(?:o |a )?(?P<x>(?:meu|minha) .+|(?<=sobre ).+)$"),
    forget_last=words(
        r"(?:por favor,? )?(?:esque[cç][ea]|ignor[ea]|apag(?:a|ue))(?:-te)? (?:isso|isto|o que (?:eu )?(?:acabei de "
        r"dizer|"
        r"disse))$|^(?:isso|isto) já não é verdade$"),
    correction=words(
        r"(?:(?:não|desculp[ae]|perdão|ops|aliás|na verdade|espera)[\s,.:]+)*(?:quero dizer|quer dizer|queria dizer|"
        r"aliás|digo|"
        r"corrijo|correção|desculp[ae]|na verdade é|na verdade)[\s,:]+(?:é )?(?:(?P<p>em|no|na) )?(?P<x>[^,]+)$"),
    topics={"emprego": ("job_title", "employer"), "trabalho": ("job_title", "employer"), "nome": ("name",),
            "idade": ("age",), "aniversário": ("birthday",), "morada": ("address",), "endereço": ("address",),
            "cidade": ("home_city",), "casa": ("home_city",)},
    trailing=words(
        r"[\s,]+(?:agora|atualmente|hoje em dia|neste momento|mais|já|também|por favor|há (?:\w+ )?anos?|de momento|"
        r"desde|com (?:a minha|o meu|minha|meu) .+)$"),
)  # fmt: skip

"""Words that the guards know, by what a change of them changes.

A word in none of these tables is a word like any other: replacing it is a difference. So a gap here costs a question to
a model, never a wrong merge.
"""

from typing import Final

from processors.guards.kinds import Difference

_NEGATION: Final = """
    not no nor never none nobody nothing nowhere neither without cannot non stopped stops stop quit quits quitting
    ceased gave hardly barely scarcely rarely seldom except excluding lacks lack lacking denies denied refuses refused
    avoids avoid fails failed unable anti free
    não nao nunca sem nenhum nenhuma ninguém nada jamais nem deixou parou exceto
    nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder aufgehört außer ausser
    sin ningún ninguno ninguna nadie tampoco dejó excepto
    pas jamais sans rien aucun aucune personne arrêté arrete sauf
    لا ليس ليست لست ليسوا لم لن غير بدون دون بلا ما مش ليش أبدا ابدا
    ない ません いない 않 안 못 없
    不 没 沒 無 无 别 未 非 勿 莫 否 戒
    не нет никогда без
"""
_TENSE: Final = """
    was were been had used former formerly previously previous ex once late retired anymore longer any already still yet
    will shall going gonna became becomes become until till since now currently nowadays lately recently soon again
    before after originally initially first-time began begins started starts start finished ended deceased past
    foi era foram eram tinha fui antes já ainda vai vou será agora atualmente antigamente
    war waren wurde hatte früher ehemals ehemalig ehemalige ehemaliger damals bisher wird werde werden jetzt mehr noch
    fue fueron tenía había ya todavía ahora será
    était étaient avait ancien ancienne anciennement autrefois maintenant encore plus sera
    كان كانت كانوا سابقا سابقاً سوف قبل بعد الآن حاليا
    曾 过 過 了 将 將 已 前 後 后 原 正
"""
_CERTAINTY: Final = """
    maybe perhaps possibly probably likely unlikely might could would should can may must ought seems seem seemed
    appears appear apparently allegedly supposedly reportedly presumably hopefully theoretically hypothetically
    potentially thinks think thought believes believe believed guesses guess suspects suspect assumes assume wonders
    wonder hopes hope wishes wish wants want wanted wanna plans plan planned planning considers consider considering
    intends intend intended dreams dream imagines imagine pretends pretend claims claim claimed says said say told
    tries try trying tried aims aim expects expect afraid unsure uncertain sure certain certainly definitely if unless
    whether when whenever while although though however but rather instead almost nearly roughly approximately about
    around over under least most only just mostly mainly usually often always sometimes occasionally frequently
    generally normally typically theory paper principle game movie novel story fiction joke jokes joking example
    talvez provavelmente possivelmente poderia pode quer queria acha pensa acredita espera pretende se mas quase só
    apenas sempre geralmente
    vielleicht wahrscheinlich möglicherweise könnte kann möchte will würde soll sollte glaubt denkt meint hofft
    vermutlich falls wenn ob aber fast nur immer meistens angeblich
    quizás quizá tal vez probablemente posiblemente podría puede quiere cree piensa espera si pero casi sólo solo
    siempre
    peut-être peut probablement pourrait veut voudrait croit pense espère mais presque seulement toujours
    ربما قد يريد يعتقد يظن يأمل لعل إذا لكن فقط دائما
    可 能 也 许 許 或 想 要 打 算 希 望 觉 覺 认 認 如 果 只 但
"""
_SUBJECT: Final = """
    user users assistant i me my mine myself you your yours he him his himself she her hers herself they them their
    theirs themselves we us our ours it its who whose someone somebody everyone everybody people one's
    wife husband partner girlfriend boyfriend fiancé fiancée fiance fiancee spouse sister sisters brother brothers
    sibling siblings mother father parent parents son sons daughter daughters child children baby twin twins
    grandmother grandfather grandma grandpa grandparents grandson granddaughter granddad granny nan aunt uncle cousin
    cousins niece nephew stepmother stepfather stepson stepdaughter law friend friends roommate flatmate housemate
    neighbour neighbor boss manager supervisor colleague colleagues coworker coworkers mentor therapist dentist teacher
    landlord client customer employer employee team family relative relatives ancestor girl boy man woman guy lady
    mr mrs ms miss sir madam
    usuário usuária eu meu minha ele ela eles elas seu sua dele dela irmã irmão irmãos mãe pai pais filho filha filhos
    filhas marido esposa mulher namorado namorada amigo amiga chefe tio tia primo prima avó avô
    ich mein meine meinen meiner meinem er sie sein seine seinen seiner seinem ihr ihre ihren ihrer ihrem schwester
    bruder mutter vater eltern sohn tochter kind kinder mann frau freund freundin chef chefin onkel tante cousine
    oma opa nutzer nutzerin benutzer
    usuario usuaria yo mi él ella ellos ellas su hermana hermano madre padre padres hijo hija hijos hijas esposo novio
    novia jefe jefa tío tía abuela abuelo
    utilisateur utilisatrice je mon ma il elle ils elles leur sœur soeur frère mère père parents fils fille enfant
    enfants mari femme ami amie copain copine patron patronne oncle
    أنا هو هي هم المستخدم المستخدمة أخت أخته أختي أخ أخوه أخي أم أمه أمي أب أبوه أبي والده والدته ابن ابنه ابنة ابنته
    زوج زوجته زوجها زوجتي صديق صديقه صديقته مدير مديره
    我 你 他 她 它 您 们 們 妈 媽 爸 姐 妹 哥 弟 妻 丈 夫 儿 兒 女 母 父 友 朋 爷 爺 奶 叔 姨 板 户 戶 私 彼 僕
"""
_UNIT: Final = """
    pound pounds stone stones tonne tonnes ton tons yard yards acre acres cup cups spoon tablespoon teaspoon
    quarter quarters inch inches calorie calories kcal watt watts volt volts degree degrees celsius fahrenheit kelvin
    usd eur gbp brl chf jpy cny inr cad aud peso pesos yen yuan franc francs rupee rupees cent cents penny pence
    real reais libra libras franken rubel ruble rubles bitcoin bitcoins
    daily weekly monthly yearly annually annual hourly nightly fortnightly biweekly quarterly per each every times time
    diariamente semanalmente mensalmente diário semanal mensal hora horas dia dias semana semanas mês meses ano anos
    vez vezes año años día días mes tag tage tagen woche wochen monat monate jahr jahre jahren stunde stunden minuten
    täglich wöchentlich monatlich jährlich mal pro jour jours semaine semaines mois an ans année années heure heures
    fois quotidiennement
    سنة سنوات عام أعوام يوم أيام أسبوع أسابيع شهر أشهر ساعة ساعات دقيقة مرة مرات كيلو كيلوغرام كيلومتر دولار يورو ريال
    درهم جنيه
    斤 元 块 塊 岁 歲 里 米 克 吨 円 次 分 秒 个 個 只 隻 時 时 度
"""
_DATE: Final = """
    today tomorrow yesterday tonight next last this coming upcoming ago morning mornings afternoon evening evenings
    night nights noon midnight midday dawn weekend weekends weekday weekdays workday
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays mon tue wed thu fri sat sun
    january february march april june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    cet cest utc gmt pst pdt cst edt
    spring summer autumn fall winter christmas easter halloween thanksgiving ramadan hanukkah birthday
    hoje amanhã ontem manhã tarde noite próxima próximo passada passado segunda terça quarta quinta sexta sábado domingo
    feira janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro natal
    heute morgen gestern übermorgen vorgestern abend nacht mittag montag dienstag mittwoch donnerstag freitag samstag
    sonnabend sonntag montags dienstags mittwochs donnerstags freitags samstags sonntags januar jänner februar märz mai
    juni juli oktober dezember nächste nächsten nächster letzte letzten letzter vor weihnachten
    hoy mañana ayer noche lunes martes miércoles jueves viernes enero febrero marzo mayo junio julio septiembre octubre
    noviembre diciembre próxima pasada navidad
    aujourd'hui demain hier matin soir nuit midi lundi mardi mercredi jeudi vendredi samedi dimanche janvier février
    mars
    avril juin juillet août septembre octobre novembre décembre prochain prochaine dernier dernière noël
    اليوم غدا غداً أمس الليلة صباحا مساء الأحد الاثنين الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت يناير فبراير مارس
    أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر القادم الماضي
    年 月 日 号 號 周 週 星 期 今 明 昨 天 晚 早 上 下 午 春 夏 秋 冬
"""
_NUMBER: Final = """
    half third fourth quarter double triple twice thrice dozen dozens couple pair single both several many few some all
    twenties thirties forties fifties sixties seventies eighties nineties ii iii iv vi vii viii ix
    hundreds thousands million millions billion billions trillion once-only percent percentage zero
    elf once sept dos doze quince mil mille dois duas primeiro primeira segundo terceiro
    metade meia erste ersten erster zweite zweiten zweiter dritte dritten halb hälfte primero primera segunda tercero
    mitad premier première deuxième troisième moitié milhão milhões millón millones milliard billón prozent
    واحد واحدة اثنان اثنين ثلاثة ثلاث أربعة أربع خمسة خمس ستة ست سبعة سبع ثمانية ثماني تسعة تسع عشرة عشر عشرون عشرين
    ثلاثون ثلاثين مئة مائة ألف مليون نصف
    半 双 雙 两 兩 几 幾 多 每 第
"""

KINDS: Final[dict[str, Difference]] = {
    word: kind
    # A word of two kinds has the last: "march" is a month, "gave" (up) a negation.
    for kind, words in (
        (Difference.CERTAINTY, _CERTAINTY),
        (Difference.SUBJECT, _SUBJECT),
        (Difference.TENSE, _TENSE),
        (Difference.UNIT, _UNIT),
        (Difference.NUMBER, _NUMBER),
        (Difference.DATE, _DATE),
        (Difference.NEGATION, _NEGATION),
    )
    for word in words.split()
}

_WRITINGS: Final = """
    am:is are:is have:has were:was do:does
    mum:mother mom:mother mommy:mother mummy:mother dad:father daddy:father kid:child kids:children
    tv:television bike:bicycle bikes:bicycles photo:photograph photos:photographs
    favorite:favourite favorites:favourites color:colour colors:colours flavor:flavour center:centre grey:gray
    neighbor:neighbour theater:theatre yoghurt:yogurt okay:ok
    ولا:لا وليس:ليس وليست:ليست ولم:لم ولن:لن
"""
WRITINGS: Final[dict[str, str]] = dict(entry.split(":") for entry in _WRITINGS.split())
"""Writings and short forms of one word."""

_PORTUGUESE: Final = """
    usuário usuária utilizador utilizadora não uma é à às ao aos mora pela pelo dele dela também irmã irmão
"""
PORTUGUESE: Final = frozenset(_PORTUGUESE.split())
"""In a text with one of these "no" is "in the"."""
_FRENCH: Final = """
    je j'ai l'utilisateur utilisateur utilisatrice l'utilisatrice et dans avec mes chez les frère sœur père mère
"""
FRENCH: Final = frozenset(_FRENCH.split())
"""In a text with one of these "mon" is "my", no Monday."""

_FOODS: Final = """
    peanut:peanuts nut:nuts egg:eggs almond:almonds walnut:walnuts tomato:tomatoes potato:potatoes onion:onions
    mushroom:mushrooms strawberry:strawberries lentil:lentils
"""
PLURALS: Final[dict[str, str]] = dict(entry.split(":") for entry in _FOODS.split())
"""Behind "allergic to" one is as many. Elsewhere a plural counts: "a dog", "dogs"."""
BEFORE_FOOD: Final = frozenset(("allergic", "intolerant", "sensitive"))

NOT_BEHIND_A: Final = frozenset(("few", "little"))
""""A few friends" and "few friends" are opposites, so there the article stays."""

_CONTRACTED: Final = {
    "don't": "does not", "doesn't": "does not", "didn't": "did not", "isn't": "is not", "aren't": "is not",
    "wasn't": "was not", "weren't": "was not", "can't": "can not", "couldn't": "could not", "won't": "will not",
    "wouldn't": "would not", "shouldn't": "should not", "hasn't": "has not", "haven't": "has not",
    "hadn't": "had not", "mustn't": "must not", "needn't": "need not", "ain't": "is not",
    "i'm": "i is", "you're": "you is", "we're": "we is", "they're": "they is", "i've": "i has", "you've": "you has",
    "we've": "we has", "they've": "they has", "i'll": "i will", "you'll": "you will", "he'll": "he will",
    "she'll": "she will", "we'll": "we will", "they'll": "they will",
}  # fmt: skip
CONTRACTED: Final[dict[str, tuple[str, ...]]] = {
    **{word: tuple(written.split()) for word, written in _CONTRACTED.items()},
    **{word.replace("'", ""): tuple(_CONTRACTED[word].split()) for word in ("don't", "doesn't", "didn't", "isn't")},
    "cannot": ("can", "not"),
    "aujourd'hui": ("aujourd'hui",),
}

_VERBS: Final = """
    live work study learn drink eat play use train write travel teach speak run build develop prepare like love
    hate enjoy prefer want need own know attend cook dance sing swim cycle smoke commute volunteer
"""
_THIRD_PERSONS: Final = {"study": "studies", "teach": "teaches"}
_GERUNDS: Final = {"run": "running", "swim": "swimming", "prefer": "preferring"}


def _gerund(verb: str) -> str:
    return _GERUNDS.get(verb, (verb.removesuffix("e")) + "ing")


THIRD_PERSON: Final[dict[str, str]] = {_THIRD_PERSONS.get(verb, verb + "s"): verb for verb in _VERBS.split()}
"""Only where a subject stands before: "plays" may be a noun."""
GERUNDS: Final[dict[str, str]] = {_gerund(verb): verb for verb in _VERBS.split()}
"""Only after "is": "is living in Porto" says what "lives in Porto" says."""
BEFORE_VERB: Final = frozenset(["user", "i", "you", "he", "she", "we", "they", "who", "not"])

_AFTER_A_LETTER: Final = """
    vitamin hepatitis type group team plan class grade model level block section option blood size series
"""
AFTER_A_LETTER: Final = frozenset(_AFTER_A_LETTER.split())
"""Behind these "a" is a name, not an article."""

_EXCLUSIVE: Final = """
    only just solely exclusively favourite best worst all every each always most least than any if unless
    prefers prefer rather instead or either between among both except but alone
"""
EXCLUSIVE: Final = frozenset(_EXCLUSIVE.split())
"""Where one of these stands, more words can say less: "eats only fish and rice"."""

_MODIFIERS: Final = """
    small big large little tiny huge tall short long old young new nice lovely cute sweet beautiful pretty
    friendly cosy cozy quiet noisy modern brown black white red green blue yellow grey gray orange purple pink
    dark golden wooden very really clever smart gentle happy sunny comfortable colourful colorful
"""
MODIFIERS: Final = frozenset(_MODIFIERS.split())
"""Behind "a" or "an" they tell more of the same thing."""

OPINIONS: Final = frozenset(("like", "likes", "love", "loves", "enjoy", "enjoys", "hate", "hates", "need", "needs"))
"""Behind these even "a thing" is any such thing, so that more words make it narrower."""

CONNECTORS: Final = frozenset(["in", "near", "with"])
"""They go on about a thing that "a" or "an" has introduced."""

_PLAIN: Final = """
    a also too and in near with at on of for has is likes like loves love enjoys enjoy plays play drinks drink
    eats eat reads read cooks cook rides ride grows grow collects collect owns own speaks speak keeps keep tea
    coffee water juice milk cocoa wine beer bread cheese rice pasta pizza soup salad fish chocolate fruit
    vegetables apples bananas oranges berries cake cakes cookies noodles curry sushi books novels music films
    movies series podcasts poems paintings photography painting drawing pottery gardening hiking cycling
    swimming running walking sailing skiing climbing dancing singing cooking baking reading writing travelling
    traveling camping fishing yoga chess tennis football basketball volleyball golf piano guitar violin flute
    drums dog dogs cat cats rabbit rabbits horse horses bird birds hamster parrot goldfish house flat apartment
    garden balcony kitchen room rooms window windows car bicycle boat motorcycle hospital school office shop
    bank library university museum park beach sea river lake forest mountains hills city village town centre
    countryside suburb street roses flowers tomatoes trees eyes fur hair tail ears jazz rock opera plants herbs
    view
"""
PLAIN: Final = MODIFIERS | frozenset(_PLAIN.split())
"""The words that an addition may be made of. A name, a hedge or a condition is none of them."""

"""Words around secrets, in the languages that people use: what labels one, what joins label and value, and what people
write behind a label without giving the secret away. All of it for RE2 or for a look-up, in lower case.
"""

from typing import Final

LOGIN_LABELS: Final = (
    r"pass[ -]?(?:word|phrase|code)s?|pass?w(?:or|ro|r)d|passwd|(?:master|user|db|root|admin)pass"
    r"|passw[oö]rt|kennwort|pa(?:ss|ß)phrase|contrase[nñ]a|contrasenya|(?:mi|tu|su) clave|clave (?:secreta|de acceso"
    r"|de usuario|del? (?:wi-?fi|correo|email))"
    r"|senha|palavra-passe|palavra passe|mot[ -]de[ -]passe|mdp|parola(?: d'ordine| chiave)?|wachtwoord|l[oö]senord"
    r"|passord|adgangskode|kodeord|salasana|has[lł]o|heslo|jelsz[oó]|parol[aă]|[sş]ifre(?:m|n)?|lozinka|kata sandi"
    r"|m[aậ]t kh[aẩ]u"
    r"|парол[ьяюе]м?|κωδικός|סיסמה|(?:seed|recovery|mnemonic|secret) (?:phrase|words)"
    r"|security[ _-](?:question[ _-])?answers?|secret[ _-]question[ _-]answers?"
    r"|answers? to (?:my|our|the|your) (?:security|secret) question"
)
LOGIN_LABELS_WITHOUT_SPACES: Final = (
    "密码|密碼|口令|パスワード|暗証番号|パスコード|合言葉|비밀번호|암호|รหัสผ่าน|पासवर्ड"
    "|كلمة (?:ال)?(?:مرور|سر)|كلمة السر|الرقم السري|باسورد|گذرواژه|رمز عبور"
)
"""Of scripts where label, verb and value may stand together without a space."""
KEY_LABELS: Final = (
    r"api[ _-]?(?:key|secret|token|schl[uü]ssel|sleutel)|(?:cl[eé]|clave|chave|chiave)(?: secr[eè]t[ea])?"
    r"(?: d['e]| da| do| della?)? ?(?:la )?api|ключ[а-я]*[ -]api|api[ -]ключ[а-я]*"
    r"|secret(?:[ _-]?access)?[ _-]?(?:key|token|id)|(?:app|consumer|shared|webhook|jwt|hmac|oauth)[ _-]?secret|secret"
    r"|(?:access|subscription|account|deploy|service|storage|product|licen[cs]e|activation|serial|master|host|server)"
    r"[ _-]?key(?:[ _-]?id)?"
    r"|client[ _-]?secret|(?:private|signing|encryption|decryption|shared|session|webhook|ssh|root)[ _-]?key"
    r"|(?:\w{1,20}[_-])?(?:auth)?token|authtoken|jeton(?: d'acc[eè]s)?|token[ _-]?(?:value|secret)|токен[а-я]*"
    r"|credentials?|(?:access|auth(?:entication|orization)?|recovery|backup|app)[ _-]?codes?"
)
KEY_LABELS_WITHOUT_SPACES: Final = (
    "(?:api|API) ?(?:密钥|密鑰|金鑰|キー|키)|密钥|密鑰|金鑰|令牌|トークン"
    "|シークレット|토큰|مفتاح (?:ال)?(?:api|API)|رمز الوصول|التوكن"
)
IS: Final = (
    r"is|are|was|were|will be|should be|must be|(?:is|was|were|are|been|be|got)(?: now)? (?:set|changed|reset"
    r"|updated) to"
    r"|(?:set|changed|reset|updated) to|reads|equals"
    r"|ist|war|lautet|hei(?:ß|ss)t|es|era|ser[aá]|é|est|était|sera|c['’]est|è|sarà|is|luidt|var|är|er|jest|je|là"
    r"|adalah|это"
)
STILL: Final = (
    r"now|still|actually|simply|just|currently|always|literally|jetzt|nun|immer noch|ahora|agora|maintenant|toujours"
    r"|ora|adesso|nu|nog steeds|теперь|сейчас"
)
ABOUT: Final = (
    r"for|of|to|at|on|in|from|with|para|pour|de|do|da|dos|del|della|dello|di|du|des|d['’][^\s]+|per|f[uü]r|zu[mr]?"
    r"|vo[mn]|beim|im|van|voor|от|для|на|к|till?|för|dla|do|na"
)
OWN: Final = r"my|our|his|her|their|the|your|mein[e]?|unser|mi|mis|la|el|minha|nossa|a|mon|ma|le|il|mijn|het|мой|наш"

_ENGLISH: Final = """
about above absent again all already also always an and any anything available back bad base64 basic because been
before being below best better blank bool boolean both broken but bytes can case-insensitive case-sensitive clear
complex complicated compulsory confidential correct crucial dead default different difficult down due easy either else
empty encrypted enough essential even every everything false fine for from fun given gone good great half hard hash
hashes here hidden high how identical important in-progress incorrect insecure int integer invalid it its just kept key
known last left less like local long lost lower lowercase mandatory maybe mine missing more most much must my never new
next nil no none not nothing now null obvious off okay old on once only optional ours out outdated over overdue
perfect permanent plain plaintext please policy poor possible present private protected public quite random rather reset
right safe same secret secretstr secure sensitive set short simple so some something sometimes somewhere soon still str
string strong stuck such super sure temporary terrible text that the their them then there these they this those to
together token too trivial true type ugly unclear undefined under unique unknown unsafe until up upper uppercase useful
useless valid value varchar very visible weak weird well what when where which who why will wise with without wrong yes
yet you your yours redacted removed masked n/a username email login minimum maximum leaked compromised field
"""
_ABROAD: Final = """
abgelaufen alt andere anders bekannt dasselbe derselbe einfach erforderlich falsch fehlt geheim gesperrt gleich gut
immer kurz lang leer leider mein nein neu nicht niemals noch notwendig nötig pflicht pflichtfeld privat richtig sehr
schlecht schwach sicher stark unbekannt ungültig unsicher verloren vergessen wichtig zu
al antigua bien buena caducada común corta correcta débil diferente difícil distinta donde errónea esta fácil fuerte
igual importante incorrecta insegura inválida larga mala mi misma muy necesaria no nueva nunca obligatoria privada
requerida secreta segura sencilla siempre simple su temporal tu una única válida vieja vencida expirada olvidada
antiga boa curta diferente errada esquecida forte fraca grande inválida longa mesma minha muito má necessária nossa não
nova obrigatória pequena privada proibida ruim sempre temporária uma velha
ancien bon bonne caché confidentiel correct court différent difficile erroné expiré facile faible faux fort incorrect
incorrecte invalide le long mauvais mon même nécessaire nouveau obligatoire oublié pas perdu privé requis secret
sécurisé simple son sûr toujours trop très trouvé unique valide votre vide
breve buona corretta debole diversa dimenticata errata facile forte giusta la lunga mia molto necessaria nuova
obbligatoria persa privata richiesta sbagliata scaduta segreta semplice sempre sicura stessa troppo vecchia
anders fout geen goed hetzelfde kort leeg lang mijn moeilijk niet nieuw nodig oud sterk te veilig vereist vergeten
verkeerd verlopen verplicht zwak onjuist onveilig ongeldig
неверный неправильный слабый надежный надёжный верный правильный новый старый пустой короткий длинный сложный простой
обязателен нужен неверен забыт потерян истёк истек тот такой мой не слишком очень
fel kort svagt starkt glömt za zbyt nie złe słabe długie wymagane
"""
ABOUT_ONE: Final = frozenset(_ENGLISH.split()) | frozenset(_ABROAD.split())
"""What people write behind "password is" when they talk about one, and names of types and constants in code."""
_GLUE: Final = """
a an and are as at be but can choose do enter for has have i if in is it least less more must my not of on or our
please should so than that the then this to type use was we will with you your
"""
GLUE: Final = frozenset(_GLUE.split())
"""Words that make a sentence of a row of words."""
_TOPICS: Final = """
age algorithm attempt attempts box change dialog entropy expiration expiry feature field file fields form function
generator hash hashes hashing hint history length limit link list manager managers management minimum maximum
maxlength minlength option page parameter policies policy prompt protection reset reuse requirement requirements
rotation rule rules screen storage store strength table type validation validator variable vault version
"""
TOPICS: Final = frozenset(_TOPICS.split())
"""What has a password in its name and holds none: the password policy, the token limit."""
ENDS_ENGLISH: Final = r"(?:ed|ing|able|ible|ful|less|ous|ly)$"
ENDS_ABROAD: Final = (
    r"(?:ad[oa]s?|id[oa]s?|ável|ível|[ai]ble|os[oa]|[oó]ri[oa]|iv[oa]|bile|mente|ées?|ieren|iert|lich|los|bar|ig"
    r"|elijk|ый|ий|ая|ен|ан|но)$"
)
_OF_PHRASES: Final = """
characters chosen digits given letter letters nowhere passphrase password passwords phrase printed security shown
someone something somewhere spoken symbols taught typed word words written
"""
OF_PHRASES: Final = frozenset(_OF_PHRASES.split())
"""What is said about a passphrase and not in one."""
SAFE_THINGS: Final = (
    r"alarm|t[uü]r|door|gate|safe|vault|lock|garage|building|entry|entrance|apartment|keypad|suitcase|iphone"
    r"|tablet|laptop|card|bank|atm|sim|security|verification|confirmation|one[ -]time|log-?in|sign-?in|2fa|mfa|otp|sms"
    r"|authenticator|unlock|pass|access|porta|portão|puerta|portail|porte|coffre|cofre|caja|cassaforte|allarme|alarma|alarme|tresor"
    r"|schlie(?:ß|ss)fach|handy|kluis|deur|сигнализаци|сейф|двер|домофон|карт"
)

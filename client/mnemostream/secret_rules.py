"""The table of what counts as a secret. First match names the line; order is from the most telling to the least."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mnemostream.secret_checks import (
    is_bare_aws_secret,
    is_code,
    is_labelled_key,
    is_password,
    is_password_by_itself,
    is_password_further_on,
    is_quoted_phrase,
    is_session_cookie,
    is_wrapped_key,
    is_written_out,
    looks_random,
)
from mnemostream.secret_numbers import is_card_number, is_cpf, is_iban, is_social_security_number
from mnemostream.secret_words import (
    ABOUT,
    IS,
    KEY_LABELS,
    KEY_LABELS_WITHOUT_SPACES,
    LOGIN_LABELS,
    LOGIN_LABELS_WITHOUT_SPACES,
    OWN,
    SAFE_THINGS,
    STILL,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of secret: an RE2 pattern, and a check on what it captured where the pattern alone says too much."""

    name: str
    pattern: str
    check: Callable[[tuple[str, ...], str], bool] | None = None


_QUOTE: Final = r"\\*[\"'`“”‘’«„「『]"
_QUOTED: Final = (
    r"(?:\"([^\"]{4,80})\"|'([^']{4,80})'|`([^`]{4,80})`|[“„]([^”“]{4,80})[”“]|[‘]([^’]{4,80})’|«([^»]{4,80})»)"
)
_ABOUT: Final = (
    rf"(?:\s+(?:{ABOUT})(?:\s+[^\s:=]+){{0,5}}?)?"
    r"(?:\s+(?:that\s+)?(?:i|we)\s+(?:use|have|set|chose|picked)|\s+(?:here|there|today))?"
)
_SIGN: Final = rf"(?:{_QUOTE})?\]?[*_]{{0,2}}\s*(?::=|=>|->|={{1,3}}|:|：)[*_]{{0,2}}\s*"
_SAYS: Final = rf"\s+(?:{IS})\s*:?\s+(?:(?:{STILL})\s+)?"
_MEANS: Final = rf"({_SIGN}|{_SAYS}|['’]s\s+|\s*(?:是|は)\s*)"
_JOINED: Final = r"[^!-~\n]{0,12}?(?:\s*[:=]\s*|是|为|為|は|が|는|은|가|هي|هو|है|คือ|\s)\s*[\"'`“「『«]?"
_TELLING: Final = "[0-9!@#$%^&*?]"
"""A sign without which a word is not taken for a secret that it is not called in so many words."""
_CODE: Final = (
    r"(?:\b(?:code|kode|combination|combo|c[oó]d(?:e|igo|ice)|combina[cç][aã]o|combinaci[oó]n|combinazione)\b|код)"
)

RULES: Final = (
    Rule(
        "private_key",
        r"-{4,5} ?BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-[0-9]"
        r"|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}|\bxprv[1-9A-HJ-NP-Za-km-z]{100,}|<RSAKeyValue>.*<D>"
        r"|\"d\"\s*:\s*\"[A-Za-z0-9_-]{40,}\"|\b(?:b3BlbnNzaC1rZXktdjE"
        r"|MII[EJ][opqrvwxQRS][AQgw]IBA[ADQ])[A-Za-z0-9+/]{12,}",
    ),
    Rule("private_key", r"\b(LS0tLS1CRUdJTi[A-Za-z0-9+/]{30,})", is_wrapped_key),
    Rule("mnemostream_key", r"\bmnk_[A-Za-z0-9_-]{16,}"),
    Rule("aws_key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    Rule("aws_secret", r"(?i)aws.{0,32}[\s=:\"']([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)", looks_random),
    Rule(
        "aws_secret",
        r"(?i)\baws_?session_?token[\"']?\s*[=:]\s*[\"']?[a-z0-9/+=]{16,}"
        r"|\b(?:FwoGZXIvYXdz|FQoGZXIvYXdz|IQoJb3JpZ2luX2Vj)[a-z0-9/+=]{20,}|\bABSK[a-z0-9/+=]{40,}",
    ),
    Rule(
        "gcp_key",
        r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[0-9A-Za-z_-]{20,}|\bya29\.[0-9A-Za-z_-]{20,}|\b1//0[0-9A-Za-z_-]{30,}",
    ),
    Rule(
        "azure_key",
        r"(?i)\b(?:Account|SharedAccess)Key\s*=\s*[a-z0-9+/]{40,}={0,2}|[?&;]sig=[a-z0-9%+/]{40,}"
        r"|\b[a-z0-9_~.]{3}[0-9]Q~[a-z0-9_~.-]{31,34}|[a-z0-9+/]{40,}(?:\+ASt|ACDb|\+AMC|AIoT|\+ARm|AzCa|AzFu|AzSe"
        r"|ACR)[a-z0-9+/]{5,}"
        r"|\b[a-z0-9]{52,}JQQJ9[9a-z][a-z0-9]{10,}"
        r"|(?:azure|storage|cosmos|account|event ?hub|service ?bus|iot ?hub)[^\n]{0,40}[\s=:\"'][a-z0-9+/]{86}==",
    ),
    Rule("github_token", r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}"),
    Rule(
        "gitlab_token",
        r"\bgl(?:pat|ptt|dt|rt|rtr|cbt|soat|ft|imt|agent|oas|ffct|wt)-[A-Za-z0-9_.-]{18,}"
        r"|\bGR1348941[A-Za-z0-9_-]{18,}",
    ),
    Rule(
        "bitbucket_token", r"\bATBB[A-Za-z0-9_=-]{20,}|\bAT(?:ATT|CTT)3x[A-Za-z0-9_=.-]{20,}|\bBBDC-[A-Za-z0-9+/]{20,}"
    ),
    Rule(
        "slack_token",
        r"\bxox[abceoprsd](?:-[A-Za-z0-9-]{10,}|\.xox[a-z]-[A-Za-z0-9-]{10,})|\bxapp-[0-9]-[A-Za-z0-9-]{10,}"
        r"|hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}",
    ),
    Rule("stripe_key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}"),
    Rule("model_key", r"\b(sk-(?:[a-z]{2,8}[0-9]{0,2}-){0,2}[A-Za-z0-9_-]{20,})", looks_random),
    Rule(
        "model_key",
        r"\bgsk_[A-Za-z0-9]{30,}|\bxai-[A-Za-z0-9]{40,}|\bpplx-[A-Za-z0-9]{32,}|\br8_[A-Za-z0-9]{30,}"
        r"|\bnvapi-[A-Za-z0-9_-]{40,}|\bhf_[A-Za-z0-9]{30,}|\blsv2_[a-z]{2}_[a-f0-9]{32}",
    ),
    Rule(
        "service_token",
        r"\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50,}|\bdo[por]_v1_[a-f0-9]{64}|\brubygems_[a-f0-9]{40,}"
        r"|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"
        r"|\bdckr_[po]at_[A-Za-z0-9_-]{20,}"
        r"|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}|\bsq0(?:atp|csp)-[A-Za-z0-9_-]{20,}|\bhvs\.[A-Za-z0-9_-]{24,}"
        r"|\bdapi[a-f0-9]{32}|\bPMAK-[a-f0-9-]{24,}|\bglsa_[A-Za-z0-9_]{30,}|\bNRAK-[A-Z0-9]{20,}"
        r"|\bsntry[su]_[A-Za-z0-9+/=_]{30,}"
        r"|\blin_api_[A-Za-z0-9]{32,}|\bntn_[A-Za-z0-9]{40,}|\bfigd_[A-Za-z0-9_-]{30,}|\bsbp_[a-f0-9]{40}"
        r"|\bHRKU-[A-Za-z0-9_-]{30,}"
        r"|\bdp\.(?:pt|st|ct)\.[A-Za-z0-9]{40,}|\bkey-[a-f0-9]{32}\b|\b[a-f0-9]{32}-us[0-9]{1,2}\b"
        r"|\bEAACEdEose0cBA[A-Za-z0-9]+"
        r"|\b[MNO][A-Za-z0-9]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|\.atlasv1\.[A-Za-z0-9_-]{40,}"
        r"|discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}",
    ),
    Rule("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    Rule("connection_string", r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@?#]*:([^\s@/]+)@[^\s]", is_written_out),
    Rule(
        "connection_string",
        r"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|sqlserver|oracle|cockroachdb"
        r"|clickhouse|ldaps?|s?ftps?|smtps?|imaps?)"
        r"(?:\+[a-z0-9]+)?://[^\s:/@?#]*:([^\s]+)@[\w.-]",
        is_written_out,
    ),
    Rule("connection_string", r"(?i)https?://([a-z0-9_-]{20,})(?::x-oauth-basic)?@[a-z]", looks_random),
    Rule(
        "connection_string",
        r"(?i)(?:\b(?:server|data source|host(?:name)?|user(?: ?id)?|uid|username|database|initial catalog|dbname"
        r"|endpoint)"
        r"\s*=\s*[^\s;][^;\n]*;\s*|\b(?:host|dbname|user|port)=[^\s]*[^\s,]\s+)(?:password|pwd)\s*=\s*[\"']?([^;\s\"']+)",
        is_written_out,
    ),
    Rule("connection_string", r"(?i)\b(?:password|pwd)\s*=\s*([^;\s\"']+);\s*(?:[a-z ]{2,30}=)", is_written_out),
    Rule("connection_string", r"(?i)\bjdbc:oracle:[a-z]+:[^\s/@:]+/([^\s@]+)@", is_written_out),
    Rule(
        "connection_string",
        r"(?i)(?:jdbc:[^\s]+?|[a-z]+://[^\s]+?)[?&;](?:password|passwd|pwd|pass)=([^\s&;\"']+)",
        is_written_out,
    ),
    Rule(
        "connection_string",
        r"(?i)[?&](?:access_?token|auth_?token|token|api_?key|apikey|key|client_secret|secret|sig(?:nature)?"
        r"|auth)=([^\s&;#\"']{12,})",
        is_labelled_key,
    ),
    Rule(
        "command_line",
        r"(?i)\b(?:curl|wget|http)\b.*?\s(?:-u|--user|-U|--proxy-user)[\s=]*[\"']?[^\s:\"'$]+:([^\s\"']{3,})",
        is_written_out,
    ),
    Rule("command_line", r"\b(?:mysql|mysqldump|mariadb|mysqladmin)\b.*?\s-p([^\s\"']{4,})", is_written_out),
    Rule(
        "command_line",
        r"\b(?:sshpass|docker login|redis-cli|smbclient|ldapsearch)\b.*?\s(?:-p|-a|-w)\s*[\"']?([^\s\"']{4,})",
        is_written_out,
    ),
    Rule(
        "command_line",
        r"(?i)\s--?(?:\w+-)?(?:password|passwd|pass|passphrase)(?:=|\s+)[\"']?([^\s\"'-][^\s\"']{3,})",
        is_written_out,
    ),
    Rule("command_line", r"(?i)\blogin\s+[^\s]+\s+password\s+([^\s]+)", is_written_out),
    Rule(
        "bearer_header",
        r"(?i)\bauthorization\b\\*[\"']?\s*[:=,]\s*\\*[\"']?(?:bearer|basic|token|apikey|api-key|bot|negotiate|ntlm"
        r"|digest|splunk|key)[\s:]+([^\s\"']{8,})",
        is_written_out,
    ),
    Rule("bearer_header", r"(?i)\b(?:proxy-)?authorization\b\\*[\"']?\s*[:=]\s*\\*[\"']?([^\s\"']{16,})", looks_random),
    Rule("bearer_header", r"(?i)\b(?:AWS4-HMAC-SHA256\s+Credential=)[^\n]+?Signature=([a-f0-9]{64})"),
    Rule("bearer_header", r"(?i)\bbearer[\s:=]+([a-z0-9._~+/=-]{12,})", looks_random),
    Rule(
        "session_cookie",
        r"(?i)\b(?:set-)?cookies?\b\\*[\"']?\s*[:=]\s*(?:[^\n]*?[;\s\"'])?"
        r"[\w.-]*(?:sess|sid|auth|token|jwt|csrf|xsrf|login|remember|user|identity|connect\.sid)[\w.-]*=([^\s;,\"']+)",
        is_session_cookie,
    ),
    Rule(
        "session_cookie",
        r"(?i)\b(?:PHPSESSID|JSESSIONID|ASPSESSIONID\w*|ASP\.NET_SessionId|connect\.sid|laravel_session"
        r"|_?gitlab_session"
        r"|\.AspNetCore\.\w+|__(?:Secure|Host)-[\w.-]+|wordpress_logged_in_\w+|sessionid|session_cookie|_session"
        r"|session)"
        r"\s*[=:]\s*[\"']?([^\s;,\"'&]{16,})",
        looks_random,
    ),
    Rule("aws_secret", r"(?:^|[\s\"'=:,])([A-Za-z0-9/+]{40})(?:[\s\"',;.]|$)", is_bare_aws_secret),
    Rule("password", rf"(?i)({LOGIN_LABELS}){_ABOUT}{_MEANS}((?:{_QUOTE})?)(\S+)", is_password),
    Rule(
        "password",
        rf"(?i)((?:\b|_)(?:pwd?|psw|pswd|passw)|[_.-]pass|\b(?:my|wifi|wi-fi"
        rf"|the) pass){_ABOUT}{_MEANS}((?:{_QUOTE})?)(\S+)",
        is_password,
    ),
    Rule("password", rf"(?i)(?:{LOGIN_LABELS}|\bpwd?|\bpass){_ABOUT}(?:{_MEANS}|\s+){_QUOTED}", is_quoted_phrase),
    Rule("password", rf"(?i)({LOGIN_LABELS_WITHOUT_SPACES})()({_JOINED})([!-~]{{4,}})", is_password),
    Rule(
        "password",
        rf"(?i)\b(?:chang|set|reset|updat|switch)\w*\s+(?:[\w-]+\s+){{0,3}}({LOGIN_LABELS}"
        rf"|pw){_ABOUT}(\s+(?:back\s+)?to:?\s+)((?:{_QUOTE})?)(\S+)",
        is_password,
    ),
    Rule(
        "password",
        rf"(?i)(?:{LOGIN_LABELS}|\b(?:pwd?|pass)\b)([^A-Za-z0-9_\n][^\n]*{_TELLING}[^\n]*)",
        is_password_further_on,
    ),
    Rule("password", rf"(?i)\b(?:pass|passw|pw)\s*[:=/]\s*(\S*{_TELLING}\S*)", is_password_by_itself),
    Rule(
        "password",
        rf"(?i)\b(?:login|log-?in|creds?|credentials|account|user(?:name)?|benutzer(?:name)?|usuario"
        rf"|usuário)(?: (?:data|details))?(?:\s*(?:are|is|ist|:|=)\s*[^\s/:,|]+\s*(?:/|:|,|\||and)"
        rf"|\s+[^\s]+@[^\s/]+\s*/)\s*(\S*{_TELLING}\S*)",
        is_password_by_itself,
    ),
    Rule(
        "password",
        rf"(?i)(\S*{_TELLING}\S*)\s+(?:{IS})\s+(?:{OWN})\s+(?:[^\s]+\s+){{0,3}}?(?:{LOGIN_LABELS}|pw)\b",
        is_password_by_itself,
    ),
    Rule(
        "password",
        rf"(?i)(\S*{_TELLING}\S*)\s+(?:as|als|como|comme|come)\s+(?:(?:{OWN}|a"
        rf"|eine?)\s+)?(?:[^\s]+\s+){{0,2}}?(?:{LOGIN_LABELS}|pw)\b",
        is_password_by_itself,
    ),
    Rule("password", r"(?i)<[^<>\n]{0,40}(pass(?:word|wd|phrase)?|pwd)[^<>\n]{0,20}(>)()([^<>\s]+)</", is_password),
    Rule(
        "password",
        rf"(?i)(?:{LOGIN_LABELS}|pwd)\\*[\"']?\s*[,(|]\s*\\*[\"'`]?([^\"'`\s]*{_TELLING}[^\"'`\s]*)",
        is_password_by_itself,
    ),
    Rule(
        "token",
        rf"(?i)(?:^|[^a-z])(?:{KEY_LABELS}){_ABOUT}{_MEANS}(?:{_QUOTE})?(\S*{_TELLING}\S*|\S{{20,}})",
        is_labelled_key,
    ),
    Rule("token", rf"(?i)(?:^|[^a-z])(?:{KEY_LABELS})\s+(?:{_QUOTE})?([A-Za-z0-9_+/=.-]{{16,}})", looks_random),
    Rule("token", rf"(?i)(?:{KEY_LABELS_WITHOUT_SPACES}){_JOINED}([!-~]{{8,}})", is_labelled_key),
    Rule(
        "token",
        r"(?i)(?:_authToken|_auth|x-[a-z-]{0,20}(?:key|token|secret)|private-token|[a-z]{1,20}_(?:token|secret|apikey))"
        r"\\*[\"']?\s*[=:]\s*\\*[\"']?([^\s\"']{8,})",
        is_labelled_key,
    ),
    Rule("token", r"(?i)<[^<>\n]{0,40}(?:token|secret|api-?key)[^<>\n]{0,10}>([^<>\s]{8,})</", is_labelled_key),
    Rule(
        "pin",
        r"(?i)\b(?:my|our|his|her|card|bank|phone|sim|atm|door|alarm|unlock|the|mein[e]?|mi|meu|o|el|le|mon|il|mio"
        r"|mijn)(?:\s+[a-z]+)?[\s-]+"
        r"(?:pins?|passcode)(?:[ -](?:code|number|nummer))?(?:\s+(?:for|to|of|on|für|para|pour|do|da|de|del|della"
        r"|van|voor)(?:\s+[^\s:=]+){1,4}?)?"
        rf"\s*(?:(?:{IS})\s*:?|:|=|\s)\s*[\"']?([0-9]{{4,8}})\b|\b(?:PIN)(?:-?(?:code|number|Nummer|Code))?\s*(?:[:=]|is"
        rf"|ist)\s*[\"']?([0-9]{{4,8}})\b"
        r"|\b(?:cvv2?|cvc2?|security code)\b[^0-9\n]{0,8}([0-9]{3,4})\b|(?:пин|пин-код)\s*(?:[:=-]"
        r"|это)?\s*([0-9]{4,8})",
        is_code,
    ),
    Rule(
        "pin",
        rf"(?i)\bpin[ -]code\s+#?([0-9]{{4,5}})\b|{_CODE} pin\s*(?:(?:{IS})\s+|[:=]|\s)\s*#?([0-9]{{4,8}})\b"
        rf"|\b(?:OTP|TOTP)(?:\s+(?:code|password|number))?\s+#?([0-9]{{5,8}}|[03-9][0-9]{{3}})\b"
        rf"|\b([0-9]{{5,8}}|[03-9][0-9]{{3}})\s+(?:is|as|ist|es|é|est)\s+(?:{OWN})\s+(?:[^\s]+\s+)?(?:verification"
        r"|confirmation|security|authentication|log-?in|sign-?in|one[ -]time|2fa|otp|access)\s+(?:pass)?(?:code|pin)\b",
        is_code,
    ),
    Rule(
        "pin",
        rf"(?i){_CODE}(?:\s+[^\s]+){{0,3}}?\s+[^\s]{{0,20}}(?:{SAFE_THINGS})[^\s]{{0,20}}(?:\s+[^\s]+){{0,2}}?\s*"
        rf"(?:{_SIGN}|\s(?:{IS})\s+|[=-])\s*(?:{_QUOTE})?#?([0-9][0-9 -]{{3,11}})",
        is_code,
    ),
    Rule(
        "pin",
        rf"(?i)\b(?:{SAFE_THINGS}|one[ -]time|2fa)[^\s]{{0,12}}[ -]?(?:(?:pin|pass)?code|kode|combination|otp"
        rf"|password)s?(?:\s+(?:{ABOUT})(?:\s+[^\s:=]+){{1,4}}?)?"
        rf"\s*(?:{_SIGN}|(?:{IS})\s+|[=-]|\s)\s*(?:{_QUOTE})?#?([0-9][0-9 -]{{3,11}})|(?:recovery"
        rf"|backup) codes?\s*(?:(?:{IS})\s+|[:=])?\s*([0-9][0-9 -]{{3,40}})|\b(?:OTP|TOTP)(?:\s+code)?\s*(?:is|:"
        rf"|=)\s*([0-9]{{4,8}})\b",
        is_code,
    ),
    Rule(
        "pin",
        rf"(?i)(?:{SAFE_THINGS}).*?\b(?:with|using|use|enter|type|mit|com|con|avec|met)\s+(?:(?:the|dem|o|el|le|il"
        rf"|de)\s+)?code"
        r"\s+#?([0-9]{4,8})\b",
        is_code,
    ),
    Rule(
        "national_id",
        r"(?i)(?:\bssn\b|\bitin\b|soc(?:ial|\.)?[ -]*sec(?:urity\b|\.)"
        r"|\bmy social\b)[^0-9\n]{0,40}([0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4})\b",
        is_social_security_number,
    ),
    Rule(
        "national_id",
        r"\b([0-9]{3}-[0-9]{2}-[0-9]{4})\b.{0,40}(?i:\bssn\b|social security)",
        is_social_security_number,
    ),
    Rule(
        "national_id",
        r"(?i)(?:national insurance|\bNINO?\b)[^0-9\n]{0,30}?\b[a-z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[a-d]\b",
    ),
    Rule("national_id", r"(?i)\bCPF\b[^0-9\n]{0,20}([0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2})\b", is_cpf),
    Rule("card_number", r"(?:^|[^0-9A-Za-z._+/-])([2-6][0-9](?:[ .-]{0,2}[0-9]){10,40})", is_card_number),
    Rule("card_number", r"(?:^|[^0-9A-Za-z._+/-])([2-6](?: [0-9]){13,15})", is_card_number),
    Rule("iban", r"(?i)\b([a-z]{2} ?[0-9]{2}(?:[ .-]{0,2}[a-z0-9]){11,44})", is_iban),
)
"""Planted and benign texts for each are in the tests; add to both when adding a rule."""

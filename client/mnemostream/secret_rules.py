"""The table of what counts as a secret. First match names the line; order is from the most telling to the least."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mnemostream.secret_checks import is_card_number, is_iban, is_password, is_written_out, looks_random


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of secret: an RE2 pattern, and a check on what it captured where the pattern alone says too much."""

    name: str
    pattern: str
    check: Callable[[tuple[str, ...], str], bool] | None = None


_QUOTE: Final = "[\"'`“”‘’«]"
_ABOUT_WHAT: Final = r"(?:\s+(?:for|of|to|at|on|in)(?:\s+[\w.'’@-]+){1,4})?"
_MEANS: Final = (
    rf"(?:{_QUOTE}?\]?\s*(?::=|=>|->|={{1,3}}|:|：)\s*"
    r"|\s+(?:is|was|are|to|will be|ist|war|lautet|es|é|est|è)\s+(?:now\s+|still\s+|actually\s+|simply\s+|just\s+)?"
    r"|['’]s\s+|\s*(?:是|は)\s*)"
)
_LABEL_OF_LOGIN: Final = (
    r"pass(?:word|wd|phrase|code|wort)|kennwort|contraseña|senha|palavra-passe|mot de passe|wachtwoord|lösenord"
    r"|hasło|parola"
    r"|пароль|パスワード|密码|密碼|(?:seed|recovery) phrase"
)
_LABEL_OF_KEY: Final = (
    r"api[ _-]?key|secret(?:[ _-]?access)?[ _-]?(?:key|token)|secret|access[ _-]?(?:key|token)(?:[ _-]?id)?"
    r"|account[ _-]?key|client[ _-]?secret|(?:private|signing|encryption|license)[ _-]?key|token|credentials?"
)
_CARD: Final = (
    r"(?:^|[^0-9A-Za-z._+/-])((?:[3-6][0-9]{3}|2[2-7][0-9]{2})(?:[0-9]{9,15}|(?:[ -][0-9]{4}){3}(?:[ -][0-9]{3})?"
    r"|[ -][0-9]{6}[ -][0-9]{4,5}))(?:[^0-9A-Za-z_-]|$)"
)

RULES: Final = (
    Rule("private_key", r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    Rule("mnemostream_key", r"\bmnk_[A-Za-z0-9_-]{16,}"),
    Rule("aws_key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    Rule("aws_secret", r"(?i)aws.{0,32}[\s=:\"']([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)", looks_random),
    Rule("gcp_key", r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[0-9A-Za-z_-]{20,}|\bya29\.[0-9A-Za-z_-]{20,}"),
    Rule(
        "azure_key",
        r"(?i)\b(?:Account|SharedAccess)Key=[a-z0-9+/]{40,}={0,2}|[?&]sig=[a-z0-9%+/]{40,}"
        r"|\b[a-z0-9_~.]{3}[0-9]Q~[a-z0-9_~.-]{31,34}",
    ),
    Rule("github_token", r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}"),
    Rule("gitlab_token", r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft)-[A-Za-z0-9_-]{18,}"),
    Rule(
        "slack_token",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}"
        r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,}",
    ),
    Rule("stripe_key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}"),
    Rule("model_key", r"\b(sk-(?:[a-z]{2,8}[0-9]{0,2}-){0,2}[A-Za-z0-9_-]{20,})", looks_random),
    Rule(
        "service_token",
        r"\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50,}|\bhf_[A-Za-z0-9]{30,}|\bdop_v1_[a-f0-9]{64}"
        r"|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"
        r"|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}",
    ),
    Rule("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    Rule("connection_string", r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@?#]*:([^\s@/]+)@[^\s]", is_written_out),
    Rule(
        "bearer_header",
        r"(?i)\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+([^\s\"']{8,})",
        is_written_out,
    ),
    Rule("bearer_header", r"(?i)\bbearer\s+([a-z0-9._~+/=-]{12,})", looks_random),
    Rule("password", rf"(?i)({_LABEL_OF_LOGIN}){_ABOUT_WHAT}{_MEANS}({_QUOTE}?)(\S+)", is_password),
    Rule("password", rf"(?i)((?:\b|_)pwd?|[_.-]pass|\bmy pass){_MEANS}({_QUOTE}?)(\S+)", is_password),
    Rule("token", rf"(?i)(?:^|[^a-z])(?:{_LABEL_OF_KEY})\b{_ABOUT_WHAT}{_MEANS}{_QUOTE}?(\S+)", looks_random),
    Rule(
        "pin",
        r"(?i)\b(?:my|our|his|her|card|bank|phone|sim|atm|door|alarm|unlock)(?:\s+[a-z]+)?\s+"
        r"(?:pin|passcode)(?:\s+(?:code|number))?\s*(?:is|was|:|=)\s*[0-9]{4,8}\b|\b(?:PIN)\s*[:=]\s*[0-9]{4}\b"
        r"|\b(?:cvv2?|cvc2?)\b[^0-9]{0,8}[0-9]{3,4}\b",
    ),
    Rule("card_number", _CARD, is_card_number),
    Rule("iban", r"(?i)\b([a-z]{2}[0-9]{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,3})?)\b", is_iban),
)
"""Planted and benign texts for each are in the tests; add to both when adding a rule."""

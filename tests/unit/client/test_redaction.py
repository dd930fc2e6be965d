import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.decoding import validate_turn
from mnemostream.publisher import turn
from mnemostream.redaction import REDACTED, contains_secrets, redact, redact_turn, sanitize_lines
from mnemostream.secret_rules import RULES
from mnemostream.turns import Message, Role

PLANTED = [
    ("aws_key", "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE"),
    ("aws_key", "the temporary one is ASIAY34FZKBOKMUTVV7A, use that"),
    ("aws_secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("gcp_key", "maps key AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe"),
    ("gcp_key", "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"),
    (
        "azure_key",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDX" * 3 + "==",
    ),
    ("azure_key", "https://a.blob.core.windows.net/c/f?sv=2022&sig=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXU%3D"),
    ("github_token", "git clone with ghp_16C7e42F292c6912E7710c838347Ae178B4a please"),
    ("github_token", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789"),
    ("gitlab_token", "GITLAB: glpat-Xy12zAbCdEfGhIjKlMnO"),
    ("slack_token", "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx"),
    ("slack_token", "post to https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
    ("stripe_key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc is the live one"),
    ("model_key", "OpenAI: sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4fGh7jKl0n"),
    ("model_key", "sk-ant-api03-R2D2c3poR2D2c3poR2D2c3poR2D2c3po-AAAA"),
    ("model_key", "old style sk-abcdEFGH1234ijklMNOP5678qrstUVWX9012yzABCDEF3456"),
    ("mnemostream_key", "our own mnk_9fXq2LrT0vBn4KsWz7YcEj1aHu"),
    ("service_token", "npm_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"),
    ("service_token", "bot 110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
    (
        "jwt",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ),
    ("private_key", "-----BEGIN OPENSSH PRIVATE KEY-----"),
    ("connection_string", "DATABASE_URL=postgres://app:s3cr3t@db.internal:5432/app"),
    ("connection_string", "redis://:hunter2@cache:6379/0"),
    ("connection_string", "mongodb+srv://admin:Tr0ub4dor@cluster0.example.net/test"),
    ("bearer_header", "curl -H 'Authorization: Bearer abcdef123456ghijkl'"),
    ("bearer_header", "Authorization: Basic dXNlcjpwYXNzd29yZA=="),
    ("password", "my password is hunter2"),
    ("password", "My password is Swordfish."),
    ("password", "password: correcthorse"),
    ("password", "The wifi password at home is now blue-Elephant-42"),
    ("password", "password for my bank account is p@ssw0rd!"),
    ("password", "I changed my password to Winter2026!"),
    ("password", '{"user": "ana", "password": "letmein"}'),
    ("password", "DB_PASSWORD=qwerty99"),
    ("password", "Server=db;User Id=sa;Pwd=Passw0rd;"),
    ("password", "mein Passwort ist geheim123"),
    ("password", "a minha senha é gato1984"),
    ("password", "我的密码是 abc12345"),
    ("password", "密码：abc12345"),
    ("password", "my passphrase is correct horse battery staple"),
    ("password", "recovery phrase: witch collapse practice feed shame open despair creek"),
    ("password", "my pw is hunter2"),
    ("password", "the password's hunter2"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.e30.ZRrHA1JJJW8opsbCGfG_HACGpVUMN_a9IV7pAx_Zmeo"),
    ("token", "api key: 9f86d081884c7d659a2feaa0c55ad015"),
    ("token", 'client_secret = "Zx81-Qw92-Er73-Ty64"'),
    ("token", "the access token is 7b2e9a40-5b1f-4c0c-9d6a-1f2e3d4c5b6a"),
    ("pin", "my bank card pin is 4821"),
    ("pin", "CVV 123"),
    ("card_number", "my card is 4111 1111 1111 1111, exp 12/28"),
    ("card_number", "pay with 5500-0000-0000-0004 today"),
    ("card_number", "amex 3782 822463 10005"),
    ("card_number", "on 2026-11-21 I used 4111111111111111"),
    ("iban", "transfer to DE89 3704 0044 0532 0130 00 please"),
    ("iban", "IBAN: GB82WEST12345698765432"),
    ("iban", "NO93 8601 1117 947 then call me"),
]

BENIGN = [
    "I moved to Lisbon last week.",
    "I forgot my password again",
    "my password is wrong",
    "The password is too short, it must have 12 characters",
    "What is your password policy?",
    "password: please reset it",
    "Enter your password: ",
    "password: str",
    "password: str | None = None",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "password=settings.password",
    "password: ${DB_PASSWORD}",
    "password: <your password>",
    "password = ********",
    "The password is stored hashed.",
    "my password is expired",
    "The password was changed yesterday by an admin",
    "I don't use passwords, passkeys are nicer",
    '"password": "Please enter your password"',
    "my passphrase is correct and I can log in",
    "the passphrase is too long for me to remember",
    "validatePassword(password: string): boolean",
    "if password == user.password:",
    "the password's owner called",
    "the mountain pass is 1800m high",
    "phone 4915112345678",
    "token limit: 4096 per request",
    "My password is on the sticky note",
    "the secret is patience",
    "the secret to good bread is time",
    "Secret Santa is on Friday",
    "token: str",
    "max_tokens=500",
    "We used 12000 tokens for that",
    "token = response.json()",
    "api_key = settings.openai_api_key",
    "The API key is missing",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "trace 01890a5d-ac96-774b-bcce-b302099a8057",
    "version 1.2.3-rc.4+build.5678",
    "SSkgbW92ZWQgdG8gTGlzYm9uIGxhc3Qgd2VlayBhbmQgSSBsb3ZlIGl0",
    "sk-learn has nice estimators, sk-learn-contrib-estimators-and-more too",
    "call me on +351 912 345 678",
    "order number 1234567890123456",
    "tracking 9400 1000 0000 0000 0000 00",
    "at 1732183200000 ms since the epoch",
    "pi is 3.14159265358979323846",
    "4111 1111 1111 1112 is not a valid card",
    "DE89 3704 0044 0532 0130 01 is not a valid IBAN",
    "https://example.com:8080/path@v2",
    "mailto:ana@example.com",
    "git@github.com:owner/repo.git",
    "postgres://app:${PGPASSWORD}@db/app",
    "postgres://app@localhost/app",
    "the bearer of bad news",
    "bearer authentication-of-the-request",
    "meet at pin 13 of the board",
    "the pin is on the map",
    "def contains_secrets(text: str) -> bool:",
    "for (let i = 0; i < tokens.length; i++) {}",
    "She passed: 94 of 100 points",
    "base64 of prose: VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVy",
    "ISBN 978-3-16-148410-0",
    "AKIA is the prefix of an AWS key",
    "eyJ is how a JWT begins",
    "-----BEGIN CERTIFICATE-----",
    "A key part of my job is teaching",
    "我搬到了里斯本。",
    "انتقلت إلى لشبونة 😀",
]


@pytest.mark.parametrize(("rule", "text"), PLANTED)
def test_a_planted_secret_takes_its_line_and_is_counted_under_its_rule(rule: str, text: str) -> None:
    redaction = redact(text)
    assert redaction.text == REDACTED
    assert redaction.counts == {rule: 1}


@pytest.mark.parametrize("text", BENIGN)
def test_a_benign_line_stays_as_it_is(text: str) -> None:
    assert redact(text).counts == {}
    assert sanitize_lines(text) == text


def test_every_rule_of_the_table_is_planted() -> None:
    assert {rule.name for rule in RULES} == {rule for rule, _ in PLANTED}


def test_only_the_line_with_the_secret_goes_and_line_endings_stay() -> None:
    text = "one\r\nmy password is hunter2\r\n\r\ntwo\rAKIAIOSFODNN7EXAMPLE\nthree\u2028still three\n"
    assert sanitize_lines(text) == "one\r\n[REDACTED]\r\n\r\ntwo\r[REDACTED]\nthree\u2028still three\n"


def test_every_line_of_a_private_key_goes_and_it_counts_as_one() -> None:
    text = "key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n\nIBAAKC\n-----END RSA PRIVATE KEY-----\nbye"
    redaction = redact(text)
    assert redaction.text == "key:\n[REDACTED]\n[REDACTED]\n\n[REDACTED]\n[REDACTED]\nbye"
    assert redaction.counts == {"private_key": 1}


def test_a_private_key_without_an_end_takes_the_rest() -> None:
    assert sanitize_lines("-----BEGIN PRIVATE KEY-----\nMIIE\nabc") == "[REDACTED]\n[REDACTED]\n[REDACTED]"


def test_a_private_key_on_one_line_ends_there() -> None:
    line = r'"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"'
    assert sanitize_lines(f"{line}\nnext") == "[REDACTED]\nnext"


def test_a_second_label_on_a_line_is_seen_behind_a_harmless_first() -> None:
    assert contains_secrets("my password is wrong. my new password is hunter2")


def test_lone_surrogates_and_nul_do_not_disturb() -> None:
    assert sanitize_lines("\ud800 fine \0\nmy password is hunter2 \udfff") == "\ud800 fine \0\n[REDACTED]"


@given(
    st.lists(st.sampled_from([text for _, text in PLANTED] + BENIGN + ["", "\0", "é"]), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_redacting_again_changes_nothing_and_benign_lines_survive_among_secrets(lines: list[str], ending: str) -> None:
    text = ending.join(lines)
    once = sanitize_lines(text)
    assert sanitize_lines(once) == once
    assert not contains_secrets(once)
    kept = once.split(ending)
    assert len(kept) == len(lines)
    assert all(line in (REDACTED, original) for line, original in zip(kept, lines, strict=True))


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert contains_secrets(text) == bool(redact(text).counts)


def test_a_turn_is_redacted_in_contents_names_recalled_and_metadata() -> None:
    said = turn(
        app="acme",
        owner="user/42",
        messages=[
            Message(Role.USER, "hello\nmy password is hunter2", name="AKIAIOSFODNN7EXAMPLE"),
            Message(Role.ASSISTANT, "noted", id="m-1"),
        ],
        recalled=["Lives in Porto", "card 4111 1111 1111 1111"],
        metadata={"channel": "web", "password": "hunter2", "deep": [{"note": "sk_live_4eC39HqLyjWDarjtT1zdp7dc"}, 7]},
    )
    safe, counts = redact_turn(said)
    assert safe.messages[0] == Message(Role.USER, "hello\n[REDACTED]", name=REDACTED)
    assert safe.messages[1] == said.messages[1]
    assert safe.recalled == ("Lives in Porto", REDACTED)
    assert safe.metadata == {"channel": "web", "password": REDACTED, "deep": [{"note": REDACTED}, 7]}
    assert counts == {"password": 2, "aws_key": 1, "card_number": 1, "stripe_key": 1}
    assert (safe.id, safe.said_at) == (said.id, said.said_at)
    validate_turn(safe)


def test_a_turn_without_secrets_is_given_back_as_it_is() -> None:
    said = turn(app="acme", owner="u", messages=[("user", "hi")], metadata={"password": "wrong"})
    assert redact_turn(said) == (said, {})


def test_a_messages_id_and_name_are_redacted_and_the_turns_own_id_is_not() -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    said = turn(app="acme", owner="u", messages=[Message(Role.USER, "hi", id=secret, name=secret)], id=secret)
    redacted, counts = redact_turn(said)
    assert (redacted.id, redacted.messages[0].id, redacted.messages[0].name) == (secret, REDACTED, REDACTED)
    assert sum(counts.values()) == 2

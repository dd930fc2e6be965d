import base64
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mnemostream.decoding import validate_turn
from mnemostream.publisher import turn
from mnemostream.redaction import REDACTED, contains_secrets, redact, redact_turn, sanitize_lines
from mnemostream.secret_rules import RULES
from mnemostream.turns import Message, Role

from tests.unit.client.redaction_corpus import BENIGN, PLANTED

LEAST_RECALL = 0.95
MOST_FALSE_ALARMS = 0.01


@pytest.mark.parametrize(("rule", "text"), PLANTED)
def test_a_planted_secret_takes_its_line_and_is_counted_under_its_rule(rule: str, text: str) -> None:
    redaction = redact(text)
    assert redaction.text == REDACTED
    assert redaction.counts == {rule: 1}


@pytest.mark.parametrize("text", BENIGN)
def test_a_benign_line_stays_as_it_is(text: str) -> None:
    assert redact(text).counts == {}
    assert sanitize_lines(text) == text


def test_recall_and_false_alarms_keep_to_their_aims(record_property: Callable[[str, object], None]) -> None:
    missed = [text for _, text in PLANTED if not contains_secrets(text)]
    alarms = [text for text in BENIGN if contains_secrets(text)]
    recall, rate = 1 - len(missed) / len(PLANTED), len(alarms) / len(BENIGN)
    record_property("recall", recall)
    record_property("false_alarms", rate)
    print(f"recall {recall:.1%} of {len(PLANTED)} planted, false alarms {rate:.1%} of {len(BENIGN)} benign")
    assert len(PLANTED) >= 120
    assert len(BENIGN) >= 120
    assert recall >= LEAST_RECALL, f"recall {recall:.1%} of {len(PLANTED)}; missed: {missed}"
    assert rate <= MOST_FALSE_ALARMS, f"false alarms {rate:.1%} of {len(BENIGN)}: {alarms}"


def test_every_rule_of_the_table_is_planted_at_least_twice() -> None:
    planted = Counter(rule for rule, _ in PLANTED)
    assert set(planted) == {rule.name for rule in RULES}
    assert {rule: count for rule, count in planted.items() if count < 2} == {}


def test_no_text_of_the_corpus_is_there_twice() -> None:
    texts = [text for _, text in PLANTED] + BENIGN
    assert len(set(texts)) == len(texts)


def test_only_the_line_with_the_secret_goes_and_line_endings_stay() -> None:
    text = "one\r\nmy password is hunter2\r\n\r\ntwo\rAKIAIOSFODNN7EXAMPLE\nthree\u2028still three\n"
    assert sanitize_lines(text) == "one\r\n[REDACTED]\r\n\r\ntwo\r[REDACTED]\nthree\u2028still three\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("my password is:\n\nTr0ub4dor&3\nbye", "my password is:\n\n[REDACTED]\nbye"),
        ("my password is\r\n  swordfish", "my password is\r\n[REDACTED]"),
        ("The wifi password:\n\n```\nTr0ub4dor&3\n```", "The wifi password:\n\n```\n[REDACTED]\n```"),
        ("**Password:**\n> hunter2", "**Password:**\n[REDACTED]"),
        ("my password:\nswordfish", "my password:\n[REDACTED]"),
        ("my pin is:\n4821\n4822", "my pin is:\n[REDACTED]\n4822"),
        ("the api key is:\n\n9f86d081884c7d65", "the api key is:\n\n[REDACTED]"),
        ("passphrase:\ncorrect horse battery staple", "passphrase:\n[REDACTED]"),
        ("p\u0430ssword:\nhunter2", "p\u0430ssword:\n[REDACTED]"),
    ],
)
def test_a_value_below_its_label_goes(text: str, left: str) -> None:
    assert sanitize_lines(text) == left
    assert sanitize_lines(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "Email:\nPassword:\nSubmit",
        "password:\n  type: string",
        "password:\n  valueFrom:\n    secretKeyRef:",
        "DB_PASSWORD=\nDB_HOST=localhost5432",
        "the new password policy is:\n\nAt least 12 characters",
        "my password is:\n\nwrong",
        "the password is\nnecessary for the login",
        "I forgot my password:\n\nWhat now?",
        "my password is:\nI do not remember it\nTr0ub4dor",
        "password:\n********\n<your password>",
        "the code is:\n\n```python\nprint(1)\n```",
        "the answer is:\n\n42",
        "pin:\n- GND\n- 5V",
        "passphrase:\nPlease enter it twice to continue",
    ],
)
def test_a_line_below_a_label_that_is_no_value_stays(text: str) -> None:
    assert sanitize_lines(text) == text


def test_every_line_of_a_private_key_goes_and_it_counts_as_one() -> None:
    text = "key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n\nIBAAKC\n-----END RSA PRIVATE KEY-----\nbye"
    redaction = redact(text)
    assert redaction.text == "key:\n[REDACTED]\n[REDACTED]\n\n[REDACTED]\n[REDACTED]\nbye"
    assert redaction.counts == {"private_key": 1}


def test_a_private_key_without_an_end_takes_all_that_looks_like_it() -> None:
    text = (
        "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE+/\nabc=\nThat was my key, sorry!\nI live in Porto."
    )
    assert sanitize_lines(text) == (
        "[REDACTED]\n[REDACTED]\n\n[REDACTED]\n[REDACTED]\nThat was my key, sorry!\nI live in Porto."
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"])
@pytest.mark.parametrize("prefix", ["", "    ", "> ", "> > ", "\t", "+", '  "', "# "])
def test_a_private_key_goes_whole_however_it_is_quoted(prefix: str, kind: str, ending: str) -> None:
    body = [
        f"-----BEGIN {kind}-----",
        "Proc-Type: 4,ENCRYPTED",
        "MIIEowIBAAKC/+",
        "hunter two",
        f"-----END {kind}-----",
    ]
    text = ending.join(["before", *(prefix + line for line in body), "after"])
    assert sanitize_lines(text) == ending.join(["before", *[REDACTED] * len(body), "after"])


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----"),
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", "---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "Private-MAC: 6f1e0c"),
    ],
)
def test_other_kinds_of_private_keys_go_whole_too(begin: str, end: str) -> None:
    text = f"before\n{begin}\nComment: a b c\nlQdGBF\n=xyz\n{end}\nafter"
    assert sanitize_lines(text) == "before\n" + "[REDACTED]\n" * 5 + "after"


def test_a_private_key_inside_base64_is_told_from_a_certificate() -> None:
    key, certificate = (
        base64.b64encode(f"-----BEGIN {kind}-----\nMIIEow".encode()).decode() for kind in ("PRIVATE KEY", "CERTIFICATE")
    )
    assert contains_secrets(f"tls.key: {key}")
    assert not contains_secrets(f"tls.crt: {certificate}")


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


@given(
    st.lists(st.sampled_from(BENIGN), min_size=1, max_size=8),
    st.lists(
        st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\n\n"]), min_size=8
    ),
)
def test_texts_without_secrets_pass_byte_for_byte_whatever_ends_their_lines(lines: list[str], ends: list[str]) -> None:
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    assume(not contains_secrets(text))  # two harmless texts on one line may read as a label and its value
    assert sanitize_lines(text) == text
    assert sanitize_lines(f"{text}\nmy password is hunter2\n{text}") == f"{text}\n{REDACTED}\n{text}"


@given(st.text())
def test_a_text_keeps_the_lines_that_hold_nothing_and_the_ends_of_all(text: str) -> None:
    redacted = sanitize_lines(text)
    assert sanitize_lines(redacted) == redacted
    ends = re.compile("\r\n|\r|\n")
    assert ends.findall(redacted) == ends.findall(text)
    pairs = zip(ends.split(redacted), ends.split(text), strict=True)
    assert all(now in (REDACTED, before) for now, before in pairs)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "9",
        "[",
        " ",
        "-",
        "password ",
        "token: ",
        "4111 ",
        "de89 ",
        "://:",
        "_",
        "+",
        "\u0300\u0316",
        "\u200b",
        "\n",
        "password is:\n",
        "my pin is:\n\n4",
        "p\u0430",
    ],
)
def test_a_megabyte_of_one_thing_is_taken_in_its_stride(unit: str) -> None:
    text = unit * (2**20 // len(unit))
    assert sanitize_lines(f"{text}\nmy password is hunter2").endswith(f"\n{REDACTED}")
    assert sanitize_lines(f"-----BEGIN PRIVATE KEY-----\n{text}!").startswith(REDACTED)


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


def test_numbers_and_names_in_the_metadata_are_read_too() -> None:
    said = turn(
        app="acme",
        owner="u",
        messages=[("user", "hi")],
        metadata={
            "card": 4111111111111111,
            "pin": 4821,
            "n": 42,
            "ok": True,
            "session": {"api_key": "9f86d081884c7d65"},
        },
    )
    safe, counts = redact_turn(said)
    assert safe.metadata == {"card": REDACTED, "pin": REDACTED, "n": 42, "ok": True, "session": {"api_key": REDACTED}}
    assert counts == {"card_number": 1, "pin": 1, "token": 1}


def test_names_in_the_metadata_that_hold_secrets_go_and_none_takes_anothers_place() -> None:
    keys = ["sk-proj-" + f"a1B2c3D{n}" * 6 for n in range(3)]
    kept = {"[REDACTED] 2": "kept", "deep": [{keys[2]: "hunter2"}]}
    said = turn(
        app="acme",
        owner="u",
        messages=[("user", "hi")],
        session=keys[0],
        metadata={keys[0]: "mine", keys[1]: 7, **kept},
    )
    safe, counts = redact_turn(said)
    assert safe.metadata == {
        "[REDACTED]": "mine",
        "[REDACTED] 3": 7,
        "[REDACTED] 2": "kept",
        "deep": [{"[REDACTED]": "hunter2"}],
    }
    assert safe.session == keys[0]  # what it is found by
    assert counts == {"model_key": 3}
    assert redact_turn(safe) == (safe, {})
    validate_turn(safe)


def test_signs_without_width_and_odd_spaces_hide_nothing() -> None:
    for hidden in (
        "AK\u200bIAIOSFODNN7EXAMPLE",
        "4111\u2009111\u00ad1\u202f1111\u20111111".replace("\u2011", "\u202f"),
    ):
        assert sanitize_lines(f"see {hidden} there") == REDACTED
    assert sanitize_lines("contrasen\u0303a: gato1984") == REDACTED

"""`mnemo apps set`: what it refuses, by the name of the option, before it asks a database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cli.commands.apps import MAX_CATEGORIES, MAX_DESCRIPTION, MAX_INSTRUCTIONS, _category, _merged
from cli.failures import UsageProblem
from processors.records import Category

Mnemo = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--time-zone", "Lisbon"], "--time-zone: must be an IANA name"),
        (["--time-zone", "../etc/passwd"], "--time-zone: must be an IANA name"),
        (["--time-zone", ""], "--time-zone: must be an IANA name"),
        (
            ["--instructions", "x" * (MAX_INSTRUCTIONS + 1)],
            "--instructions: must have at most 4000 characters, has 4001",
        ),
        (["--instructions", "x", "--instructions-file", "y"], "give one of them"),
        (["--instructions-file", "/no/such/file"], "--instructions-file: No such file"),
        (["--category", "diet"], "--category: must be NAME=FADING:DESCRIPTION"),
        (["--category", "Diet=slow:x"], "--category: the name must match [a-z]"),
        (["--category", f"{'d' * 65}=slow:x"], "--category: the name must match [a-z]"),
        (["--category", "diet=quick:x"], "--category: the fading of diet must be one of never, slow, medium, fast"),
        (["--category", "diet=0d:x"], "--category: the fading of diet must be"),
        (["--category", "diet=:x"], "--category: the fading of diet must be"),
        (["--category", f"diet=slow:{'x' * (MAX_DESCRIPTION + 1)}"], "must have at most 300 characters, has 301"),
        ([], "nothing to set"),
    ],
)
def test_what_breaks_a_rule_is_a_usage_error_that_names_the_option(
    mnemo: Mnemo, arguments: list[str], said: str
) -> None:
    result = mnemo("apps", "set", "acme", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_app_has_a_name_that_keeps_its_rule(mnemo: Mnemo) -> None:
    result = mnemo("apps", "set", "Acme", "--language", "english")
    assert (result.exit_code, "APP: must match" in result.stderr) == (2, True)


def test_instructions_in_a_file_keep_the_same_rule(mnemo: Mnemo, tmp_path: Path) -> None:
    file = tmp_path / "instructions.md"
    file.write_text("x" * 4001)
    assert (
        "--instructions-file: must have at most 4000"
        in mnemo("apps", "set", "a", "--instructions-file", str(file)).stderr
    )
    file.write_bytes(b"\xff")
    assert "--instructions-file: must be UTF-8" in mnemo("apps", "set", "a", "--instructions-file", str(file)).stderr


@pytest.mark.parametrize(
    ("given", "category"),
    [
        ("diet=slow:What somebody eats.", Category("diet", "slow", "What somebody eats.")),
        ("diet=slow", Category("diet", "slow", "")),
        ("diet=30d: a: b = c\n d", Category("diet", "30d", "a: b = c d")),
        ("identity=fast:", Category("identity", "fast", "")),
        ("d-2_x=never:x", Category("d-2_x", "never", "x")),
    ],
)
def test_a_category_is_a_name_a_fading_and_a_description(given: str, category: Category) -> None:
    assert _category(given) == category


def test_categories_are_added_replaced_and_removed_by_name() -> None:
    known = (Category("diet", "slow", "food"), Category("pets", "never", "animals"), Category("work"))
    added = [
        Category("diet", "fast"),
        Category("pets", "30d", "cats"),
        Category("new", "fast"),
        Category("new", "slow"),
    ]
    assert _merged(known, added, ["work"]) == (
        Category("diet", "fast", "food"),
        Category("pets", "30d", "cats"),
        Category("new", "slow"),
    )
    with pytest.raises(UsageProblem, match="--remove-category"):
        _merged(known, (), ["nothing"])


def test_there_are_not_too_many_categories() -> None:
    many = [Category(f"c{number}") for number in range(MAX_CATEGORIES)]
    assert len(_merged((), many, [])) == MAX_CATEGORIES
    with pytest.raises(UsageProblem, match="at most 30 of its own, these are 31"):
        _merged(many, [Category("one-more")], [])
    assert len(_merged(many, [Category("one-more")], ["c0"])) == MAX_CATEGORIES

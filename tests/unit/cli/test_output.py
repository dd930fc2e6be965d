"""What is written where: answers on stdout, words on stderr, plain when nobody looks."""

import pytest

from cli.output import print_fields, print_json, print_table, progress, transfer


def test_piped_a_table_is_lines_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count"), [("a\tb", 1), (None, 2)])
    assert capsys.readouterr().out == "name\tcount\na b\t1\n\t2\n"


def test_fields_that_are_empty_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields([("a", 1), ("b", None), ("c", ""), ("d", 0), ("e", [])])
    assert capsys.readouterr().out == "a\t1\nd\t0\n"


def test_piped_json_is_one_line_in_the_letters_of_the_speaker(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"content": "São Paulo\n"})
    assert capsys.readouterr().out == '{"content": "São Paulo\\n"}\n'


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Searching", after_seconds=60) as tell:
        tell("Searching")
    assert capsys.readouterr() == ("", "")


def test_what_takes_its_time_says_so_once_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Waiting", after_seconds=0) as tell:
        tell("Waiting")
        tell("Still waiting")
    assert capsys.readouterr() == ("", "Waiting …\n")


def test_a_download_is_told_in_quarters(capsys: pytest.CaptureFixture[str]) -> None:
    with transfer() as tell:
        for done in range(0, 101, 5):
            tell("Kafka", done * 10**6, 100 * 10**6)
    assert capsys.readouterr().err.splitlines() == [f"Kafka: {done} of 100 MB" for done in (0, 25, 50, 75, 100)]

"""`mnemo export`: lines on stdout, or a file that is whole."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.unit.cli.conftest import FakeService

Mnemo = Callable[..., Result]

HEADER = {"header": {"app": "acme", "owner": "ana", "seq": "7"}}
MEMORY = {"memory": {"id": "1", "content": "Gosta de chá ✓\u2028"}}
END = {"end": {"memories": "1", "changes": "7", "turns": "0", "decisions": "0"}}


def frame(message: Any, flags: int = 0) -> str:
    body = json.dumps(message).encode()
    return (struct.pack(">BI", flags, len(body)) + body).decode()


def streamed(*messages: Any, end: Any = None) -> str:
    return "".join(map(frame, messages)) + (frame(end, 2) if end is not None else "")


def test_each_message_is_a_line_of_json(mnemo: Mnemo, service: FakeService) -> None:
    service.answers["ExportOwner"] = streamed(HEADER, MEMORY, END, end={})
    result = mnemo("export", "--json")
    assert result.exit_code == 0, result.output
    assert [json.loads(line) for line in result.stdout.split("\n")[:-1]] == [HEADER, MEMORY, END]


def test_a_file_is_readable_by_its_owner_alone_and_what_it_holds_is_told(
    mnemo: Mnemo, service: FakeService, tmp_path: Path
) -> None:
    service.answers["ExportOwner"] = streamed(HEADER, MEMORY, END, end={})
    path = tmp_path / "ana.jsonl"
    result = mnemo("export", "--output", str(path))
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert "ana as of change 7: 1 memories, 7 changes, 0 turns, 0 decisions" in result.stderr
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]] == [HEADER, MEMORY, END]
    assert path.stat().st_mode & 0o777 == 0o600
    again = mnemo("export", "--output", str(path), "--json")
    assert json.loads(again.stdout) == HEADER | END


def test_what_a_link_points_to_is_replaced_and_a_pipe_is_written_into(
    mnemo: Mnemo, service: FakeService, tmp_path: Path
) -> None:
    service.answers["ExportOwner"] = streamed(HEADER, MEMORY, END, end={})
    link, target, pipe = tmp_path / "link", tmp_path / "there" / "ana.jsonl", tmp_path / "pipe"
    target.parent.mkdir()
    link.symlink_to(target)
    os.mkfifo(pipe)
    read = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in (link, pipe):
            result = mnemo("export", "--output", str(path))
            assert result.exit_code == 0, result.output
        assert os.read(read, 10_000) == target.read_bytes()
    finally:
        os.close(read)
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe, target.parent]


def test_a_directory_that_is_not_there_is_named(mnemo: Mnemo, service: FakeService, tmp_path: Path) -> None:
    service.answers["ExportOwner"] = streamed(HEADER, MEMORY, END, end={})
    result = mnemo("export", "--output", str(tmp_path / "nowhere" / "ana.jsonl"))
    assert result.exit_code == 1
    assert f"there is no directory {tmp_path / 'nowhere'}" in result.stderr
    assert ".ana" not in result.stderr


@pytest.mark.parametrize(
    ("answer", "exit_code", "words"),
    [
        (streamed(HEADER, MEMORY), 3, "broke off"),
        (streamed(HEADER, MEMORY, end={}), 1, "broke off"),
        (streamed(HEADER, end={"error": {"code": "unavailable", "message": "the store is away"}}), 3, "cannot answer"),
        (streamed(end={"error": {"code": "unauthenticated"}}), 1, "API key is not accepted"),
        ((415, {"code": "invalid_argument", "message": "a stream"}), 1, "not accepted: a stream"),
        ((502, "<html>"), 3, "not available"),
    ],
)
def test_what_breaks_off_leaves_the_file_as_it_was(
    mnemo: Mnemo, service: FakeService, tmp_path: Path, answer: Any, exit_code: int, words: str
) -> None:
    service.answers["ExportOwner"] = answer
    path = tmp_path / "ana.jsonl"
    path.write_text("before")
    result = mnemo("export", "--output", str(path))
    assert (result.exit_code, path.read_text()) == (exit_code, "before")
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == [path]

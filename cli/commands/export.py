"""`mnemo export`: everything that is kept of one owner."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from cli.commands.ask import JsonOption, OwnerOption
from cli.context import endpoint_of, owner_of, settings_of
from cli.failures import CommandFailed
from cli.output import print_json, progress, say, shown
from cli.rpc import stream

_WAIT_SECONDS = 60.0


def export(
    ctx: typer.Context,
    owner: OwnerOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-f", metavar="FILE", help="Instead of stdout.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Everything that is kept of an owner, as of one moment: one JSON object a line.

    First a header with the seq of the last change, from which the change feed goes on; then the memories in every
    state, the changes, the turns of the log, the decisions; last an end with the number of each. A file is there once
    it is whole, readable by you alone; with --json its header and end are printed.
    """
    settings = settings_of(ctx, owner=owner)
    whose = owner_of(settings)
    lines = stream(endpoint_of(settings), "ExportOwner", {"owner": whose}, wait_seconds=_WAIT_SECONDS)
    if output is None:
        _written(lines, sys.stdout)
        return
    with progress("Exporting") as tell, _whole(output) as file:
        header, end = _written(_counted(lines, tell), file)
    if as_json:
        print_json({**header, **end})
        return
    counts = ", ".join(f"{count} {name}" for name, count in end["end"].items())
    say(f"{shown(whose)} as of change {header['header']['seq']}: {counts}, in {shown(output)}")


def _written(lines: Iterable[dict[str, Any]], file: IO[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first and the last of `lines`, all of which are written."""
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for last in lines:
        first = first or last
        file.write(json.dumps(last, ensure_ascii=False, separators=(",", ":")) + "\n")
    file.flush()
    if "end" not in last:
        raise CommandFailed("the export broke off: it has no end")
    return first, last


def _counted(lines: Iterable[dict[str, Any]], tell: Any) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if number % 1000 == 0:
            tell(f"Exporting, {number:,} lines")
        yield line


@contextmanager
def _whole(path: Path) -> Iterator[IO[str]]:
    """A file that takes its name once it is whole; what was there stays until then.

    What a link points to is what is replaced. What is there and no regular file, such as a device or a pipe, is written
    into as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise CommandFailed(f"there is no directory {shown(path.parent)}: create it first")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

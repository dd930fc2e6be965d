"""What a command writes: colour and tables on a terminal, plain lines when piped, JSON when asked.

Texts of memories are data of other people: control characters in them never reach a terminal.
"""

import json
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer


def print_json(value: Any) -> None:
    """One JSON value, as it came; indented for a terminal, one line when piped."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2 if on_terminal() else None))


def on_terminal() -> bool:
    """Whether stdout is read by a person."""
    return sys.stdout.isatty()


def shown(text: Any) -> str:
    """`text` on one line, without what would steer a terminal."""
    if text is None:
        return ""
    return "".join(" " if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") else letter for letter in str(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """A table on a terminal; else one line a row, tab-separated, the columns' names first."""
    if not on_terminal():
        for row in (columns, *rows):
            typer.echo("\t".join(shown(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    Console().print(table)


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line; what is empty is left out."""
    given = [(name, shown(value)) for name, value in fields if value not in (None, "", [], ())]
    if not on_terminal():
        for name, value in given:
            typer.echo(f"{name}\t{value}")
        return
    width = max((len(name) for name, _ in given), default=0)
    for name, value in given:
        typer.echo(f"{typer.style(name.rjust(width), fg='cyan')}  {value}")


def say(message: str) -> None:
    """A word to the person at the terminal, on stderr, so that stdout stays the answer."""
    typer.echo(message, err=True)


@contextmanager
def progress(message: str, *, after_seconds: float = 1.0) -> Iterator[Callable[[str], None]]:
    """Shows on stderr that something takes its time; calling what it gives changes the words.

    On a terminal a line that is rewritten; else one line, once `after_seconds` are over.
    """
    began = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(shown(message)) as status:
            yield lambda words: status.update(shown(words))
        return
    said = False

    def tell(words: str) -> None:
        nonlocal said
        if not said and time.monotonic() - began >= after_seconds:
            said = True
            say(f"{words} …")

    yield tell


@contextmanager
def transfer() -> Iterator[Callable[[str, int, int], None]]:
    """Shows on stderr how far downloads are; call what it gives with (what, done, total) in bytes.

    On a terminal a bar; else a line at each quarter.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            tasks: dict[str, TaskID] = {}

            def draw(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bars.add_task(what)
                bars.update(tasks[what], completed=done, total=total)

            yield draw
        return
    quarters: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        quarter = 4 * done // max(total, 1)
        if quarters.get(what) != quarter:
            quarters[what] = quarter
            say(f"{what}: {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    yield tell

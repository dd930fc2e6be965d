"""`mnemo demo`: a sample conversation of two people over some weeks, from turns to memories to answers.

Everything runs in a directory and on ports of its own, with the local models, whatever lies in the environment.
Everything shown is read back from the system.
"""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from cli.failures import CommandFailed
from cli.output import shown, transfer
from cli.rpc import Endpoint, call

if TYPE_CHECKING:
    from mnemostream.turns import Turn
    from rich.console import Console

    from cli.demo_story import Line
    from cli.embedded.state import State

QUESTIONS: Final = (
    ("ana", "Where do I live?"),
    ("ana", "Am I allergic to anything?"),
    ("ana", "What is my job?"),
    ("ben", "How is my cat called?"),
    ("ben", "Which instrument am I learning?"),
)
APP: Final = "demo"
_STORED_WITHIN_SECONDS: Final = 60.0
_INTERRUPTED: Final = 130


def demo(ctx: typer.Context) -> None:
    """See what it does: a sample conversation, from turns to memories to answers. Leaves nothing behind."""
    del ctx
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    with _directory() as directory:
        if not _run(console, directory):
            raise typer.Exit(_INTERRUPTED)
    _next_steps(console)


def _run(console: "Console", directory: Path) -> bool:
    """The whole of it in `directory`, started and stopped as `mnemo up` is. False where it was interrupted."""
    from cli.embedded.jars import ensure_jars
    from cli.embedded.system import Interrupted, UpOptions, run_system

    began = time.monotonic()
    shown_to_the_end = False

    def show(state: "State") -> NoReturn:
        nonlocal shown_to_the_end
        took = time.monotonic() - began
        console.print(f"  ready after {took:.1f} s, with local models; nothing leaves this machine")
        _show(console, state)
        shown_to_the_end = True
        console.print()
        raise Interrupted  # as Ctrl-C does to `mnemo up`

    console.print("[bold]Mnemostream[/]: a Kafka, a Postgres, a worker and a query service of its own")
    with transfer() as progress:
        ensure_jars(progress=progress)
    options = UpOptions(
        directory, app=APP, query_port=0, grpc_port=0, kafka_port=0, settings={"MNEMO_DRAIN_SECONDS": "2"}
    )
    run_system(options, lambda words: console.print(f"  {words}", markup=False), show)
    console.print(f"  stopped; {time.monotonic() - began:.0f} s in all")
    return shown_to_the_end


def sample_turns() -> "list[Turn]":
    """The committed conversation: two owners of the app `demo` over several weeks."""
    from cli.turn_lines import Accepted, Defaults, read_turns

    text = resources.files("cli").joinpath("sample", "turns.jsonl").read_bytes()
    return [entry.turn for entry in read_turns(text.splitlines(), Defaults()) if isinstance(entry, Accepted)]


def _show(console: "Console", state: "State") -> None:
    endpoint = Endpoint(state.url, state.api_key)
    turns = sample_turns()
    owners = list(dict.fromkeys(turn.owner for turn in turns))
    weeks = (max(turn.said_at for turn in turns) - min(turn.said_at for turn in turns)).days / 7
    began = time.monotonic()
    asyncio.run(_publish(state, turns))
    console.print(
        f"\n[bold]{len(turns)} turns[/] of {' and '.join(owners)} over {weeks:.0f} weeks "
        f"went into Kafka in {time.monotonic() - began:.2f} s …"
    )
    reports = {turn.id: _ended(endpoint, turn, began) for turn in turns}
    stored = sum(report["state"] == "STORED" for report in reports.values())
    console.print(f"  … {stored} of them stored after {time.monotonic() - began:.1f} s")
    told: list[Line] = []
    for owner in owners:
        memories = _memories(endpoint, owner)
        lines = _lines(state, owner, reports, memories)
        told += lines
        _print_story(console, owner, lines, len(memories))
    _print_secrets(console, told)
    _print_answers(console, endpoint)
    parked = len(turns) - stored
    if parked:
        raise CommandFailed(f"{parked} turns of the sample were not stored: please report it")


async def _publish(state: "State", turns: "Sequence[Turn]") -> None:
    from mnemostream.publisher import Publisher

    async with Publisher(bootstrap_servers=state.kafka_bootstrap_servers) as publisher:
        for turn in turns:
            await publisher.publish(turn)


def _ended(endpoint: Endpoint, turn: "Turn", began: float) -> dict[str, Any]:
    """How the turn ended."""
    while (left := began + _STORED_WITHIN_SECONDS - time.monotonic()) > 0:
        request = {"owner": turn.owner, "turnId": turn.id, "wait": f"{min(left, 20.0):.3f}s"}
        report = call(endpoint, "GetTurn", request, wait_seconds=20.0)
        if report["state"] not in ("UNKNOWN", "PENDING"):
            return report
    raise CommandFailed(f"turn {turn.id} was not stored within {_STORED_WITHIN_SECONDS:g} s")


def _memories(endpoint: Endpoint, owner: str) -> dict[str, Mapping[str, Any]]:
    answer = call(endpoint, "ListMemories", {"owner": owner, "pageSize": 1000, "includeRetired": True})
    return {memory["id"]: memory for memory in answer["memories"]}


def _lines(
    state: "State",
    owner: str,
    reports: Mapping[str, Mapping[str, Any]],
    memories: Mapping[str, Mapping[str, Any]],
) -> "list[Line]":
    from cli.demo_story import tell
    from cli.operators import operator_database
    from processors.records import Owner
    from store.overview import KeptTurn, Overview

    async def kept() -> tuple[KeptTurn, ...]:
        async with operator_database(state.postgres_dsn) as database:
            return await Overview(database).turns(Owner(state.app, owner))

    memory_ids = {turn_id: report.get("memoryIds", ()) for turn_id, report in reports.items()}
    return tell(asyncio.run(kept()), memory_ids, memories)


def _print_story(console: "Console", owner: str, lines: "Sequence[Line]", count: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"\n{owner}: {len(lines)} turns, {count} memories",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column, ratio in (("said", None), ("what was said", 5), ("what became of it", 6)):
        table.add_column(column, ratio=ratio, header_style="dim", no_wrap=ratio is None)
    for line in lines:
        became = Text()
        for memory in line.made:
            became.append(f"+ {shown(memory['content'])}", "green").append(f"  {memory['category']}\n", "dim")
        for memory in line.confirmed:
            became.append(f"= {shown(memory['content'])}", "cyan").append("  said again\n", "dim")
        became.rstrip()
        words = Text(shown(line.words), "" if became else "dim")
        table.add_row(Text(f"{line.said_at:%d %b}", "dim"), words, became or Text("–", "dim"))
    console.print(table)
    again = {memory["id"]: memory for line in lines for memory in line.confirmed}
    for memory in again.values():
        console.print(Text(f"confirmed {memory['confirmations']}×: {shown(memory['content'])}", "cyan"))


def _print_secrets(console: "Console", lines: "Sequence[Line]") -> None:
    from rich.text import Text

    for line in lines:
        if line.redacted:
            console.print(f"\n[bold]A secret[/] was in turn {line.turn_id}. What the system keeps of what was said:")
            console.print(Text(f"  {shown(line.words)}", "yellow"))


def _print_answers(console: "Console", endpoint: Endpoint) -> None:
    from rich.table import Table
    from rich.text import Text

    from processors.search import Weights

    weights = Weights()
    shares = f"{weights.similarity:g} similarity + {weights.text:g} text + {weights.strength:g} strength"
    table = Table(
        title=f"\n{len(QUESTIONS)} questions, asked by Search (score = {shares})",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column in ("question", "best answers", "since", "score", "similarity", "text", "strength", "ms"):
        words = column in ("question", "best answers")
        table.add_column(column, header_style="dim", justify="left" if words else "right", no_wrap=not words)
    for owner, question in QUESTIONS:
        began = time.monotonic()
        hits = call(endpoint, "Search", {"owner": owner, "query": question, "limit": 2})["hits"]
        took = f"{1000 * (time.monotonic() - began):.0f}"
        for place, hit in enumerate(hits):
            parts = (hit["score"], hit["similarity"], hit["textScore"], hit["strength"])
            table.add_row(
                f"{owner}: {question}" if place == 0 else "",
                Text(shown(hit["memory"]["content"]), "bold" if place == 0 else "dim"),
                Text(f"{datetime.fromisoformat(hit['memory']['validFrom']):%d %b}", "dim"),
                *(f"{part:.2f}" for part in parts),
                took if place == 0 else "",
            )
        if not hits:
            table.add_row(f"{owner}: {question}", "–", *("",) * 5, took)
    console.print(table)


def _next_steps(console: "Console") -> None:
    from rich.text import Text

    command = "mnemo" if shutil.which("mnemo") else _as_called()
    console.print("\n[bold]Next:[/]")
    for arguments in (
        "up --detach",
        'publish --owner me --text "I live in Lisbon and I am allergic to peanuts."',
        'search --owner me "What can I not eat?"',
    ):
        console.print(Text(f"  {command} {arguments}"), soft_wrap=True)


def _as_called() -> str:
    """The command as it was typed, or as it can be from here."""
    script = Path(sys.executable).with_name("mnemo")
    if not script.is_file():
        return f"{sys.executable} -m cli.main"
    return str(script.relative_to(Path.cwd())) if script.is_relative_to(Path.cwd()) else str(script)


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory that goes away again, where an unprivileged user can come through: Postgres refuses to be root."""
    base = Path("/var/tmp")  # noqa: S108 (a home of root is closed to others, and /tmp may be small and in memory)
    directory = Path(tempfile.mkdtemp(prefix="mnemo-demo-", dir=base if base.is_dir() else None))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)

"""`mnemo publish`: turns to Kafka, from JSON lines or a text."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from cli.context import app_of, settings_of
from cli.failures import FAILED, CommandFailed, UsageProblem
from cli.output import print_json, progress, say

if TYPE_CHECKING:
    from mnemostream.publisher import KafkaSecurity
    from mnemostream.turns import Turn

    from cli.turn_lines import Accepted, Refused
    from runtime.settings import Settings

_AT_ONCE = 256
"""Turns that wait for the broker's word at the same time; of one owner it is one, so that their order holds."""


class TakesTurns(Protocol):
    """What publishes turns."""

    async def publish(self, turn: "Turn") -> Any:
        """Gives the turn's id once the broker has it."""
        ...


def publish(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="JSON lines, one turn each; - is stdin.", allow_dash=True)] = None,
    text: Annotated[str | None, typer.Option(help="One turn, said now by the owner.")] = None,
    app: Annotated[str | None, typer.Option(help="For lines without one.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", "-o", help="For lines without one; else MNEMO_OWNER.")] = None,
    session: Annotated[str | None, typer.Option(help="For lines without one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each turn.")] = False,
) -> None:
    """Publish turns to Kafka. A line that breaks a rule is told by number, field and rule; the others go on."""
    from cli.turn_lines import Defaults, read_turns, turn_of_text

    if (text is None) == (file is None):
        raise UsageProblem("what to publish? Give a FILE of JSON lines (- is stdin), or --text")
    settings = settings_of(ctx, owner=owner)
    defaults = Defaults(app_of(settings, app), settings.owner, session)
    if text is not None:
        if defaults.app is None or defaults.owner is None:
            raise UsageProblem("--text needs --app and --owner")
        read: Iterable[Accepted | Refused] = [turn_of_text(text, defaults, datetime.now(UTC))]
        refused = _run(settings, read, as_json=as_json)
    else:
        with _lines(file or Path("-")) as lines:
            refused = _run(settings, read_turns(lines, defaults), as_json=as_json)
    if refused:
        raise typer.Exit(FAILED)


def _run(settings: "Settings", readings: "Iterable[Accepted | Refused]", *, as_json: bool) -> int:
    from mnemostream.publisher import Publisher

    async def run() -> tuple[int, int]:
        with progress(f"Connecting to {settings.kafka_bootstrap_servers}") as tell:
            async with Publisher(
                bootstrap_servers=settings.kafka_bootstrap_servers,
                topic_prefix=settings.topic_prefix,
                security=security_of(settings),
            ) as publisher:
                return await publish_all(publisher, readings, report, tell)

    def report(entry: "Accepted | Refused") -> None:
        _report(entry, as_json=as_json)

    published, refused = asyncio.run(run())
    if not as_json:
        say(f"{published} published" + (f", {refused} refused" if refused else ""))
    return refused


def security_of(settings: "Settings") -> "KafkaSecurity":
    """How to reach Kafka, as the client wants to be told."""
    from mnemostream.publisher import KafkaSecurity

    password = settings.kafka_sasl_password
    files = (settings.kafka_ssl_cafile, settings.kafka_ssl_certfile, settings.kafka_ssl_keyfile)
    cafile, certfile, keyfile = (None if file is None else str(file) for file in files)
    return KafkaSecurity(
        protocol=settings.kafka_security_protocol,
        sasl_mechanism=settings.kafka_sasl_mechanism or "PLAIN",
        sasl_username=settings.kafka_sasl_username,
        sasl_password=None if password is None else password.get_secret_value(),
        ssl_cafile=cafile,
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
    )


async def publish_all(
    publisher: TakesTurns,
    readings: "Iterable[Accepted | Refused]",
    report: "Callable[[Accepted | Refused], None]",
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[int, int]:
    """How many were published and refused. Each owner's turns are published in order, those of several side by side.

    Raises what the publisher raises, after those under way are over.
    """
    from cli.turn_lines import Refused

    run = _Run(publisher, report, tell)
    last: dict[tuple[str, str], asyncio.Task[None]] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            async for entry in _read_aside(readings):
                if isinstance(entry, Refused):
                    run.refuse(entry)
                    continue
                await run.room.acquire()
                whose = (entry.turn.app, entry.turn.owner)
                last[whose] = tasks.create_task(run.send(entry, last.get(whose)))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return run.published, run.refused


@dataclass(slots=True)
class _Run:
    publisher: TakesTurns
    report: "Callable[[Accepted | Refused], None]"
    tell: Callable[[str], None]
    published: int = 0
    refused: int = 0
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def send(self, entry: "Accepted", before: asyncio.Task[None] | None) -> None:
        """Publish `entry` once `before`, the same owner's turn before it, is out."""
        from mnemostream.errors import InvalidTurn

        from cli.turn_lines import refusal

        try:
            if before is not None:
                await before
            await self.publisher.publish(entry.turn)
        except InvalidTurn as invalid:
            self.refuse(refusal(entry.line, invalid))
            return
        finally:
            self.room.release()
        self.published += 1
        self.report(entry)
        self.tell(f"Publishing: {self.published} turns")

    def refuse(self, entry: "Refused") -> None:
        """Count and report a line that is not published."""
        self.refused += 1
        self.report(entry)


async def _read_aside(readings: "Iterable[Accepted | Refused]") -> "AsyncIterator[Accepted | Refused]":
    """`readings`, read in a thread: a pipe that is silent must not keep what came before from being sent.

    A daemon's thread, which nobody waits for: Ctrl-C ends the command though the pipe stays silent.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Accepted | Refused | BaseException | None] = asyncio.Queue()
    room = Semaphore(_AT_ONCE)

    def read() -> None:
        end: BaseException | None = None
        with suppress(RuntimeError):  # the loop is closed: nobody waits for more
            try:
                for entry in readings:
                    room.acquire()
                    loop.call_soon_threadsafe(queue.put_nowait, entry)
            except Exception as error:  # noqa: BLE001 (it is raised where the entries are awaited)
                end = error
            loop.call_soon_threadsafe(queue.put_nowait, end)

    Thread(target=read, name="lines", daemon=True).start()
    while (entry := await queue.get()) is not None:
        if isinstance(entry, BaseException):
            raise entry
        room.release()
        yield entry


def _report(entry: "Accepted | Refused", *, as_json: bool) -> None:
    from cli.turn_lines import Accepted

    match entry:
        case Accepted(line, turn):
            print_json({"line": line, "turnId": turn.id}) if as_json else typer.echo(turn.id)
        case _ if as_json:
            error = {"reason": entry.reason, "field": entry.field, "rule": entry.rule}
            print_json({"line": entry.line, "error": error})
        case _:
            say(f"line {entry.line}: {entry.field}: {entry.rule}")


@contextmanager
def _lines(file: Path) -> Iterator[Iterable[bytes]]:
    if str(file) == "-":
        yield _stdin()
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise CommandFailed(f"{file}: cannot be read ({error.strerror})") from None
    with opened:
        yield opened


def _stdin() -> Iterable[bytes]:
    """Stdin by a handle of its own, never closed: who still reads it must not be waited for at the end."""
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except OSError:  # what stands in for it in tests has no number
        return sys.stdin.buffer

"""What is done with many parked records: they are found, confirmed, worked off page by page, and reported."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import typer

from cli.context import dsn_of
from cli.failures import FAILED, CommandFailed, UsageProblem
from cli.operators import operator_database
from cli.output import on_terminal, print_fields, print_json, print_table, progress, say, shown
from cli.parked_places import Selection, effect_shown

if TYPE_CHECKING:
    from runtime.settings import Settings
    from store.parked import ParkedEntry, ParkedPlace, ParkedRepository

_FAILURES_SAID: Final = 50
_ROWS_SHOWN: Final = 1_000

Outcomes = AsyncIterator[tuple["ParkedPlace", str | None]]
"""Places, each with the problem that it had."""
Step = Callable[[Sequence["ParkedEntry"]], Outcomes]
OpenStep = Callable[["Settings", "ParkedRepository", AsyncExitStack], Awaitable[Step]]


@dataclass(slots=True)
class Tally:
    """How far it got."""

    matched: int = 0
    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    """What a dry run shows: all places, and of the first records more."""
    stopped: Exception | None = None
    """What kept it from the rest."""


@dataclass(frozen=True, slots=True)
class Task:
    """One of the things that are done with parked records: `verb` for a question, `past` for what was done."""

    verb: str
    past: str
    open_step: OpenStep

    def run(self, settings: "Settings", selection: Selection, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        """Do it, and tell. Exits with 1 where any of them failed; raises what stopped it after telling."""
        ask = not (yes or dry_run or selection.places)
        if ask and not (on_terminal() and sys.stdin.isatty()):
            raise UsageProblem("a filter means many records: --dry-run tells which, --yes does it")
        tally = asyncio.run(self._run(settings, selection, dry_run=dry_run, ask=ask))
        if as_json:
            self._print_json(tally, dry_run=dry_run)
        elif dry_run:
            _print_listed(tally)
        else:
            print_fields([(self.past, str(tally.done)), ("failed", str(len(tally.failed)) if tally.failed else None)])
        for place, problem in tally.failed[:_FAILURES_SAID]:
            say(shown(f"mnemo: {place}: {problem}"))
        if len(tally.failed) > _FAILURES_SAID:
            say(f"mnemo: and {len(tally.failed) - _FAILURES_SAID} more (--json tells all)")
        if tally.stopped is not None:
            raise tally.stopped
        if tally.failed:
            raise typer.Exit(FAILED)

    async def _run(self, settings: "Settings", selection: Selection, *, dry_run: bool, ask: bool) -> Tally:
        from processors.errors import Unavailable
        from store.parked import ParkedRepository

        tally = Tally()
        async with AsyncExitStack() as stack:
            database = await stack.enter_async_context(operator_database(dsn_of(settings)))
            repository = ParkedRepository(database)
            if ask:
                await self._confirm(repository, selection)
            step: Step | None = None
            try:
                with progress(f"{self.past} 0") as tell:
                    async for entries in _pages(repository, selection, tally):
                        tally.matched += len(entries)
                        if dry_run:
                            tally.places += [str(entry.place) for entry in entries]
                            tally.rows += [_row(entry) for entry in entries[: max(0, _ROWS_SHOWN - len(tally.rows))]]
                            continue
                        step = step or await self.open_step(settings, repository, stack)
                        async for place, problem in step(entries):
                            if problem is None:
                                tally.done += 1
                            else:
                                tally.failed.append((str(place), problem))
                            tell(f"{self.past} {tally.done}")
            except Unavailable as unavailable:
                tally.stopped = unavailable
        return tally

    async def _confirm(self, repository: "ParkedRepository", selection: Selection) -> None:
        count = 0
        async for entries in repository.waiting(selection.wanted):
            count += len(entries)
        if count and not typer.confirm(f"{_counted(count)}: {self.verb}?", err=True):
            raise CommandFailed(f"nothing was {self.past}")

    def _print_json(self, tally: Tally, *, dry_run: bool) -> None:
        told: dict[str, Any] = {"dryRun": dry_run, "matched": tally.matched, self.past: tally.done}
        told["failed"] = [{"place": place, "error": problem} for place, problem in tally.failed]
        if dry_run:
            told["places"] = tally.places
        print_json(told)


async def _pages(
    repository: "ParkedRepository", selection: Selection, tally: Tally
) -> "AsyncIterator[Sequence[ParkedEntry]]":
    """The records that are meant; places where nothing was parked have failed."""
    if not selection.places:
        async for entries in repository.waiting(selection.wanted):
            yield entries
        return
    found = await repository.find(selection.places)
    known = {entry.place for entry in found}
    tally.failed += [(str(place), "nothing was parked there") for place in selection.places if place not in known]
    if found:
        yield found


def _row(entry: "ParkedEntry") -> tuple[str, ...]:
    turn_id = entry.turn_ids[0] if entry.turn_ids else ""
    return str(entry.place), entry.state, effect_shown(entry), entry.reason, turn_id


def _print_listed(tally: Tally) -> None:
    print_table(("place", "state", "effect", "reason", "turn"), tally.rows)
    more = f", {len(tally.rows)} of them shown" if tally.matched > len(tally.rows) else ""
    say(f"{_counted(tally.matched)}{more}; nothing was done")


def _counted(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"

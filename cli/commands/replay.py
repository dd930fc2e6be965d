"""`mnemo replay`: turns are read again, after a new prompt or model, as a run with a number of its own."""

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.context import dsn_of, settings_of
from cli.failures import CommandFailed, UsageProblem
from cli.moments import moment
from cli.operators import operator_database, with_database
from cli.output import print_fields, print_json, print_table, progress, say

if TYPE_CHECKING:
    from runtime.settings import Settings
    from store.database import Database
    from store.runs import Choice, Extent, Run, RunReport
    from streams.rereading import Progress

_BEGINNING: Final = "beginning"
_BYTES_A_TOKEN: Final = 4
_LISTED: Final = 20


def replay(
    ctx: typer.Context,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Turns received from then: RFC 3339, a date, 7d, or beginning."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="… and before then. Without it: until now.")
    ] = None,
    app: Annotated[str | None, typer.Option(help="Only of this app.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", "-o", help="Only of this owner; needs --app.")] = None,
    number: Annotated[
        int | None, typer.Option("--run", min=1, metavar="N", help="Go on with this run, or do it again.")
    ] = None,
    ahead: Annotated[int, typer.Option(min=0, help="How many turns may wait for extract at once; 0: no limit.")] = 500,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="The last runs, and how far they are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Read turns again, after a new prompt or model: what the log has of them, redacted, goes to the workers.

    A turn keeps its place: what was said after it stands. What it says already is not counted again. Turns that wait
    for their first reading, or were set aside in it, are left out: see `mnemo parked replay`.
    """
    settings = settings_of(ctx)
    if listed:
        _list(settings, as_json=as_json)
        return
    if (since is None) == (number is None):
        raise UsageProblem("which turns? Give --from TIME (or --from beginning), or --run N to go on with a run")
    if number is not None and any(given is not None for given in (until, app, owner)):
        raise UsageProblem("--run N reads what it was begun with: it takes no --until, --app and --owner")
    if owner is not None and app is None:
        raise UsageProblem("--owner needs --app: owners of two apps may have one name")
    choice = None if since is None else _choice(since, until, app, owner)
    command = _Replay(settings, choice, number, ahead=ahead, dry_run=dry_run, ask=not yes, as_json=as_json)
    asyncio.run(command.run())


class _Replay:
    """One call of the command."""

    def __init__(
        self,
        settings: "Settings",
        choice: "Choice | None",
        number: int | None,
        *,
        ahead: int,
        dry_run: bool,
        ask: bool,
        as_json: bool,
    ) -> None:
        self._settings = settings
        self._choice = choice
        self._number = number
        self._ahead = ahead
        self._dry_run = dry_run
        self._ask = ask
        self._as_json = as_json

    async def run(self) -> None:
        """Count, ask, and publish."""
        from store.runs import RunRepository

        if self._ask and not self._dry_run and not sys.stdin.isatty():
            raise UsageProblem("nobody is there to be asked: give --yes, or --dry-run to count first")
        async with operator_database(dsn_of(self._settings)) as database:
            runs = RunRepository(database)
            run = None if self._number is None else await runs.get(self._number)
            if self._number is not None and run is None:
                raise CommandFailed(f"there is no run {self._number}: `mnemo replay --list` shows them")
            choice = self._choice if run is None else run.choice
            assert choice is not None
            with progress("Counting"):
                extent = await runs.extent(choice, run)
            if self._dry_run:
                self._tell_extent(extent, run)
                return
            if run is None and not extent.turns:
                raise CommandFailed("no turn is to be read again" + _left_out(extent))
            self._confirm(extent)
            await self._publish(database, choice, extent, run)

    def _confirm(self, extent: "Extent") -> None:
        if not self._ask:
            return
        say(f"{_words(extent)}{_left_out(extent)}")
        if not typer.confirm("Read them again?", err=True):
            raise CommandFailed("nothing was read again")

    async def _publish(self, database: "Database", choice: "Choice", extent: "Extent", run: "Run | None") -> None:
        from store.runs import RunRepository
        from streams.kafka import client_options
        from streams.outlet import Outlet
        from streams.rereading import Rereading, StageLag
        from streams.topics import TURNS, missing_topics, topic_name

        settings = self._settings
        missing = await missing_topics(settings, (TURNS,))
        if missing:
            raise CommandFailed(f"{', '.join(missing)} does not exist: `mnemo topics` creates it")
        runs = RunRepository(database)
        run = run or await runs.create(choice, extent.turns)
        if not self._as_json:
            say(f"run {run.run}: {_words(extent)}")
        try:
            with progress(f"Publishing {extent.turns} turns") as tell:
                async with (
                    Outlet(client_options(settings), client_id="mnemo-replay") as outlet,
                    StageLag.open(settings) as waiting,
                ):
                    rereading = Rereading(runs, outlet, waiting, topic=topic_name(settings, TURNS), ahead=self._ahead)
                    done = await rereading.publish(run, lambda state: tell(_state(state, extent)))
        except BaseException:
            say(f"broken off: `mnemo replay --run {run.run}` goes on with it")
            raise
        self._tell_done(run, done)

    def _tell_extent(self, extent: "Extent", run: "Run | None") -> None:
        if self._as_json:
            number = {} if run is None else {"run": run.run}
            print_json({**number, "dryRun": True, **_extent_json(extent)})
            return
        print_fields(
            [
                ("turns", f"{extent.turns} of {extent.owners} owners"),
                ("tokens", f"about {extent.bytes // _BYTES_A_TOKEN}, beside the prompts"),
                ("left out", _left_out(extent).removeprefix("; ")),
            ]
        )

    def _tell_done(self, run: "Run", done: "Progress") -> None:
        if self._as_json:
            print_json({**_run_json(run), "published": done.published, "skipped": done.skipped})
            return
        skipped = f", {done.skipped} that break today's rules left out" if done.skipped else ""
        say(f"{done.published} turns published{skipped}; `mnemo replay --list` shows how far they are")
        typer.echo(run.run)


def _list(settings: "Settings", *, as_json: bool) -> None:
    from store.runs import RunRepository

    with progress("Looking"):
        reports = with_database(settings, lambda database: RunRepository(database).reports(limit=_LISTED))
    if as_json:
        print_json({"runs": [_report_json(report) for report in reports]})
        return
    print_table(
        ("run", "begun", "from", "until", "whose", "turns", "stored", "parked", "pending", "published"),
        [
            (
                report.run.run,
                f"{report.run.created_at:%Y-%m-%d %H:%M:%S}",
                _minute(report.run.choice.received_from) or _BEGINNING,
                _minute(report.run.choice.received_to),
                "/".join(filter(None, (report.run.choice.app, report.run.choice.owner))) or "all",
                report.run.turns,
                report.stored,
                report.parked,
                report.pending,
                "yes" if report.run.published_at else f"no: mnemo replay --run {report.run.run}",
            )
            for report in reports
        ],
    )


def _choice(since: str, until: str | None, app: str | None, owner: str | None) -> "Choice":
    from store.runs import Choice

    now = datetime.now(UTC)
    received_from = None if since == _BEGINNING else moment(since, "--from", now=now)
    received_to = moment(until, "--until", now=now)
    if received_from is not None and received_from >= (received_to or now):
        raise UsageProblem("--from: must be before --until, and before now")
    return Choice(received_from=received_from, received_to=received_to, app=app, owner=owner)


def _state(state: "Progress", extent: "Extent") -> str:
    words = f"Publishing: {state.published} of {extent.turns} turns"
    return f"{words} (enough wait for extract: pausing)" if state.waits else words


def _words(extent: "Extent") -> str:
    tokens = extent.bytes // _BYTES_A_TOKEN
    return f"{extent.turns} turns of {extent.owners} owners, about {tokens} tokens beside the prompts"


def _left_out(extent: "Extent") -> str:
    left = [f"{count} {state}" for count, state in ((extent.parked, "parked"), (extent.pending, "pending")) if count]
    return f"; {' and '.join(left)} left out: their first reading is not over" if left else ""


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _extent_json(extent: "Extent") -> dict[str, Any]:
    return {
        "turns": extent.turns,
        "owners": extent.owners,
        "tokens": extent.bytes // _BYTES_A_TOKEN,
        "parked": extent.parked,
        "pending": extent.pending,
    }


def _run_json(run: "Run") -> dict[str, Any]:
    choice = run.choice
    return {
        "run": run.run,
        "from": None if choice.received_from is None else choice.received_from.isoformat(),
        "until": None if choice.received_to is None else choice.received_to.isoformat(),
        "app": choice.app,
        "owner": choice.owner,
        "turns": run.turns,
    }


def _report_json(report: "RunReport") -> dict[str, Any]:
    run = report.run
    return {
        **_run_json(run),
        "stored": report.stored,
        "parked": report.parked,
        "pending": report.pending,
        "createdAt": run.created_at.isoformat(),
        "publishedAt": None if run.published_at is None else run.published_at.isoformat(),
    }

"""`mnemo parked`: records that were set aside, what is known of them, and what becomes of them."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.context import settings_of
from cli.failures import CommandFailed, NotAvailable
from cli.moments import MOMENT_HELP
from cli.operators import with_database
from cli.output import print_fields, print_json, print_table, say, shown
from cli.parked_places import (
    effect_shown,
    entry_json,
    filter_of,
    place_of,
    readable,
    record_json,
    selection_of,
)
from cli.parked_tasks import Outcomes, Step, Task

if TYPE_CHECKING:
    from runtime.settings import Settings
    from store.parked import ParkedEntry, ParkedRepository

parked = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)

PlacesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="PLACE", help="TOPIC/PARTITION/OFFSET, with the topic's prefix or without."),
]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Only parked for this reason.")]
AppOption = Annotated[str | None, typer.Option("--app", help="Only of this app.")]
OwnerOption = Annotated[str | None, typer.Option("--owner", help="Only of this owner of the app.")]
StageOption = Annotated[str | None, typer.Option("--stage", help="Only parked by this stage.")]
SinceOption = Annotated[str | None, typer.Option("--since", help=f"Only parked from then on. {MOMENT_HELP}")]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only parked before. As --since.")]
AllWaitingOption = Annotated[bool, typer.Option("--all-waiting", help="All that wait.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell which these are.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]


@parked.callback()
def _parked() -> None:
    """Records that were set aside, each with its reason. Their bytes are on the topic `mnemo.parked.v1`."""


@parked.command("list")
def list_parked(
    ctx: typer.Context,
    reason: ReasonOption = None,
    app: AppOption = None,
    owner: OwnerOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those put back, and given up.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many at most.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """The last records that were set aside and wait, newest first."""
    from store.parked import ParkedRepository

    wanted = filter_of(reason=reason, app=app, owner=owner, stage=stage, since=since, until=until)
    found = with_database(
        settings_of(ctx),
        lambda database: ParkedRepository(database).list(wanted, everything=everything, limit=limit + 1),
    )
    entries = found[:limit]
    if as_json:
        print_json({"parked": [entry_json(entry) for entry in entries]})
    else:
        print_table(
            ("parked", "place", "state", "effect", "whose", "turn", "stage", "reason", "detail"),
            [
                (
                    f"{entry.parked_at:%Y-%m-%d %H:%M:%S}",
                    str(entry.place),
                    entry.state,
                    effect_shown(entry),
                    "/".join(filter(None, (entry.app, entry.owner))),
                    entry.turn_ids[0] if entry.turn_ids else "",
                    entry.stage,
                    entry.reason,
                    entry.detail,
                )
                for entry in entries
            ],
        )
    if len(found) > limit:
        say(f"there are more: --limit {2 * limit}, or a filter")


@parked.command("show")
def show_parked(
    ctx: typer.Context,
    place: Annotated[
        str, typer.Argument(metavar="PLACE", help="TOPIC/PARTITION/OFFSET, with the topic's prefix or without.")
    ],
    value: Annotated[bool, typer.Option("--value", help="Also its value: the text of a conversation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """All that is known of a record that was set aside; its value only where it is asked for."""
    settings = settings_of(ctx)
    wanted = place_of(place, settings.topic_prefix)
    entry = with_database(settings, lambda database: _one(database, wanted))
    if entry is None:
        raise CommandFailed(f"nothing was parked at {wanted}")
    record, problem, away = asyncio.run(_record(settings, entry, value=value))
    if as_json:
        print_json({**entry_json(entry), "record": record, "problem": problem})
    else:
        _print_record(entry, record, problem)
    if away:
        raise NotAvailable(f"{wanted}: {problem}")
    if value and record is None:
        raise CommandFailed(f"{wanted}: its value cannot be shown: {problem}")


async def _one(database: Any, place: Any) -> "ParkedEntry | None":
    from store.parked import ParkedRepository

    found = await ParkedRepository(database).find([place])
    return found[0] if found else None


async def _record(
    settings: "Settings", entry: "ParkedEntry", *, value: bool
) -> tuple[dict[str, Any] | None, str | None, bool]:
    """The record as it lies on the topic; or why it cannot be read, and whether Kafka is away."""
    from processors.errors import BrokerUnavailable
    from streams.kafka import client_options
    from streams.parked_topic import NotThere, ParkedTopic
    from streams.topics import PARKED, topic_name

    try:
        async with ParkedTopic(client_options(settings), topic_name(settings, PARKED)) as topic:
            return record_json(await topic.read(entry.place, entry.landed), value=value), None, False
    except NotThere as problem:
        return None, str(problem), False
    except BrokerUnavailable as problem:
        return None, str(problem), True


def _print_record(entry: "ParkedEntry", record: dict[str, Any] | None, problem: str | None) -> None:
    landed = entry.landed
    fields: list[tuple[str, Any]] = [
        ("place", entry.place),
        ("state", entry.state),
        ("effect", effect_shown(entry)),
        ("reason", entry.reason),
        ("detail", entry.detail),
        ("stage", entry.stage),
        ("attempts", entry.attempts),
        ("run", entry.run or None),
        ("app", entry.app),
        ("owner", entry.owner),
        *(("turn", turn_id) for turn_id in entry.turn_ids),
        ("received", entry.received_at),
        ("parked", entry.parked_at),
        ("lies at", None if landed is None else f"{landed.partition}/{landed.offset}"),
        ("replays", entry.replays or None),
        ("replayed", entry.replayed_at),
        ("dropped", entry.dropped_at),
        ("problem", problem),
    ]
    if record is not None:
        fields += [("key", readable("key", record)), ("value bytes", record["valueBytes"]), ("lost", record["lost"])]
        headers = (*record["headers"], *record["told"])
        fields += [("header", f"{header['name']}={readable('value', header) or ''}") for header in headers]
    print_fields(fields)
    if record is not None and ("value" in record or "valueBase64" in record):
        for line in (readable("value", record) or "").splitlines():
            typer.echo(shown(line))


@parked.command("replay")
def replay_parked(
    ctx: typer.Context,
    places: PlacesArgument = None,
    reason: ReasonOption = None,
    app: AppOption = None,
    owner: OwnerOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    all_waiting: AllWaitingOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put records back on their topic, to be read again.

    They count as received when they were first: what was said since stays said. Again has no second effect. A filter
    means those that wait; a PLACE is put back whatever became of it.
    """
    settings = settings_of(ctx)
    wanted = filter_of(reason=reason, app=app, owner=owner, stage=stage, since=since, until=until)
    selection = selection_of(places or [], wanted, settings.topic_prefix, all_waiting=all_waiting)
    Task("put back", "replayed", _put_back).run(settings, selection, dry_run=dry_run, yes=yes, as_json=as_json)


@parked.command("drop")
def drop_parked(
    ctx: typer.Context,
    places: PlacesArgument = None,
    reason: ReasonOption = None,
    app: AppOption = None,
    owner: OwnerOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    all_waiting: AllWaitingOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give up on records: they are listed with --all only. Their turns stay parked.

    To put one back after all, name its PLACE to `mnemo parked replay`.
    """
    settings = settings_of(ctx)
    wanted = filter_of(reason=reason, app=app, owner=owner, stage=stage, since=since, until=until)
    selection = selection_of(places or [], wanted, settings.topic_prefix, all_waiting=all_waiting)
    Task("give up", "dropped", _give_up).run(settings, selection, dry_run=dry_run, yes=yes, as_json=as_json)


async def _put_back(settings: "Settings", repository: "ParkedRepository", stack: AsyncExitStack) -> Step:
    """Records go back on their topics."""
    from streams.kafka import client_options
    from streams.outlet import Outlet
    from streams.parked_replay import Replay
    from streams.parked_topic import ParkedTopic
    from streams.topics import CANDIDATES, PARKED, TURNS, missing_topics, topic_name

    missing = await missing_topics(settings, (TURNS, CANDIDATES, PARKED))
    if missing:
        raise CommandFailed(f"these topics do not exist: {', '.join(missing)}; is MNEMO_TOPIC_PREFIX right?")
    options = client_options(settings)
    reader = await stack.enter_async_context(ParkedTopic(options, topic_name(settings, PARKED)))
    outlet = await stack.enter_async_context(Outlet(options, client_id="mnemo-replay"))
    replayable = [topic_name(settings, topic) for topic in (TURNS, CANDIDATES)]
    replay = Replay(repository, reader, outlet, replayable=replayable)

    async def step(entries: "Sequence[ParkedEntry]") -> Outcomes:
        async for replayed in replay.run(entries):
            yield replayed.place, replayed.problem

    return step


async def _give_up(settings: "Settings", repository: "ParkedRepository", stack: AsyncExitStack) -> Step:
    """Records are marked."""
    del settings, stack

    async def step(entries: "Sequence[ParkedEntry]") -> Outcomes:
        dropped = await repository.drop(entries)
        for entry in entries:
            problem = None if entry.place in dropped else "it was put back or parked anew meanwhile: look again"
            yield entry.place, problem

    return step

"""The long-running processes, and what prepares their ground."""

import asyncio
from typing import Annotated, Final

import typer

from cli.context import dsn_of, settings_of
from cli.failures import FAILED, UsageProblem
from cli.output import print_json, print_table, progress, say

STAGES: Final = ("extract", "reconcile")
"""The stages that there are; `decay` comes with the timers."""

JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]


def chosen_stages(stages: str | None) -> tuple[str, ...]:
    """The stages named in `stages`, with commas between them, in the order of a turn's way; all by default."""
    if stages is None:
        return STAGES
    named = {name.strip() for name in stages.split(",") if name.strip()}
    unknown = sorted(named - set(STAGES))
    if unknown or not named:
        raise UsageProblem(f"--stages: choose among {', '.join(STAGES)}, with commas between them")
    return tuple(stage for stage in STAGES if stage in named)


def worker(
    ctx: typer.Context,
    stages: Annotated[str | None, typer.Option(help="With commas: extract, reconcile. All by default.")] = None,
) -> None:
    """Turn what arrives into memories, until it is told to stop (SIGTERM drains)."""
    chosen = chosen_stages(stages)
    settings = settings_of(ctx)
    dsn_of(settings)
    from runtime.logs import configure_logging
    from streams.worker import run_worker

    configure_logging(settings.log_level)
    raise typer.Exit(run_worker(settings, chosen))


def query(ctx: typer.Context) -> None:
    """Serve the RPC, until it is told to stop."""
    settings = settings_of(ctx)
    dsn_of(settings)
    from query.server import run_query
    from runtime.logs import configure_logging

    configure_logging(settings.log_level)
    raise typer.Exit(run_query(settings))


def migrate(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Bring the schema of Postgres up to date. Safe to run twice, also at once."""
    settings = settings_of(ctx)
    dsn = dsn_of(settings)
    from store.migrate import migrate as bring_up_to_date

    with progress("Migrating"):
        report = asyncio.run(bring_up_to_date(dsn))
    if as_json:
        applied = [{"version": step.version, "name": step.name} for step in report.applied]
        print_json({"version": report.version, "applied": applied, "unknown": list(report.unknown)})
        return
    for step in report.applied:
        typer.echo(f"applied {step.version:04} {step.name}")
    typer.echo(f"the schema is at version {report.version}" + (", as it was" if report.already_current else ""))
    if report.unknown:
        unknown = ", ".join(map(str, report.unknown))
        typer.echo(f"it is newer than this code, which does not know {unknown}: left as it is", err=True)


def topics(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Create the topics of Kafka that are missing, and check the others. Safe to run twice, also at once."""
    settings = settings_of(ctx)
    from streams.topics import ensure_topics

    with progress(f"Asking {settings.kafka_bootstrap_servers}"):
        report = asyncio.run(ensure_topics(settings))
    if as_json:
        entries = [
            {"name": topic.name, "partitions": topic.partitions, "state": topic.state, "notes": list(topic.notes)}
            for topic in report.topics
        ]
        print_json({"ok": report.ok, "topics": entries})
    else:
        rows = [(topic.name, topic.partitions, topic.state) for topic in report.topics]
        print_table(("topic", "partitions", "state"), rows)
        for topic in report.topics:
            for note in topic.notes:
                say(f"{topic.name}: {note}")
    if not report.ok:
        raise typer.Exit(FAILED)

"""`mnemo status`: what runs, and how far it is."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.context import DEFAULT_URL, settings_of
from cli.failures import UNAVAILABLE
from cli.operators import operator_database
from cli.output import on_terminal, print_json, print_table, progress

if TYPE_CHECKING:
    from runtime.settings import Settings

_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the system: whether it can be used, and what is to be said about it."""

    name: str
    ok: bool
    detail: str
    counts: tuple[dict[str, Any], ...] = ()


def status(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """What runs, and how far it is. Exit code 3 where a part is away."""
    settings = settings_of(ctx)
    with progress("Looking"):
        parts = asyncio.run(_look(settings))
    if as_json:
        answer: dict[str, Any] = {part.name: {"ok": part.ok, "detail": part.detail} for part in parts}
        print_json({**answer, "apps": [count for part in parts for count in part.counts]})
    else:
        for part in parts:
            mark = "ok  " if part.ok else "away"
            colour = "green" if part.ok else "red"
            typer.echo(f"{part.name:<9} {typer.style(mark, fg=colour) if on_terminal() else mark}  {part.detail}")
        counts = [count for part in parts for count in part.counts]
        if counts:
            typer.echo()
            print_table(tuple(counts[0]), [tuple(count.values()) for count in counts])
    if not all(part.ok for part in parts):
        raise typer.Exit(UNAVAILABLE)


async def _look(settings: "Settings") -> tuple[Part, ...]:
    looks = {"kafka": _kafka, "postgres": _postgres, "query": _query}
    return tuple(await asyncio.gather(*(_safely(name, look, settings) for name, look in looks.items())))


async def _safely(name: str, look: "Callable[[Settings], Awaitable[Part]]", settings: "Settings") -> Part:
    from cli.failures import explain

    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await look(settings)
    except TimeoutError:
        return Part(name, ok=False, detail=f"no answer within {_PATIENCE_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001 (what is wrong with a part is the answer of this command)
        failure = explain(error)
        return Part(name, ok=False, detail=failure.message.removeprefix("mnemo: ") if failure else str(error))


async def _postgres(settings: "Settings") -> Part:
    from cli.context import dsn_of
    from store.migrate import schema_version
    from store.overview import Overview

    dsn = dsn_of(settings)
    version = await schema_version(dsn)
    async with operator_database(dsn) as database:
        counts = await Overview(database).counts()
    rows = tuple(
        {
            "app": count.app,
            "owners": count.owners,
            "memories": count.memories,
            "turnsPending": count.pending,
            "turnsStored": count.stored,
            "turnsParked": count.parked,
        }
        for count in counts
    )
    return Part("postgres", ok=True, detail=f"schema {version}", counts=rows)


async def _kafka(settings: "Settings") -> Part:
    from streams.topics import CANDIDATES, CHANGES, DECAY, PARKED, TURNS, missing_topics

    missing = await missing_topics(settings, (TURNS, CANDIDATES, CHANGES, DECAY, PARKED))
    if missing:
        return Part("kafka", ok=False, detail=f"{', '.join(missing)} missing: `mnemo topics` creates them")
    return Part("kafka", ok=True, detail=settings.kafka_bootstrap_servers)


async def _query(settings: "Settings") -> Part:
    from cli.rpc import CallFailed, Endpoint, call

    url = settings.url or DEFAULT_URL
    try:
        # Without a key: that it is refused shows that somebody is there who knows about keys.
        await asyncio.to_thread(call, Endpoint(url, ""), "GetTurn", {}, wait_seconds=0)
    except CallFailed as failure:
        return Part("query", ok=failure.code == "unauthenticated", detail=url)
    return Part("query", ok=True, detail=url)

"""`mnemo verify`: whether a live system is as it must be, and what shows that it is not."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.context import dsn_of, settings_of
from cli.failures import FAILED, NotAvailable, UsageProblem
from cli.output import on_terminal, print_json, progress, shown

if TYPE_CHECKING:
    from runtime.settings import Settings
    from store.database import Database
    from store.verification import Evidence, Finding, Findings, Invariant

_LIMIT: Final = 10


def verify(
    ctx: typer.Context,
    app: Annotated[str | None, typer.Option(help="Only what belongs to this app.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this invariant; several with commas, or again.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Violations shown of each invariant; all are counted.")
    ] = _LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check what must hold of a live system: ten invariants, on the store and on the topics.

    Nothing is stopped, locked or changed. Exit code 1 where an invariant is broken, 3 where Kafka or Postgres is away.
    The names: accepted, once, order, live, chains, traceable, walls, feed, strength, forgotten.
    """
    from store.verification import Findings

    settings = settings_of(ctx)
    dsn = dsn_of(settings)
    findings = Findings(_chosen(only), limit=limit)
    began = time.monotonic()
    with progress("Verifying") as tell:
        asyncio.run(_verify(settings, dsn, findings, app, tell))
    if as_json:
        print_json(_as_json(findings, time.monotonic() - began))
    else:
        for finding in findings.all:
            _print(finding)
    if not findings.ok:
        raise typer.Exit(FAILED)


def _chosen(only: Iterable[str] | None) -> "list[Invariant]":
    from store.verification import INVARIANTS

    if not only:
        return list(INVARIANTS)
    named = {name.strip() for given in only for name in given.split(",") if name.strip()}
    known = {invariant.name for invariant in INVARIANTS}
    if unknown := sorted(named - known):
        names = ", ".join(invariant.name for invariant in INVARIANTS)
        raise UsageProblem(f"--only: no invariant is called {', '.join(unknown)}; there are {names}")
    return [invariant for invariant in INVARIANTS if invariant.name in named]


async def _verify(
    settings: "Settings", dsn: str, findings: "Findings", app: str | None, tell: Callable[[str], None]
) -> None:
    from store.apps import AppRepository
    from store.database import Database
    from store.migrate import check
    from store.verification import STATEMENT_SECONDS, StoreSweep
    from streams.verification import TopicsAway, needs_kafka, verify_topics

    await check(dsn)
    async with AsyncExitStack() as stack:
        operator = await Database.open(dsn, role="mnemo_operator", pool_size=1, statement_seconds=STATEMENT_SECONDS)
        stack.push_async_callback(operator.close)
        if app is not None and app not in await AppRepository(operator).list_profiles():
            raise UsageProblem("--app: no app by that name: `mnemo apps list` shows them")
        if needs_kafka(findings):
            try:
                await verify_topics(settings, operator, findings, app=app, progress=tell)
            except TopicsAway as away:
                raise NotAvailable(str(away)) from None
        await _walls(dsn, operator, findings, app, stack)
        await StoreSweep(operator, findings, app=app, progress=tell).run()


async def _walls(dsn: str, operator: "Database", findings: "Findings", app: str | None, stack: AsyncExitStack) -> None:
    """What the processes see that have to do with one app at a time: asked in their own roles."""
    from store.database import Database
    from store.verification import INNER_ROLES, WALLS, check_walls

    if WALLS not in findings:
        return
    inner = {}
    for role in INNER_ROLES:
        inner[role] = await Database.open(dsn, role=role, pool_size=1)
        stack.push_async_callback(inner[role].close)
    await check_walls(operator, inner, findings, app)


def _print(finding: "Finding") -> None:
    mark, colour = ("BROKEN", "red") if finding.broken else ("ok    ", "green")
    counts = ", ".join(f"{count:,} {unit}" for unit, count in finding.checked.items())
    waiting = f" ({finding.waiting:,} on their way)" if finding.waiting else ""
    broken = f", {finding.broken:,} wrong" if finding.broken else ""
    name = f"{finding.invariant.name:<9}"
    typer.echo(
        f"{typer.style(mark, fg=colour) if on_terminal() else mark}  {name}  {finding.invariant.claim}: "
        f"{counts}{waiting}{broken}"
    )
    for evidence in finding.evidence:
        typer.echo(f"        {_line(evidence)}")
    if finding.more:
        typer.echo(f"        … and {finding.more:,} more (--limit shows more)")


def _line(evidence: "Evidence") -> str:
    owner = "" if evidence.app is None else f"{evidence.app}/{evidence.owner or ''}: "
    where = " ".join(f"{name}={_plain(value)}" for name, value in evidence.where.items())
    return shown(f"{owner}{evidence.what}: {where}")


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _as_json(findings: "Findings", seconds: float) -> dict[str, Any]:
    return {
        "ok": findings.ok,
        "seconds": round(seconds, 3),
        "invariants": [
            {
                "name": finding.invariant.name,
                "claim": finding.invariant.claim,
                "ok": not finding.broken,
                "checked": dict(finding.checked),
                "waiting": finding.waiting,
                "violations": finding.broken,
                "evidence": [
                    {
                        "what": evidence.what,
                        **({} if evidence.app is None else {"owner": f"{evidence.app}/{evidence.owner or ''}"}),
                        **evidence.where,
                    }
                    for evidence in finding.evidence
                ],
                "more": finding.more,
            }
            for finding in findings.all
        ],
    }

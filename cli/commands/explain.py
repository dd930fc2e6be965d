"""Commands about one memory's past and its end: why it is believed, and that it be forgotten."""

import sys
from typing import Annotated, Any

import typer

from cli.commands.ask import JsonOption, OwnerOption, asker
from cli.failures import CommandFailed
from cli.output import on_terminal, print_json, print_table, say, shown

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Of the memory.")]

_COLUMNS = ("when", "route", "action", "similarity", "model", "reason")


def why(ctx: typer.Context, memory_id: IdArgument, owner: OwnerOption = None, as_json: JsonOption = False) -> None:
    """Why a memory is believed: who said what when, what it replaced, and why; then each decision about it."""
    ask, _ = asker(ctx, owner)
    answer = ask("ExplainMemory", id=memory_id)
    if as_json:
        print_json(answer)
        return
    typer.echo(shown(answer.get("story", "")))
    decisions = answer.get("decisions", [])
    if decisions:
        typer.echo()
        print_table(_COLUMNS, [_row(decision) for decision in decisions])


def forget(
    ctx: typer.Context,
    memory_id: IdArgument,
    owner: OwnerOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Erase a memory for good, with every version of it and what was said of it.

    What was received before does not bring it back.
    """
    ask, _ = asker(ctx, owner)
    if not yes and on_terminal() and sys.stdin.isatty():
        memory = ask("GetMemory", id=memory_id)
        typer.echo(shown(memory.get("content", "")))
        if not typer.confirm("Forget this for good, with its other versions?"):
            raise CommandFailed("nothing was forgotten")
    answer = ask("DeleteMemory", id=memory_id)
    if as_json:
        print_json(answer)
    else:
        say("forgotten")


def _row(decision: dict[str, Any]) -> tuple[str, ...]:
    """One decision; the model is the arbitrator's where one was asked, else that of the reading."""
    asked = decision.get("arbitration") or decision
    model = " ".join(filter(None, (asked.get("model"), asked.get("promptVersion"))))
    similarities = [each["similarity"] for each in decision.get("neighbours", []) if each.get("similarity") is not None]
    reason = decision.get("reason", "")
    return (
        str(decision.get("at", ""))[:19].replace("T", " "),
        decision.get("route", ""),
        decision.get("action", ""),
        f"{max(similarities):.3f}" if similarities else "",
        model,
        f"{reason} (marked: the safe default)" if decision.get("marked") else reason,
    )

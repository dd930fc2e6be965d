"""Commands that ask the query service, and the one that tells it a memory."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from cli.context import endpoint_of, owner_of, settings_of
from cli.failures import FAILED, CommandFailed
from cli.output import on_terminal, print_fields, print_json, print_table, progress, shown
from cli.rpc import call

OwnerOption = Annotated[str | None, typer.Option("--owner", "-o", help="Whose memories; else MNEMO_OWNER.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The RPC's JSON.")]

_NEVER = "1970-01-01"


def asker(ctx: typer.Context, owner: str | None) -> tuple[Callable[..., dict[str, Any]], str]:
    """What to ask with, and whom about."""
    settings = settings_of(ctx, owner=owner)
    whose, endpoint = owner_of(settings), endpoint_of(settings)

    def ask(method: str, *, wait_seconds: float = 20.0, **request: Any) -> dict[str, Any]:
        return call(endpoint, method, {"owner": whose, **request}, wait_seconds=wait_seconds)

    return ask, whose


def search(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(help="The question, in words.")],
    owner: OwnerOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many answers.")] = 10,
    category: Annotated[list[str] | None, typer.Option(help="Only of this category; may be given again.")] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Also what no longer holds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask what is known about an owner; best answer first."""
    ask, whose = asker(ctx, owner)
    with progress("Searching"):
        answer = ask("Search", query=" ".join(query), limit=limit, categories=category or [], includeRetired=retired)
    if as_json:
        print_json(answer)
        return
    if answer.get("degraded"):
        typer.echo("The embedding model is away: words only.", err=True)
    hits = answer.get("hits", [])
    _print_memories([(hit["memory"], float(hit.get("score", 0))) for hit in hits])
    if not hits and on_terminal():
        typer.echo(f"Nothing is known about {shown(whose)} that answers this.")


def list_memories(
    ctx: typer.Context,
    owner: OwnerOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 100,
    category: Annotated[list[str] | None, typer.Option(help="Only of this category; may be given again.")] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Also what no longer holds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """All memories of an owner, in the order in which they were recorded."""
    ask, whose = asker(ctx, owner)
    memories: list[dict[str, Any]] = []
    token = ""
    answer: dict[str, Any] = {}
    with progress("Reading"):
        while len(memories) < limit:
            size = min(100, limit - len(memories))
            answer = ask(
                "ListMemories", pageSize=size, pageToken=token, categories=category or [], includeRetired=retired
            )
            memories += answer.get("memories", [])
            token = answer.get("nextPageToken", "")
            if not token:
                break
    if as_json:
        print_json({**answer, "memories": memories})
        return
    _print_memories([(memory, None) for memory in memories])
    if on_terminal():
        total = answer.get("totalSize", len(memories))
        typer.echo(f"{len(memories)} of {total} memories of {shown(whose)}")


def show(
    ctx: typer.Context,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="Of the memory.")],
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """One memory, with everything known about it."""
    ask, _ = asker(ctx, owner)
    memory = ask("GetMemory", id=memory_id)
    if as_json:
        print_json(memory)
        return
    _print_memory(memory)


def add(
    ctx: typer.Context,
    content: Annotated[list[str], typer.Argument(help="What to remember: one statement that stands alone.")],
    owner: OwnerOption = None,
    category: Annotated[str | None, typer.Option(help="Such as fact, preference, identity.")] = None,
    importance: Annotated[int | None, typer.Option(min=1, max=10, help="1 to 10.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="May be given again.")] = None,
    pinned: Annotated[bool, typer.Option("--pin", help="Never fades.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a memory directly, without a conversation."""
    ask, _ = asker(ctx, owner)
    memory = ask(
        "CreateMemory",
        content=" ".join(content),
        category=category,
        importance=importance,
        tags=tag or [],
        pinned=pinned,
    )
    if as_json:
        print_json(memory)
        return
    _print_memory(memory)


def turn(
    ctx: typer.Context,
    turn_id: Annotated[str, typer.Argument(metavar="ID", help="Of the turn.")],
    owner: OwnerOption = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for its end.", min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """How far a turn is, and the memories that it made or confirmed.

    With --wait a turn that is not over by then is a failure.
    """
    ask, _ = asker(ctx, owner)
    deadline = time.monotonic() + wait
    with progress("Waiting for the turn") as tell:
        while True:
            left = max(0.0, deadline - time.monotonic())
            step = min(left, 20.0)
            report = ask("GetTurn", turnId=turn_id, wait=f"{step:.3f}s", wait_seconds=step)
            if report.get("state") not in ("UNKNOWN", "PENDING") or left <= step:
                break
            tell("Waiting for the turn")
    if as_json:
        print_json(report)
    else:
        memories = [("memory", memory_id) for memory_id in report.get("memoryIds", [])]
        print_fields([*((name, report.get(name)) for name in ("state", "reason", "detail")), *memories])
    if wait and report.get("state") in ("UNKNOWN", "PENDING"):
        raise typer.Exit(FAILED)
    if report.get("state") == "UNKNOWN" and not as_json:
        raise CommandFailed("no turn by that id has arrived")


def _print_memories(memories: list[tuple[dict[str, Any], float | None]]) -> None:
    if not on_terminal():
        print_table(
            ("score", "id", "state", "category", "since", "content"),
            [
                (
                    "" if score is None else f"{score:.3f}",
                    memory["id"],
                    memory.get("state"),
                    memory.get("category"),
                    _day(memory.get("validFrom")),
                    memory["content"],
                )
                for memory, score in memories
            ],
        )
        return
    for memory, score in memories:
        mark = "  " if score is None else typer.style(f"{score:.2f}  ", fg="green", bold=True)
        typer.echo(mark + typer.style(shown(memory["content"]), bold=True))
        typer.echo(" " * (2 if score is None else 6) + typer.style(_line(memory), dim=True))


def _line(memory: dict[str, Any]) -> str:
    said_again = int(memory.get("confirmations") or 0)
    state = memory.get("state", "LIVE")
    parts = (
        memory.get("category"),
        f"since {_day(memory.get('validFrom'))}",
        f"confirmed {said_again}×" if said_again else None,
        "pinned" if memory.get("pinned") else None,
        state.lower() if state != "LIVE" else None,
        memory["id"],
    )
    return " · ".join(shown(part) for part in parts if part)


def _print_memory(memory: dict[str, Any]) -> None:
    sources = [
        f"{source.get('turnId')} ({str(source.get('role', '')).lower()}, {_day(source.get('saidAt'))})"
        for source in memory.get("sources", [])
    ]
    numbers = {name: memory.get(name) for name in ("confidence", "strength")}
    print_fields(
        [
            ("content", memory.get("content")),
            ("id", memory.get("id")),
            ("state", memory.get("state")),
            ("category", memory.get("category")),
            ("importance", memory.get("importance")),
            *((name, None if value is None else f"{float(value):.2f}") for name, value in numbers.items()),
            ("pinned", "yes" if memory.get("pinned") else None),
            ("tags", ", ".join(memory.get("tags", []))),
            ("about", " · ".join(filter(None, (memory.get("subject"), memory.get("attribute"))))),
            ("session", memory.get("session")),
            *((name, _moment(memory.get(name))) for name in _MOMENTS),
            ("confirmations", memory.get("confirmations") or None),
            ("supersedes", memory.get("supersedes")),
            ("supersededBy", memory.get("supersededBy")),
            ("restates", memory.get("restates")),
            ("retiredReason", memory.get("retiredReason")),
            *(("from turn", source) for source in sources),
        ]
    )


_MOMENTS = ("validFrom", "validTo", "recordedAt", "retiredAt", "confirmedAt", "expiresAt", "fadesAt")


def _moment(value: str | None) -> str | None:
    return value if value and not value.startswith(_NEVER) else None


def _day(value: str | None) -> str:
    return (_moment(value) or "")[:10]

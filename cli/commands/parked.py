"""`mnemo parked`: records that were set aside."""

from typing import Annotated

import typer

from cli.context import settings_of
from cli.operators import with_database
from cli.output import print_json, print_table

parked = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@parked.callback()
def _parked() -> None:
    """Records that were set aside, each with its reason. Their bytes are on the topic `mnemo.parked.v1`."""


@parked.command("list")
def list_parked(
    ctx: typer.Context,
    app: Annotated[str | None, typer.Option(help="Only of this app.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """The last records that were set aside, newest first."""
    from store.parked import ParkedRepository

    entries = with_database(settings_of(ctx), lambda database: ParkedRepository(database).list(app, limit=limit))
    if as_json:
        print_json(
            {
                "parked": [
                    {
                        "topic": entry.topic,
                        "partition": entry.partition,
                        "offset": entry.offset,
                        "app": entry.app,
                        "owner": entry.owner,
                        "turnId": entry.turn_id,
                        "stage": entry.stage,
                        "reason": entry.reason,
                        "detail": entry.detail,
                        "attempts": entry.attempts,
                        "parkedAt": entry.parked_at.isoformat(),
                    }
                    for entry in entries
                ]
            }
        )
        return
    print_table(
        ("parked", "place", "whose", "turn", "stage", "reason", "detail"),
        [
            (
                f"{entry.parked_at:%Y-%m-%d %H:%M:%S}",
                f"{entry.topic}/{entry.partition}/{entry.offset}",
                f"{entry.app}/{entry.owner}" if entry.app else "",
                entry.turn_id,
                entry.stage,
                entry.reason,
                entry.detail,
            )
            for entry in entries
        ],
    )

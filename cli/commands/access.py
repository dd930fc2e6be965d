"""Who may use the system: the API keys of applications."""

import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from cli.context import settings_of
from cli.failures import CommandFailed, UsageProblem
from cli.operators import with_database
from cli.output import on_terminal, print_fields, print_json, print_table, say

if TYPE_CHECKING:
    from store.database import Database
    from store.keys import KeyEntry

ALL_SCOPES: Final = ("read", "write", "admin")
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]

keys = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@keys.callback()
def _keys() -> None:
    """API keys: each belongs to one application. A key is shown once, when it is made."""


@keys.command("create")
def create_key(
    ctx: typer.Context,
    app: Annotated[str, typer.Option(help="Whose key; the app is made if it is new.")],
    name: Annotated[str, typer.Option(help="To tell keys apart.")] = "",
    scope: Annotated[list[str] | None, typer.Option(help="read, write or admin; may be given again. All.")] = None,
    days: Annotated[float | None, typer.Option(help="It is refused after so many days.", min=0)] = None,
    as_json: JsonOption = False,
) -> None:
    """Make an API key. It is shown once: what is stored is its hash."""
    from mnemostream.decoding import APP_PATTERN
    from mnemostream.ids import uuid7

    from processors.keys import RANDOM_BYTES, key_hash, key_prefix, new_key

    if not re.fullmatch(APP_PATTERN, app):
        raise UsageProblem(f"--app: must match {APP_PATTERN}")
    scopes = tuple(dict.fromkeys(scope)) if scope else ALL_SCOPES
    if not set(scopes) <= set(ALL_SCOPES):
        raise UsageProblem(f"--scope: must be {', '.join(ALL_SCOPES)}")
    key, key_id = new_key(secrets.token_bytes(RANDOM_BYTES)), uuid7()
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)

    async def create(database: "Database") -> UUID:
        from store.keys import ApiKeyRepository

        return await ApiKeyRepository(database).create(
            app=app,
            key_id=key_id,
            key_hash=key_hash(key),
            prefix=key_prefix(key),
            name=name,
            scopes=scopes,
            expires_at=expires_at,
        )

    with_database(settings_of(ctx), create)
    made: dict[str, Any] = {"key": key, "id": str(key_id), "app": app, "name": name, "scopes": list(scopes)}
    made |= {"expiresAt": expires_at.isoformat() if expires_at else None}
    if as_json:
        print_json(made)
    elif on_terminal():
        print_fields(made.items())
        say("Keep it now: it is not shown again.")
    else:
        typer.echo(key)


@keys.command("list")
def list_keys(
    ctx: typer.Context,
    app: Annotated[str | None, typer.Option(help="Only of this app.")] = None,
    as_json: JsonOption = False,
) -> None:
    """All keys by their first characters, revoked ones too."""
    from store.keys import ApiKeyRepository

    entries = with_database(settings_of(ctx), lambda database: ApiKeyRepository(database).list(app))
    if as_json:
        print_json({"keys": [_as_json(entry) for entry in entries]})
        return
    print_table(
        ("id", "app", "key", "name", "scopes", "created", "state"),
        [
            (
                entry.id,
                entry.app,
                f"{entry.prefix}…",
                entry.name,
                ",".join(entry.scopes),
                f"{entry.created_at:%Y-%m-%d}",
                _state(entry, datetime.now(UTC)),
            )
            for entry in entries
        ],
    )


@keys.command("revoke")
def revoke_key(
    ctx: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Of the key: `mnemo keys list` shows it.")],
    as_json: JsonOption = False,
) -> None:
    """Refuse a key from now on (it takes effect within seconds)."""
    from store.keys import ApiKeyRepository

    try:
        which = UUID(key_id)
    except ValueError:
        raise UsageProblem("ID: must be the id of a key (`mnemo keys list`), not the key itself") from None
    if not with_database(settings_of(ctx), lambda database: ApiKeyRepository(database).revoke(which)):
        raise CommandFailed("no key by that id, or it was revoked before")
    if as_json:
        print_json({"id": str(which), "revoked": True})
    else:
        say("revoked")


def _state(entry: "KeyEntry", now: datetime) -> str:
    if entry.revoked_at is not None:
        return "revoked"
    if entry.expires_at is None:
        return "good"
    return f"good until {entry.expires_at:%Y-%m-%d}" if now < entry.expires_at else "expired"


def _as_json(entry: "KeyEntry") -> dict[str, object]:
    moments = {
        "createdAt": entry.created_at,
        "expiresAt": entry.expires_at,
        "revokedAt": entry.revoked_at,
    }
    return {
        "id": str(entry.id),
        "app": entry.app,
        "prefix": entry.prefix,
        "name": entry.name,
        "scopes": list(entry.scopes),
        **{name: moment.isoformat() if moment else None for name, moment in moments.items()},
    }

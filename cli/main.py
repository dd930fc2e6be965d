"""The command `mnemo`: which commands there are, and what an error looks like.

Commands are loaded when they are called, so that `mnemo --help` answers at once. Exit codes: 0, 1 failed, 2 usage (also
settings), 3 something is not available.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from cli.context import Invocation
from cli.failures import explain

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):
        """typing_extensions takes 50 ms to load, and only a type checker needs this."""
        return method


OPERATORS: Final = "For operators"
PEOPLE: Final = "For people"


class Entry(NamedTuple):
    """One command: under which heading, what it is for, and where it is. A hidden one has no heading."""

    heading: str
    summary: str
    module: str
    target: str


COMMANDS: Final[dict[str, Entry]] = {
    "up": Entry(OPERATORS, "start all of it, here", "commands.up", "up"),
    "down": Entry(OPERATORS, "stop it; memories stay", "commands.up", "down"),
    "worker": Entry(OPERATORS, "turns into memories", "commands.operate", "worker"),
    "query": Entry(OPERATORS, "serve the RPC", "commands.operate", "query"),
    "migrate": Entry(OPERATORS, "the schema, up to date", "commands.operate", "migrate"),
    "topics": Entry(OPERATORS, "create or check topics", "commands.operate", "topics"),
    "apps": Entry(OPERATORS, "applications, their settings", "commands.apps", "apps"),
    "keys": Entry(OPERATORS, "API keys of applications", "commands.access", "keys"),
    "parked": Entry(OPERATORS, "what was set aside, why", "commands.parked", "parked"),
    "replay": Entry(OPERATORS, "read turns again, as a run", "commands.replay", "replay"),
    "verify": Entry(OPERATORS, "check what must hold", "commands.verify", "verify"),
    "status": Entry(OPERATORS, "what runs, how far it is", "commands.status", "status"),
    "fetch": Entry(OPERATORS, "download what `up` needs", "commands.fetch", "fetch"),
    "dev": Entry(OPERATORS, "tools for developers", "commands.dev", "dev"),
    "demo": Entry(PEOPLE, "see it work, in a minute", "demo", "demo"),
    "publish": Entry(PEOPLE, "turns from a file, or a text", "commands.publish", "publish"),
    "turn": Entry(PEOPLE, "how far a turn is", "commands.ask", "turn"),
    "search": Entry(PEOPLE, "ask about an owner", "commands.ask", "search"),
    "list": Entry(PEOPLE, "all memories of an owner", "commands.ask", "list_memories"),
    "show": Entry(PEOPLE, "one memory, in full", "commands.ask", "show"),
    "why": Entry(PEOPLE, "how a memory came to be", "commands.explain", "why"),
    "add": Entry(PEOPLE, "a memory, directly", "commands.ask", "add"),
    "export": Entry(PEOPLE, "all of an owner, as JSON", "commands.export", "export"),
    "forget": Entry(PEOPLE, "erase a memory, for good", "commands.explain", "forget"),
}
"""Summaries of at most 28 characters: two headings stand side by side on 80 columns."""


def plain_app(**options: Any) -> typer.Typer:
    """A Typer app whose help is plain text: rich takes half a second to load."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=options.pop("add_completion", False),
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def _load(entry: Entry) -> Any:
    found: Callable[..., Any] | typer.Typer = getattr(import_module(f"cli.{entry.module}"), entry.target)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    alone.command(context_settings={"help_option_names": ["-h", "--help"]})(found)
    return typer.main.get_command(alone)


class Root(TyperGroup):
    """The commands by their headings, loaded when called; errors as one line that says what to do."""

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the help."""
        del ctx
        return list(COMMANDS)

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = _load(entry)
        command.name = cmd_name
        return command

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As ever, but without loading all commands to suggest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--config` may stand anywhere before a `--`."""
        return super().parse_args(ctx, _config_first(args))

    @override
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One screen of 80 columns and 24 lines: the headings side by side."""
        del ctx
        columns = [
            [heading, *(f"  {name:<8} {entry.summary}" for name, entry in COMMANDS.items() if entry.heading == heading)]
            for heading in (OPERATORS, PEOPLE)
        ]
        lines = [f"{left:<40}{right}".rstrip() for left, right in zip_longest(*columns, fillvalue="")]
        formatter.write("\n".join((*_HEAD, *lines, *_FOOT)) + "\n")

    @override
    def invoke(self, ctx: Any) -> Any:
        """Run the command; what goes wrong becomes a line on stderr and an exit code."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            failure = explain(error)
            if failure is None:
                raise
            typer.echo(failure.message, err=True)
            raise typer.Exit(failure.exit_code) from None


_HEAD: Final = (
    "mnemo: long-term memory for AI agents, made from the stream of conversation",
    "",
    "Usage: mnemo [--config FILE] COMMAND …     `mnemo COMMAND --help` tells more",
    "",
)
_FOOT: Final = (
    "",
    "Settings come from MNEMO_… in the environment, then from --config FILE (TOML).",
    "--json gives the RPC's JSON. Exit codes: 1 failed, 2 usage, 3 unavailable.",
    "--version, --install-completion, --show-completion",
)


def _config_first(args: list[str]) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    for place, argument in enumerate(args[:end]):
        if argument.startswith("--config="):
            return [argument, *args[:place], *args[place + 1 :]]
        if argument == "--config" and place + 1 < end:
            return [*args[place : place + 2], *args[:place], *args[place + 2 :]]
    return args


app = plain_app(cls=Root, add_completion=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mnemo {version('mnemostream')}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings as TOML; the environment wins.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Long-term memory for AI agents, made from the stream of conversation."""
    del version
    ctx.obj = Invocation(config=config)


def main() -> None:
    """The entry point of `mnemo`."""
    app(prog_name="mnemo")


if __name__ == "__main__":
    main()

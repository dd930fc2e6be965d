"""Tools for developers."""

from pathlib import Path
from typing import Annotated

import typer

dev = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@dev.callback()
def _dev() -> None:
    """Tools for developers."""


@dev.command("model-server")
def model_server(
    host: Annotated[str, typer.Option(help="What to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one (printed).", min=0, max=65535)] = 0,
    latency: Annotated[float, typer.Option(help="Seconds that reading turns takes.", min=0)] = 0.0,
    embedding_latency: Annotated[float, typer.Option(help="Seconds that embedding takes.", min=0)] = 0.0,
) -> None:
    """A scripted model server that speaks OpenAI's wire format: one line of JSON says where it is."""
    import uvloop

    from cli.dev.model_server import Behaviour, run

    behaviour = Behaviour(latency_seconds=latency, embedding_latency_seconds=embedding_latency)
    uvloop.run(run(host, port, behaviour))


@dev.command("settings-docs")
def settings_docs() -> None:
    """The page docs/settings.md, from the code."""
    from runtime.reference import settings_markdown

    typer.echo(settings_markdown(), nl=False)


@dev.command("schemas")
def topic_schemas(
    folder: Annotated[Path, typer.Argument(help="Where to write them: docs/schemas.", file_okay=False, exists=True)],
) -> None:
    """The JSON Schemas of the topics, from the code."""
    from cli.dev.schemas import write

    for path in write(folder):
        typer.echo(path)

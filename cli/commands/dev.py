"""Tools for developers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

dev = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@dev.callback()
def _dev() -> None:
    """Tools for developers."""


@dev.command("model-server")
def model_server(
    host: Annotated[str, typer.Option(help="What to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one (printed).", min=0, max=65535)] = 0,
    latency: Annotated[float, typer.Option(help="Seconds that a chat or a message takes.", min=0)] = 0.0,
    embedding_latency: Annotated[float, typer.Option(help="Seconds that embedding takes.", min=0)] = 0.0,
    knows: Annotated[
        Literal["json_schema", "json_object", "nothing"], typer.Option(help="The forms of answer that it takes.")
    ] = "json_schema",
) -> None:
    """A scripted model server that speaks OpenAI's and Anthropic's wire formats: one line of JSON says where it is.

    It says what the texts that it is asked about tell it to say. POST /control changes what it does while it runs, by
    a JSON object:

    mode: answer, error, garbage, truncated, invalid, foreign (numbers that were not offered), empty, refuse, hang,
    disconnect; with rate (a share of the calls), calls (so many), endpoints (chat, embeddings, messages).

    status, message, code, param, retry_after: of mode error.

    latency_seconds, embedding_latency_seconds, knows, wraps (nothing, fence, prose), refuses (parameters), script (one
    answer for all calls, or a list of the next ones), dimensions, key, reset.

    GET /stats counts calls and tokens, together and by endpoint.
    """
    import uvloop

    from cli.dev.model_server import Behaviour, run

    behaviour = Behaviour(latency_seconds=latency, embedding_latency_seconds=embedding_latency, knows=knows)
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

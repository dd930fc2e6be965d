"""`mnemo up` and `mnemo down`: the whole system on this machine."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.context import Invocation
from cli.output import print_json, say, transfer

if TYPE_CHECKING:
    from cli.embedded.state import State
    from cli.embedded.system import UpOptions
    from runtime.settings import Settings

_STOP_TIMEOUT_SECONDS: Final = 150.0
"""Worker and query drain, then Kafka and Postgres stop: their own limits add up to less."""

DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="Where it keeps everything; else MNEMO_DATA_DIR.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]


def up(
    ctx: typer.Context,
    data_dir: DataDirOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="In the background; returns when ready.")] = False,
    app: Annotated[str, typer.Option(help="The application that gets a key.")] = "default",
    kafka: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Use this Kafka.")] = None,
    postgres: Annotated[str | None, typer.Option(metavar="DSN", help="Use this Postgres.")] = None,
    model_provider: Annotated[str | None, typer.Option(help="local, openai or anthropic.")] = None,
    openai_api_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Selects openai. Better: OPENAI_API_KEY and --model-provider.")
    ] = None,
    openai_base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Selects openai: any server that speaks its protocol.")
    ] = None,
    kafka_jars: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Kafka's jars are here; nothing is downloaded.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start all of it on this machine: Kafka, Postgres, worker and query service. Ctrl-C stops it.

    Everything is on loopback and in one directory, and still there the next time. Keys that merely lie in the
    environment are not used.
    """
    settings = _settings(ctx, model_provider, openai_api_key, openai_base_url)
    options = _options(settings, data_dir, app=app, kafka=kafka, postgres=postgres, kafka_jars=kafka_jars)
    _fetch_visibly(options)
    if detach:
        from cli.embedded.background import start_in_background

        say(f"Starting in the background; the log is {options.data_dir / 'logs' / 'up.log'}")
        _show(start_in_background(options), settings, as_json=as_json, detached=True)
        return
    from cli.embedded.system import run_system

    run_system(options, say, lambda state: _show(state, settings, as_json=as_json, detached=False))


def down(ctx: typer.Context, data_dir: DataDirOption = None) -> None:
    """Stop the system that `mnemo up` started. What it stored stays."""
    from cli.embedded.errors import ServerFailed
    from cli.embedded.processes import wait_until
    from cli.embedded.state import default_data_dir, forget_state, read_state, read_supervisor

    directory = data_dir or _configured_data_dir(ctx) or default_data_dir()
    supervisor, state = read_supervisor(directory), read_state(directory)
    if supervisor is None:
        typer.echo(f"nothing runs from {directory}")
        return
    what = ", ".join(state.processes) if state else "what was about to start"
    say(f"Stopping {what}")
    supervisor.send(signal.SIGTERM)
    if not wait_until(lambda: not supervisor.is_alive(), _STOP_TIMEOUT_SECONDS):
        supervisor.send(signal.SIGKILL)
        forget_state(directory)
        raise ServerFailed(
            f"it did not stop within {_STOP_TIMEOUT_SECONDS:g} s and was killed; {directory / 'logs'} may tell why. "
            "Nothing stored is lost"
        )
    typer.echo(f"stopped {what}; what it stored stays in {directory}")


def _configured_data_dir(ctx: typer.Context) -> Path | None:
    """That of the file given by `--config`. Without one no setting is read: a wrong one must not keep it running."""
    from runtime.settings import load_settings

    invocation = ctx.find_object(Invocation) or Invocation()
    return None if invocation.config is None else load_settings(config=invocation.config).data_dir


def _settings(
    ctx: typer.Context, model_provider: str | None, openai_api_key: str | None, openai_base_url: str | None
) -> "Settings":
    """Those of the environment and the file, with the model that was asked for."""
    from providers.assembly import check_models
    from runtime.settings import load_settings

    if model_provider is None and (openai_api_key or openai_base_url):
        model_provider = "openai"
    invocation = ctx.find_object(Invocation) or Invocation()
    given: dict[str, Any] = {
        "model_provider": model_provider,
        "openai_api_key": openai_api_key,
        "openai_base_url": openai_base_url,
    }
    settings = load_settings(config=invocation.config, **given)
    check_models(settings)
    return settings


def _options(settings: "Settings", data_dir: Path | None, **given: Any) -> "UpOptions":
    from cli.embedded.environment import settings_to_pass_on
    from cli.embedded.state import default_data_dir
    from cli.embedded.system import UpOptions

    return UpOptions(
        data_dir=(data_dir or settings.data_dir or default_data_dir()).absolute(),
        settings=settings_to_pass_on(settings, with_kafka=given["kafka"] is not None),
        query_port=settings.query_port,
        grpc_port=settings.grpc_port,
        **given,
    )


def _fetch_visibly(options: "UpOptions") -> None:
    """Before anything is started, so that somebody sees the progress."""
    from cli.embedded.jars import ensure_jars

    if options.kafka is None and options.kafka_jars is None:
        with transfer() as progress:
            ensure_jars(progress=progress)


def _show(state: "State", settings: "Settings", *, as_json: bool, detached: bool) -> None:
    """Where it is, how to reach it, and what it is not."""
    if as_json:
        print_json(public_state(state))
        return
    for line in summary(state, settings, detached=detached):
        typer.echo(line)


def public_state(state: "State") -> dict[str, Any]:
    """What scripts need, in the names of the RPC's JSON. Without secrets: the key is in a file."""
    return {
        "url": state.url,
        "grpcAddress": state.grpc_address,
        "kafkaBootstrapServers": state.kafka_bootstrap_servers,
        "app": state.app,
        "keyFile": str(state.key_file),
        "dataDir": str(state.data_dir),
        "logs": str(state.logs),
        "opsUrls": dict(state.ops_urls),
        "pid": state.supervisor.pid,
        "notes": list(state.notes),
    }


def summary(state: "State", settings: "Settings", *, detached: bool) -> list[str]:
    """For a person, line by line."""
    from cli.embedded.state import default_data_dir

    postgres = state.postgres_dsn if "postgres" in state.processes else "yours"
    kafka = state.kafka_bootstrap_servers + ("" if "kafka" in state.processes else ", yours")
    at = "" if state.data_dir == default_data_dir().absolute() else f"export MNEMO_DATA_DIR={state.data_dir}"
    limits = "one machine, one broker, no replication, no backup: for trying and developing, not for production."
    extractor = "The local extractor is a set of rules: it understands English statements in the first person only."
    return [
        "Mnemostream is ready.",
        "",
        f"  query service  {state.url}, gRPC on {state.grpc_address}",
        f"  Kafka          {kafka}, turns go to {settings.topic_prefix}turns.v1",
        f"  Postgres       {postgres}",
        f"  API key        {state.key_file}, of the app {state.app}",
        f"  data           {state.data_dir}",
        f"  logs           {state.logs}",
        *(f"  note           {note}" for note in state.notes),
        "",
        "Try it" + (" (in another terminal):" if not detached else ":"),
        *([f"  {at}"] if at else []),
        f'  mnemo publish --app {state.app} --owner ana --text "I moved to Lisbon last week."',
        '  mnemo search --owner ana "where does Ana live?"',
        f"  curl -s {state.url}/mnemostream.v1.MemoryService/Search \\",
        f'    -H "Authorization: Bearer $(cat {state.key_file})" -H "Content-Type: application/json" \\',
        """    -d '{"owner": "ana", "query": "where does Ana live?"}'""",
        "",
        f"What it is not: {limits}",
        *(
            [extractor, "--openai-base-url or --model-provider openai give it a model."]
            if settings.model_provider == "local"
            else []
        ),
        "",
        "`mnemo down` stops it; everything is still there after the next `mnemo up`."
        if detached
        else "Ctrl-C stops it; everything is still there after the next `mnemo up`.",
    ]

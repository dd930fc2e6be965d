"""What every command starts from: the settings, and a running embedded system for what they leave open."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli.failures import UsageProblem

if TYPE_CHECKING:
    from cli.rpc import Endpoint
    from runtime.settings import Settings

DEFAULT_URL = "http://127.0.0.1:7600"


@dataclass(frozen=True, slots=True)
class Invocation:
    """What was given before the command."""

    config: Path | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """How to reach an embedded system that runs."""

    kafka_bootstrap_servers: str
    postgres_dsn: str
    url: str
    api_key: str
    app: str
    """Whose key it is."""


def settings_of(ctx: typer.Context, **overrides: Any) -> "Settings":
    """The settings of this process; where to find Kafka and Postgres is taken from a running embedded system where the
    settings don't say. Raises InvalidSettings."""
    from runtime.settings import load_settings

    invocation = ctx.find_object(Invocation) or Invocation()
    settings = load_settings(config=invocation.config, **overrides)
    _quiet_logs(settings.log_level)
    return with_embedded(settings, find_embedded(settings.data_dir))


def _quiet_logs(level: str) -> None:
    """What libraries log is not for a person at a terminal, who gets our own words; at DEBUG all of it, on stderr."""
    if level == "DEBUG":
        from runtime.logs import configure_logging

        configure_logging(level, stream=sys.stderr)
        return
    import logging

    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def with_embedded(settings: "Settings", embedded: Embedded | None) -> "Settings":
    """`settings` with what `embedded` knows where they are silent. Its key goes with its own address only."""
    if embedded is None:
        return settings
    given = settings.model_fields_set
    from pydantic import SecretStr

    known: dict[str, Any] = {
        "kafka_bootstrap_servers": embedded.kafka_bootstrap_servers,
        "postgres_dsn": SecretStr(embedded.postgres_dsn),
        "url": embedded.url,
    }
    missing = {name: value for name, value in known.items() if name not in given}
    url = settings.url or embedded.url
    if "api_key" not in given and url.rstrip("/") == embedded.url.rstrip("/"):
        missing["api_key"] = SecretStr(embedded.api_key)
    return settings.model_copy(update=missing)


def find_embedded(data_dir: Path | None) -> Embedded | None:
    """The embedded system that runs from `data_dir` (None: the usual place); None where none does."""
    from cli.embedded.state import read_state

    state = read_state(data_dir)
    if state is None:
        return None
    return Embedded(state.kafka_bootstrap_servers, state.postgres_dsn, state.url, state.api_key, state.app)


def app_of(settings: "Settings", app: str | None) -> str | None:
    """The app that turns are published for: the one given, else that of the embedded system where they go there."""
    if app is not None:
        return app
    embedded = find_embedded(settings.data_dir)
    same = embedded is not None and embedded.kafka_bootstrap_servers == settings.kafka_bootstrap_servers
    return embedded.app if embedded is not None and same else None


def dsn_of(settings: "Settings") -> str:
    """Where Postgres is. Raises UsageProblem when nobody said."""
    if settings.postgres_dsn is None:
        raise UsageProblem("no Postgres: set MNEMO_POSTGRES_DSN, or start an embedded one with `mnemo up`")
    return settings.postgres_dsn.get_secret_value()


def endpoint_of(settings: "Settings") -> "Endpoint":
    """Where to ask, and with which key. Raises UsageProblem without a key."""
    from cli.rpc import Endpoint

    if settings.api_key is None:
        raise UsageProblem("no API key: set MNEMO_API_KEY (`mnemo keys create` makes one), or start with `mnemo up`")
    return Endpoint(settings.url or DEFAULT_URL, settings.api_key.get_secret_value())


def owner_of(settings: "Settings") -> str:
    """Whose memories are meant. Raises UsageProblem when nobody said."""
    if settings.owner is None:
        raise UsageProblem("whose memories? Give --owner, or set MNEMO_OWNER")
    return settings.owner

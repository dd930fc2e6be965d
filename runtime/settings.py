"""The settings of all processes: one set of names, environment first, then a TOML file.

Loaded once, in a composition root, and passed down as values. `Settings(...)` itself never looks at the environment:
`load_settings` does.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

PREFIX: Final = "MNEMO_"

_FOR_TESTS: Final = "MNEMO_TEST_"
_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://", re.IGNORECASE)
_SERVICE: Final = re.compile(
    r"MNEMO(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""What Kubernetes injects for a service called `mnemo…`, but for its `_PORT`, which looks like a setting."""

_HOSTS: Final = re.compile(
    r"[a-z]+://([^/?#]*@)?(\[[^]@/?#]*\]|[^]\[:@/?#,]*)(:\d+)?(,(\[[^]@/?#]*\]|[^]\[:@/?#,]*)(:\d+)?)*([/?#]|$)"
)
"""Hosts with their ports, up to the database's name: a password with a slash in it would be taken for a port."""

_Port = Annotated[int, Field(ge=0, le=65535)]
_Share = Annotated[float, Field(ge=-1, le=1)]
_Positive = Annotated[float, Field(gt=0)]
_Count = Annotated[int, Field(ge=1)]


_DEFAULT_MODELS: Final = {"local": "gpt-5-mini", "openai": "gpt-5-mini", "anthropic": "claude-haiku-5-5"}
"""Small ones: reading a turn is no hard task, and every turn pays for it."""


class InvalidSettings(ValueError):
    """A setting is unknown or breaks its rule. The message names it and the rule, never the value."""


class Settings(BaseSettings):
    """Every setting, by its name in the environment without the prefix, in lower case."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    kafka_bootstrap_servers: str = Field(default="localhost:9092", pattern=r"^[^\s,]+:\d+(\s*,\s*[^\s,]+:\d+)*$")
    """Where Kafka is: `host:port`, several with commas."""
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to speak to Kafka."""
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    """Needed by the SASL protocols."""
    kafka_sasl_username: str | None = None
    """Needed by the SASL protocols."""
    kafka_sasl_password: SecretStr | None = None
    """Needed by the SASL protocols."""
    kafka_ssl_cafile: Path | None = None
    """Certificates to trust, PEM; without it those of the system."""
    kafka_ssl_certfile: Path | None = None
    """The client's certificate, PEM."""
    kafka_ssl_keyfile: Path | None = None
    """The client's private key, PEM."""

    postgres_dsn: SecretStr | None = None
    """`postgresql://user:password@host:5432/database`. Needed by worker, query, migrate, and by operators' commands
    (apps, keys, parked, replay, verify)."""
    postgres_pool_size: _Count = 8
    """Connections a process holds at most."""

    topic_prefix: str = Field(default="mnemo.", pattern=r"^[A-Za-z0-9._-]{0,100}$")
    """What the names of all topics begin with."""
    consumer_group: str = Field(default="mnemo", pattern=r"^[A-Za-z0-9._-]{1,100}$")
    """What the names of the stages' consumer groups begin with: `mnemo-extract`, `mnemo-reconcile`, `mnemo-decay`."""
    topic_partitions: _Count = 8
    """Of each topic, when it is created. Changing it later moves owners and loses their order: take a new prefix."""
    topic_replication: _Count = 1
    """Copies of each topic, when it is created."""
    topic_retention_days: _Positive = 7
    """How long turns, candidates and decay messages stay in Kafka."""
    topic_long_retention_days: _Positive = 30
    """How long changes and parked records stay in Kafka."""

    model_provider: Literal["local", "openai", "anthropic"] = "local"
    """Who reads facts out of turns and settles what is ambiguous. `local`: rules, no language model. `anthropic` needs
    the package of `pip install 'mnemostream[anthropic]'`. A key that merely lies in the environment changes nothing."""
    embedding_provider: Literal["local", "openai"] = Field(
        default_factory=lambda known: "openai" if known.get("model_provider") == "openai" else "local"
    )
    """Who embeds texts; without it the model's provider, and `local` where that has no embeddings (Anthropic)."""
    openai_api_key: SecretStr | None = None
    """Without it `OPENAI_API_KEY`, and that only when a provider is `openai`."""
    openai_base_url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """Of any server that speaks OpenAI's format. Without it `OPENAI_BASE_URL`, when a provider is `openai`."""
    anthropic_api_key: SecretStr | None = None
    """Without it `ANTHROPIC_API_KEY`, and that only when the model's provider is `anthropic`."""
    anthropic_base_url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """Of any server that speaks Anthropic's Messages API. Without it `ANTHROPIC_BASE_URL`, when the model's provider is
    `anthropic`."""
    anthropic_max_tokens: _Count = 8192
    """Of an answer; that API wants a bound. What a model thinks before it answers counts too."""
    extraction_model: str = Field(default_factory=lambda known: _DEFAULT_MODELS[known.get("model_provider", "local")])
    """The model that reads turns. Without it `gpt-5-mini` at OpenAI, `claude-haiku-5-5` at Anthropic."""
    arbitration_model: str = Field(default_factory=lambda known: _DEFAULT_MODELS[known.get("model_provider", "local")])
    """The model that settles what is ambiguous. Without it the same as for reading turns."""
    embedding_model: str | None = None
    """Without it `all-MiniLM-L6-v2` locally, `text-embedding-3-small` at OpenAI."""
    embedding_dimensions: Annotated[int, Field(ge=1, le=1280)] | None = None
    """Without it 384 locally, 512 at OpenAI."""
    auto_merge_threshold: _Share = 0.95
    """From this cosine on two statements may be one. On the scale of the embedding model, and stored with it."""
    arbitration_threshold: _Share = 0.85
    """From this cosine on two statements are compared by the arbitrator."""

    max_facts_per_turn: _Count = 5
    """The strongest are kept."""
    max_memory_bytes: Annotated[int, Field(ge=1, le=500)] = 500
    """Of UTF-8 in a memory's text."""
    max_live_memories: _Count = 1000
    """Of one owner; beyond it the weakest are evicted."""

    extraction_timeout_seconds: _Positive = 30
    """Of one model call that reads turns."""
    arbitration_timeout_seconds: _Positive = 30
    """Of one model call that settles what is ambiguous."""
    embedding_timeout_seconds: _Positive = 15
    """Of one call that embeds."""
    max_in_flight: _Count = 32
    """Windows that a stage works on at the same time."""
    max_pending_records: _Count = 32_768
    """Records that a stage holds in memory, those in work included. A partition gets as many as it leaves free, so
    one alone fills half of them, and nobody's backlog takes the room of other partitions."""
    max_pending_bytes: _Count = 32 * 1024 * 1024
    """Bytes of them, in each stage; shared in the same way."""
    max_owner_bytes: _Count = 8 * 1024 * 1024
    """Bytes of one owner's waiting records in a stage. Beyond it the owner's partition waits, which shows as lag."""
    max_window_turns: _Count = 20
    """Turns of one session that wait together and are read in one call; 1 reads each by itself."""
    drain_seconds: Annotated[float, Field(ge=0)] = 25
    """What a stopping worker has to finish what it began. Give the orchestrator's grace period a few seconds more."""

    decay_interval_seconds: _Positive = 3600
    """Between two passes of the timers."""
    turn_retention_days: Annotated[float, Field(ge=0)] = 365
    """How long the log of turns keeps what was said; 0 keeps it for good. Memories stay, and so does the note that a
    turn had its effect."""
    retention_days: Annotated[float, Field(ge=0)] = 90
    """How long what is dead is kept before it is purged; 0 keeps it for good."""

    query_host: str = "127.0.0.1"
    """What the query service's JSON, Connect and gRPC-Web port listens on."""
    query_port: _Port = 7600
    """JSON, Connect and gRPC-Web; 0 takes any free port."""
    grpc_host: str = "127.0.0.1"
    """What native gRPC listens on."""
    grpc_port: _Port = 7601
    """Native gRPC; 0 takes any free port."""
    ops_host: str = "127.0.0.1"
    """What `/healthz`, `/readyz` and `/metrics` of worker and query listen on."""
    ops_port: _Port = 7602
    """Health and metrics; 0 takes any free port."""

    url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """Of the query service, for commands that ask. Without it that of the embedded system in `MNEMO_DATA_DIR`, else
    `http://127.0.0.1:7600`."""
    api_key: SecretStr | None = None
    """For commands that ask. Without it that of the embedded system."""
    owner: str | None = Field(default=None, min_length=1, max_length=256)
    """For commands that ask, where `--owner` is not given."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """What is logged. At `DEBUG` a failing command shows where it failed."""
    data_dir: Path | None = None
    """Where the embedded system (`mnemo up`) keeps everything."""

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: `load_settings` reads the environment, so that a test needs none."""
        return (init_settings,)

    @field_validator("embedding_provider", mode="before")
    @classmethod
    def _embeds(cls, provider: object) -> object:
        if provider == "anthropic":
            raise ValueError("Anthropic has no embeddings: take local or openai")
        return provider

    @field_validator("postgres_dsn")
    @classmethod
    def _is_a_postgres_url(cls, dsn: SecretStr | None) -> SecretStr | None:
        if dsn is not None and not dsn.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql:// or postgres://")
        if dsn is not None and not _HOSTS.match(dsn.get_secret_value()):
            raise ValueError(
                "must be postgresql://user:password@host:port/database, what is special in the password as %XX"
            )
        return dsn

    @model_validator(mode="after")
    def _agree(self) -> "Settings":
        if self.arbitration_threshold > self.auto_merge_threshold:
            raise ValueError("MNEMO_ARBITRATION_THRESHOLD: must not be above MNEMO_AUTO_MERGE_THRESHOLD")
        if self.kafka_security_protocol.startswith("SASL"):
            for part in ("mechanism", "username", "password"):
                if getattr(self, f"kafka_sasl_{part}") is None:
                    raise ValueError(f"MNEMO_KAFKA_SASL_{part.upper()}: needed by this MNEMO_KAFKA_SECURITY_PROTOCOL")
        return self


def load_settings(environ: Mapping[str, str] = os.environ, config: Path | None = None, **overrides: Any) -> Settings:
    """The settings of this process: `overrides` (from the command line; None is not given), then `environ`, then the
    TOML file `config`, then the defaults. An empty string counts as unset.

    Raises InvalidSettings, with one line for each thing that is wrong.
    """
    values = _from_file(config) if config is not None else {}
    values |= _from_environment(environ)
    values |= {name: value for name, value in overrides.items() if value is not None}
    values |= _names_of_providers(values, environ)
    try:
        return Settings(**values)
    except ValidationError as error:
        raise InvalidSettings("\n".join(_complaints(error))) from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(_FOR_TESTS):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in Settings.model_fields and variable == variable.upper():
            if variable.endswith("_PORT") and _ADDRESS.match(value):
                service = variable.removesuffix("_PORT").replace("_", "-").lower()
                wrong.append(
                    f"{variable}: is an address that Kubernetes injected for the service {service}: set "
                    "enableServiceLinks: false in the pod's spec"
                )
            elif value:
                values[name] = value
        elif not (_SERVICE.fullmatch(variable) or (variable.endswith("_PORT") and _ADDRESS.match(value))):
            wrong.append(f"{variable}: no such setting{_suggestion(variable)}")
    if wrong:
        raise InvalidSettings("\n".join(sorted(wrong)))
    return values


def _from_file(config: Path) -> dict[str, Any]:
    """The values of a TOML file: names in lower case without the prefix; with it, or in capitals, is taken too."""
    try:
        table = tomllib.loads(config.read_text("utf-8"))
    except OSError as error:
        raise InvalidSettings(f"{config}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InvalidSettings(f"{config}: is not valid TOML") from None
    named = {name.lower().removeprefix(PREFIX.lower()): value for name, value in table.items()}
    unknown = sorted(name for name in table if name.lower().removeprefix(PREFIX.lower()) not in Settings.model_fields)
    if unknown:
        lines = (f"{config}: {name}: no such setting{_suggestion(PREFIX + name.upper())}" for name in unknown)
        raise InvalidSettings("\n".join(lines))
    return {name: value for name, value in named.items() if value != ""}


def _names_of_providers(values: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Keys and addresses by the names that the providers' own packages use, of those that are asked for alone."""
    asked = {values.get("model_provider"), values.get("embedding_provider")}
    names = [
        f"{provider}_{what}"
        for provider in ("openai", "anthropic")
        if provider in asked
        for what in ("api_key", "base_url")
    ]
    return {name: environ[name.upper()] for name in names if name not in values and environ.get(name.upper())}


def _complaints(error: ValidationError) -> Iterable[str]:
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        if found["type"] == "default_factory_not_called":
            continue  # its default follows another setting, which has a complaint of its own
        rule = found["msg"].removeprefix("Value error, ")
        yield f"{PREFIX}{str(found['loc'][0]).upper()}: {rule}" if found["loc"] else rule


def _suggestion(variable: str) -> str:
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    close = difflib.get_close_matches(variable, known, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def setting_default(name: str) -> str | None:
    """The default of a setting as one would write it; None where it has none of its own."""
    default = Settings.model_fields[name].default
    return None if default is None or default is PydanticUndefined else str(default)

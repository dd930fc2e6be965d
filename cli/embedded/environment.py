"""What the processes of an embedded system are told by their environment.

Theirs is the user's, without anything that would change what they do unasked: settings of other systems, and keys that
merely lie there. What is meant is added back by name.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from runtime.settings import PREFIX, Settings

_OTHERS: Final = ("MNEMO_", "OPENAI_", "AZURE_OPENAI_", "ANTHROPIC_", "PG")
_DECIDED_HERE: Final = frozenset(
    {
        *("postgres_dsn", "url", "api_key", "owner", "data_dir"),
        *("query_host", "query_port", "grpc_host", "grpc_port", "ops_host", "ops_port"),
    }
)
"""Settings that `mnemo up` itself decides."""


def clean_environment(environ: Mapping[str, str], *, with_postgres: bool) -> dict[str, str]:
    """`environ` without what is not meant for an embedded system.

    with_postgres: the user's own Postgres is used, so libpq's variables (a password, certificates) are meant.
    """
    unwanted = tuple(prefix for prefix in _OTHERS if not (with_postgres and prefix == "PG"))
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(unwanted) and not name.endswith("_API_KEY")
    }


def settings_to_pass_on(settings: Settings, *, with_kafka: bool) -> dict[str, str]:
    """The settings that somebody gave and that are the children's, as they are named in an environment.

    with_kafka: the user's own Kafka is used, so how to log in there is meant.
    """
    given = settings.model_fields_set - _DECIDED_HERE
    if not with_kafka:
        given = {name for name in given if not name.startswith("kafka_")}
    if "openai" not in (settings.model_provider, settings.embedding_provider):
        given -= {"openai_api_key", "openai_base_url"}
    if settings.model_provider != "anthropic":
        given -= {"anthropic_api_key", "anthropic_base_url"}
    return {PREFIX + name.upper(): _text(getattr(settings, name)) for name in sorted(given)}


def _text(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value.absolute())  # children run elsewhere
        case _:
            return str(value)


def import_path(environ: Mapping[str, str], package: Path) -> str:
    """PYTHONPATH for children that run elsewhere: the directory that holds `package` comes first."""
    return os.pathsep.join(filter(None, (str(package.parent), environ.get("PYTHONPATH"))))

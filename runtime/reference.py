"""The reference of the settings, from the code: `mnemo dev settings-docs > docs/settings.md`."""

import re
from typing import NamedTuple

from runtime.settings import PREFIX, Settings, setting_default

_HEAD = """# Settings

Generated from `runtime/settings.py` by `mnemo dev settings-docs`; a test says when it is stale.

The environment comes first, then a TOML file given by `--config`, then the defaults. In the file a name is written in
lower case without `MNEMO_`: `postgres_pool_size = 16`. One set of names serves all processes. An empty value counts as
unset. An unknown name is an error in both places; exempt are `MNEMO_TEST_…`, and what Kubernetes injects for services
(set `enableServiceLinks: false` all the same: a service called `mnemo-query` would set `MNEMO_QUERY_PORT`).

| name | default | what it is |
|---|---|---|
"""


class SettingDoc(NamedTuple):
    """One setting as a reader wants it: the name in the environment, the default (None: none), what it is for."""

    name: str
    default: str | None
    doc: str


def setting_docs() -> tuple[SettingDoc, ...]:
    """All settings, in the order of the code."""
    return tuple(
        SettingDoc(PREFIX + name.upper(), setting_default(name), re.sub(r"\s+", " ", field.description or ""))
        for name, field in Settings.model_fields.items()
    )


def settings_markdown() -> str:
    """The page `docs/settings.md`."""
    rows = (f"| `{name}` | {f'`{default}`' if default else '–'} | {doc} |\n" for name, default, doc in setting_docs())
    return _HEAD + "".join(rows)

"""The JSON Schemas of the topics, made from the code: `mnemo dev schemas docs/schemas` writes them."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec
from mnemostream.schema import turn_json_schema

from processors.facts import Window
from processors.feed import ChangeJson


def schemas() -> dict[str, dict[str, Any]]:
    """By topic, without its prefix. `parked.v1` has none: its values are what stood on other topics, byte for byte."""
    return {
        "turns.v1": turn_json_schema(),
        # Internal: written by extract, read by reconcile. Embeddings are little-endian float32 in base64.
        "candidates.v1": _schema("candidates.v1", Window),
        "changes.v1": _schema("changes.v1", ChangeJson),
    }


def _schema(title: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    for described in schema["$defs"].values():
        if "description" in described:
            # Python 3.13 takes the indentation out of docstrings, earlier ones leave it in.
            described["description"] = inspect.cleandoc(described["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def rendered(schema: dict[str, Any]) -> str:
    """As it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> list[Path]:
    """One file a topic; gives their paths."""
    written = []
    for topic, schema in schemas().items():
        path = folder / f"{topic}.json"
        path.write_text(rendered(schema), encoding="utf-8")
        written.append(path)
    return written

"""The JSON Schema of `turns.v1`, for producers in other languages. It is derived from the limits that the code keeps.

A schema cannot say everything: sizes in bytes, the sum over all messages, names of time zones, and that the key agrees
with the value are checked by `decoding` alone.
"""

from typing import Any

from mnemostream.decoding import APP_PATTERN, MAX_ID_CHARACTERS, MAX_MESSAGES, MAX_RECALLED
from mnemostream.fields import MAX_NAME_CHARACTERS
from mnemostream.turns import Role

_NO_CONTROL = r"^[^\u0000-\u001F\u007F-\u009F]*$"


def turn_json_schema() -> dict[str, Any]:
    """A JSON Schema (2020-12) that every valid turn fits."""
    optional_name = {"type": ["string", "null"], "maxLength": MAX_NAME_CHARACTERS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "turns.v1",
        "description": "One exchange in a session. Unknown fields are ignored, null counts as absent.",
        "type": "object",
        "required": ["id", "app", "owner", "said_at", "messages"],
        "properties": {
            "id": _identifier("string", MAX_ID_CHARACTERS),
            "app": {"type": "string", "pattern": f"^{APP_PATTERN}$"},
            "owner": _identifier("string", MAX_NAME_CHARACTERS),
            "session": _identifier(["string", "null"], MAX_NAME_CHARACTERS),
            "said_at": {"type": "string", "format": "date-time"},
            "messages": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_MESSAGES,
                "items": {
                    "type": "object",
                    "required": ["role", "content"],
                    "properties": {
                        "role": {"enum": [role.value for role in Role]},
                        "content": {"type": "string"},
                        "id": optional_name,
                        "name": optional_name,
                    },
                },
            },
            "recalled": {"type": ["array", "null"], "maxItems": MAX_RECALLED, "items": {"type": "string"}},
            "time_zone": {"type": ["string", "null"], "description": "A name of the IANA time zone database."},
            "off_record": {"type": ["boolean", "null"], "default": False},
            "metadata": {"type": ["object", "null"]},
        },
    }


def _identifier(kind: str | list[str], longest: int) -> dict[str, Any]:
    return {"type": kind, "minLength": 1, "maxLength": longest, "pattern": _NO_CONTROL}

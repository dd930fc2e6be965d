"""Whether the log of turns still has a forgotten text word for word: said, or recalled for another turn.

The text is not known any more. Its tombstone has the hash of it, normalised, with the app's key: each text of the log
that was there before is hashed like that. What says the same in other words cannot be found.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString

from processors.normalization import text_hash
from store.verification.findings import Evidence

if TYPE_CHECKING:
    from store.database import Connection

# $1 to $3 as everywhere
_OWNERS: Final[LiteralString] = """
    SELECT o.owner_key, o.app, o.owner, a.forget_key
    FROM owner AS o JOIN app AS a ON a.app = o.app
    WHERE o.owner_key > $1 AND o.owner_key <= $2 AND ($3::text IS NULL OR o.app = $3)
        AND EXISTS (SELECT 1 FROM tombstone AS t WHERE t.owner_key = o.owner_key)
    ORDER BY o.owner_key
"""

# $1 owner key
_BURIED: Final[LiteralString] = "SELECT at, text_hashes, turn_ids FROM tombstone WHERE owner_key = $1"

# What was recalled, and what the turns said that are known to have said it.
# $1 owner key, $2 turn ids, $3 before when
_TEXTS: Final[LiteralString] = """
    SELECT t.id, t.topic, t."partition", t."offset", t.recorded_at, t.recalled,
        CASE WHEN t.id = ANY ($2::text[]) THEN t.messages END AS messages
    FROM turn AS t
    WHERE t.owner_key = $1 AND t.recorded_at < $3 AND (t.recalled IS NOT NULL OR t.id = ANY ($2::text[]))
"""

_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class _Buried:
    """What an owner had forgotten."""

    key: bytes
    texts: dict[bytes, datetime]
    """By hash, when it was forgotten the last time."""

    def has(self, texts: Iterable[Any], recorded_at: datetime) -> bool:
        """Whether one of `texts`, in the log since then, was forgotten later."""
        hashes = (sha256(self.key + text_hash(text)).digest() for text in texts if isinstance(text, str))
        return any(each in self.texts and recorded_at < self.texts[each] for each in hashes)


async def left(connection: "Connection", after: int, last: int, app: str | None) -> AsyncIterator[Evidence]:
    """The turns of the log that still have a forgotten text, of the owners of a batch."""
    for owner in await connection.fetch(_OWNERS, after, last, app):
        rows = await connection.fetch(_BURIED, owner["owner_key"])
        buried = _Buried(owner["forget_key"], {})
        for row in sorted(rows, key=lambda row: row["at"]):
            buried.texts.update(dict.fromkeys(row["text_hashes"], row["at"]))
        turn_ids = list({turn_id for row in rows for turn_id in row["turn_ids"]})
        before = max(row["at"] for row in rows)
        async for turn in connection.cursor(_TEXTS, owner["owner_key"], turn_ids, before, prefetch=_AT_ONCE):
            where = {"turn": turn["id"]} | {name: turn[name] for name in ("topic", "partition", "offset")}
            said = [each.get("content") for each in _listed(turn["messages"]) if isinstance(each, dict)]
            if buried.has(said, turn["recorded_at"]):
                yield Evidence("a message of the log of turns still is what was forgotten", where, *_whose(owner))
            if buried.has(_listed(turn["recalled"]), turn["recorded_at"]):
                yield Evidence("what was recalled for a turn still says it", where, *_whose(owner))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whose(owner: Any) -> tuple[str, str]:
    return owner["app"], owner["owner"]

"""Rows as values: what several repositories read."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemostream.turns import Role

from processors.memories import Memory, Source, State
from processors.records import AppProfile, Category, Owner

if TYPE_CHECKING:
    import asyncpg


def memory_of(row: "asyncpg.Record", owner: Owner) -> Memory:
    """The memory in `row`: the columns of `Memory` by their names, `sources` as JSON."""
    return Memory(
        id=_id(row["id"]),
        app=owner.app,
        owner=owner.owner,
        session=row["session"],
        content=row["content"],
        data=row["data"],
        tags=tuple(row["tags"]),
        type=row["type"],
        category=row["category"],
        importance=row["importance"],
        confidence=_short(row["confidence"]),
        pinned=row["pinned"],
        state=State(row["state"]),
        strength=row["strength"],
        subject=row["subject"],
        attribute=row["attribute"],
        role=None if row["role"] is None else Role(row["role"]),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        recorded_at=row["recorded_at"],
        retired_at=row["retired_at"],
        retired_reason=row["retired_reason"],
        supersedes=None if row["supersedes"] is None else _id(row["supersedes"]),
        superseded_by=None if row["superseded_by"] is None else _id(row["superseded_by"]),
        restates=None if row["restates"] is None else _id(row["restates"]),
        access_count=row["access_count"],
        accessed_at=row["accessed_at"],
        confirmed_at=row["confirmed_at"],
        confirmations=row["confirmations"],
        expires_at=row["expires_at"],
        fades_at=row["fades_at"],
        version=row["version"],
        sources=sources_of(row["sources"]),
    )


def sources_of(sources: list[dict[str, Any]] | None) -> tuple[Source, ...]:
    """The sources in a JSON array of `{"turn_id", "message_index", "role", "said_at"}`."""
    return tuple(
        Source(
            source["turn_id"],
            source["message_index"],
            None if source["role"] is None else Role(source["role"]),
            datetime.fromisoformat(source["said_at"]),
        )
        for source in sources or ()
    )


def profile_of(app: Mapping[str, Any] | None) -> AppProfile:
    """The profile in a JSON object of the app's columns; the defaults for an app that has set nothing yet."""
    if app is None:
        return AppProfile()
    categories = tuple(_category(name, own) for name, own in sorted(app["categories"].items()))
    return AppProfile(app["time_zone"], app["language"], app["instructions"], categories)


def _category(name: str, own: Mapping[str, str]) -> Category:
    return Category(name, **{field: own[field] for field in ("fading", "description") if field in own})


def _id(value: UUID) -> UUID:
    """A plain UUID of the driver's own kind, which encoders do not know."""
    return UUID(bytes=value.bytes)


def _short(value: float) -> float:
    """A `real` as the decimal it was written as: 0.8, not 0.800000011920929."""
    return float(f"{value:.6g}")

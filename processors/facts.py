"""Facts read out of a window of turns, on their way from extract to reconcile: the value of `candidates.v1`."""

from datetime import datetime
from typing import Annotated

import msgspec
from mnemostream.turns import Role
from msgspec import Meta

MAX_FACT_BYTES = 500
"""Bytes of UTF-8 in a memory's text. Extraction cuts at a character; a tell refuses."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate: one self-contained statement, and where it comes from."""

    turn: Annotated[int, Meta(ge=0)]
    """Index into `Window.turns`: the one turn that it belongs to, the last that supports it."""
    text: Annotated[str, Meta(min_length=1)]
    category: str
    importance: Annotated[int, Meta(ge=1, le=10)]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    role: Role
    """Who said it."""
    said_at: datetime
    subject: str | None = None
    """Whom or what it is about (`user`, `user's sister`), normalised."""
    attribute: str | None = None
    """What about the subject it says (`home_city`), snake_case. Subject and attribute together are the slot."""
    messages: tuple[int, ...] = ()
    """Indices of the supporting messages in that turn."""
    valid_from: datetime | None = None
    """Since when it holds in the world; None: since it was said."""
    expires_at: datetime | None = None
    retracts: bool = False
    """The speaker takes this back, or asks to forget it: `text` says what is no longer to be kept."""
    embedding: bytes = b""
    """Little-endian float32, of `Window.embedding_model`."""


class WindowTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of the window: its place in the log, and its two times."""

    id: str
    topic: str
    partition: int
    offset: int
    received_at: datetime
    """When the broker took it (LogAppendTime). A replay carries the original."""
    said_at: datetime


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How the facts were read: kept with every decision about them."""

    model: str
    prompt_version: str
    tokens_in: int = 0
    tokens_out: int = 0
    latency_seconds: float = 0.0


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The record between extract and reconcile: consecutive turns of one session, in order, and what they say.

    Turns that gave nothing are in it too, so that their ledger rows are written in order.
    """

    app: str
    owner: str
    session: str | None
    turns: tuple[WindowTurn, ...]
    facts: tuple[Fact, ...] = ()
    run: int = 0
    """0: the first reading. A replay with a new prompt or model has a number of its own."""
    reading: Reading | None = None
    """None: nothing needed to be asked (small talk, off the record)."""
    embedding_model: str | None = None
    """None: no facts."""

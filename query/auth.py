"""Who calls: the bearer key decides the app. Keys are compared by their SHA-256; the key itself is never kept."""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final, Protocol
from uuid import UUID

from query.errors import PermissionDenied, Unauthenticated

KEY_PREFIX: Final = "mnk_"
TRUST: Final = timedelta(seconds=3)
"""How long a key that was found valid is believed, so that a revocation works within seconds."""
_MOST_CACHED: Final = 4096
_LONGEST_KEY: Final = 256


class Scope(StrEnum):
    """What a key may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class KnownKey(Protocol):
    """A valid key, as the store knows it."""

    @property
    def app(self) -> str:
        """The app that it belongs to."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """What it may do."""
        ...

    @property
    def id(self) -> UUID:
        """Its id."""
        ...


class Keys(Protocol):
    """The keys of the store."""

    async def authenticate(self, key_hash: bytes, /) -> KnownKey | None:
        """The valid key with this SHA-256, if there is one. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, for the length of one call."""

    app: str
    scopes: frozenset[str]
    key_id: UUID


CALLER: Final[ContextVar[Caller]] = ContextVar("caller")
"""The caller of the call that this task serves."""


class Authenticator:
    """Tells a caller by the `authorization` header."""

    def __init__(self, keys: Keys, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._believed: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()

    async def caller(self, authorization: str | None) -> Caller:
        """The caller. Raises Unauthenticated, and StoreUnavailable where the key had to be looked up."""
        key_hash = sha256(_key(authorization).encode()).digest()
        now = self._clock()
        known = self._believed.get(key_hash)
        if known is not None and now < known[1]:
            return known[0]
        self._believed.pop(key_hash, None)
        key = await self._keys.authenticate(key_hash)
        if key is None:
            raise Unauthenticated("the key is unknown, expired or revoked")
        caller = Caller(key.app, frozenset(key.scopes), key.id)
        self._believed[key_hash] = (caller, now + TRUST.total_seconds())
        if len(self._believed) > _MOST_CACHED:
            self._believed.popitem(last=False)
        return caller


def permit(caller: Caller, scope: Scope) -> None:
    """Raises PermissionDenied where the caller's key lacks `scope`."""
    if scope not in caller.scopes:
        raise PermissionDenied(f"the key lacks the scope {scope.value}")


def _key(authorization: str | None) -> str:
    if not authorization:
        raise Unauthenticated("a key is needed: Authorization: Bearer mnk_…")
    scheme, _, key = authorization.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key.startswith(KEY_PREFIX) or len(key) > _LONGEST_KEY:
        raise Unauthenticated("a key is needed: Authorization: Bearer mnk_…")
    return key

import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from store.apps import AppRepository
from store.database import Database
from store.keys import ApiKeyRepository, Key
from tests.fakes.values import id_of


async def _create(keys: ApiKeyRepository, name: str, *, app: str = "acme", expires_at: datetime | None = None) -> UUID:
    return await keys.create(
        app=app,
        key_id=id_of(name),
        key_hash=hashlib.sha256(name.encode()).digest(),
        prefix="mnk_abcd",
        name=name,
        scopes=("read", "write"),
        expires_at=expires_at,
    )


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


async def test_a_key_that_was_made_is_known_and_makes_its_app(operator: Database, query: Database) -> None:
    key_id = await _create(ApiKeyRepository(operator), "k-1")
    await _create(ApiKeyRepository(operator), "k-2")
    key = await ApiKeyRepository(query).authenticate(_hash("k-1"))
    assert key == Key(key_id, "acme", frozenset({"read", "write"}))
    assert await AppRepository(operator).list() == ("acme",)


async def test_an_unknown_a_revoked_and_an_expired_key_are_refused(operator: Database, query: Database) -> None:
    keys, service = ApiKeyRepository(operator), ApiKeyRepository(query)
    now = datetime.now(UTC)
    revoked = await _create(keys, "revoked")
    await _create(keys, "expired", expires_at=now - timedelta(seconds=1))
    await _create(keys, "expires later", expires_at=now + timedelta(days=1))
    assert await service.authenticate(_hash("revoked")) is not None
    assert await keys.revoke(revoked)
    assert not await keys.revoke(revoked)
    assert not await keys.revoke(id_of("nobody's"))
    for name in ("unknown", "revoked", "expired"):
        assert await service.authenticate(_hash(name)) is None
    assert await service.authenticate(_hash("expires later")) is not None


async def test_keys_are_listed_by_app_and_never_shown(operator: Database) -> None:
    keys = ApiKeyRepository(operator)
    for name, app in (("k-1", "acme"), ("k-2", "zeta"), ("k-3", "acme")):
        await _create(keys, name, app=app)
    await keys.revoke(id_of("k-1"))
    assert [entry.name for entry in await keys.list()] == ["k-1", "k-3", "k-2"]
    ours = await keys.list("acme")
    assert [(entry.name, entry.app, entry.prefix) for entry in ours] == [
        ("k-1", "acme", "mnk_abcd"),
        ("k-3", "acme", "mnk_abcd"),
    ]
    assert [entry.revoked_at is None for entry in ours] == [False, True]


@pytest.mark.parametrize("app", ["UPPER", "", "a b"])
async def test_an_app_s_name_keeps_its_rule(operator: Database, app: str) -> None:
    with pytest.raises(ValueError, match="name breaks its rule"):
        await _create(ApiKeyRepository(operator), "k", app=app)

import pytest

from query.auth import TRUST, Authenticator, Scope, permit
from query.errors import PermissionDenied, Unauthenticated
from tests.fakes.query import KEY, READER, FakeKeys


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_the_key_decides_the_app() -> None:
    caller = await Authenticator(FakeKeys()).caller(f"Bearer {KEY}")
    assert caller.app == "acme"


async def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert (await Authenticator(FakeKeys()).caller(f"bearer  {KEY} ")).app == "acme"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        KEY,
        f"Basic {KEY}",
        "Bearer sk_other",
        f"Bearer {KEY}x",
        "Bearer mnk_" + "x" * 500,
    ],
)
async def test_anything_else_is_nobody(header: str | None) -> None:
    with pytest.raises(Unauthenticated) as raised:
        await Authenticator(FakeKeys()).caller(header)
    assert KEY not in str(raised.value)


async def test_what_is_no_key_by_its_form_never_asks_the_store() -> None:
    keys = FakeKeys()
    with pytest.raises(Unauthenticated):
        await Authenticator(keys).caller("Bearer something")
    assert keys.asked == 0


async def test_a_good_key_is_looked_up_once_in_a_while() -> None:
    keys, clock = FakeKeys(), Clock()
    authenticator = Authenticator(keys, clock=clock)
    for _ in range(10):
        await authenticator.caller(f"Bearer {KEY}")
    assert keys.asked == 1


async def test_a_revoked_key_is_refused_within_seconds() -> None:
    keys, clock = FakeKeys(), Clock()
    authenticator = Authenticator(keys, clock=clock)
    await authenticator.caller(f"Bearer {KEY}")
    keys.revoke(KEY)
    clock.now += TRUST.total_seconds()
    assert TRUST.total_seconds() <= 5
    with pytest.raises(Unauthenticated):
        await authenticator.caller(f"Bearer {KEY}")


async def test_a_key_that_only_reads_may_not_write() -> None:
    caller = await Authenticator(FakeKeys()).caller(f"Bearer {READER}")
    permit(caller, Scope.READ)
    with pytest.raises(PermissionDenied, match="write"):
        permit(caller, Scope.WRITE)

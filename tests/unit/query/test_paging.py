from base64 import urlsafe_b64encode
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.errors import InvalidRequest
from processors.records import Owner
from processors.search import Filters
from query import paging
from tests.fakes.values import NOON, OWNER, id_of

AFTER = (NOON, str(id_of("m")))


@given(st.datetimes(timezones=st.just(UTC)), st.uuids().map(str))
def test_a_token_gives_back_its_place(recorded_at: datetime, memory_id: str) -> None:
    after = (recorded_at, memory_id)
    assert paging.position(OWNER, Filters(), paging.token(OWNER, Filters(), after)) == after


def test_an_empty_token_is_the_first_page() -> None:
    assert paging.position(OWNER, Filters(), "") is None


@pytest.mark.parametrize(
    ("owner", "filters"),
    [
        (Owner("other", OWNER.owner), Filters()),
        (Owner("acme", "user/43"), Filters()),
        (Owner("ac", "me/user/42"), Filters()),
        (OWNER, Filters(tags=("a",))),
        (OWNER, Filters(data_contains={"a": 1})),
        (OWNER, Filters(include_retired=True)),
    ],
)
def test_a_token_is_good_for_its_owner_and_filters_only(owner: Owner, filters: Filters) -> None:
    token = paging.token(OWNER, Filters(), AFTER)
    with pytest.raises(InvalidRequest) as raised:
        paging.position(owner, filters, token)
    assert raised.value.field == "pageToken"


@given(st.text(min_size=1))
def test_any_other_text_is_no_token(text: str) -> None:
    with pytest.raises(InvalidRequest):
        paging.position(OWNER, Filters(), text)


@pytest.mark.parametrize("micros", [2**63 - 1, -(2**63)])
def test_a_token_that_somebody_made_leads_out_of_no_calendar(micros: int) -> None:
    place = b"\x01" + micros.to_bytes(8, signed=True) + bytes(16)
    bound = msgspec.json.encode([*OWNER, asdict(Filters())], order="deterministic")
    made = urlsafe_b64encode(place + sha256(bound + place).digest()[:16]).decode()
    with pytest.raises(InvalidRequest):
        paging.position(OWNER, Filters(), made)


def test_no_character_of_a_token_can_be_changed() -> None:
    token = paging.token(OWNER, Filters(), AFTER)
    for index, character in enumerate(token[:-1]):  # the last one also holds bits that mean nothing
        changed = token[:index] + ("A" if character != "A" else "B") + token[index + 1 :]
        with pytest.raises(InvalidRequest):
            paging.position(OWNER, Filters(), changed)


def test_the_order_of_keys_in_a_filter_does_not_matter() -> None:
    token = paging.token(OWNER, Filters(data_contains={"a": 1, "b": 2}), AFTER)
    assert paging.position(OWNER, Filters(data_contains={"b": 2, "a": 1}), token) == AFTER

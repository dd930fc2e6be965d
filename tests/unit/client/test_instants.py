from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemostream.instants import format_instant, parse_instant

READ = [
    ("2026-11-21T10:00:00Z", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    ("2026-11-21t10:00:00z", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    ("2026-11-21T10:00:00.5Z", datetime(2026, 11, 21, 10, 0, 0, 500_000, tzinfo=UTC)),
    ("2026-11-21T10:00:00.123456789Z", datetime(2026, 11, 21, 10, 0, 0, 123_456, tzinfo=UTC)),
    ("2026-11-21T10:00:00+05:30", datetime(2026, 11, 21, 4, 30, tzinfo=UTC)),
    ("2026-11-21T23:30:00-01:00", datetime(2026, 11, 22, 0, 30, tzinfo=UTC)),
    ("2026-11-21T10:00:00-00:00", datetime(2026, 11, 21, 10, tzinfo=UTC)),
    ("2026-11-21T10:00:00+23:59", datetime(2026, 11, 20, 10, 1, tzinfo=UTC)),
    ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31T23:59:59.999999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    # Leap seconds: the two examples of RFC 3339, 5.8, and one with a fraction.
    ("1990-12-31T23:59:60Z", datetime(1990, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("1990-12-31T15:59:60-08:00", datetime(1990, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("2016-12-31T23:59:60.25Z", datetime(2016, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("2015-07-01T08:59:60+09:00", datetime(2015, 6, 30, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("9999-12-31T23:59:60Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
]

REFUSED = [
    "",
    "2026-11-21",
    "2026-11-21T10:00:00",
    "2026-11-21 10:00:00Z",
    "2026-11-21T10:00Z",
    "20261121T100000Z",
    "2026-W47-6T10:00:00Z",
    "2026-11-21T10:00:00,5Z",
    "2026-11-21T10:00:00.Z",
    "2026-11-21T10:00:00.1234567890Z",
    "2026-11-21T10:00:00+0100",
    "2026-11-21T10:00:00+01",
    "2026-11-21T10:00:00+24:00",
    "2026-11-21T10:00:00+01:60",
    "2026-11-21T10:00:00+01:00:30",
    "2026-02-30T10:00:00Z",
    "2025-02-29T10:00:00Z",
    "2026-13-01T10:00:00Z",
    "2026-00-01T10:00:00Z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T10:60:00Z",
    "2026-11-21T10:00:61Z",
    "2026-11-21T10:00:60Z",
    "2026-11-21T23:59:60Z",
    "2016-12-31T23:59:60+01:00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "1000000000-01-01T00:00:00Z",
    "+002026-11-21T10:00:00Z",
    "2026-11-21T10:00:00Z\n",
    " 2026-11-21T10:00:00Z",
    "２０２６-11-21T10:00:00Z",
    "2026-11-21T10:00:00Z2026-11-21T10:00:00Z",
    "1763719200",
    "now",
]


@pytest.mark.parametrize(("text", "instant"), READ)
def test_what_rfc_3339_allows_is_read(text: str, instant: datetime) -> None:
    read = parse_instant(text)
    assert read == instant
    assert read.tzinfo is UTC


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_instant(text)
    assert not text.strip() or text not in str(refused.value)


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11, minutes=-30))])))
def test_an_instant_comes_back_as_it_was_written(instant: datetime) -> None:
    try:
        text = format_instant(instant)
    except ValueError:
        assert instant.year in (1, 9999)
        return
    assert parse_instant(text) == instant


def test_a_date_without_an_offset_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="offset"):
        format_instant(datetime(2026, 11, 21))  # noqa: DTZ001 - the mistake under test

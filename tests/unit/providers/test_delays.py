"""What a provider's delay means."""

from datetime import UTC, datetime, timedelta

import pytest

from providers.delays import named_delay, retry_after

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("Sat, 21 Nov 2026 10:00:30 GMT", 30),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0),
        ("999999999", 3600),
        ("1e400", None),
        ("soon", None),
        ("nan", None),
    ],
)
def test_a_delay_is_read_from_seconds_or_a_date_and_bounded(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == (None if seconds is None else timedelta(seconds=seconds))


def test_milliseconds_come_before_seconds() -> None:
    assert named_delay({"retry-after-ms": "1500", "retry-after": "9"}, NOW) == timedelta(seconds=1.5)
    assert named_delay({"retry-after-ms": "soon", "retry-after": "9"}, NOW) == timedelta(seconds=9)
    assert named_delay({}, NOW) is None

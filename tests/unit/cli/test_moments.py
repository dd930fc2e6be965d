"""Points in time as an operator types them."""

from datetime import UTC, datetime

import pytest

from cli.failures import UsageProblem
from cli.moments import moment

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", datetime(2026, 11, 14, 12, tzinfo=UTC)),
        ("90m", datetime(2026, 11, 21, 10, 30, tzinfo=UTC)),
        ("2w", datetime(2026, 11, 7, 12, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 21, tzinfo=UTC)),
        ("30s", datetime(2026, 11, 21, 11, 59, 30, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T09:00:00Z", datetime(2026, 11, 1, 9, tzinfo=UTC)),
        ("2026-11-01T09:00:00.5+01:00", datetime(2026, 11, 1, 8, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_time_a_date_or_a_duration_back(text: str, expected: datetime) -> None:
    assert moment(text, "--from", now=NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7y", "-7d", "yesterday", "2026-13-01", "2026-11-01T09:00:00", "20261101T0900", "999999w"]
)
def test_what_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="--from: must be a time"):
        moment(text, "--from", now=NOW)

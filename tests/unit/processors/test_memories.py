from datetime import UTC, datetime, timedelta

from processors.memories import CLOCK_SKEW, StatementOrder

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_turn_dated_2099_stands_where_it_arrived() -> None:
    late = StatementOrder.of(said_at=datetime(2099, 1, 1, tzinfo=UTC), received_at=NOW, offset=1, ordinal=0)
    correction = StatementOrder.of(
        said_at=NOW + timedelta(hours=1), received_at=NOW + timedelta(hours=1), offset=2, ordinal=0
    )
    assert late.stated_at == NOW + CLOCK_SKEW
    assert late < correction


def test_two_statements_of_one_second_still_have_an_order() -> None:
    first = StatementOrder.of(said_at=NOW, received_at=NOW, offset=1, ordinal=0)
    assert first < StatementOrder.of(said_at=NOW, received_at=NOW, offset=1, ordinal=1)
    assert first < StatementOrder.of(said_at=NOW, received_at=NOW, offset=2, ordinal=0)


def test_imported_history_keeps_its_own_times() -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    assert StatementOrder.of(said_at=old, received_at=NOW, offset=1, ordinal=0).stated_at == old

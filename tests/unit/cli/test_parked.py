"""`mnemo parked`: which records are meant, and what is refused before anything is asked."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import Result

from cli.failures import UsageProblem
from cli.moments import moment
from cli.parked_places import filter_of, place_of, selection_of
from store.parked import ParkedFilter, ParkedPlace

Mnemo = Callable[..., Result]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("1w", NOW - timedelta(weeks=1)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T10:00:00+02:00", datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ("2026-11-20t10:00:00.5z", datetime(2026, 11, 20, 10, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_time_a_date_or_how_long_ago(text: str, meant: datetime) -> None:
    assert moment(text, "--since", now=NOW) == meant


@pytest.mark.parametrize(
    "text", ["", "2", "h", "-2h", "2 h", "2y", "999999999w", "2026-13-01", "2026-11-20T10:00:00", "yesterday", "٢h"]
)
def test_what_is_no_moment_is_a_usage_problem_that_names_the_option(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"^--since: must be a time"):
        moment(text, "--since", now=NOW)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("turns.v1/3/17", ParkedPlace("mnemo.turns.v1", 3, 17)),
        ("candidates.v1/0/0", ParkedPlace("mnemo.candidates.v1", 0, 0)),
        ("mnemo.turns.v1/3/17", ParkedPlace("mnemo.turns.v1", 3, 17)),
        ("other.turns.v1/3/17", ParkedPlace("other.turns.v1", 3, 17)),
    ],
)
def test_a_place_is_a_topic_with_or_without_its_prefix_a_partition_and_an_offset(text: str, place: ParkedPlace) -> None:
    assert place_of(text, "mnemo.") == place
    assert place_of(str(place), "mnemo.") == place


@pytest.mark.parametrize(
    "text", ["", "turns.v1", "turns.v1/1", "turns.v1/1/", "turns.v1/-1/2", "turns.v1/1/2/3", "/1/2"]
)
def test_what_is_no_place_is_a_usage_problem(text: str) -> None:
    with pytest.raises(UsageProblem, match="TOPIC/PARTITION/OFFSET"):
        place_of(text, "mnemo.")


def test_places_or_a_filter_or_all_are_named_and_only_one_of_them() -> None:
    nothing, some = ParkedFilter(), ParkedFilter(reason="model_refused")
    assert selection_of(["turns.v1/1/2", "p.turns.v1/1/2"], nothing, "p.", all_waiting=False).places == (
        ParkedPlace("p.turns.v1", 1, 2),
    )
    assert selection_of([], some, "p.", all_waiting=False).wanted == some
    assert selection_of([], nothing, "p.", all_waiting=True).places == ()
    for texts, wanted, everything in (
        ([], nothing, False),
        (["turns.v1/1/2"], some, False),
        (["turns.v1/1/2"], nothing, True),
        ([], some, True),
    ):
        with pytest.raises(UsageProblem):
            selection_of(texts, wanted, "p.", all_waiting=everything)


def test_a_filter_names_what_there_is() -> None:
    nothing = {"reason": None, "app": None, "owner": None, "stage": None, "since": None, "until": None}
    assert filter_of(**{**nothing, "reason": "id_reused", "stage": "extract"}) == ParkedFilter(
        reason="id_reused", stage="extract"
    )
    for wrong, problem in (
        ({"owner": "ana"}, "--owner: needs --app"),
        ({"reason": "boredom"}, "--reason: choose among missing_key"),
        ({"stage": "decay"}, "--stage: choose among extract, reconcile"),
        ({"until": "soon"}, "--until: must be"),
    ):
        with pytest.raises(UsageProblem, match=problem):
            filter_of(**{**nothing, **wrong})


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay",),
        ("drop",),
        ("replay", "--reason", "boredom", "--yes"),
        ("replay", "--app", "acme"),
        ("drop", "--all-waiting"),
        ("show", "somewhere"),
        ("list", "--owner", "ana"),
    ],
)
def test_a_command_that_does_not_say_enough_ends_before_anything_is_asked(
    mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", "postgresql:///nothing?host=/nowhere")
    result = mnemo("parked", *arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("mnemo: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [("list",), ("show", "turns.v1/0/1"), ("replay", "--all-waiting", "--yes"), ("drop", "turns.v1/0/1")]
)
def test_without_postgres_nothing_is_done_and_the_exit_code_is_3(
    mnemo: Mnemo, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MNEMO_POSTGRES_DSN", "postgresql:///nothing?host=/nowhere")
    result = mnemo("parked", *arguments)
    assert (result.exit_code, "Postgres is away" in result.stderr) == (3, True)

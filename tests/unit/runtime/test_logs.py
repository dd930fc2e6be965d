"""Logs: one JSON line an event, no text of anybody, and not the same line all the time."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from processors.errors import StoreUnavailable
from runtime.logs import RateLimit, configure_logging, exception_summary, rate_limited


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where logs go during a test; afterwards logging is as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    text = io.StringIO()
    configure_logging("INFO", stream=text)
    yield text
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_an_event_is_one_json_line_with_its_fields(stream: io.StringIO) -> None:
    structlog.get_logger("streams.delivery").info("turn_stored", partition=3, offset=7)
    (line,) = _lines(stream)
    assert line | {"at": None} == {
        "at": None,
        "level": "info",
        "logger": "streams.delivery",
        "event": "turn_stored",
        "partition": 3,
        "offset": 7,
    }


def test_what_is_bound_to_the_context_is_in_every_line(stream: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(topic="mnemo.turns.v1"):
        structlog.get_logger("a").info("one")
        logging.getLogger("b").warning("two")
    assert [line["topic"] for line in _lines(stream)] == ["mnemo.turns.v1"] * 2


def test_other_libraries_log_the_same_way(stream: io.StringIO) -> None:
    logging.getLogger("asyncpg").warning("lost %s connections", 2)
    (line,) = _lines(stream)
    assert (line["logger"], line["level"], line["event"]) == ("asyncpg", "warning", "lost 2 connections")


def test_the_address_of_a_model_is_not_written_with_each_call(stream: io.StringIO) -> None:
    logging.getLogger("httpx2").info('HTTP Request: POST %s "200"', "http://user:secret@models/v1")
    assert _lines(stream) == []


def test_what_is_below_the_level_is_not_written(stream: io.StringIO) -> None:
    structlog.get_logger("a").debug("no")
    logging.getLogger("aiokafka.consumer").info("no")
    assert _lines(stream) == []


def test_an_exception_of_others_is_logged_without_its_message(stream: io.StringIO) -> None:
    structlog.get_logger("a").error("failed", exc_info=_raised(ValueError("I moved to Lisbon")))
    logging.getLogger("b").error("failed", exc_info=_raised(KeyError("my password is hunter2")))
    first, second = _lines(stream)
    assert first["exception"].startswith("ValueError at runtime/test_logs.py:")
    assert second["exception"].startswith("KeyError at ")
    assert "Lisbon" not in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_an_exception_of_our_own_tree_says_its_message_and_its_cause() -> None:
    error = StoreUnavailable("Postgres is away")
    error.__cause__ = _raised(ConnectionRefusedError(111, "Connection refused"))
    summary = exception_summary(_raised(error))
    assert summary.startswith("StoreUnavailable: Postgres is away at ")
    assert "; caused by ConnectionRefusedError: [Errno 111] Connection refused at " in summary


def test_the_members_of_a_group_are_told() -> None:
    summary = exception_summary(ExceptionGroup("several", [ValueError("secret"), OSError("disk")]))
    assert "ValueError" in summary
    assert "OSError: disk" in summary
    assert "secret" not in summary


def test_a_terminal_gets_lines_for_people() -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        text = io.StringIO()
        configure_logging("INFO", stream=text, pretty=True)
        structlog.get_logger("a").info("started", port=7600)
        assert "started" in text.getvalue()
        assert not text.getvalue().startswith("{")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
        structlog.reset_defaults()


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _record(
    template: str, *arguments: object, name: str = "aiokafka.conn", level: int = logging.ERROR
) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, template, arguments, None)


def test_a_chatty_logger_says_the_same_once_in_a_period_and_how_often_it_would_have() -> None:
    clock = _Clock()
    limit = rate_limited(every_seconds=30, clock=clock)
    assert limit.filter(_record('Unable connect to "%s:%s"', "a", 1))
    assert not any(limit.filter(_record('Unable connect to "%s:%s"', "b", port)) for port in range(99))
    clock.now = 30.0
    late = _record('Unable connect to "%s:%s"', "a", 1)
    assert limit.filter(late)
    assert late.__dict__["suppressed"] == 99
    clock.now = 60.0
    later = _record('Unable connect to "%s:%s"', "a", 1)
    assert limit.filter(later)
    assert "suppressed" not in later.__dict__


def test_another_template_level_or_logger_is_another_message() -> None:
    limit = rate_limited(clock=_Clock())
    assert limit.filter(_record("one"))
    assert limit.filter(_record("two"))
    assert limit.filter(_record("one", level=logging.WARNING))
    assert limit.filter(_record("one", name="aiokafka.cluster"))


def test_numbers_written_into_a_message_make_no_other_template() -> None:
    limit = rate_limited(clock=_Clock())
    assert limit.filter(_record("node 1 is away"))
    assert not limit.filter(_record("node 23 is away"))


def test_loggers_that_are_not_chatty_are_left_alone() -> None:
    limit = rate_limited(clock=_Clock())
    assert all(limit.filter(_record("same", name=name)) for name in ("store", "store", "aiokafkax"))


def test_what_a_rate_limit_remembers_is_bounded() -> None:
    limit = RateLimit(("aiokafka",), 30, _Clock())
    for number in range(5000):
        limit.filter(_record("template " + "x" * number))
    assert len(limit._seen) <= 1000


def test_how_much_was_suppressed_is_written(stream: io.StringIO) -> None:
    handler = logging.getLogger().handlers[0]
    clock = _Clock()
    handler.filters[:] = [rate_limited(every_seconds=1, clock=clock)]
    for _ in range(3):
        logging.getLogger("aiokafka.conn").error("away")
    clock.now = 2.0
    logging.getLogger("aiokafka.conn").error("away")
    assert [line.get("suppressed") for line in _lines(stream)] == [None, 2]

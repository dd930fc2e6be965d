"""Logs: JSON lines on stdout, pretty on a terminal; a constant message plus fields.

What other libraries log through `logging` takes the same way. Exceptions are logged as their types and places; a
message only from our own tree and from the operating system, which never hold the text of a conversation.
"""

import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger
from typing_extensions import override

from processors.errors import MnemoError
from runtime.settings import InvalidSettings

CHATTY: Final = ("aiokafka", "faust", "mode", "kafka")
"""Loggers that say the same many times a second while a broker is away."""

WORDY: Final = ("httpx", "httpx2")
"""Loggers that write a line for each call of a model, with its whole address, which may hold a password."""

_SAFE_MESSAGES: Final = (MnemoError, OSError, InvalidSettings)
_MAX_TEMPLATES: Final = 1000
_NUMBERS: Final = re.compile(r"\d+")


def configure_logging(level: str = "INFO", *, stream: TextIO | None = None, pretty: bool | None = None) -> None:
    """Set up structlog and `logging` for this process. Once, in a composition root; again replaces the first.

    stream: stdout by default. pretty: for people; by default where `stream` is a terminal.
    """
    target = stream or sys.stdout
    for_people = target.isatty() if pretty is None else pretty
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(allow=["suppressed"]),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _render_exception,
    ]
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(timestamp_key="at")
        if for_people
        else structlog.processors.JSONRenderer(sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _order, renderer],
        )
    )
    handler.addFilter(rate_limited())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in (*CHATTY, *WORDY):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))
    logging.captureWarnings(capture=True)


def rate_limited(
    names: Iterable[str] = CHATTY, every_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
) -> "RateLimit":
    """A filter for a handler: of each message template of the loggers `names` and below, one per `every_seconds`."""
    return RateLimit(tuple(names), every_seconds, clock)


@dataclass(slots=True)
class _Seen:
    passed_at: float
    suppressed: int = 0


class RateLimit(logging.Filter):
    """Lets one record of a template through per period; that one says how many were suppressed before it."""

    def __init__(self, names: tuple[str, ...], every_seconds: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._names = names
        self._every_seconds = every_seconds
        self._clock = clock
        self._seen: OrderedDict[tuple[str, int, str], _Seen] = OrderedDict()

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether `record` is written. Numbers in a template are no difference."""
        if not any(record.name == name or record.name.startswith(f"{name}.") for name in self._names):
            return True
        key = (record.name, record.levelno, _NUMBERS.sub("0", str(record.msg)))
        now = self._clock()
        seen = self._seen.get(key)
        if seen is not None and now - seen.passed_at < self._every_seconds:
            seen.suppressed += 1
            return False
        if seen is not None and seen.suppressed:
            record.suppressed = seen.suppressed
        self._seen[key] = _Seen(now)
        self._seen.move_to_end(key)
        if len(self._seen) > _MAX_TEMPLATES:
            self._seen.popitem(last=False)
        return True


def exception_summary(error: BaseException) -> str:
    """`error` and what caused it: types, places in the code, and a message where it cannot hold anybody's text."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 10:  # a chain of exceptions may be a ring
        name = type(current).__qualname__
        message = f": {current}" if isinstance(current, _SAFE_MESSAGES) else ""
        parts.append(f"{name}{message} at {' > '.join(_places(current.__traceback__)) or 'no place'}")
        if isinstance(current, BaseExceptionGroup):
            parts.extend(exception_summary(inner) for inner in current.exceptions[:3])
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "; caused by ".join(parts)


def _places(traceback: TracebackType | None, limit: int = 12) -> list[str]:
    places: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{Path(code.co_filename).parent.name}/{Path(code.co_filename).name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return places[-limit:]


def _render_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    info = event.pop("exc_info", None)
    error = info[1] if isinstance(info, tuple) else sys.exc_info()[1] if info is True else info
    if isinstance(error, BaseException):
        event["exception"] = exception_summary(error)
    return event


def _order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """What a reader looks for first, first."""
    first: dict[str, Any] = {name: event[name] for name in ("at", "level", "logger", "event") if name in event}
    return first | dict(event)

"""What a person is told when a command fails, and with which exit code: one table."""

import os
import traceback
from typing import Final, NamedTuple

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3


class Failure(NamedTuple):
    """A line (or a few) for stderr, and the exit code."""

    message: str
    exit_code: int


class CommandFailed(Exception):
    """A command cannot do what it was asked; the message says what to do."""

    exit_code = FAILED


class UsageProblem(CommandFailed):
    """Something needed was not given."""

    exit_code = USAGE


class NotAvailable(CommandFailed):
    """What the command needs is away."""

    exit_code = UNAVAILABLE


def explain(error: Exception) -> Failure | None:
    """What to say and to exit with; None for what the command line's own machinery handles (usage, `| head`)."""
    if _is_of_the_command_line(error) or isinstance(error, BrokenPipeError):
        return None
    if os.environ.get("MNEMO_LOG_LEVEL") == "DEBUG":
        return Failure("".join(traceback.format_exception(error)).rstrip(), _exit_code(error))
    return Failure(f"mnemo: {_message(error)}", _exit_code(error))


def _is_of_the_command_line(error: Exception) -> bool:
    return any(base.__module__.startswith(("typer.", "click.")) for base in type(error).__mro__)


def _exit_code(error: Exception) -> int:
    from mnemostream.errors import BrokerUnavailable, InvalidTurn

    from processors.errors import InvalidRequest, Unavailable
    from runtime.settings import InvalidSettings

    match error:
        case CommandFailed():
            return error.exit_code
        case InvalidSettings() | InvalidRequest() | InvalidTurn():
            return USAGE
        case Unavailable() | BrokerUnavailable() | ConnectionError() | TimeoutError():
            return UNAVAILABLE
        case _:
            return FAILED


def _message(error: Exception) -> str:
    from mnemostream.errors import MnemoClientError

    from cli.embedded.errors import EmbeddedError
    from processors.errors import MnemoError
    from runtime.settings import InvalidSettings

    match error:
        case InvalidSettings():
            return "the settings are not right\n" + "\n".join(f"  {line}" for line in str(error).splitlines())
        case CommandFailed() | MnemoError() | MnemoClientError() | EmbeddedError() | OSError():
            return str(error)
        case ModuleNotFoundError():
            return f"the part {error.name} is not installed"
        case _:
            name = type(error).__name__
            return f"an error that should not happen ({name}); MNEMO_LOG_LEVEL=DEBUG shows where, please report it"

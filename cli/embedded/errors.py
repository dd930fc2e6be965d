"""What can go wrong with the embedded runtime.

    EmbeddedError
    ├── FetchFailed        a download failed or is not what the lock says
    ├── AlreadyRunning     the data directory is in use by another process
    ├── UnusableDirectory  the data directory cannot be used by the user that has to
    └── ServerFailed       a server, or a command of it, ended or was not ready in time

Every message is written for the person at the terminal.
"""


class EmbeddedError(Exception):
    """Base of all."""


class FetchFailed(EmbeddedError):
    """Trying again may help, unless the message says that a file is not the locked one."""


class AlreadyRunning(EmbeddedError):
    """Stop the other one first."""


class UnusableDirectory(EmbeddedError):
    """The message says what to choose instead."""


class ServerFailed(EmbeddedError):
    """The message ends with the end of its log."""

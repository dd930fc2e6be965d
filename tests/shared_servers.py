"""One Kafka and one Postgres for all processes of a distributed test session (`pytest -n 3`).

The controlling process keeps them: a worker that needs one asks over a socket, the first to ask has it started, and
all go on until the session ends. A worker that crashes takes nothing down with it.
"""

import contextlib
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from threading import Thread

from tests import services

Servers = Mapping[str, Callable[[], AbstractContextManager[str]]]

SERVERS: Servers = {"kafka": services.kafka, "postgres": services.postgres}


@dataclass(frozen=True, slots=True)
class Door:
    """Where to ask, and the word that lets one in."""

    address: str
    key: bytes

    def ask(self, name: str) -> str:
        """The address of the running server `name`."""
        with Client(self.address, authkey=self.key) as connection:
            connection.send(name)
            started, answer = connection.recv()
        if not started:
            raise RuntimeError(f"{name} could not be started: {answer}")
        return str(answer)


class Keeper:
    """Starts what is asked for, once, and stops it in `close`.

    All of it happens in one thread: the servers end with the thread that started them, should it die.
    """

    def __init__(self, servers: Servers = SERVERS) -> None:
        self._servers = servers
        key = secrets.token_bytes(16)
        self._listener = Listener(family="AF_UNIX", authkey=key)
        self.door = Door(str(self._listener.address), key)
        self._thread = Thread(target=self._serve, name="shared-servers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the servers. Nobody may ask any more."""
        with Client(self.door.address, authkey=self.door.key) as connection:
            connection.send(None)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with ExitStack() as running:
            addresses: dict[str, str] = {}
            while True:
                # Whoever asked may have been killed before it heard the answer.
                with contextlib.suppress(OSError, EOFError, AuthenticationError), self._listener.accept() as connection:
                    if (name := connection.recv()) is None:
                        return
                    try:
                        if name not in addresses:
                            addresses[name] = running.enter_context(self._servers[name]())
                        answer = (True, addresses[name])
                    except Exception as error:  # noqa: BLE001 -- the tests of whoever asked fail with it
                        answer = (False, f"{type(error).__name__}: {error}")
                    connection.send(answer)

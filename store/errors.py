"""Which errors mean that Postgres is away: the one table, so that callers see StoreUnavailable and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from processors.errors import StoreUnavailable

_AWAY: Final = (
    OSError,  # refused, reset, no such host or socket; TimeoutError is one
    asyncpg.PostgresConnectionError,  # class 08
    asyncpg.OperatorInterventionError,  # class 57: shut down, starting up, cancelled
    asyncpg.InsufficientResourcesError,  # class 53: disk, memory, connections
    asyncpg.TransactionRollbackError,  # class 40: the same again may succeed
    asyncpg.PostgresSystemError,  # class 58: a file could not be read or written
    asyncpg.ReadOnlySQLTransactionError,  # a standby, until it is promoted
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.InvalidCachedStatementError,  # the schema moved under a prepared statement: it is prepared anew
    asyncpg.InternalClientError,  # the driver's own state: the server's farewell met a statement on its way
)

_REFUSED: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,  # class 28: the password, or pg_hba.conf
    asyncpg.InvalidCatalogNameError,  # no such database
)
"""Postgres answers and lets nobody in. Only an operator mends it, but no turn is to blame: all have to wait."""

_CLOSED: Final = ("connection is closed", "connection has been released", "pool is clos")
"""What an InterfaceError of asyncpg says where the connection went away (the pool takes a dead one back while it is in
use). The others are faults of the caller."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreUnavailable in place of what means that Postgres is away; everything else passes."""
    try:
        yield
    except _AWAY as error:
        raise StoreUnavailable(f"Postgres is away ({type(error).__name__})") from error
    except _REFUSED as error:
        raise StoreUnavailable(
            f"Postgres refuses the connection ({type(error).__name__}): check MNEMO_POSTGRES_DSN"
        ) from error
    except asyncpg.InterfaceError as error:
        if any(sign in str(error) for sign in _CLOSED):
            raise StoreUnavailable("Postgres is away (the connection was closed)") from error
        raise


@contextmanager
def connecting() -> Iterator[None]:
    """As `translated`, around the making of a connection: whatever Postgres says then, no turn is to blame for it."""
    with translated():
        try:
            yield
        except (*_AWAY, *_REFUSED):
            raise
        except asyncpg.PostgresError as error:  # "is not currently accepting connections" is of class 55
            raise StoreUnavailable(f"Postgres refuses the connection ({type(error).__name__})") from error

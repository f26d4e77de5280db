"""Exclusive access to a vote database: only one service may write to it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine

from wisecrowd.errors import InputError, WisecrowdError
from wisecrowd.service.database import mask_password

#: Key of the advisory lock in PostgreSQL; an arbitrary constant that all versions share.
ADVISORY_LOCK_KEY = 7319862
#: Seconds between two attempts to connect to a database that is starting.
RETRY_SECONDS = 0.5
#: Reasons for which a server that can be reached refuses a connection for the moment. The driver has no code for them.
_TEMPORARY_REASONS = (
    "starting up",
    "shutting down",
    "recovery",
    "not accepting connections",
    "not yet accepting",
    "too many",
)
#: First bytes of every SQLite database.
_SQLITE_HEADER = b"SQLite format 3\0"

OnWait: TypeAlias = Callable[[str], None]


#: SQLSTATE of connections that the server ends: administrator, crash, starting, database dropped, idle.
_SHUTDOWN_STATES = ("57P01", "57P02", "57P03", "57P04", "57P05")


class DatabaseDisconnected(WisecrowdError):
    """The connection to the database is lost; whether the last transaction was stored is unknown.

    Examples
    --------
    >>> issubclass(DatabaseDisconnected, WisecrowdError)
    True
    """


class SqliteWriter:
    """Lock file beside an SQLite database.

    Parameters
    ----------
    engine : sqlalchemy.engine.Engine
        Engine of the database.
    url : str
        Name of the database in messages.

    Attributes
    ----------
    path : pathlib.Path
        SQLite file.

    Raises
    ------
    InputError
        If the file is no database, cannot be written, or another service writes to it.
    """

    def __init__(self, engine: Engine, url: str) -> None:
        import filelock

        self.engine = engine
        self.path = Path(str(engine.url.database)).resolve()  # several names may lead to one file
        _check_sqlite_file(self.path, url)
        self._lock = filelock.FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(_explain_second_writer(url)) from None
        except OSError as error:
            raise InputError(f"{url} cannot be written: {error.strerror}") from None

    def ensure_connected(self) -> bool:
        """Return whether the connection had to be opened again, which never happens with a file.

        Returns
        -------
        bool
            False.
        """
        return False

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction.

        Yields
        ------
        sqlalchemy.engine.Connection
            Connection in a transaction.
        """
        with self.engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Release the lock."""
        self._lock.release()


class PostgresWriter:
    """Connection to PostgreSQL that holds an advisory lock and makes all changes.

    The lock ends with the connection. Because the same connection writes, nothing can be written without the lock.

    Parameters
    ----------
    engine : sqlalchemy.engine.Engine
        Engine of the database.
    url : str
        Name of the database in messages.
    wait_seconds : float
        Time for which a database that cannot be reached is waited for.
    on_wait : callable, default=None
        Called with a message when the database cannot be reached at once.

    Raises
    ------
    InputError
        If another service writes to the database.
    """

    def __init__(self, engine: Engine, url: str, wait_seconds: float, on_wait: OnWait | None = None) -> None:
        self.engine, self.url = engine, url
        self._connection: Connection | None = None
        end = time.monotonic() + wait_seconds
        has_told = False
        while self._connection is None:
            try:
                self.ensure_connected()
            except sql.exc.OperationalError as error:
                reason = str(error.orig)
                is_refused = "FATAL" in reason and not any(cause in reason for cause in _TEMPORARY_REASONS)
                if is_refused or time.monotonic() >= end:  # waiting cures neither a wrong password nor a wrong name
                    raise
                if on_wait is not None and not has_told:
                    on_wait(f"Waiting for {mask_password(url)}: {reason.splitlines()[0]}")
                    has_told = True
                time.sleep(RETRY_SECONDS)

    def ensure_connected(self) -> bool:
        """Connect and take the lock if the connection is lost.

        Returns
        -------
        bool
            Whether the connection had to be opened again.

        Raises
        ------
        InputError
            If another service has taken the lock meanwhile.
        """
        if self._connection is not None:
            return False
        connection = self.engine.connect()
        try:
            is_locked = connection.scalar(sql.text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK_KEY})"))
            connection.commit()
        except BaseException:
            connection.invalidate()
            raise
        if not is_locked:
            connection.close()
            raise InputError(_explain_second_writer(self.url))
        self._connection = connection
        return True

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction.

        Yields
        ------
        sqlalchemy.engine.Connection
            Connection in a transaction.

        Raises
        ------
        DatabaseDisconnected
            If the connection is lost.
        """
        connection = self._connection
        if connection is None:
            raise DatabaseDisconnected("the connection to the database is lost")
        try:
            with connection.begin():
                yield connection
        except sql.exc.DBAPIError as error:
            if not (error.connection_invalidated or _is_shutdown(error)):
                raise
            self.close()
            raise DatabaseDisconnected(str(error.orig).splitlines()[0]) from error

    def close(self) -> None:
        """Close the connection, which releases the lock."""
        if self._connection is not None:
            self._connection.invalidate()  # a pooled connection would keep the lock
            self._connection.close()
            self._connection = None


def _is_shutdown(error: sql.exc.DBAPIError) -> bool:
    """Return whether the server ended the connection; the driver may not have seen the end of it yet."""
    return str(getattr(error.orig, "sqlstate", None) or "").startswith(_SHUTDOWN_STATES)


def create_writer(
    engine: Engine, url: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> SqliteWriter | PostgresWriter:
    """Take exclusive write access to a database.

    Parameters
    ----------
    engine : sqlalchemy.engine.Engine
        Engine of the database.
    url : str
        Name of the database in messages.
    wait_seconds : float, default=0.0
        Time for which a PostgreSQL database that cannot be reached is waited for.
    on_wait : callable, default=None
        Called with a message when the database cannot be reached at once.

    Returns
    -------
    SqliteWriter or PostgresWriter
        Writer.

    Raises
    ------
    InputError
        If another service writes to the database.
    """
    if engine.dialect.name == "sqlite":
        return SqliteWriter(engine, url)
    return PostgresWriter(engine, url, wait_seconds, on_wait)


def _explain_second_writer(url: str) -> str:
    return f"another wisecrowd serve writes to {mask_password(url)}; stop it first, or use its address"


def _check_sqlite_file(path: Path, url: str) -> None:
    """Refuse a file that is no database before anything is created beside it; only the owner may read a new one."""
    if path.is_dir():
        raise InputError(f"{url} is a folder; name a file, for example {Path(url) / 'votes.db'}")
    if not path.parent.is_dir():
        raise InputError(f"{url} cannot be written: the folder {path.parent} does not exist; create it first")
    try:
        if not path.exists():
            path.touch(mode=0o600)
            Path(f"{path}.sequence").unlink(missing_ok=True)  # of a database that was deleted
        elif path.stat().st_nlink > 1:
            raise InputError(f"{url} has several hard links, with which SQLite may lose votes; use a copy of it")
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError as error:
        raise InputError(f"{url} cannot be written: {error.strerror}") from None
    if header and header != _SQLITE_HEADER:
        if Path(f"{path}.sequence").exists():  # it was one
            raise InputError(explain_damage(url, "its first page is not that of a database"))
        raise InputError(
            f"{url} is not a database and was not changed; name a new file. To import the votes in it: "
            f"wisecrowd serve votes.db --from {url}"
        )


def explain_damage(url: str, problem: str) -> str:
    """Return the message for a damaged database.

    Parameters
    ----------
    url : str
        Database.
    problem : str
        First problem.

    Returns
    -------
    str
        Message that says what to do.

    Examples
    --------
    >>> explain_damage("votes.db", "page 7 is never used").startswith("the database votes.db is damaged")
    True
    """
    name = mask_password(url)
    if "://" in url:
        return f"the database {name} is damaged: {problem}. Restore a backup of it"
    return (
        f"the database {name} is damaged: {problem}. Nothing was changed. Restore a backup of {name} and {name}-wal, or copy "
        f"the votes that can still be read: wisecrowd database recover {name} recovered.db"
    )

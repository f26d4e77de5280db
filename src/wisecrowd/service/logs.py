"""Logs of the service as lines of JSON, without secrets.

Logs have counts, durations and messages of errors. They have no names of tasks, workers or classes, and no requests.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

#: Loggers whose messages are written: the service, and errors of the HTTP server.
LOGGERS = {"wisecrowd.service": logging.INFO, "uvicorn.error": logging.ERROR}
#: Text in place of a secret.
MASK = "***"
#: Shortest secret that is masked; shorter ones would mask words.
MIN_SECRET_CHARACTERS = 4


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record as one line of JSON, and masks secrets in it.

    Parameters
    ----------
    secrets : iterable of str, default=()
        Texts that must not appear.

    Examples
    --------
    >>> record = logging.LogRecord("wisecrowd.service", logging.INFO, "", 0, "started", (), None)
    >>> record.fields = {"n_votes": 7, "address": "http://host/?token=open sesame"}
    >>> line = json.loads(JsonFormatter(["open sesame"]).format(record))
    >>> line["message"], line["n_votes"], line["address"]
    ('started', 7, 'http://host/?token=***')
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        # As JSON spells them, longest first, because one may contain another.
        spelled = {json.dumps(secret)[1:-1] for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
        self.secrets = sorted(spelled, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record.

        Parameters
        ----------
        record : logging.LogRecord
            Record; its attribute ``fields`` has further values.

        Returns
        -------
        str
            JSON object without line breaks.
        """
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            entry["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        line = json.dumps(entry, default=str)
        for secret in self.secrets:
            line = line.replace(secret, MASK)
        return line


@contextlib.contextmanager
def write_warnings_only() -> Iterator[None]:
    """Leave out what the service logs in the ordinary course while a block runs, for people at a terminal.

    Yields
    ------
    None

    Examples
    --------
    >>> with write_warnings_only():
    ...     logging.getLogger("wisecrowd.service").isEnabledFor(logging.INFO)
    False
    """
    logger = logging.getLogger("wisecrowd.service")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def write_json_logs(secrets: Iterable[str] = (), stream: TextIO | None = None) -> Iterator[None]:
    """Write the logs of the service as JSON lines while a block runs.

    Parameters
    ----------
    secrets : iterable of str, default=()
        Texts that must not appear, such as the token and the password of the database.
    stream : text file, default=None
        File to write to; standard error by default.

    Yields
    ------
    None

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> with write_json_logs(stream=stream):
    ...     logging.getLogger("wisecrowd.service").info("started", extra={"fields": {"port": 8765}})
    >>> json.loads(stream.getvalue())["port"]
    8765
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter(secrets))
    before: list[tuple[logging.Logger, int, bool]] = []
    for name, level in LOGGERS.items():
        logger = logging.getLogger(name)
        before.append((logger, logger.level, logger.propagate))
        logger.setLevel(level)
        logger.propagate = False
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level, propagate in before:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate

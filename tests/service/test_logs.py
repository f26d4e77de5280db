"""Logs as JSON lines, without secrets."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from wisecrowd.service.logs import JsonFormatter, write_json_logs

TOKEN = 'tok"en-of-sixteen-\\-or-more'


def log(**options: Any) -> logging.LogRecord:
    record = logging.LogRecord("wisecrowd.service", logging.ERROR, "", 0, options.pop("message", "m"), (), None)
    record.fields = options
    return record


def test_lines_are_objects_with_time_and_level() -> None:
    entry = json.loads(JsonFormatter().format(log(message="two\nlines", n=3, name="grüße")))
    assert entry["level"] == "error"
    assert entry["message"] == "two\nlines"
    assert (entry["n"], entry["name"]) == (3, "grüße")
    assert entry["time"].endswith("+00:00")
    assert "\n" not in JsonFormatter().format(log(message="two\nlines"))


def test_secrets_are_masked_wherever_they_are() -> None:
    formatter = JsonFormatter([TOKEN, "p@ss", "", "a"])
    try:
        raise ValueError(f"the token is {TOKEN}")
    except ValueError as error:
        record = log(message=f"token {TOKEN}", url="postgresql://me:p@ss@host", **{"x": {"deep": [TOKEN]}})
        record.exc_info = (type(error), error, error.__traceback__)
    line = formatter.format(record)
    entry = json.loads(line)
    assert TOKEN not in json.dumps(entry)
    assert TOKEN not in entry["message"]
    assert "p@ss" not in line
    assert "the token is ***" in entry["traceback"]
    assert "message" in line, "short secrets do not mask words"


def test_loggers_are_as_before_afterwards() -> None:
    logger = logging.getLogger("wisecrowd.service")
    before = (logger.level, logger.propagate, list(logger.handlers))
    stream = io.StringIO()
    with write_json_logs([TOKEN], stream):
        logging.getLogger("wisecrowd.service.coordinator").info("started")
        logging.getLogger("uvicorn.error").info("not an error")
        logging.getLogger("uvicorn.error").error("an error")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["started", "an error"]
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_a_service_logs_what_happens_but_not_who_votes(
    service: Any, votes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("wisecrowd.service.coordinator.SLOW_COMMIT_SECONDS", 0.0)
    with write_json_logs(["a-token-of-sixteen-or-more"], stream):
        service.post("/votes", {"question": "secret-q", "task": "secret-t", "worker": "secret-w", "label": "secret-l"})
        service.post("/votes", votes)
        service.post("/refit", question="votes")
        service.log_in()
        service.coordinator.close()
    entries = [json.loads(line) for line in stream.getvalue().splitlines()]
    messages = [entry["message"] for entry in entries]
    assert messages.count("a transaction was slow") == 2
    assert messages.count("a fit or calibration has ended") == 2
    assert messages[-2:] == ["the service stops", "the service has stopped"]
    assert entries[-1]["n_events"] == len(votes) + 1
    assert entries[-1]["n_waiting"] == 0
    assert "secret" not in stream.getvalue()
    assert "a-token" not in stream.getvalue()

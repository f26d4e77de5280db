"""``wisecrowd serve`` as a program: what it acknowledged survives a kill, and it says what is wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wisecrowd.cli import build_app

TOKEN = "a-token-of-sixteen-or-more"


class Running:
    """The program, on a port of its own."""

    def __init__(self, database: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "wisecrowd", "serve", str(database), "--port", self.address.rsplit(":", 1)[1]]
        environment = {**os.environ, "WISECROWD_TOKEN": TOKEN}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while True:
            try:
                self.ask("/health")
                return
            except OSError:
                assert self.process.poll() is None, self.process.communicate()[1]
                assert time.monotonic() < end
                time.sleep(0.05)

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Running]]:
    """Start the program; it ends with the test."""
    started: list[Running] = []

    def one() -> Running:
        started.append(Running(tmp_path / "votes.db"))
        return started[-1]

    yield one
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def test_what_was_acknowledged_survives_a_kill(start: Callable[[], Running]) -> None:
    service = start()
    sure: list[int] = []

    def send(first: int) -> None:
        for n in range(first, 100_000, 4):
            try:
                service.ask("/votes", {"id": n, "task": n // 3, "worker": f"w{n % 3}", "label": "x" if n % 5 else "y"})
            except OSError:
                return
            sure.append(n)

    threads = [threading.Thread(target=send, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    while len(sure) < 60:
        time.sleep(0.01)
    service.process.send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join()
    again = start()
    kept = again.ask("/questions")[0]["n_votes"]
    assert len(sure) <= kept <= len(sure) + 4  # what was not acknowledged may be there, too
    again.ask(
        "/votes", [{"id": n, "task": n // 3, "worker": f"w{n % 3}", "label": "x" if n % 5 else "y"} for n in sure]
    )
    assert again.ask("/questions")[0]["n_votes"] == kept


def test_it_ends_when_it_is_asked_to(start: Callable[[], Running]) -> None:
    service = start()
    service.ask("/votes", {"task": "t1", "worker": "ann", "label": "x"})
    service.process.send_signal(signal.SIGINT)
    _, said = service.process.communicate(timeout=30)
    assert "Traceback" not in said
    assert TOKEN not in said
    assert "votes; method" in said
    with pytest.raises(urllib.error.URLError):
        service.ask("/health")


def test_two_do_not_share_a_database(start: Callable[[], Running], tmp_path: Path) -> None:
    start()
    told = CliRunner().invoke(build_app(), ["serve", str(tmp_path / "votes.db"), "--port", "0"])
    assert told.exit_code == 1
    assert "another wisecrowd serve writes to" in told.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "unencrypted"),
        (["--method", "majority-vote"], "cannot be updated vote by vote"),
        (["--method", "dawid-skeene"], "Did you mean 'dawid-skene'?"),
        (["--target", "95"], "must be a probability above 0, such as 0.95"),
        (["--token-file", "nowhere"], "cannot be read from nowhere"),
    ],
)
def test_bad_usage(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(build_app(), ["serve", "votes.db", *words])
    assert told.exit_code in (1, 2)
    assert said in told.stderr
    assert not (tmp_path / "votes.db").exists()


def test_short_tokens_and_used_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WISECROWD_TOKEN", "short")
    told = CliRunner().invoke(build_app(), ["serve", "votes.db"])
    assert told.exit_code == 2
    assert "16 or more" in told.stderr
    assert "short" not in told.stderr
    monkeypatch.setenv("WISECROWD_TOKEN", TOKEN)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        told = CliRunner().invoke(build_app(), ["serve", "votes.db", "--port", str(other.getsockname()[1])])
    assert told.exit_code == 1
    assert "choose another one with --port" in told.stderr

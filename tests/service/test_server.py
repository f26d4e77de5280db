"""``wisecrowd serve`` as a program."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
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
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.store import Store

TOKEN = "a-token-of-sixteen-or-more"


class Running:
    """The running program on a free port."""

    def __init__(self, database: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "wisecrowd", "serve", str(database), "--port", self.address.rsplit(":", 1)[1]]
        command += options
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
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Return a function that starts the program; the test ends it."""
    started: list[Running] = []

    def one(*options: str) -> Running:
        started.append(Running(tmp_path / "votes.db", *options))
        return started[-1]

    yield one
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.mark.slow
def test_acknowledged_votes_survive_a_kill(start: Callable[[], Running]) -> None:
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
    n_stored = again.ask("/questions")[0]["n_votes"]
    assert len(sure) <= n_stored <= len(sure) + 4  # votes without an acknowledgement may be stored
    again.ask(
        "/votes", [{"id": n, "task": n // 3, "worker": f"w{n % 3}", "label": "x" if n % 5 else "y"} for n in sure]
    )
    assert again.ask("/questions")[0]["n_votes"] == n_stored


@pytest.mark.slow
def test_interrupt_ends_the_program(start: Callable[[], Running]) -> None:
    service = start()
    service.ask("/votes", {"task": "t1", "worker": "ann", "label": "x"})
    service.process.send_signal(signal.SIGINT)
    _, message = service.process.communicate(timeout=30)
    assert "Traceback" not in message
    assert TOKEN not in message
    assert "votes; method" in message
    with pytest.raises(urllib.error.URLError):
        service.ask("/health")


@pytest.mark.slow
def test_termination_under_load_answers_what_is_running_and_loses_nothing(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    service = start("--log-format", "json")
    acknowledged: list[int] = []
    unanswered: list[str] = []

    def send(first: int) -> None:
        for n in range(first, first + 10_000):
            try:
                service.ask("/votes", {"id": f"v{n}", "task": n // 5, "worker": f"w{n % 5}", "label": "xy"[n % 2]})
                acknowledged.append(n)
            except urllib.error.HTTPError as error:  # the service is going down and says so
                unanswered.append(str(error.code))
                return
            except OSError as error:
                unanswered.append(str(error))
                return

    clients = [threading.Thread(target=send, args=(10_000 * client,)) for client in range(4)]
    for client in clients:
        client.start()
    while len(acknowledged) < 50:
        time.sleep(0.01)
    service.process.send_signal(signal.SIGTERM)
    _, message = service.process.communicate(timeout=60)
    for client in clients:
        client.join()
    assert service.process.returncode == 0, message
    # A connection that waits to be accepted when the service ends is reset by the system.
    known = ("refused", "reset", "closed connection", "Broken pipe", "503")
    assert all(any(part in reason for part in known) for reason in unanswered), unanswered
    with contextlib.closing(sqlite3.connect(tmp_path / "votes.db")) as connection:
        stored = {json.loads(source[3:])[1] for (source,) in connection.execute("SELECT source FROM records")}
    assert {f"v{n}" for n in acknowledged} <= stored
    assert len(stored) <= len(acknowledged) + len(clients), "every request but those in flight was answered"
    entries = [json.loads(line) for line in message.splitlines()]
    assert [entries[0]["message"], entries[-1]["message"]] == ["the service starts", "the service has stopped"]
    assert entries[-1]["n_waiting"] == 0
    assert TOKEN not in message


@pytest.mark.slow
def test_interrupt_from_a_terminal_ends_the_children_quietly(start: Callable[[], Running]) -> None:
    """Ctrl-C reaches all processes of the terminal."""
    service = start()
    service.ask("/votes", [{"task": n // 3, "worker": f"w{n % 3}", "label": "xy"[n % 2]} for n in range(30)])
    service.ask("/refit", {})
    children = _list_children(service.process.pid)
    assert len(children) >= 2  # the process of the fits and the tracker of semaphores
    for process in (*children, service.process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)
    _, message = service.process.communicate(timeout=60)
    assert service.process.returncode == 0
    assert "Traceback" not in message
    assert "leaked" not in message


@pytest.mark.slow
def test_no_semaphores_leak_if_the_program_is_stopped_while_it_starts(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    store.apply([Upsert(f"id:{n}", (VoteRecord("mood", f"t{n // 3}", f"w{n % 3}", "good"),)) for n in range(30)])
    store.close()
    command = [sys.executable, "-m", "wisecrowd", "serve", str(tmp_path / "votes.db"), "--port", "0"]
    environment = {**os.environ, "WISECROWD_TOKEN": TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while len(_list_children(process.pid)) < 2:  # the process that fits the stored votes has not started
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, message = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, message
    assert message == ""


def _list_children(process: int) -> list[int]:
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("the system does not list the children of a process")
    files = Path(f"/proc/{process}/task").glob("*/children")  # a child belongs to the thread that started it
    return [int(number) for path in files for number in path.read_text().split()]


@pytest.mark.slow
def test_second_service_on_a_database_is_refused(start: Callable[[], Running], tmp_path: Path) -> None:
    start()
    result = CliRunner().invoke(build_app(), ["serve", str(tmp_path / "votes.db"), "--port", "0"])
    assert result.exit_code == 1
    assert "another wisecrowd serve writes to" in result.stderr

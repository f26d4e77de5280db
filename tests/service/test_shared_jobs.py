"""Fits and reports that clients share and leave."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from wisecrowd.service.coordinator import Coordinator, ServiceBusy
from wisecrowd.service.shared_jobs import SharedJob

TOKEN = "a-token-of-sixteen-or-more"


class ManualProcess:
    """Background process whose jobs end when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.cancelled: list[Future[Any]] = []
        self.processes: list[Any] = []
        self._lock = threading.RLock()

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        job: Future[Any] = Future()
        job.set_running_or_notify_cancel()
        self.jobs.append((job, lambda: function(*arguments)))
        return job

    def cancel(self, job: Future[Any]) -> None:
        with self._lock:
            if not job.done():
                job.set_exception(RuntimeError("cancelled"))
            self.cancelled.append(job)

    def finish(self, n: int, result: Any = None) -> None:
        job, run = self.jobs[n]
        with self._lock:
            if not job.done():
                job.set_result(run() if result is None else result)

    def terminate(self) -> None:
        for job, _ in self.jobs:
            if not job.done():
                job.set_exception(RuntimeError("terminated"))


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.01)


@pytest.fixture
def process(service: Any, monkeypatch: pytest.MonkeyPatch) -> ManualProcess:
    """Return the process of all jobs of the service, which has some votes."""
    votes = [{"task": f"t{n // 3}", "worker": f"w{n % 3}", "label": "good" if n % 4 else "bad"} for n in range(30)]
    service.post("/votes", votes)
    manual = ManualProcess()
    for name in ("_fit_process", "_calibration_process", "_report_process"):
        monkeypatch.setattr(service.coordinator, name, manual)
    return manual


@pytest.fixture
def arrivals(service: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of requests that have joined a job; a request arrives some time after it was sent."""
    names: list[str] = []

    def record(name: str) -> None:
        start = getattr(service.coordinator, name)

        def wrapped(*arguments: Any) -> Any:
            job = start(*arguments)
            names.append(name)
            return job

        monkeypatch.setattr(service.coordinator, name, wrapped)

    record("start_refit")
    record("start_report")
    return names


class Peer:
    """A client that sends a request and may leave before the response."""

    def __init__(self, address: str, method: str, path: str) -> None:
        host, port = address.removeprefix("http://").rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n"
        self.socket.sendall(head.encode())

    def read(self) -> tuple[int, bytes]:
        with self.socket.makefile("rb") as file:
            status = int(file.readline().split()[1])
            length = 0
            while (line := file.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            return status, file.read(length)


@pytest.fixture
def address(service: Any, run_server: Any, process: ManualProcess) -> Iterator[str]:
    del process
    with run_server(service.app) as address:
        yield address


@pytest.mark.slow
def test_waiting_clients_share_a_fit_and_reads_go_on(address: str, process: ManualProcess, service: Any) -> None:
    clients = [Peer(address, "POST", "/refit") for _ in range(60)]  # more than there are threads for reads
    wait_for(lambda: process.jobs)
    for path in ("/questions", "/consensus"):
        reader = Peer(address, "GET", path)
        assert reader.read()[0] == 200
        reader.socket.close()
    process.finish(0)  # the calibration
    wait_for(lambda: len(process.jobs) > 1)
    process.finish(1)  # the fit; clients that came later find all votes covered
    for client in clients:
        status, body = client.read()
        assert (status, json.loads(body)["is_current"]) == (200, True)
        client.socket.close()
    assert len(process.jobs) == 2
    assert service.coordinator.question().fit.n_votes == 30


def test_fit_is_cancelled_when_the_last_client_leaves(
    address: str, process: ManualProcess, arrivals: list[str]
) -> None:
    clients = [Peer(address, "POST", "/refit") for _ in range(2)]
    wait_for(lambda: len(arrivals) == 2 and process.jobs)
    clients[0].socket.close()
    clients[1].socket.close()
    wait_for(lambda: process.cancelled)
    again = Peer(address, "POST", "/refit")
    # The second client may have a fit of its own, which waited for the first and is cancelled later.
    while not select.select([again.socket], [], [], 0.01)[0]:
        for n in range(len(process.jobs)):
            process.finish(n)
    assert again.read()[0] == 200
    again.socket.close()


def test_report_is_shared_and_cancelled(address: str, process: ManualProcess, arrivals: list[str]) -> None:
    first, second = Peer(address, "GET", "/report"), Peer(address, "GET", "/report")
    wait_for(lambda: len(arrivals) == 2)
    first.socket.close()
    process.finish(0, "<p>report</p>")
    assert second.read() == (200, b"<p>report</p>")
    second.socket.close()
    assert len(process.jobs) == 1
    third = Peer(address, "GET", "/report")
    wait_for(lambda: len(process.jobs) > 1)
    third.socket.close()
    wait_for(lambda: process.cancelled)


def test_reports_on_many_questions_are_refused(service: Any, process: ManualProcess) -> None:
    coordinator: Coordinator = service.coordinator
    service.post("/votes", [{"question": f"q{n}", "task": "t", "worker": "w", "label": "x"} for n in range(9)])
    jobs = [coordinator.start_report(f"q{n}") for n in range(8)]
    with pytest.raises(ServiceBusy, match="try again in a minute"):
        coordinator.start_report("q8")
    assert service.ask("GET", "/report", params={"question": "q8"}).status_code == 503
    process.finish(0, "done")
    assert coordinator.start_report("q8") is not jobs[0]


def test_client_that_waits_when_the_server_stops_gets_an_answer(service: Any, process: ManualProcess) -> None:
    async def stop_while_waiting() -> Any:
        transport = httpx.ASGITransport(app=service.app)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
            request = asyncio.ensure_future(client.post("/refit"))
            while not process.jobs:
                await asyncio.sleep(0.01)
            request.cancel()  # as the server does with requests that outlast its patience
            return await request

    response = asyncio.run(stop_while_waiting())
    assert response.status_code == 503
    assert "shutting down" in response.json()["detail"]


def test_job_that_has_ended_is_not_abandoned() -> None:
    calls: list[str] = []
    job: SharedJob[int] = SharedJob(lambda: calls.append("abandoned"))
    assert job.join()
    job.future.set_result(1)
    job.leave()
    assert calls == []

"""Fixtures: a service in this process, without a network, and a PostgreSQL server on a socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc

pytest.importorskip("fastapi", reason="the extra serve is not installed")
import httpx
import sqlalchemy as sql

from wisecrowd.service import coordinator as coordinator_module
from wisecrowd.service.app import create_app
from wisecrowd.service.background_process import BackgroundProcess
from wisecrowd.service.connections import ConnectionLimits
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.database import connect
from wisecrowd.service.question_state import QuestionState
from wisecrowd.service.server import bind_socket, create_server
from wisecrowd.service.store import Store

TOKEN = "a-token-of-sixteen-or-more"


class Service:
    """Client of the application, with one request at a time."""

    def __init__(self, coordinator: Coordinator, **options: Any) -> None:
        self.coordinator = coordinator
        self.app = create_app(coordinator, TOKEN, **options)

    def ask(self, method: str, path: str, *, token: str | None = TOKEN, **more: Any) -> httpx.Response:
        async def one() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return await client.request(method, path, headers=headers, **more)

        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
        return asyncio.run(one())

    def log_in(self) -> dict[str, str]:
        """Open the link with the token and return the header with the cookie."""
        response = self.ask("GET", "/", token=None, params={"token": TOKEN})
        assert response.status_code == 303, response.text
        return {"Cookie": response.headers["set-cookie"].split(";")[0]}

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON answer to a GET request that must succeed."""
        response = self.ask("GET", path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, body: Any = None, **params: Any) -> Any:
        """Return the JSON answer to a POST request that must succeed."""
        response = self.ask("POST", path, json=body, params=params)
        assert response.status_code == 200, response.text
        return response.json()


class SharedProcess(BackgroundProcess):
    """Child process that outlives the service that it works for."""

    def terminate(self) -> None:
        """Keep the process for the next service."""


@pytest.fixture(scope="session")
def shared_process() -> Iterator[BackgroundProcess]:
    """Child process of all services of the session, because it takes a second to start."""
    process = SharedProcess()
    yield process
    BackgroundProcess.terminate(process)


@pytest.fixture(autouse=True)
def services_share_a_process(shared_process: BackgroundProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "BackgroundProcess", lambda: shared_process)


@contextlib.contextmanager
def _run_server(app: Any, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """Run an application in a thread and yield its URL."""
    bound_socket, address = bind_socket("127.0.0.1", 0)
    server = create_server(app, limits)
    server.config.lifespan = "off"  # the fixture closes the coordinator
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound_socket]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def run_server() -> Any:
    """Return a context manager that runs an application on a free port."""
    return _run_server


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "votes.db")


@pytest.fixture
def service(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Service that fits on request only and writes every event in its own transaction."""
    monkeypatch.setattr(coordinator_module, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(QuestionState, "fit_is_due", lambda *_: False)
    monkeypatch.setattr(QuestionState, "calibration_is_due", lambda *_: False)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    try:
        yield Service(coordinator)
    finally:
        coordinator.close()


@pytest.fixture(scope="session")
def simulated() -> Any:
    """Simulated crowd with its truth."""
    kinds = ["expert"] * 3 + ["noisy(0.7)"] * 8 + ["spammer"]
    return wc.simulate_crowd(n_tasks=80, workers=kinds, n_classes=3, votes_per_task=5, random_state=5)


@pytest.fixture(scope="session")
def votes(simulated: Any) -> list[dict[str, str]]:
    """Votes of the simulated crowd as JSON."""
    return simulated.crowd.to_frame()[["task", "worker", "label"]].sample(frac=1, random_state=0).to_dict("records")


# ---------------------------------------------------------------------- PostgreSQL


def _program(name: str) -> str | None:
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


class PostgresServer:
    """A PostgreSQL server on a socket in a folder."""

    def __init__(self, folder: str, as_user: list[str]) -> None:
        self.folder, self.as_user = folder, as_user
        self.data = str(Path(folder) / "data")
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "me")

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://me@/postgres?host={self.folder}"

    def run(self, name: str, *arguments: str) -> None:
        subprocess.run([*self.as_user, _program(name), *arguments], check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        settings = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self.run("pg_ctl", "-D", self.data, "-o", settings, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def end_connections(self) -> None:
        """End all connections of services, as a restart or an administrator does."""
        engine = connect(self.url)
        with engine.connect() as connection:
            others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            connection.execute(sql.text(f"SELECT pg_terminate_backend(pid) {others}"))
            # They end, and release their locks, some time after the request.
            end = time.monotonic() + 30
            while connection.scalar(sql.text(f"SELECT count(*) {others}")):
                connection.commit()  # a transaction sees the same activity all the time
                assert time.monotonic() < end
                time.sleep(0.01)
        engine.dispose()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """Return a running server."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    if _program("initdb") is None or _program("pg_ctl") is None:
        pytest.skip("there is no PostgreSQL here")
    # The server refuses to run as root, and Debian's package makes a user for it.
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        if as_user:
            if (
                shutil.which("setpriv") is None
                or subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode
            ):
                pytest.skip("this is root, and there is no user postgres to run a server as")
            shutil.chown(folder, "postgres")
        server = PostgresServer(folder, as_user)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """Return the URL of an empty database."""
    engine = connect(postgres.url)
    with engine.begin() as connection:  # also tables of other versions
        connection.execute(sql.text("DROP SCHEMA public CASCADE"))
        connection.execute(sql.text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres.url

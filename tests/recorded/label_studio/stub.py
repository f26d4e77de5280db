"""A small stand-in for Label Studio on loopback: it answers as the real one did when it was recorded, and stumbles when told to."""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from wisecrowd.io.tools.label_studio_server import LabelStudioClient, ServerError, Token

HERE = Path(__file__).parent
#: An access token of old, and a personal access token: the secrets that nobody may see.
LEGACY = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2"
OPTIONS = {"good", "bad", "food", "price", "staff"}


def recorded(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def jwt(kind: str, ends: float, mark: str) -> str:
    """A token of the form that Label Studio gives; nobody here checks the signature."""

    def part(told: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()

    return ".".join(
        [part({"alg": "HS256", "typ": "JWT"}), part({"token_type": kind, "exp": ends, "jti": mark}), f"{mark}-secret"]
    )


PERSONAL = jwt("refresh", 8e9, "personal")


class Studio(ThreadingHTTPServer):
    """A server whose tasks, tokens and troubles a test can set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.tasks: list[dict[str, Any]] = copy.deepcopy(recorded("tasks")["tasks"])
        self.project = recorded("project")
        self.number = int(self.project["id"])
        self.seen: list[tuple[str, str, str]] = []
        self.lent: list[str] = []
        #: Seconds for which a lent token is good.
        self.good_for = 300.0
        #: The most tasks that a page may have.
        self.most = 10_000
        #: (start of a call such as "POST /api/projects", what to do: a status, "break" before or "lose" after it is done).
        self.troubles: list[tuple[str, int | str]] = []
        self.headers: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def predictions(self, model: str = "wisecrowd") -> list[dict[str, Any]]:
        """Return the predictions of a model for all tasks."""
        return [one for task in self.tasks for one in task["predictions"] if one["model_version"].startswith(model)]

    def calls(self, start: str) -> int:
        """Return the number of calls that begin with a path."""
        return sum(f"{method} {path}".startswith(start) for method, path, _ in self.seen)

    def __exit__(self, *told: Any) -> None:
        self.shutdown()
        super().__exit__(*told)

    def handle_error(self, *_: Any) -> None:  # a connection that a test broke
        pass


class _Answering(BaseHTTPRequestHandler):
    server: Studio
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, told: Any) -> None:
        body = b"" if told is None else json.dumps(told).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **self.server.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _refuse(self, status: int, detail: str) -> None:
        self._answer(
            status, {"id": "1", "status_code": status, "version": "1.23.2", "detail": detail, "exc_info": None}
        )

    def _do(self) -> None:
        studio, parts = self.server, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        authorisation = self.headers.get("authorization") or ""
        studio.seen.append((self.command, self.path, authorisation))
        trouble = next((one for one in studio.troubles if f"{self.command} {self.path}".startswith(one[0])), None)
        if trouble is not None:
            studio.troubles.remove(trouble)
            if isinstance(trouble[1], int):
                return self._refuse(trouble[1], f"trouble {trouble[1]}")
            if trouble[1] == "break":
                return self._hang_up()
        if parts.path == "/api/version":
            return self._answer(200, recorded("version"))
        if parts.path == "/api/token/refresh/":
            if body.get("refresh") != PERSONAL:
                return self._refuse(401, "Token is invalid")
            studio.lent.append(jwt("access", time.time() + studio.good_for, f"lent-{len(studio.lent)}"))
            return self._answer(200, {"access": studio.lent[-1]})
        if authorisation not in {f"Token {LEGACY}", *(f"Bearer {token}" for token in studio.lent[-1:])}:
            return self._refuse(401, "Invalid token.")
        status, told = self._authorised(parts.path, parse_qs(parts.query), body)
        if trouble is not None and trouble[1] == "lose":
            return self._hang_up()
        return self._answer(status, told)

    do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815  # the names are Python's

    def _authorised(self, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        studio, missing = self.server, {"detail": "No Project matches the given query.", "status_code": 404}
        held = {one["id"]: (task, one) for task in studio.tasks for one in task["predictions"]}
        if path == "/api/projects/":
            return 200, {"count": 1, "results": [{"id": studio.number, "title": studio.project["title"]}]}
        if path == f"/api/projects/{studio.number}/":
            return 200, studio.project
        if path == "/api/tasks/":
            size, page = min(int(query["page_size"][0]), studio.most), int(query["page"][0])
            found = studio.tasks[(page - 1) * size : page * size]
            return (
                (200, {"total": len(studio.tasks), "tasks": found})
                if found or page == 1
                else (404, {"detail": "Invalid page."})
            )
        if path == f"/api/projects/{studio.number}/import/predictions":
            return 201, {
                "created": sum(
                    self._added(one, max(held, default=0) + place) for place, one in enumerate(body, start=1)
                )
            }
        if path.startswith("/api/predictions/"):
            task, prediction = held.get(int(path.split("/")[3]), (None, None))
            if task is None or prediction is None:
                return 404, missing
            if self.command == "DELETE":
                task["predictions"].remove(prediction)
                return 204, None
            prediction.update(body)
            return 200, prediction
        return 404, missing

    def _added(self, prediction: dict[str, Any], number: int) -> bool:
        """Like the real one: what does not fit the labelling interface is left out without a word."""
        chosen = {option for one in prediction["result"] for option in one["value"].get("choices", ())}
        if chosen - OPTIONS:
            return False
        task = next(one for one in self.server.tasks if one["id"] == prediction["task"])
        task["predictions"].append({**prediction, "id": number})
        return True


# ---------------------------------------------------------------------- for the tests


@pytest.fixture
def studio() -> Iterator[Studio]:
    with Studio() as found:
        yield found


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def connect(studio: Studio, waits: list[float]) -> Iterator[Callable[..., LabelStudioClient]]:
    """A client of the stand-in; nobody waits really."""
    with contextlib.ExitStack() as open_ones:

        def connected(token: str = LEGACY, url: str | None = None, **more: Any) -> LabelStudioClient:
            client = LabelStudioClient(url or studio.url, Token(token), wait=waits.append, **more)
            return open_ones.enter_context(client)

        yield connected


@contextlib.contextmanager
def refused(message: str, kind: type[Exception] = ServerError, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """An error that says so, and in whose words, traceback and parts no token stands."""
    with pytest.raises(kind, match=message) as caught:
        yield
    told = io.StringIO()
    traceback.print_exception(caught.value, file=told)
    text = told.getvalue() + repr(caught.value) + repr(caught.value.args)
    for secret in (LEGACY, PERSONAL, "personal-secret", *secrets):
        assert secret not in text

"""Simulated users of Label Studio, their answers, and a listener for webhooks."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx

PASSWORD = "a-word-for-this-run"


def choice(name: str, *chosen: str) -> dict[str, Any]:
    """Return the result of a choice."""
    return {
        "id": f"r-{name}",
        "from_name": name,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": list(chosen)},
    }


def answer(mood: str, topics: list[str], stars: int) -> list[dict[str, Any]]:
    """Return the results of one person for a task: up to three questions."""
    rating = {"id": "r-stars", "from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": stars}}
    return [choice("mood", mood), *([choice("topics", *topics)] if topics else []), rating]


class Person(httpx.Client):
    """User who is logged in as in a browser."""

    def __init__(self, address: str, email: str, *, new: bool) -> None:
        super().__init__(base_url=address, timeout=60, follow_redirects=True, trust_env=False)
        page = "/user/signup/" if new else "/user/login/"
        self.get(page)
        form = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        self.post(page, data=form, headers={"referer": address})
        self.headers.update({"X-CSRFToken": self.cookies["csrftoken"], "referer": address})

    def request_json(self, method: str, path: str, **more: Any) -> Any:
        """Send a request and return the JSON answer."""
        response = self.request(method, path, **more)
        if response.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        return response.json() if response.content else None


class Listener(http.server.ThreadingHTTPServer):
    """HTTP server that stores the bodies of POST requests."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Recorder)


class _Recorder(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.received.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def run_listener() -> Iterator[Listener]:
    """Run a listener on loopback inside a block."""
    with Listener() as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield listener
        listener.shutdown()

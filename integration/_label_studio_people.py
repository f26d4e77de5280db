"""People who label in Label Studio, what they say, and somebody who listens to its webhooks."""

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
    """A result that chooses."""
    return {
        "id": f"r-{name}",
        "from_name": name,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": list(chosen)},
    }


def answer(mood: str, topics: list[str], stars: int) -> list[dict[str, Any]]:
    """What one person says of a task: results to up to three questions."""
    rating = {"id": "r-stars", "from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": stars}}
    return [choice("mood", mood), *([choice("topics", *topics)] if topics else []), rating]


class Person(httpx.Client):
    """Somebody who is logged in, as in a browser."""

    def __init__(self, address: str, email: str, *, new: bool) -> None:
        super().__init__(base_url=address, timeout=60, follow_redirects=True, trust_env=False)
        page = "/user/signup/" if new else "/user/login/"
        self.get(page)
        form = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        self.post(page, data=form, headers={"referer": address})
        self.headers.update({"X-CSRFToken": self.cookies["csrftoken"], "referer": address})

    def told(self, method: str, path: str, **more: Any) -> Any:
        """What the server answers."""
        response = self.request(method, path, **more)
        if response.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        return response.json() if response.content else None


class Listener(http.server.ThreadingHTTPServer):
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Keep)


class _Keep(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.heard.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Somebody who listens on loopback."""
    with Listener() as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield listener
        listener.shutdown()

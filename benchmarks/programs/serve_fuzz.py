"""Send arbitrary requests to a service and count the answers: ``serve_fuzz.py REQUESTS SEED``. Prints figures as JSON.

Schemathesis draws valid and invalid requests from the OpenAPI description; one in ten is arbitrary JSON or bytes. Status
503 (busy) is the only server error that is allowed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

import wisecrowd as wc
from wisecrowd.service import coordinator as coordinator_module
from wisecrowd.service.app import create_app
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.store import Store

TOKEN = "a token for fuzzing".replace(" ", "-")
WORDS = [
    "id", "task", "worker", "label", "question", "time", "action", "annotation", "annotations", "project", "result", "from_name",
    "type", "value", "choices", "completed_by", "tasks", "ground_truth", "was_cancelled", "label_config",
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=6),
    max_leaves=20,
)


class Caller:
    """Client of an ASGI application without a network, one request at a time."""

    def __init__(self, app: Any) -> None:
        self.app, self.loop = app, asyncio.new_event_loop()

    def status(self, request: requests.PreparedRequest) -> int:
        """Return the status of the answer; 500 where the application raises an exception."""
        url = urlsplit(request.url or "/")
        body = request.body or b""
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method, "scheme": "http",
            "path": unquote(url.path), "raw_path": url.path.encode(), "query_string": url.query.encode(), "root_path": "",
            "headers": [(_bytes(key).lower(), _bytes(value)) for key, value in request.headers.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": _bytes(body), "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        try:
            self.loop.run_until_complete(self.app(scope, receive, send))
        except Exception:
            traceback.print_exc()
            return 500
        return statuses[0]


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")


def main(n_requests: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    count: Counter[str] = Counter()
    errors: list[str] = []
    coordinator_module.BATCH_SECONDS = 0.0  # requests are sequential, so that none can share a transaction
    coordinator = Coordinator(Store(str(Path(tempfile.mkdtemp()) / "fuzz.db")), wc.DawidSkene())
    app = create_app(coordinator, TOKEN)
    caller = Caller(app)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [operation.ok() for operation in schema.get_all_operations()]
    chance = random.Random(seed)
    started_at = time.perf_counter()

    def send(method: str, url: str, headers: dict[str, str], **more: Any) -> None:
        if chance.random() < 0.98:
            headers = {**headers, "Authorization": f"Bearer {TOKEN}"}
        try:
            request = requests.Request(method, url, headers=headers, **more).prepare()
        except (requests.RequestException, UnicodeError, ValueError):  # no client can send such a request
            return
        status = caller.status(request)
        count[str(status)] += 1
        if status >= 500 and status != 503:
            errors.append(f"{method} {request.url} {request.body!r}"[:500])
            print(f"{status}: {errors[-1]}", file=sys.stderr)

    def ask(case: Any) -> None:
        kwargs = case.as_transport_kwargs(base_url="http://service")
        kwargs = {key: kwargs[key] for key in ("params", "json", "data", "cookies") if kwargs.get(key) is not None}
        send(case.method, f"http://service{case.formatted_path}", dict(case.headers or {}), **kwargs)

    def post(pair: tuple[Any, str]) -> None:
        body = pair[0] if isinstance(pair[0], bytes) else json.dumps(pair[0]).encode()
        send("POST", f"http://service{pair[1]}", {"Content-Type": "application/json"}, data=body)

    def fuzz(strategy: Any, test: Any, n: int, turn: int) -> None:
        limits = settings(max_examples=n, deadline=None, database=None, phases=[Phase.generate],
                          suppress_health_check=list(HealthCheck))  # fmt: skip
        try:
            seeded(turn)(limits(given(strategy)(test)))()
        except Unsatisfiable:  # every input of this operation is valid
            return

    paths = st.sampled_from(["/votes", "/truth", "/tasks", "/webhooks/label-studio"])
    for turn in itertools.count(1000 * seed):
        if count.total() >= n_requests:
            break
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                fuzz(operation.as_strategy(generation_mode=mode), ask, 100, turn)
        fuzz(st.tuples(ANYTHING | st.binary(max_size=200), paths), post, 400, turn)
        print(f"{count.total():,} requests, {dict(count)}", file=sys.stderr)
    coordinator.close()
    figures = {
        "requests": count.total(),
        "seconds": time.perf_counter() - started_at,
        "answers": dict(sorted(count.items())),
    }
    print(json.dumps({**figures, "errors": len(errors), "first": errors[:5]}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""Hostile requests to the service.

    python -m tests.fuzz.service --seed 0 --cases 20000 --keep findings
    python -m tests.fuzz.service --seed 0 --case 123

A case starts a service with some votes and sends it requests whose method, path, query, headers, token or body are hostile. Valid
votes, the witnesses, are sent between them. The target ``application`` calls the application itself; ``connection`` sends damaged
bytes to a server on the loopback address. A case is a finding if

- a response has status 500, or 503 although one request is sent at a time, or does not come;
- a request without the right token gets anything but a refusal or a public page;
- something is logged as an error, such as an update or a fit that failed;
- a witness is missing, or the database is not as the service described it when it is opened again.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import functools
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest import mock
from urllib.parse import quote, unquote, urlencode

import numpy as np
from tests.fuzz import runner
from tests.fuzz.mutators import TEXTS, mutate
from tests.fuzz.runner import Target

#: File with the requests of a case, and file of its database.
REQUESTS, DATABASE = "requests.json", "votes.db"
#: Hostile requests of a case.
REQUESTS_PER_CASE = 8
TOKEN = "a-token-of-sixteen-or-more"
#: Question of the witnesses. No request names it.
WITNESS_QUESTION = "witnesses that nobody else knows"
#: Seconds on the clock after which a response counts as missing.
RESPONSE_SECONDS = 60.0
#: Seconds within which a client of the target ``connection`` must send a header or a body.
CLIENT_SECONDS = 0.5
#: Seconds without data after which a response is complete.
SILENCE_SECONDS = 0.05
#: Share of hostile requests that have the right token, because all others end at the door.
AUTHENTICATED = 0.9
#: Pages that need no token.
PUBLIC_PATHS = ("/health", "/openapi.json")

Headers = list[tuple[bytes, bytes]]


@dataclasses.dataclass
class Call:
    """A request."""

    method: str
    path: bytes
    query: bytes = b""
    body: bytes = b""
    headers: Headers = dataclasses.field(default_factory=list)
    #: The client disconnects before the body is complete.
    is_cut: bool = False

    @property
    def has_token(self) -> bool:
        """True if the request may be answered."""
        # Several headers are allowed: the service reads one of them.
        return (b"authorization", f"Bearer {TOKEN}".encode()) in self.headers or TOKEN.encode() in unquote(
            self.query.decode("latin-1")
        ).encode("utf-8", "replace")

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON."""
        fields = dataclasses.asdict(self)
        for name in ("path", "query", "body"):
            fields[name] = base64.b64encode(fields[name]).decode()
        fields["headers"] = [[part.decode("latin-1") for part in header] for header in self.headers]
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Call:
        """Return the request that was written as JSON."""
        parts = {name: base64.b64decode(fields[name]) for name in ("path", "query", "body")}
        headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in fields["headers"]]
        return cls(fields["method"], headers=headers, is_cut=fields["is_cut"], **parts)

    def to_bytes(self) -> bytes:
        """Return the request as HTTP/1.1."""
        target = self.path + (b"?" + self.query if self.query else b"")
        headers = [(b"host", b"service"), (b"content-length", str(len(self.body)).encode()), *self.headers]
        lines = [self.method.encode() + b" " + target + b" HTTP/1.1", *(b": ".join(header) for header in headers)]
        return b"\r\n".join([*lines, b"", self.body])


# ---------------------------------------------------------------------- valid requests


def _hook(action: str, **fields: Any) -> bytes:
    settings = (
        '<View><Text name="text" value="$text"/><Choices name="mood" toName="text" choice="single"><Choice value="good"/>'
        '<Choice value="bad"/></Choices><Rating name="stars" toName="text"/></View>'
    )
    project = {"id": 12, "title": "Reviews", "label_config": settings, "created_at": "2026-11-16T18:12:22.079693Z"}
    return json.dumps({"action": action, **fields, "project": project}).encode()


def _annotation(number: int, label: str, **more: Any) -> dict[str, Any]:
    results = [
        {"id": "r1", "from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}},
        {"id": "r2", "from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": 4}},
    ]
    return {
        "id": number, "task": 7, "project": 12, "completed_by": 1, "result": results, "was_cancelled": False,
        "ground_truth": False, "created_at": "2026-11-16T18:12:22.898667Z", "lead_time": 4.5, **more,
    }  # fmt: skip


def _vote(task: str, worker: str, label: Any, **more: Any) -> dict[str, Any]:
    return {"task": task, "worker": worker, "label": label, **more}


def _post(path: str, body: Any, **query: str) -> Call:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Call("POST", path.encode(), urlencode(query).encode(), data)


def _get(path: str, **query: str) -> Call:
    return Call("GET", path.encode(), urlencode(query).encode())


#: Votes that every service begins with.
FIRST_CALLS = (
    _post("/votes", [_vote(f"t{n % 5}", f"w{n // 5}", "good" if n % 3 else "bad") for n in range(20)]),
    _post("/votes", [_vote("t1", "ann", "good", question="mood", id="v1", time="2026-05-01T10:00:00Z")]),
    _post("/tasks", {"question": "mood", "tasks": ["t1", "t2", 3]}),
    _post("/webhooks/label-studio", _hook("ANNOTATION_CREATED", annotation=_annotation(5, "good"))),
)
#: Valid requests, which are made hostile.
CALLS = (
    _post("/votes", _vote("t1", "ann", "bad")),
    _post("/votes", _vote("t9", "bob", "neutral", question="mood", id="v2", time=1777629600.5)),
    _post("/votes", [_vote("t1", "ann", "bad"), _vote("t2", 4, ["a", "b"]), _vote("t3", "w1", True, id=7)]),
    Call("DELETE", b"/votes", b"question=mood&id=v1"),
    Call("DELETE", b"/votes", b"task=t1&worker=w0"),
    _post("/truth", {"task": "t1", "label": "good"}),
    _post("/truth", [{"task": "t1", "label": None}, {"task": 2, "label": "bad", "question": "mood"}]),
    _post("/tasks", {"question": "mood", "tasks": ["t7", "t8", 9]}),
    _post("/webhooks/label-studio", _hook("ANNOTATION_CREATED", annotation=_annotation(6, "bad"))),
    _post("/webhooks/label-studio", _hook("ANNOTATION_UPDATED", annotation=_annotation(5, "bad")), server=""),
    _post("/webhooks/label-studio", _hook("ANNOTATION_CREATED", annotation=_annotation(7, "bad", ground_truth=True))),
    _post("/webhooks/label-studio", _hook("ANNOTATIONS_CREATED", annotations=[_annotation(8, "good")]), server="berlin"),
    _post("/webhooks/label-studio", _hook("ANNOTATIONS_DELETED", annotations=[{"id": 5}])),
    _post("/webhooks/label-studio", _hook("TASKS_CREATED", tasks=[{"id": 7, "data": {}}, {"id": 8, "data": {}}])),
    _post("/webhooks/label-studio", _hook("TASKS_DELETED", tasks=[{"id": 8}])),
    _get("/questions"),
    _get("/consensus", question="votes", start="1", limit="3"),
    _get("/votes", question="votes", after="2", limit="5"),
    _get("/task", question="votes", task="t1"),
    _get("/workers", question="votes", start="0", limit="10"),
    _get("/next", question="votes", worker="w1", limit="5"),
    _get("/next", question="mood"),
    _get("/health"),
    _get("/openapi.json"),
    _get("/", token=TOKEN, question="votes"),
    Call("POST", b"/refit", b"question=votes"),
)  # fmt: skip


# ---------------------------------------------------------------------- hostile requests

_METHODS = (
    "PUT",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "post",
    "DELETE",
    "POST",
    "GET",
    "X" * 500,
    "G\tT",
    "",
)
_NUMBERS = (
    "-1",
    "0",
    "1e9",
    "NaN",
    "2147483648",
    "9223372036854775808",
    "1" * 5000,
    "0x10",
    "1.5",
    "",
    " 1",
    "+1",
    "١",
)
_TOKENS = (
    b"", b"Bearer", b"Bearer ", b"bearer x", b"Basic Og==", b"Bearer \xff\xfe", b"Bearer " + b"x" * 60_000,
    b"Token " + TOKEN.encode(), b"Bearer " + TOKEN[:-1].encode(), TOKEN.encode(), b"Bearer " + TOKEN.upper().encode(),
    b"Bearer \x00", b"Bearer a b c",
)  # fmt: skip
_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/plain; charset=utf-16"), (b"content-type", b"multipart/form-data"), (b"content-type", b"\xff"),
    (b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", b"-1"), (b"content-length", b"0"),
    (b"content-length", b"99999999999999999999"), (b"content-length", b"1, 2"), (b"content-length", "²".encode("latin-1")),
    (b"transfer-encoding", b"chunked"), (b"content-encoding", b"gzip"), (b"host", b""), (b"host", b"a b\x00c"), (b"host", b"[::1"),
    (b"host", b"x" * 9000), (b"host", b"a:99999999"), (b"cookie", b"=;;=" * 100), (b"cookie", b"wisecrowd=" + b"%00" * 500),
    (b"cookie", b"\xff\xfe=\xfd"), (b"origin", b"null"), (b"accept", b"\xff"), (b"range", b"bytes=0-0,-1"),
    (b"expect", b"100-continue"), (b"connection", b"upgrade"), (b"upgrade", b"websocket"), (b"x-forwarded-for", b"' OR 1=1"),
    (b"x-forwarded-proto", b"javascript"),
    (b"sec-fetch-site", b"cross-site"), (b"", b""), (b"\x00", b"\r\n\r\n"), (b"if-modified-since", b"never"),
)  # fmt: skip


def _choose(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _draw_text(rng: np.random.Generator) -> str:
    return str(_choose(rng, TEXTS + _NUMBERS))


def _change_body(call: Call, rng: np.random.Generator) -> str:
    if not call.body and rng.random() < 0.9:  # a body is ignored there
        return _change_query(call, rng)
    call.body, names = mutate(call.body or b"{}", rng, ["json", "json", "text", "bytes"])
    return f"body {', '.join(names)}"


def _change_query(call: Call, rng: np.random.Generator) -> str:
    fields = [part.split(b"=", 1) for part in call.query.split(b"&") if b"=" in part]
    choice = int(rng.integers(5))
    if choice == 0:
        call.query, names = mutate(call.query or b"question=votes", rng, ["text", "bytes"])
        call.query = call.query[:50_000]
        return f"query {', '.join(names)}"
    if choice == 1 and fields:  # a field twice, or not at all
        position = int(rng.integers(len(fields)))
        fields[position : position + 1] = [fields[position]] * int(rng.choice([0, 2, 300]))
    elif choice == 2:
        name = _choose(rng, ["question", "task", "worker", "id", "start", "limit", "after", "server", "token", "x", ""])
        fields.append([name.encode(), quote(_draw_text(rng), errors="surrogatepass").encode()])
    elif fields:
        field = fields[int(rng.integers(len(fields)))]
        field[1] = quote(_draw_text(rng), errors="surrogatepass").encode()
    call.query = b"&".join(b"=".join(field) for field in fields)[:200_000]
    return "query fields"


def _change_path(call: Call, rng: np.random.Generator) -> str:
    changes: Sequence[Callable[[bytes], bytes]] = (
        lambda path: path + b"/", lambda path: b"/" + path, lambda path: path.upper(), lambda path: path + b"/../votes",
        lambda path: path.replace(b"/", b"/./"), lambda path: path + b"%00", lambda path: path + b"%ff%fe", lambda path: b"/",
        lambda path: path.replace(b"e", b"%65"), lambda path: b"/%2e%2e/%2e%2e/etc/passwd", lambda path: b"/" + b"x" * 9000,
        lambda path: b"/docs", lambda path: b"/redoc", lambda path: b"*", lambda path: b"", lambda path: path + b";a=b",
        lambda path: b"http://other" + path, lambda path: b"/report", lambda path: path + b"%", lambda path: path + b"%zz",
    )  # fmt: skip
    call.path = _choose(rng, changes)(call.path)
    return "path"


def _change_method(call: Call, rng: np.random.Generator) -> str:
    call.method = _choose(rng, _METHODS)
    return "method"


def _change_headers(call: Call, rng: np.random.Generator) -> str:
    if rng.random() < 0.1:
        call.headers += [(f"x-{number}".encode(), b"y") for number in range(1000)]
        return "1000 headers"
    call.headers += [_choose(rng, _HEADERS) for _ in range(int(rng.integers(1, 4)))]
    return "headers"


def _cut(call: Call, rng: np.random.Generator) -> str:
    call.is_cut, call.body = True, call.body[: int(rng.integers(len(call.body) + 1))]
    return "cut"


_CHANGES = (
    _change_body,
    _change_body,
    _change_body,
    _change_query,
    _change_query,
    _change_path,
    _change_method,
    _change_headers,
    _cut,
)


def draw_call(rng: np.random.Generator) -> tuple[Call, str]:
    """Return a hostile request, and what was changed."""
    call = dataclasses.replace(_choose(rng, CALLS), headers=[])
    changes = [_choose(rng, _CHANGES)(call, rng) for _ in range(1 + int(rng.random() < 0.3))]
    if rng.random() < AUTHENTICATED:
        call.headers.append((b"authorization", f"Bearer {TOKEN}".encode()))
    elif rng.random() < 0.8:
        call.headers.append((b"authorization", _choose(rng, _TOKENS)))
        changes.append("token")
    return call, f"{call.method[:10]} {call.path[:30].decode('latin-1')!r}: {', '.join(changes)}"


def prepare_calls(folder: Path, rng: np.random.Generator) -> str:
    """Write hostile requests."""
    calls, changes = zip(*(draw_call(rng) for _ in range(REQUESTS_PER_CASE)), strict=True)
    (folder / REQUESTS).write_text(json.dumps([call.to_json() for call in calls]))
    return "; ".join(changes)


def prepare_bytes(folder: Path, rng: np.random.Generator) -> str:
    """Write streams of bytes that are nearly requests, one for each connection."""
    streams, changes = [], []
    for _ in range(REQUESTS_PER_CASE):
        call, change = draw_call(rng)
        data = call.to_bytes() * int(rng.choice([1, 1, 1, 2, 20]))
        if rng.random() < 0.8:
            data, names = mutate(data[:200_000], rng, ["text", "bytes"])
            change = f"{change}; stream {', '.join(names)}"
        streams.append(base64.b64encode(data).decode())
        changes.append(change)
    (folder / REQUESTS).write_text(json.dumps(streams))
    return "; ".join(changes)


# ---------------------------------------------------------------------- the service


class ThreadInsteadOfProcess:
    """Background process that is a thread, because a process takes a second to start and hides its errors."""

    processes: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Run a function in the thread."""
        return self._pool.submit(function, *args)

    def cancel(self, job: Future[Any]) -> None:
        """Cancel a job that has not started."""
        job.cancel()

    def terminate(self) -> None:
        """Wait for the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class _ErrorLog(logging.Handler):
    """Errors that were logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}\n{runner._format(record.exc_info[1])}"
        self.messages.append(text)

    @contextlib.contextmanager
    def attach(self, *names: str) -> Iterator[None]:
        """Collect the errors of some loggers, also of those that do not pass them on."""
        for name in names:
            logging.getLogger(name).addHandler(self)
        try:
            yield
        finally:
            for name in names:
                logging.getLogger(name).removeHandler(self)

    def check(self) -> None:
        """Raise `Finding` if there was an error."""
        if self.messages:
            raise Finding(f"{len(self.messages)} errors were logged: {self.messages[0][:5000]}")


class Finding(AssertionError):
    """Something that the service must not do."""


@contextlib.contextmanager
def run_service(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Run a service and yield its coordinator and application; raise `Finding` for errors that it logged."""
    from wisecrowd import DawidSkene
    from wisecrowd.service import coordinator as coordinator_module
    from wisecrowd.service.store import Store

    log = _ErrorLog()
    with contextlib.ExitStack() as stack:
        stack.enter_context(log.attach("wisecrowd", "asyncio"))
        stack.enter_context(mock.patch.object(coordinator_module, "BackgroundProcess", ThreadInsteadOfProcess))
        stack.enter_context(mock.patch.object(coordinator_module, "BATCH_SECONDS", 0.0))
        coordinator = coordinator_module.Coordinator(
            Store(str(folder / DATABASE), max_classes=50), DawidSkene(max_iter=20)
        )
        stack.callback(coordinator.close)
        _CURRENT.coordinator = coordinator
        yield coordinator, _create_app()
    log.check()


class _CurrentCoordinator:
    """Coordinator of the service that runs, for an application that serves one service after the other."""

    coordinator: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.coordinator, name)


_CURRENT = _CurrentCoordinator()


@functools.cache
def _create_app() -> Any:
    """Return the application of all services of this process: creating it takes as long as the rest of a case."""
    from wisecrowd.service.app import create_app

    return create_app(cast("Any", _CURRENT), TOKEN, max_bytes=500_000)


def ask(app: Any, call: Call) -> tuple[int, bytes]:
    """Return the status and the body of the response to a request."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": call.method, "scheme": "http",
        "path": unquote(call.path.decode("latin-1")), "raw_path": call.path, "query_string": call.query, "root_path": "",
        "headers": call.headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    half = len(call.body) // 2
    messages = [
        {"type": "http.request", "body": call.body[:half], "more_body": True},
        {"type": "http.request", "body": call.body[half:], "more_body": call.is_cut},
        {"type": "http.disconnect"},
    ]
    status, body = 0, b""

    async def receive() -> dict[str, Any]:
        if len(messages) == 1 and not call.is_cut:
            await asyncio.sleep(RESPONSE_SECONDS)  # the client waits for the response
        return messages.pop(0) if len(messages) > 1 else messages[0]

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = int(message["status"])
        body += message.get("body", b"")

    async def one() -> None:
        await asyncio.wait_for(app(scope, receive, send), RESPONSE_SECONDS)

    try:
        asyncio.run(one())
    except TimeoutError:
        raise runner.TooSlow(f"no response to {call.method} {call.path[:100]!r}") from None
    return status, body


def _authorize(call: Call) -> Call:
    return dataclasses.replace(call, headers=[(b"authorization", f"Bearer {TOKEN}".encode())])


def _witness(number: int) -> Call:
    return _authorize(_post("/votes", _vote(f"task {number}", "a witness", "seen", question=WITNESS_QUESTION)))


def _check_status(call: Call, status: int, body: bytes) -> None:
    text = body[:300].decode("utf-8", "replace")
    if status == 0 or status >= 500:
        raise Finding(f"{call.method} {call.path[:100]!r} got status {status}: {text}")
    is_public = unquote(call.path.decode("latin-1")) in PUBLIC_PATHS
    if not call.has_token and status < 400 and not is_public:
        raise Finding(f"{call.method} {call.path[:100]!r} got status {status} without the token: {text}")


def _read_votes(app: Any, question: str) -> list[Any]:
    votes, after = [], 0
    while True:
        status, body = ask(app, _authorize(_get("/votes", question=question, after=str(after), limit="1000")))
        if status == 404 and question == WITNESS_QUESTION:
            return []
        if status != 200:
            raise Finding(f"the votes on {question!r} cannot be read: {status} {body[:300]!r}")
        page = json.loads(body)
        votes += page["votes"]
        if page["next"] is None:
            return votes
        after = page["next"]


def _read_everything(app: Any) -> dict[str, list[Any]]:
    status, body = ask(app, _authorize(_get("/questions")))
    if status != 200:
        raise Finding(f"the questions cannot be read: {status} {body[:300]!r}")
    return {question["question"]: _read_votes(app, question["question"]) for question in json.loads(body)}


def _check_witnesses(votes: dict[str, list[Any]], n_witnesses: int) -> None:
    tasks = [vote["task"] for vote in votes.get(WITNESS_QUESTION, [])]
    if tasks != [f"task {number}" for number in range(n_witnesses)]:
        raise Finding(f"{n_witnesses} acknowledged votes were sent; the service has {tasks}")


def _send_witness(app: Any, number: int) -> None:
    status, body = ask(app, _witness(number))
    if (status, body) != (200, b'{"new":1,"changed":0,"unchanged":0}'):
        raise Finding(f"a valid vote got {status} {body[:300]!r}")


def _run_and_restart(folder: Path, attack: Callable[[Any], int]) -> None:
    """Attack a service, and check that it has all acknowledged votes before and after a restart."""
    with run_service(folder) as (_, app):
        for call in FIRST_CALLS:
            status, body = ask(app, _authorize(call))
            if status != 200:
                raise Finding(f"a valid request got {status} {body[:300]!r}")
        n_witnesses = attack(app)
        before = _read_everything(app)
        _check_witnesses(before, n_witnesses)
    with run_service(folder) as (_, app):
        after = _read_everything(app)
    if after != before:
        raise Finding("the votes differ after a restart")


def call_application(folder: Path) -> None:
    """Send the requests of a case to the application."""
    calls = [Call.from_json(fields) for fields in json.loads((folder / REQUESTS).read_text())]

    def attack(app: Any) -> int:
        for number, call in enumerate(calls):
            _check_status(call, *ask(app, call))
            _send_witness(app, number)
        return len(calls)

    _run_and_restart(folder, attack)


def send_bytes(folder: Path) -> None:
    """Send the bytes of a case to a server on the loopback address."""
    streams = [base64.b64decode(stream) for stream in json.loads((folder / REQUESTS).read_text())]

    def attack(app: Any) -> int:
        with _listen(app) as address:
            for number, stream in enumerate(streams):
                _check_response(_exchange(address, stream))
                response = _exchange(address, _witness(number).to_bytes())
                if not response.startswith(b"HTTP/1.1 200 "):
                    raise Finding(f"a valid vote got {response[:300]!r}")
        return len(streams)

    _run_and_restart(folder, attack)


def _check_response(response: bytes) -> None:
    for line in response.splitlines():
        if line.startswith(b"HTTP/1.1 5"):
            raise Finding(f"{line!r} in {response[:1000]!r}")


@contextlib.contextmanager
def _listen(app: Any) -> Iterator[tuple[str, int]]:
    """Run a server in a thread and yield its address."""
    from wisecrowd.service.connections import ConnectionLimits
    from wisecrowd.service.server import bind_socket, create_server

    bound_socket, _ = bind_socket("127.0.0.1", 0)
    limits = ConnectionLimits(header_seconds=CLIENT_SECONDS, body_seconds=CLIENT_SECONDS)
    server = create_server(app, limits)  # it removes all handlers of its loggers
    server.config.lifespan = "off"  # the service is closed by its caller
    log = _ErrorLog()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound_socket]}, daemon=True)
    with log.attach("uvicorn.error"):
        thread.start()
        deadline = time.monotonic() + RESPONSE_SECONDS
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise Finding("the server does not start")
            time.sleep(0.002)
        try:
            yield bound_socket.getsockname()
        finally:
            server.should_exit = True
            thread.join(RESPONSE_SECONDS)
            bound_socket.close()
            if thread.is_alive():
                raise runner.TooSlow("the server does not stop")
    log.check()


def _exchange(address: tuple[str, int], data: bytes) -> bytes:
    """Send bytes to a server and return what it sends until it closes the connection or is silent after a response."""
    response = b""
    with socket.create_connection(address, timeout=RESPONSE_SECONDS) as connection:
        try:
            connection.sendall(data)
            while part := connection.recv(1 << 16):
                response += part
                connection.settimeout(SILENCE_SECONDS)  # the server may wait for the next request
        except TimeoutError:
            if not response:
                raise runner.TooSlow(f"the server neither answers nor closes the connection: {data[:100]!r}") from None
        except OSError:  # the server has refused the rest
            pass
    return response


TARGETS = (
    Target("application", prepare_calls, call_application),
    Target("connection", prepare_bytes, send_bytes),
)

if __name__ == "__main__":
    runner.main("tests.fuzz.service")

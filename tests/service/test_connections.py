"""Limits of connections, attacked over sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from wisecrowd.service import connections
from wisecrowd.service.connections import ConnectionLimits, ConnectionRegistry, group_address

TOKEN = "a-token-of-sixteen-or-more"
VOTE = b'{"task": "t1", "worker": "ann", "label": "good"}'
#: Seconds after which a server that does not answer fails a test.
PATIENCE = 20.0


def request(path: str, body: bytes = b"", *, token: str | None = TOKEN, more: str = "") -> bytes:
    """Return the bytes of a request."""
    method, length = ("POST", f"Content-Length: {len(body)}\r\n") if body else ("GET", "")
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{authorization}{length}{more}\r\n".encode() + body


class Peer:
    """A connection from the other side."""

    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("http://").rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)

    def send(self, data: bytes) -> bool:
        """Send bytes and return whether the connection was still open."""
        try:
            self.socket.sendall(data)
        except ConnectionError:
            return False
        return True

    def read_response(self) -> tuple[int, Any]:
        """Return the status and the JSON body of a response."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, body = received.split(b"\r\n\r\n", 1)
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-le")
        )
        while len(body) < length:
            body += self._receive()
        return int(head.split()[1]), json.loads(body[:length])

    def ask(self, data: bytes) -> tuple[int, Any]:
        self.send(data)
        return self.read_response()

    def is_closed(self) -> bool:
        """Wait for the other side to close the connection."""
        try:
            while self._receive():
                pass
        except (ConnectionError, EOFError):
            return True
        except TimeoutError:
            return False
        return True

    def _receive(self) -> bytes:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the service closed the connection")
        return data


Connect = Callable[..., Peer]
Start = Callable[[ConnectionLimits], Connect]


@pytest.fixture
def start(service: Any, run_server: Any) -> Iterator[Start]:
    """Return a function that starts a server with limits and returns a function that connects to it."""
    with ExitStack() as stack:

        def start_server(limits: ConnectionLimits) -> Connect:
            address = stack.enter_context(run_server(service.app, limits))

            def connect() -> Peer:
                peer = Peer(address)
                stack.callback(peer.socket.close)
                return peer

            return connect

        yield start_server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check time limits often."""
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.02)
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("first", "part"),
    [
        (b"GET /health HTTP/1.1\r\nHost: x\r\nA: ", b"x" * 1000),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n" * 200),
        (b"GET /", b"x" * 1000),
        (b"", b"\r\n" * 500),
        (b"POST /votes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ", b"x" * 1000),
    ],
    ids=["value", "fields", "address", "blank lines", "trailer"],
)
def test_endless_headers_are_refused(start: Start, first: bytes, part: bytes) -> None:
    peer = start(ConnectionLimits(header_bytes=8_000))()
    peer.send(first)
    n_parts = 0
    while n_parts < 3_000 and peer.send(part):
        n_parts += 1
    assert n_parts < 3_000, "the service reads for ever"
    assert peer.is_closed()


def test_too_many_header_fields(start: Start) -> None:
    connect = start(ConnectionLimits(headers=20))
    assert connect().ask(request("/health", more="A: b\r\n" * 17))[0] == 200
    status, body = connect().ask(request("/health", more="A: b\r\n" * 19))
    assert status == 431
    assert "20 fields" in body["detail"]


def test_header_in_two_parts_is_measured_as_a_whole(start: Start) -> None:
    connect = start(ConnectionLimits(header_bytes=4_000))
    for n_bytes, expected in ((2_000, 200), (6_000, 431)):
        peer = connect()
        data = request("/health", more=f"A: {'x' * n_bytes}\r\n")
        peer.send(data[:1_500])
        assert connect().ask(request("/health"))[0] == 200  # the server has read the first part
        peer.send(data[1_500:4_500])
        assert connect().ask(request("/health"))[0] == 200
        peer.send(data[4_500:])
        assert peer.read_response()[0] == expected


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "half",
    [b"", b"GET /health HTTP/1.1\r\nHost:", request("/votes", VOTE)[:-10], request("/votes", VOTE, token=None)[:-10]],
    ids=["nothing", "header", "body", "body without token"],
)
def test_half_sent_requests_are_closed(start: Start, half: bytes) -> None:
    peer = start(ConnectionLimits(header_seconds=0.1, body_seconds=0.1))()
    peer.send(half)
    if half.endswith(VOTE[:-10]) and TOKEN.encode() not in half:
        assert peer.read_response()[0] == 401
    else:
        status, body = peer.read_response()
        assert status == 408
        assert "0.1 seconds" in body["detail"]
    assert peer.is_closed()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("rest", [b"GET", b"\r\n"])
def test_half_sent_later_requests_are_closed(start: Start, rest: bytes) -> None:
    peer = start(ConnectionLimits(header_seconds=0.2))()
    assert peer.ask(request("/questions"))[0] == 200
    peer.send(rest)
    assert peer.is_closed()


def test_trickled_request_within_the_limits_is_answered(start: Start) -> None:
    peer = start(ConnectionLimits())()
    for byte in request("/votes", VOTE):
        peer.send(bytes([byte]))
    assert peer.read_response() == (200, {"new": 1, "changed": 0, "unchanged": 0})


def test_half_open_connections_do_not_keep_clients_out(start: Start) -> None:
    connect = start(ConnectionLimits(connections=40, connections_per_address=10))
    client = connect()
    assert client.ask(request("/votes", VOTE))[0] == 200
    strangers = []
    for _ in range(100):
        strangers.append(connect())
        strangers[-1].send(b"GET /health HTTP/1.1\r\nHost: x\r\n")
    assert connect().ask(request("/questions"))[0] == 200
    assert client.ask(request("/questions"))[0] == 200  # on the first connection, which stayed open
    assert all(stranger.is_closed() for stranger in strangers[:90])
    strangers[-1].send(b"\r\n")
    assert strangers[-1].read_response()[0] == 200  # the limit itself is not an offence


def test_clients_with_the_token_do_not_count_for_their_address(start: Start) -> None:
    connect = start(ConnectionLimits(connections_per_address=2))
    clients = [connect() for _ in range(8)]
    for _ in range(2):
        assert [client.ask(request("/questions"))[0] for client in clients] == [200] * 8


def test_full_service_refuses_connections(start: Start) -> None:
    connect = start(ConnectionLimits(connections=3))
    clients = [connect() for _ in range(3)]
    assert [client.ask(request("/questions"))[0] for client in clients] == [200] * 3
    late = connect()
    status, body = late.read_response()
    assert status == 503
    assert "3 connections" in body["detail"]
    assert late.is_closed()
    assert clients[0].ask(request("/questions"))[0] == 200


def test_pipelined_requests_are_limited(start: Start) -> None:
    connect = start(ConnectionLimits())
    peer = connect()
    peer.send(request("/health", token=None) * 10)
    assert [peer.read_response()[0]] == [200]
    flood = connect()
    flood.send(request("/health", token=None) * 2_000)
    assert flood.is_closed()


@pytest.mark.usefixtures("quick")
def test_unread_responses_are_dropped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.2)
    connect = start(ConnectionLimits())
    peer = connect()
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    peer.socket.settimeout(0.2)
    end = time.monotonic() + PATIENCE
    is_open = True
    while is_open and time.monotonic() < end:
        try:
            is_open = peer.send(request("/openapi.json", token=None) * 8)
        except TimeoutError:  # the service no longer reads, because its responses are not read
            continue
    assert not is_open


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"SSH-2.0-x\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n",
     b"POST /votes HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
)  # fmt: skip
def test_invalid_http_is_refused_without_a_log(start: Start, data: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    peer = start(ConnectionLimits())()
    assert peer.ask(data)[0] in (400, 401)
    assert capfd.readouterr().err == ""


def test_upgrades_are_answered_as_ordinary_requests(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    peer = start(ConnectionLimits())()
    assert peer.ask(request("/health", more="Connection: Upgrade\r\nUpgrade: websocket\r\n"))[0] == 200
    assert capfd.readouterr().err == ""


class FakeTransport:
    """Transport that only remembers whether it was aborted."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


class FakeConnection:
    """Connection without a network."""

    def __init__(self, address: str) -> None:
        self.address, self.transport = address, FakeTransport()


class FakeLoop:
    """Event loop whose timers never run."""

    def call_later(self, *_: Any) -> object:
        return object()


def test_the_address_with_most_connections_loses_one() -> None:
    registry: Any = ConnectionRegistry(ConnectionLimits(connections=6))
    modest = [FakeConnection("192.0.2.1"), FakeConnection("192.0.2.2")]
    greedy = [FakeConnection("192.0.2.9") for _ in range(4)]
    for connection in [modest[0], *greedy, modest[1]]:
        assert registry.add(connection, FakeLoop())
    registry.trust(greedy[0])
    assert registry.add(FakeConnection("192.0.2.3"), FakeLoop())
    assert [connection.transport.is_aborted for connection in greedy] == [False, True, False, False]
    assert not any(connection.transport.is_aborted for connection in modest)
    assert len(registry) == 6


def test_addresses_of_a_network_count_together() -> None:
    assert group_address("2001:db8:0:7::1") == group_address("2001:db8:0:7:ffff::2") != group_address("2001:db8:0:8::1")
    assert group_address("fe80::1%eth0") == "fe80::/64"
    assert group_address("not an address: at all") == "not an address: at all"


def test_default_limits_are_finite() -> None:
    limits = ConnectionLimits()
    assert all(0 < value < math.inf for value in vars(limits).values())
    assert limits.connections_per_address < limits.connections


def test_response_after_a_refusal_is_dropped_quietly(run_server: Any) -> None:
    is_refused, has_ended = threading.Event(), threading.Event()

    async def answer_late(_: Any, __: Any, send: Any) -> None:
        await asyncio.to_thread(is_refused.wait, PATIENCE)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late"})
        has_ended.set()

    errors: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = errors.append  # type: ignore[method-assign]
    logger = logging.getLogger("uvicorn.error")
    with run_server(answer_late) as address:
        logger.addHandler(handler)  # the server has removed the handlers of before
        try:
            peer = Peer(address)
            with peer.socket:
                peer.send(request("/") + b"\x00 is no request\r\n\r\n")
                assert peer.is_closed()
            is_refused.set()
            assert has_ended.wait(PATIENCE)
        finally:
            logger.removeHandler(handler)
    assert errors == []

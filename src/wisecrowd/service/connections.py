"""Limits of connections: sizes and durations of requests, and the number of connections per client address.

uvicorn bounds none of these for its httptools protocol: a header may be endless and a connection may stay half open for
ever. `LimitedProtocol` adds the limits around uvicorn's parser, and `ConnectionRegistry` closes connections of strangers
when there are too many.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Seconds between two checks of all connections.
SWEEP_SECONDS = 1.0
#: Seconds until surplus connections are closed. Clients that send a request at once are served before that.
TRIM_SECONDS = 0.05
#: Seconds for which a client may leave a response unread.
SEND_SECONDS = 30.0
#: Seconds for which a closed connection waits for the client to read the last response.
LINGER_SECONDS = 5.0
#: Maximum number of requests that a connection may send without waiting for a response.
MAX_PIPELINED_REQUESTS = 16
#: Number of leading bits of an IPv6 address that identify a network; a client can use all addresses of its network.
IPV6_NETWORK_BITS = 64


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits of the connections of a server.

    Attributes
    ----------
    connections : int, default=2_000
        Maximum number of simultaneous connections.
    connections_per_address : int, default=200
        Maximum number of simultaneous connections of a client address that have not sent the token.
    header_bytes : int, default=16_384
        Maximum size of the header of a request.
    headers : int, default=100
        Maximum number of header fields.
    header_seconds : float, default=10.0
        Maximum duration of the header of a request, and time within which a new connection must send one.
    body_seconds : float, default=60.0
        Maximum duration of the body of a request.

    Examples
    --------
    >>> ConnectionLimits(header_seconds=5.0).headers
    100
    """

    connections: int = 2_000
    connections_per_address: int = 200
    header_bytes: int = 16_384
    headers: int = 100
    header_seconds: float = 10.0
    body_seconds: float = 60.0


class ConnectionRegistry:
    """Open connections of a server, and the policy by which surplus ones are closed.

    A connection is trusted once one of its requests has carried the token. Only other connections are closed: the oldest
    of a client address that has too many, or of the address that has most when the server is full. Clients that know the
    token therefore keep their connections, whatever strangers do, and get new ones in if they send a request at once.

    Parameters
    ----------
    limits : ConnectionLimits, default=None
        Limits; those of `ConnectionLimits` by default.

    Examples
    --------
    >>> len(ConnectionRegistry())
    0
    """

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self._connections: dict[LimitedProtocol, None] = {}
        self._untrusted: dict[str, dict[LimitedProtocol, None]] = {}  # by client address, in order of arrival
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._trim_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: LimitedProtocol, loop: asyncio.AbstractEventLoop) -> bool:
        """Register a new connection.

        Parameters
        ----------
        connection : LimitedProtocol
            Connection.
        loop : asyncio.AbstractEventLoop
            Event loop of the connection.

        Returns
        -------
        bool
            Whether there is room for the connection.
        """
        if len(self._connections) >= self.limits.connections and not self._close_one():
            return False
        self._connections[connection] = None
        group = self._untrusted.setdefault(connection.address, {})
        group[connection] = None
        if len(group) > self.limits.connections_per_address and self._trim_timer is None:
            self._trim_timer = loop.call_later(TRIM_SECONDS, self._trim)
        if self._sweep_timer is None:
            self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)
        return True

    def trust(self, connection: LimitedProtocol) -> None:
        """Record that a request of a connection has carried the token.

        Parameters
        ----------
        connection : LimitedProtocol
            Connection.
        """
        group = self._untrusted.get(connection.address)
        if group is not None:
            group.pop(connection, None)
            if not group:
                del self._untrusted[connection.address]

    def discard(self, connection: LimitedProtocol) -> None:
        """Remove a connection that is closed.

        Parameters
        ----------
        connection : LimitedProtocol
            Connection.
        """
        self._connections.pop(connection, None)
        self.trust(connection)

    def _trim(self) -> None:
        """Close the oldest untrusted connections of addresses that have too many."""
        self._trim_timer = None
        for address in list(self._untrusted):
            group = self._untrusted[address]
            n_surplus = len(group) - self.limits.connections_per_address
            for connection in list(group)[: max(n_surplus, 0)]:
                self._abort(connection)

    def _close_one(self) -> bool:
        """Close the oldest untrusted connection of the address that has most; return whether there is one."""
        if not self._untrusted:
            return False
        group = max(self._untrusted.values(), key=len)
        self._abort(next(iter(group)))
        return True

    def _abort(self, connection: LimitedProtocol) -> None:
        self.discard(connection)  # at once; the transport reports the loss later
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections that have exceeded a time limit."""
        now = loop.time()
        for connection in list(self._connections):
            connection.check_times(now)
        self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop) if self._connections else None


class LimitedProtocol(HttpToolsProtocol):
    """HTTP connection with limits.

    Parameters
    ----------
    registry : ConnectionRegistry
        Open connections of the server.
    **options
        Options of the protocol of uvicorn.

    Attributes
    ----------
    address : str
        Address of the client; for IPv6, its network.
    """

    def __init__(self, *, registry: ConnectionRegistry, **options: Any) -> None:
        super().__init__(**options)
        self.address = ""
        self._registry, self._limits = registry, registry.limits
        self._is_trusted = False
        self._deadline = math.inf
        self._is_reading_header = True
        self._n_callbacks = 0  # headers, parts of bodies and ends of requests that the parser has reported
        self._n_unparsed_bytes = 0  # bytes since the last of these
        self._refusal: tuple[int, str] | None = None
        self._n_unsent_bytes, self._unsent_since = 0, 0.0

    def trust(self) -> None:
        """Record that a request has carried the token."""
        if not self._is_trusted:
            self._is_trusted = True
            self._registry.trust(self)

    def check_times(self, now: float) -> None:
        """Close the connection if it has exceeded a time limit.

        Parameters
        ----------
        now : float
            Time of the event loop.
        """
        is_closing = self.transport.is_closing()
        if now >= self._deadline:
            if is_closing:
                self.transport.abort()
            else:
                seconds = self._limits.header_seconds if self._is_reading_header else self._limits.body_seconds
                self._refuse(408, f"the request was not complete within {seconds:g} seconds")
        elif is_closing and self._deadline == math.inf:
            self._deadline = now + LINGER_SECONDS
        n_unsent_bytes = self.transport.get_write_buffer_size()
        if n_unsent_bytes == 0 or n_unsent_bytes != self._n_unsent_bytes:
            self._n_unsent_bytes, self._unsent_since = n_unsent_bytes, now
        elif now >= self._unsent_since + SEND_SECONDS:
            self.transport.abort()

    # ------------------------------------------------------------------ callbacks of the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, or refuse it if the server is full.

        Parameters
        ----------
        transport : asyncio.Transport
            Transport of the connection.
        """
        super().connection_made(transport)
        self._response_writer = _ResponseWriter(transport)
        self.address = group_address(self.client[0] if self.client else "")
        self._deadline = self.loop.time() + self._limits.header_seconds
        if not self._registry.add(self, self.loop):
            self._refuse(503, f"the service has {self._limits.connections:,} connections, its maximum; try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection.

        Parameters
        ----------
        exc : Exception or None
            Error that ended the connection.
        """
        self._registry.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes in parts, and check the limits after each.

        Parameters
        ----------
        data : bytes
            Received bytes.
        """
        part_bytes = self._limits.header_bytes
        if len(data) <= part_bytes:
            self._parse(data)
            return
        for start in range(0, len(data), part_bytes):
            self._parse(data[start : start + part_bytes])

    def _parse(self, data: bytes) -> None:
        if self._refusal is not None or self.transport.is_closing():
            return
        n_callbacks = self._n_callbacks
        super().data_received(data)
        if self._n_callbacks != n_callbacks:
            self._n_unparsed_bytes = 0
            return
        self._n_unparsed_bytes += len(data)
        if self._n_unparsed_bytes > self._limits.header_bytes:
            self._refuse_header()
        elif self._deadline == math.inf:  # the first bytes of a request
            self._deadline = self.loop.time() + self._limits.header_seconds

    # ------------------------------------------------------------------ callbacks of the parser

    def on_headers_complete(self) -> None:
        """Start a request whose header is within the limits."""
        self._n_callbacks += 1
        if len(self.headers) > self._limits.headers or (
            self._n_unparsed_bytes and self._count_header_bytes() > self._limits.header_bytes
        ):
            self._refuse_header()
            raise _RefusedRequestError
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            self._refuse(400, f"more than {MAX_PIPELINED_REQUESTS} requests were sent without waiting for a response")
            raise _RefusedRequestError
        self._is_reading_header = False
        self._deadline = self.loop.time() + self._limits.body_seconds
        self.scope["state"]["connection"] = self
        super().on_headers_complete()
        self.cycle.transport = self._response_writer  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Pass on a part of a body.

        Parameters
        ----------
        body : bytes
            Part of the body.
        """
        self._n_callbacks += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        self._n_callbacks += 1
        self._is_reading_header, self._deadline = True, math.inf
        super().on_message_complete()

    # ------------------------------------------------------------------ refusals

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP.

        Parameters
        ----------
        msg : str
            Message of uvicorn.
        """
        del msg
        self._refuse(400, "the request is not valid HTTP/1.1")

    def _refuse_header(self) -> None:
        limits = self._limits
        self._refuse(
            431,
            f"the header of the request exceeds {limits.header_bytes:,} bytes or {limits.headers} fields; shorten it",
        )

    def _refuse(self, status: int, detail: str) -> None:
        """Answer with an error if no other response has begun, and close the connection."""
        if self._refusal is not None or self.transport.is_closing():
            return
        self._refusal = status, detail
        if self._can_respond():
            content = json.dumps({"detail": detail}).encode()
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + content)
        self._deadline = self.loop.time() + LINGER_SECONDS
        self.transport.close()

    def _can_respond(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        if cycle is None:
            return True
        return bool(cycle.response_complete if self._is_reading_header else not cycle.response_started)

    def _count_header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


class _ResponseWriter:
    """Transport of a response, which ignores what is written after the connection was closed.

    A refusal closes the connection while earlier requests of it are being answered. The transport of uvloop would raise an
    error for each of them, and uvicorn would log it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_closing, self.close = transport.is_closing, transport.close

    def write(self, data: bytes) -> None:
        if not self.is_closing():
            self._transport.write(data)


class _RefusedRequestError(Exception):
    """Stops the parser after a refusal."""


def group_address(address: str) -> str:
    """Return the client that an address counts for.

    Parameters
    ----------
    address : str
        IP address.

    Returns
    -------
    str
        IPv4 address, or the network of an IPv6 address; any other text as it is.

    Examples
    --------
    >>> group_address("192.0.2.7"), group_address("::ffff:192.0.2.7"), group_address("2001:db8::1:2:3")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    if ":" not in address:
        return address
    try:
        ip = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), IPV6_NETWORK_BITS), strict=False))

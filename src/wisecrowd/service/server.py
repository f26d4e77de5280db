"""The service on a network port."""

from __future__ import annotations

import dataclasses
import functools
import gc
import socket
import sys
from typing import TYPE_CHECKING, Any

import uvicorn

from wisecrowd.errors import InputError
from wisecrowd.service.app import create_app
from wisecrowd.service.connections import ConnectionLimits, ConnectionRegistry, LimitedProtocol
from wisecrowd.service.coordinator import Coordinator

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: Seconds for which an idle connection stays open.
KEEP_ALIVE_SECONDS = 60
#: Number of connections that the system keeps waiting. They are accepted together, which delays other requests.
BACKLOG = 512
#: Files that the service opens besides connections: database, log, pipes to background processes.
OTHER_FILES = 128
#: Seconds for which a service that ends waits for running requests.
SHUTDOWN_SECONDS = 10
#: Seconds after which a running thread yields. The default of 5 ms would delay the thread that writes.
THREAD_SWITCH_SECONDS = 0.0005
#: Thresholds of the garbage collector. A full collection takes about 0.1 s, during which no request is answered.
GC_THRESHOLDS = (10_000, 20, 100)


def bind_socket(host: str, port: int) -> tuple[socket.socket, str]:
    """Bind a socket to an address.

    Parameters
    ----------
    host : str
        Host name or IP address.
    port : int
        Port; 0 selects a free one.

    Returns
    -------
    bound_socket : socket.socket
        Socket for `run`.
    address : str
        URL of the service.

    Raises
    ------
    InputError
        If the port cannot be used.

    Examples
    --------
    >>> bound_socket, address = bind_socket("127.0.0.1", 0)
    >>> address.startswith("http://127.0.0.1:")
    True
    >>> bound_socket.close()
    """
    bound_socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound_socket.bind((host, port))
    except OSError as error:
        bound_socket.close()
        raise InputError(
            f"port {port} of {host} cannot be used: {error.strerror}; choose another one with --port"
        ) from None
    return bound_socket, f"http://{f'[{host}]' if ':' in host else host}:{bound_socket.getsockname()[1]}"


def reserve_files(n_connections: int) -> int:
    """Raise the limit of open files of this process so that connections fit in.

    Parameters
    ----------
    n_connections : int
        Requested number of connections.

    Returns
    -------
    int
        Number of connections that the limit of the system allows.

    Examples
    --------
    >>> reserve_files(10)
    10
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return n_connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return n_connections
    n_files = n_connections + OTHER_FILES
    if soft < n_files:
        soft = n_files if hard == resource.RLIM_INFINITY else min(n_files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(n_connections, soft - OTHER_FILES))


def create_server(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """Create the HTTP server of an application.

    Requests are not logged, because the link to the status page contains the token. Neither are invalid ones, with which
    a stranger could fill the disk.

    Parameters
    ----------
    app : ASGI application
        Application.
    limits : ConnectionLimits, default=None
        Limits of connections; those of `ConnectionLimits` by default.

    Returns
    -------
    uvicorn.Server
        Server, which has not started.

    Examples
    --------
    >>> create_server(lambda *_: None).started
    False
    """
    limits = limits or ConnectionLimits()
    limits = dataclasses.replace(limits, connections=reserve_files(limits.connections))
    protocol: Any = functools.partial(LimitedProtocol, registry=ConnectionRegistry(limits))
    config = uvicorn.Config(
        app, http=protocol, ws="none", log_level="error", access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=SHUTDOWN_SECONDS, backlog=BACKLOG,
    )  # fmt: skip
    return uvicorn.Server(config)


def run(
    coordinator: Coordinator,
    token: str,
    bound_socket: socket.socket,
    *,
    max_bytes: int,
    limits: ConnectionLimits | None = None,
) -> None:
    """Answer requests until the process is interrupted.

    Parameters
    ----------
    coordinator : Coordinator
        Coordinator of the service.
    token : str
        Token that requests must carry.
    bound_socket : socket.socket
        Socket from `bind_socket`.
    max_bytes : int
        Maximum size of a request body.
    limits : ConnectionLimits, default=None
        Limits of connections; those of `ConnectionLimits` by default.

    Examples
    --------
    >>> import inspect
    >>> list(inspect.signature(run).parameters)
    ['coordinator', 'token', 'bound_socket', 'max_bytes', 'limits']
    """
    server = create_server(create_app(coordinator, token, max_bytes=max_bytes), limits)
    # Objects that exist now live as long as the service. The coordinator collects garbage when no votes arrive.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    coordinator.metrics.watch_garbage_collection()
    try:
        server.run(sockets=[bound_socket])
    finally:
        coordinator.metrics.forget_garbage_collection()

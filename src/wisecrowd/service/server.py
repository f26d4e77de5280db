"""The service on a network port."""

from __future__ import annotations

import gc
import socket
import sys

import uvicorn

from wisecrowd.errors import InputError
from wisecrowd.service.app import create_app
from wisecrowd.service.coordinator import Coordinator

#: Seconds for which an idle connection stays open.
KEEP_ALIVE_SECONDS = 60
#: Maximum number of simultaneous connections.
MAX_CONNECTIONS = 2_000
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


def run(coordinator: Coordinator, token: str, bound_socket: socket.socket, *, max_bytes: int) -> None:
    """Answer requests until the process is interrupted.

    Requests are not logged, because the link to the status page contains the token.

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

    Examples
    --------
    >>> import inspect
    >>> list(inspect.signature(run).parameters)
    ['coordinator', 'token', 'bound_socket', 'max_bytes']
    """
    config = uvicorn.Config(
        create_app(coordinator, token, max_bytes=max_bytes), log_level="warning", access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, limit_concurrency=MAX_CONNECTIONS, proxy_headers=False, server_header=False,
    )  # fmt: skip
    # Objects that exist now live as long as the service. The coordinator collects garbage when no votes arrive.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    uvicorn.Server(config).run(sockets=[bound_socket])

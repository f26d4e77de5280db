"""The service on a port of this machine."""

from __future__ import annotations

import gc
import socket
import sys

import uvicorn

from wisecrowd.errors import InputError
from wisecrowd.service.app import create_app
from wisecrowd.service.coordinator import Coordinator

#: Seconds for which a connection stays open between requests, and connections at most.
OPEN_FOR, CONNECTIONS = 60, 2_000
#: Seconds after which a thread lets another one have its turn: who writes should not wait for who listens.
SWITCH = 0.0005
#: New objects after which the young, the older and all of them are looked through for garbage.
SELDOM = (10_000, 20, 100)


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and its address; port 0 is any that is free.

    >>> listening, address = listen("127.0.0.1", 0)
    >>> address.startswith("http://127.0.0.1:")
    True
    >>> listening.close()
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(f"port {port} of {host} cannot be used: {error.strerror}; name another with --port") from None
    return listening, f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def run(coordinator: Coordinator, token: str, listening: socket.socket, *, largest: int) -> None:
    """Answer until somebody ends it. Nothing is logged of requests, for the link to the page has the token in it.

    >>> import inspect
    >>> list(inspect.signature(run).parameters)
    ['coordinator', 'token', 'listening', 'largest']
    """
    config = uvicorn.Config(
        create_app(coordinator, token, largest=largest), log_level="warning", access_log=False, timeout_keep_alive=OPEN_FOR,
        limit_concurrency=CONNECTIONS, proxy_headers=False, server_header=False,
    )  # fmt: skip
    # All that is loaded by now stays. To look through it for garbage takes a tenth of a second, in which nobody is answered:
    # that is left for moments when nothing comes (see `Coordinator`), and else to very seldom.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    sys.setswitchinterval(SWITCH)
    uvicorn.Server(config).run(sockets=[listening])

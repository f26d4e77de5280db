"""Run ``wisecrowd`` with uvicorn's own HTTP protocol instead of the limits of connections: ``serve_unlimited.py serve …``."""

from __future__ import annotations

from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wisecrowd.cli import main
from wisecrowd.service import server

create_limited_server = server.create_server


def create_server(*args: Any) -> uvicorn.Server:
    """Return the server of the service with another protocol."""
    created = create_limited_server(*args)
    created.config.http = HttpToolsProtocol
    created.config.limit_concurrency = 2_000  # the only limit of connections that uvicorn has
    return created


if __name__ == "__main__":
    server.create_server = create_server
    main()

"""Run the server of Argilla on loopback: its own code on SQLite, without a search engine and with a redis in memory.

Argilla needs Elasticsearch or OpenSearch only to search records: records, responses and suggestions are in its database. The
search engine here indexes nothing and finds nothing.
"""

import asyncio
import os
import sys
import threading
from inspect import iscoroutinefunction
from typing import Any

import uvicorn
from fakeredis import TcpFakeServer


def main(port: int, redis: int, key: str) -> None:
    """Create the database and its owner, and serve."""
    os.environ["ARGILLA_SEARCH_ENGINE"] = "nothing"
    os.environ["ARGILLA_REDIS_URL"] = f"redis://127.0.0.1:{redis}/0"
    TcpFakeServer.allow_reuse_address = True
    threading.Thread(target=TcpFakeServer(("127.0.0.1", redis)).serve_forever, daemon=True).start()

    from argilla_server.cli.database.migrate import migrate_db
    from argilla_server.cli.database.users.create import _create
    from argilla_server.enums import UserRole
    from argilla_server.search_engine import SearchEngine

    async def return_nothing(*_: Any, **__: Any) -> dict[str, int]:
        return {"total": 0, "completed": 0, "pending": 0}

    names = [name for name in SearchEngine.__abstractmethods__ if iscoroutinefunction(getattr(SearchEngine, name))]
    engine = type("Nothing", (SearchEngine,), dict.fromkeys(names, return_nothing))
    engine.new_instance = classmethod(lambda cls: asyncio.sleep(0, cls()))
    SearchEngine.register("nothing")(engine)
    migrate_db("head")
    asyncio.run(_create("lead", "lead", UserRole.owner, "a-word-for-this-run", None, key, []))

    from argilla_server import app

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

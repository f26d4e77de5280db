"""Open a connection ten times per second and post a vote on it: ``serve_newcomer.py PORT SECONDS``. Prints figures as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from serve_client import Client

#: Seconds between two connections, and until one counts as failed.
INTERVAL, PATIENCE = 0.1, 10.0


async def main(port: int, seconds: float) -> None:
    latencies: list[float] = []
    n_failed = 0

    async def post(n: int) -> None:
        nonlocal n_failed
        vote = {"question": "newcomers", "task": f"t{n // 3}", "worker": f"w{n % 3}", "label": f"class {n // 3 % 4}"}
        client = Client(port)
        started_at = time.perf_counter()
        try:
            status, _ = await asyncio.wait_for(client.ask("POST", "/votes", json.dumps(vote).encode()), PATIENCE)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            status = 0
        if status == 200:
            latencies.append(time.perf_counter() - started_at)
        else:
            n_failed += 1
        if hasattr(client, "writer"):
            client.writer.close()

    started_at = time.perf_counter()
    tasks = []
    for n in range(int(seconds / INTERVAL)):
        await asyncio.sleep(max(0.0, started_at + n * INTERVAL - time.perf_counter()))
        tasks.append(asyncio.ensure_future(post(n)))
    await asyncio.gather(*tasks)
    latencies.sort()
    quantiles = {
        f"p{100 * share:g}": latencies[int(share * (len(latencies) - 1))] if latencies else 0.0 for share in (0.5, 0.99)
    }
    print(json.dumps({"n": len(tasks), "failed": n_failed, **quantiles}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))

"""Send votes to a service at a constant rate: ``serve_client.py PORT RATE FIRST LAST READS ACKNOWLEDGED``.

Vote n is sent at n / RATE seconds, whether or not earlier requests were answered, over open connections with one vote per
request. READS answers per second are read meanwhile. Latencies count from the time at which a vote was due. Numbers of
acknowledged votes are appended to the file ACKNOWLEDGED. The program prints its figures as JSON and ends when the service ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

N_CONNECTIONS = 64
VOTES_PER_TASK = 5
N_CLASSES, N_WORKERS = 4, 400


def make_vote(n: int) -> dict[str, Any]:
    """Return vote n of a fixed crowd: five votes per task, workers with accuracies between 0.6 and 0.9."""
    rng = random.Random(n)
    task = n // VOTES_PER_TASK
    worker = rng.randrange(N_WORKERS // VOTES_PER_TASK) * VOTES_PER_TASK + n % VOTES_PER_TASK
    truth = random.Random(-task - 1).randrange(N_CLASSES)
    accuracy = 0.6 + 0.3 * random.Random(worker + 0.5).random()
    label = truth if rng.random() < accuracy else rng.randrange(N_CLASSES)
    return {"id": f"v{n}", "task": f"task {task}", "worker": f"worker {worker}", "label": f"class {label}"}


class Client:
    """One connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = os.environ["WISECROWD_TOKEN"]

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request."""
        if not hasattr(self, "reader"):
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        content_type = "Content-Type: application/json\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n{content_type}"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        length = next(
            (int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")),
            0,
        )
        return status, await self.reader.readexactly(length)


async def main(port: int, rate: float, first: int, last: int, reads: float, acknowledged: Path) -> None:
    vote_latencies: list[float] = []
    read_latencies: list[float] = []
    n_refused = n_lost = 0
    bodies = [json.dumps(make_vote(n)).encode() for n in range(first, last)]  # before the clock starts
    numbers = iter(range(first, last))
    started_at = time.perf_counter()
    with acknowledged.open("a", buffering=1) as log:

        async def send_votes() -> None:
            nonlocal n_refused, n_lost
            client = Client(port)
            for n in numbers:
                due_at = started_at + (n - first) / rate
                await asyncio.sleep(max(0.0, due_at - time.perf_counter()))
                try:
                    status, _ = await client.ask("POST", "/votes", bodies[n - first])
                except (OSError, asyncio.IncompleteReadError):
                    n_lost += 1
                    return
                vote_latencies.append(time.perf_counter() - due_at)
                if status == 200:
                    log.write(f"{n}\n")
                else:
                    n_refused += 1

        async def read_answers() -> None:
            client = Client(port)
            rng = random.Random(0)
            while reads:
                await asyncio.sleep(1 / reads)
                worker = rng.randrange(N_WORKERS)
                path = rng.choice(
                    [
                        f"/next?worker=worker%20{worker}",
                        "/consensus?limit=100",
                        f"/task?task=task%20{first // VOTES_PER_TASK}",
                    ]
                )
                asked_at = time.perf_counter()
                try:
                    await client.ask("GET", path)
                except (OSError, asyncio.IncompleteReadError):
                    return
                read_latencies.append(time.perf_counter() - asked_at)

        reader = asyncio.create_task(read_answers())
        await asyncio.gather(*(send_votes() for _ in range(N_CONNECTIONS)))
        reader.cancel()
    seconds = time.perf_counter() - started_at
    n_votes = len(vote_latencies)
    figures: dict[str, Any] = {
        "votes": n_votes, "seconds": seconds, "per_second": n_votes / seconds, "refused": n_refused, "lost": n_lost
    }  # fmt: skip
    for name, latencies in (("vote", sorted(vote_latencies)), ("read", sorted(read_latencies))):
        if latencies:
            for share in (0.5, 0.99, 0.999):
                figures[f"{name}_p{100 * share:g}"] = latencies[min(int(share * len(latencies)), len(latencies) - 1)]
            figures[f"{name}_worst"] = latencies[-1]
    figures["reads"] = len(read_latencies)
    print(json.dumps(figures))


if __name__ == "__main__":
    port, rate, first, last, reads = map(float, sys.argv[1:6])
    asyncio.run(main(int(port), rate, int(first), int(last), reads, Path(sys.argv[6])))

"""Send votes to a service at a steady rate: ``serve_client.py PORT RATE FIRST LAST READS ACKNOWLEDGED``.

Vote n is sent at n / RATE seconds, whether or not those before were answered, over connections that stay open, one vote in a
request; READS questions a second are asked beside. Latencies count from the moment at which a vote was due. Ids of votes that
were acknowledged are written to the file ACKNOWLEDGED as they are. Prints figures as JSON; ends early when the service does.
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

CONNECTIONS = 64
LABELS = 5
CLASSES, WORKERS = 4, 400


def vote(n: int) -> dict[str, Any]:
    """The n-th vote of a crowd that is the same every time: five on a task, of workers who are right 6 to 9 times of ten."""
    rng = random.Random(n)
    task, worker = n // LABELS, rng.randrange(WORKERS // LABELS) * LABELS + n % LABELS
    truth = random.Random(-task - 1).randrange(CLASSES)
    skill = 0.6 + 0.3 * random.Random(worker + 0.5).random()
    said = truth if rng.random() < skill else rng.randrange(CLASSES)
    return {"id": f"v{n}", "task": f"task {task}", "worker": f"worker {worker}", "label": f"class {said}"}


class Client:
    """One connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = os.environ["WISECROWD_TOKEN"]

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of the answer."""
        if not hasattr(self, "reader"):
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        kind = "Content-Type: application/json\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n{kind}"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        length = next(
            (int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")),
            0,
        )
        return status, await self.reader.readexactly(length)


async def main(port: int, rate: float, first: int, last: int, reads: float, acknowledged: Path) -> None:
    late: list[float] = []
    read: list[float] = []
    refused = lost = 0
    bodies = [json.dumps(vote(n)).encode() for n in range(first, last)]  # before the clock starts
    numbers = iter(range(first, last))
    begun = time.perf_counter()
    with acknowledged.open("a", buffering=1) as log:

        async def send() -> None:
            nonlocal refused, lost
            client = Client(port)
            for n in numbers:
                due = begun + (n - first) / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                try:
                    status, _ = await client.ask("POST", "/votes", bodies[n - first])
                except (OSError, asyncio.IncompleteReadError):
                    lost += 1
                    return
                late.append(time.perf_counter() - due)
                if status == 200:
                    log.write(f"{n}\n")
                else:
                    refused += 1

        async def look() -> None:
            client = Client(port)
            rng = random.Random(0)
            while reads:
                await asyncio.sleep(1 / reads)
                worker = rng.randrange(WORKERS)
                path = rng.choice(
                    [f"/next?worker=worker%20{worker}", "/consensus?limit=100", f"/task?task=task%20{first // LABELS}"]
                )
                asked = time.perf_counter()
                try:
                    await client.ask("GET", path)
                except (OSError, asyncio.IncompleteReadError):
                    return
                read.append(time.perf_counter() - asked)

        looking = asyncio.create_task(look())
        await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
        looking.cancel()
    seconds = time.perf_counter() - begun
    found: dict[str, Any] = {
        "votes": len(late), "seconds": seconds, "per_second": len(late) / seconds, "refused": refused, "lost": lost
    }  # fmt: skip
    for name, times in (("vote", sorted(late)), ("read", sorted(read))):
        if times:
            for share in (0.5, 0.99, 0.999):
                found[f"{name}_p{100 * share:g}"] = times[min(int(share * len(times)), len(times) - 1)]
            found[f"{name}_worst"] = times[-1]
    found["reads"] = len(read)
    print(json.dumps(found))


if __name__ == "__main__":
    port, rate, first, last, reads = map(float, sys.argv[1:6])
    asyncio.run(main(int(port), rate, int(first), int(last), reads, Path(sys.argv[6])))

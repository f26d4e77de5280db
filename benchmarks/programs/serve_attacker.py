"""Attack a service on this machine: ``serve_attacker.py PORT ATTACK CONNECTIONS SECONDS ADDRESSES``.

Every connection is opened again some seconds after the service has closed it. With ADDRESSES above 1, connections come from
127.0.0.2, 127.0.0.3 and so on. The program prints its figures as JSON. Number and duration are bounded.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from collections import Counter

#: Upper bounds of what this program does, whatever it is asked for.
MAX_CONNECTIONS, MAX_SECONDS = 5_000, 120.0
#: Seconds over which connections are opened, and after which a closed one is opened again.
CYCLE_SECONDS = 5.0
HALF = b"POST /votes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

count: Counter[str] = Counter()


class Connection(asyncio.Protocol):
    """Connection that counts its bytes and notes its end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.closed = asyncio.get_running_loop().create_future()
        count["opened"] += 1
        count["most open"] = max(count["most open"], count["opened"] - count["closed"])

    def data_received(self, data: bytes) -> None:
        count[data.split(b" ", 2)[1].decode() if data.startswith(b"HTTP/1.1 ") else "other"] += 1

    def connection_lost(self, error: Exception | None) -> None:
        count["closed"] += 1
        if not self.closed.done():
            self.closed.set_result(None)


async def hold_half_a_request(transport: asyncio.Transport) -> None:
    """Send half of a header and nothing more."""
    transport.write(HALF)
    await asyncio.sleep(MAX_SECONDS)


async def trickle_header(transport: asyncio.Transport) -> None:
    """Send a byte of a header every second."""
    transport.write(HALF)
    while True:
        await asyncio.sleep(1.0)
        transport.write(b"x")


async def send_endless_header(transport: asyncio.Transport) -> None:
    """Send a value of a header that does not end, 2 MB per second."""
    transport.write(HALF + b"A: ")
    while True:
        transport.write(b"x" * 100_000)
        await asyncio.sleep(0.05)


async def send_nothing(_: asyncio.Transport) -> None:
    await asyncio.sleep(MAX_SECONDS)


async def leave_responses_unread(transport: asyncio.Transport) -> None:
    """Request a long page again and again without reading it."""
    transport.pause_reading()
    while True:
        transport.write(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 4)
        await asyncio.sleep(1.0)


ATTACKS = {
    "half-open": hold_half_a_request, "slow-header": trickle_header, "endless-header": send_endless_header,
    "silent": send_nothing, "unread": leave_responses_unread,
}  # fmt: skip


async def main(port: int, attack: str, n_connections: int, seconds: float, n_addresses: int) -> None:
    end = time.monotonic() + seconds
    chance = random.Random(0)
    loop = asyncio.get_running_loop()

    async def keep_connected(n: int) -> None:
        source = (f"127.0.0.{1 + n % n_addresses}", 0)
        await asyncio.sleep(CYCLE_SECONDS * chance.random())
        while time.monotonic() < end:
            try:
                transport, connection = await loop.create_connection(Connection, "127.0.0.1", port, local_addr=source)
            except OSError:
                count["not connected"] += 1
            else:
                sending = asyncio.ensure_future(ATTACKS[attack](transport))
                await asyncio.wait(
                    [sending, connection.closed], timeout=end - time.monotonic(), return_when=asyncio.FIRST_COMPLETED
                )
                sending.cancel()
                transport.abort()
            await asyncio.sleep(min(CYCLE_SECONDS, max(0.0, end - time.monotonic())))

    await asyncio.gather(*(keep_connected(n) for n in range(n_connections)))
    print(json.dumps(count))


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, attack, n_connections, seconds, n_addresses = sys.argv[1:6]
    n_connections = min(int(n_connections), MAX_CONNECTIONS, hard - 100)
    import uvloop

    uvloop.run(main(int(port), attack, n_connections, min(float(seconds), MAX_SECONDS), min(int(n_addresses), 250)))

"""Attacks of strangers on the service while a client posts votes.

    python benchmarks/serve_attack.py --quick                # 200 connections, some seconds, nothing written
    python benchmarks/serve_attack.py                        # 5,000 connections, all attacks (about ten minutes)
    python benchmarks/serve_attack.py --unlimited half-open  # the same with uvicorn's protocol, without our limits

The program attacks a service that it has started itself on 127.0.0.1, with a bounded number of connections for a bounded
time. Results are written to results/serve_attack.json and results/serve_attack.md unless --quick or --unlimited is given.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from measuring import HERE, machine, python, run
from serve import Service, _usage
from tables import Ledger

PROTOCOL = [
    "A client posts 200 votes per second over 64 connections, one vote per request; latencies count from the time at which a vote",
    "was due. A *newcomer* opens a connection ten times per second and posts one vote; its latency includes the connection.",
    "Meanwhile strangers hold connections to the same port: *half-open* sends half of a header, *slow-header* a byte of it per",
    "second, *endless-header* 2 MB of it per second, *silent* nothing, *unread* requests pages and never reads them. A connection",
    "that the service closes is opened again after five seconds. *Addresses* is the number of client addresses of the strangers;",
    "with 1, they share that of the client. Client, strangers, service and fits share the machine. The attack begins six",
    "seconds before the votes; *open* is the largest number of files of the service, *peak_MB* its peak memory.",
]
#: Attack, number of connections, number of client addresses.
ATTACKS = [
    ("none", 0, 1), ("half-open", 5_000, 1), ("half-open", 5_000, 100), ("slow-header", 5_000, 1), ("slow-header", 5_000, 100),
    ("silent", 5_000, 1), ("endless-header", 50, 1), ("unread", 1_000, 1),
]  # fmt: skip
VOTES_PER_SECOND = 200
#: Seconds in which the strangers open their connections before the votes start.
WARM_UP_SECONDS = 6.0


def measure(
    attack: str, n_connections: int, n_addresses: int, seconds: float, program: tuple[str, ...]
) -> dict[str, Any]:
    """Return the figures of an attack."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "votes.db")
        service.start(program=program)
        assert service.process is not None
        pid = service.process.pid
        environment = {**os.environ, "WISECROWD_TOKEN": service.token}
        attacker = None
        if n_connections:
            command = python(
                "programs/serve_attacker.py", service.port, attack, n_connections, seconds + 5, n_addresses
            )
            attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        newcomer = subprocess.Popen(
            python("programs/serve_newcomer.py", service.port, seconds),
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        n_files = [0]
        stop = threading.Event()

        def count_files() -> None:
            while not stop.wait(0.2):
                n_files[0] = max(n_files[0], len(os.listdir(f"/proc/{pid}/fd")))

        counter = threading.Thread(target=count_files)
        counter.start()
        n_votes = int(VOTES_PER_SECOND * seconds)
        try:
            votes = run(service.client(VOTES_PER_SECOND, 0, n_votes, 5, Path(folder) / "acknowledged"), **environment)
            arrivals = json.loads(newcomer.communicate()[0])
            opened = json.loads(attacker.communicate()[0]) if attacker else {}
            usage = _usage(pid)
        finally:
            stop.set()
            counter.join()
            for process in (attacker, newcomer):
                if process is not None and process.poll() is None:
                    process.kill()
            service.kill(signal.SIGTERM)
    return {
        "attack": attack, "connections": n_connections, "addresses": n_addresses, "opened": opened.get("opened", 0),
        "votes": votes["votes"], "not_stored": n_votes - votes["votes"] + votes["refused"], "ms_p50": 1e3 * votes["vote_p50"],
        "ms_p99": 1e3 * votes["vote_p99"], "ms_p999": 1e3 * votes["vote_p99.9"], "ms_worst": 1e3 * votes["vote_worst"],
        "newcomers": arrivals["n"], "newcomers_failed": arrivals["failed"], "ms_newcomer_p50": 1e3 * arrivals["p50"],
        "ms_newcomer_p99": 1e3 * arrivals["p99"], "open": n_files[0], "peak_MB": usage["peak_MB"],
        "cpu_seconds": usage["cpu_seconds"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="all by default")
    parser.add_argument("--quick", action="store_true", help="few connections for a short time")
    parser.add_argument("--unlimited", action="store_true", help="the protocol of uvicorn instead of our limits")
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of an attack; 30 by default, 60 at most")
    parser.add_argument("-o", "--output", type=Path, default=None, help="folder of the results")
    arguments = parser.parse_args()
    if unknown := set(arguments.attacks) - {attack for attack, _, _ in ATTACKS}:
        parser.error(f"there is no attack {', '.join(unknown)}")
    seconds = 5.0 if arguments.quick else min(arguments.seconds, 60.0)
    program = (str(HERE / "programs/serve_unlimited.py"),) if arguments.unlimited else ("-m", "wisecrowd")
    ledger = Ledger()
    for attack, n_connections, n_addresses in ATTACKS:
        if arguments.attacks and attack not in arguments.attacks:
            continue
        n_connections = min(n_connections, 200) if arguments.quick else n_connections
        row = measure(attack, n_connections, n_addresses, seconds, program)
        ledger.note("Attacks", **row)
        name = f"{attack}, {n_connections:,} connections from {n_addresses}"
        ledger.want(f"{name}: ms until 99% of the votes are acknowledged", row["ms_p99"], at_most=100)
        ledger.want(f"{name}: votes not stored", row["not_stored"], at_most=0)
        ledger.want(f"{name}: newcomers not served", row["newcomers_failed"], at_most=0)
        time.sleep(1.0)
    is_record = not (arguments.quick or arguments.unlimited or arguments.attacks)
    folder = arguments.output or (HERE / "results" if is_record else None)
    versions = machine(names=("numpy", "fastapi", "uvicorn", "httptools", "uvloop", "sqlalchemy"))
    ledger.report("serve_attack", "Service under attack", versions, PROTOCOL, folder)


if __name__ == "__main__":
    main()

"""Attacks of strangers on the service while a client posts votes.

    python benchmarks/serve_attack.py --quick                # 200 connections, some seconds, nothing written
    python benchmarks/serve_attack.py                        # 5,000 connections, all attacks (about ten minutes)
    python benchmarks/serve_attack.py --unlimited half-open  # the same with uvicorn's protocol, without our limits

The program attacks a service that it has started itself on 127.0.0.1, with a bounded number of connections for a bounded
time. Unless --quick or --unlimited is given, the runs are appended to results/serve_attack.json, because a shared machine
varies; none is replaced. results/serve_attack.md is written from that file. Its targets are about all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
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
    "seconds before the votes; *open* is the largest number of files of the service, *peak_MB* its peak memory. *Load*",
    "is the load average of the machine before the run, and *ms_p99_without* the latency in a run of ten seconds without an attack",
    "just before. Every run has a row and none is left out. Runs that began on a busy machine, with a load above 3 on two cores,",
    "show how the machine was shared rather than what the attack did; their targets are stated separately.",
]
#: Attack, number of connections, number of client addresses.
ATTACKS = [
    ("none", 0, 1), ("half-open", 5_000, 1), ("half-open", 5_000, 100), ("slow-header", 5_000, 1), ("slow-header", 5_000, 100),
    ("silent", 5_000, 1), ("endless-header", 50, 1), ("unread", 1_000, 1),
]  # fmt: skip
VOTES_PER_SECOND = 200
#: Seconds in which the strangers open their connections before the votes start.
WARM_UP_SECONDS = 6.0
#: Load average up to which two cores count as quiet; the attack itself raises it.
QUIET_LOAD = 3.0


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
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a quiet machine before each run")
    parser.add_argument("-o", "--output", type=Path, default=None, help="folder of the results")
    arguments = parser.parse_args()
    if unknown := set(arguments.attacks) - {attack for attack, _, _ in ATTACKS}:
        parser.error(f"there is no attack {', '.join(unknown)}")
    seconds = 5.0 if arguments.quick else min(arguments.seconds, 60.0)
    program = (str(HERE / "programs/serve_unlimited.py"),) if arguments.unlimited else ("-m", "wisecrowd")
    is_recorded = not (arguments.quick or arguments.unlimited)
    folder = arguments.output or (HERE / "results" if is_recorded else None)
    path = folder / "serve_attack.json" if folder else None
    ledger = Ledger()
    if path is not None and path.exists():
        ledger.tables = json.loads(path.read_text())["tables"]
    versions = machine(names=("numpy", "fastapi", "uvicorn", "httptools", "uvloop", "sqlalchemy"))
    for attack, n_connections, n_addresses in ATTACKS:
        if arguments.attacks and attack not in arguments.attacks:
            continue
        n_connections = min(n_connections, 200) if arguments.quick else n_connections
        load = _wait_for_quiet(arguments.wait)
        baseline = measure("none", 0, 1, 5.0 if arguments.quick else 10.0, program)["ms_p99"]
        row = measure(attack, n_connections, n_addresses, seconds, program)
        ledger.note("Attacks", load=load, ms_p99_without=baseline, **row)
    _set_targets(ledger)
    ledger.report("serve_attack", "Service under attack", versions, PROTOCOL, folder)


def _wait_for_quiet(seconds: float) -> float:
    """Wait some time for the load of the machine to fall, and return it. The choice is made before a run, not after it."""
    end = time.monotonic() + seconds
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < end:
        time.sleep(5.0)
    return round(os.getloadavg()[0], 1)


def _set_targets(ledger: Ledger) -> None:
    """State the targets about all recorded runs of each attack."""
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in ledger.tables.get("Attacks", []):
        groups.setdefault((row["attack"], row["connections"], row["addresses"]), []).append(row)
    ledger.tables["Attacks"] = [row for rows in groups.values() for row in rows]
    for (attack, n_connections, n_addresses), rows in groups.items():
        name = f"{attack}, {n_connections:,} connections from {n_addresses}"
        for condition, is_quiet in (("quiet", True), ("busy", False)):
            latencies = [row["ms_p99"] for row in rows if (row["load"] <= QUIET_LOAD) == is_quiet]
            if latencies:
                metric = f"{name}: ms until 99% of the votes are acknowledged, {condition} machine"
                ledger.want(f"{metric}, median of {len(latencies)} runs", statistics.median(latencies), at_most=100)
                ledger.want(f"{metric}, worst of {len(latencies)} runs", max(latencies), at_most=100)
        n_lost = sum(row["not_stored"] + row["newcomers_failed"] for row in rows)
        ledger.want(f"{name}: votes not stored and newcomers not served", n_lost, at_most=0)


if __name__ == "__main__":
    main()

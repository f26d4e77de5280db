"""Benchmark of the service: steady load, kills, fuzzed requests, and distance of its answers from a batch fit.

    python benchmarks/serve.py --quick            # all parts, small
    python benchmarks/serve.py load kills         # some parts, in full

Parts: load (five minutes), stalls, throughput, kills, fuzz (a quarter of an hour), replay (half an hour) and early; the last two
need WISECROWD_DATA. Results of a part replace the previous ones in results/serve.json; runs of the load are appended.
results/serve.md is written from that file. With --quick, nothing is written unless -o is given.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from measuring import HERE, machine, python, run
from tables import Ledger, markdown

PROTOCOL = [
    "*Load*: a client sends votes at a constant rate over 64 connections, one vote per request, whether or not earlier requests",
    "were answered, and reads ten answers per second. Latencies count from the time at which a vote was due. An answer means",
    "that the vote is on disk (SQLite, write-ahead log, synchronous). Client, service and background processes share the",
    "machine. The votes in the database are counted at the end. Each run has a row. *Costs*: longest processor time of all that",
    "can hold up votes, with as many votes as a run of five minutes has; it does not depend on what else the machine does.",
    "*Stalls*: 20 seconds of load at a lower rate, as the machine is, and while other programs use the disk (three, writing 512",
    "MB and waiting for the disk, again and again) or the processors (two endless loops). The columns are the longest durations in",
    "milliseconds: votes (also the 99.9 % quantile), transactions with waiting for the disk, garbage collections, adoptions of",
    "fits, waiting for readers, and two probes outside of the service, of waiting for the disk and of waking up.",
    "*Throughput*: 64 connections send votes as",
    "fast as they are answered, to the service with its limits of connections and to the same service with uvicorn's protocol,",
    "in turns; medians, and processor time of the service without its fits. *Kills*: the service receives SIGKILL at",
    "random times under load and is started again; votes without an acknowledgement are sent again. All acknowledged votes must",
    "be in the database exactly once, and the labels after the last fit must equal those of a fit in memory. *Fuzz*: valid and",
    "invalid requests that schemathesis draws from the OpenAPI description, and arbitrary JSON and bytes. *Replay*: the first half",
    "of the votes of a public crowd, in random order (one seed), is present at the start; the others arrive one by one, and fits",
    "follow the schedule of the service. Before each fit, the labels of the service are compared with those of the fit: *mean*",
    "and *worst* are the shares of equal labels. *Votes per second at this schedule* is the rate at which the fits use a third of",
    "a core. *Early*: accuracy with the first votes of public crowds, in random order (one seed), on tasks with votes.",
]

EARLY = (
    "labelme", "music_genre", "face_sentiment", "sentiment_polarity", "trec2010_rf", "rte", "dog", "bluebirds", "web_search",
    "weather_amt", "product_matching", "adult_content2", "wsd", "fact_eval", "d_possent",
)  # fmt: skip


class Service:
    """Service in its own process."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.token = secrets.token_hex()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, program: tuple[str, ...] = ("-m", "wisecrowd")) -> float:
        """Start the service, wait until it answers, and return the number of seconds."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, *program, "serve", str(self.database), "--port", str(self.port), "--quiet"]
        started_at = time.perf_counter()
        self.process = subprocess.Popen(command, env={**os.environ, "WISECROWD_TOKEN": self.token})
        while True:
            with suppress(OSError):
                self.ask("GET", "/health")
                return time.perf_counter() - started_at
            if self.process.poll() is not None:
                raise SystemExit("the service did not start")
            time.sleep(0.05)

    def ask(self, method: str, path: str) -> Any:
        """Return the JSON answer to a request."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def longest_durations(self) -> dict[str, float]:
        """Return the longest durations of everything that the service measures, in milliseconds."""
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            lines = answer.read().decode().splitlines()
        pattern = re.compile(r"wisecrowd_(\w+)_seconds_max (\S+)")
        return {match[1]: 1e3 * float(match[2]) for line in lines if (match := pattern.fullmatch(line))}

    def client(self, *arguments: object) -> list[str]:
        return python("programs/serve_client.py", self.port, *arguments)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()

    def labels(self) -> dict[str, str]:
        """Return the label of every task."""
        labels: dict[str, str] = {}
        start: int | None = 0
        while start is not None:
            page = self.ask("GET", f"/consensus?limit=1000&start={start}")
            labels.update((row["task"], row["label"]) for row in page["tasks"])
            start = page["next"]
        return labels

    def stored_votes(self) -> list[int]:
        """Return the numbers of the votes in the database."""
        with sqlite3.connect(self.database) as connection:
            rows = connection.execute("SELECT source FROM records").fetchall()
        return sorted(int(json.loads(source.removeprefix("id:"))[1].removeprefix("v")) for (source,) in rows)


def load(ledger: Ledger, *, quick: bool) -> None:
    """Measure latencies at a constant rate. Runs are appended, because a shared machine varies."""
    rate, seconds = 1_000, 10 if quick else 300
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "votes.db")
        service.start()
        acknowledged = Path(folder) / "acknowledged"
        result = run(service.client(rate, 0, rate * seconds, 10, acknowledged), WISECROWD_TOKEN=service.token)
        figures = service.ask("GET", "/questions")[0]
        usage = _usage(service.process.pid) if service.process else {}
        acknowledged_votes = sorted(map(int, acknowledged.read_text().split()))
        stored = service.stored_votes()
        service.kill(signal.SIGTERM)
    ledger.note(
        "Load", votes=result["votes"], seconds=result["seconds"], votes_per_second=result["per_second"], refused=result["refused"],
        ms_p50=1e3 * result["vote_p50"], ms_p99=1e3 * result["vote_p99"], ms_p999=1e3 * result["vote_p99.9"],
        ms_worst=1e3 * result["vote_worst"],
        reads=result["reads"], ms_read_p99=1e3 * result["read_p99"], fitted_votes=figures["fit"]["n_votes"], **usage,
    )  # fmt: skip
    ledger.want("votes per second", result["per_second"], at_least=0.99 * rate)
    runs = [row["ms_p99"] for row in ledger.tables["Load"]]
    metric = "ms until 99% of the votes are acknowledged"
    ledger.want(f"{metric}, median of the runs", statistics.median(runs), at_most=50)
    ledger.want(f"{metric}, worst of the runs", max(runs), at_most=50)
    ledger.want(
        "votes acknowledged and not stored, or stored twice",
        len(set(acknowledged_votes) ^ set(stored)) + len(stored) - len(set(stored)),
        at_most=0,
    )


def stalls(ledger: Ledger, *, quick: bool) -> None:
    """Tell apart what holds up votes: the service, the disk or the processors."""
    costs = run(python("programs/serve_costs.py", 20_000 if quick else 300_000))
    ledger.note("Costs", **costs)
    names = ("ms_transaction", "ms_update", "ms_receive_fit", "ms_adopt_fit", "ms_collect_everything")
    ledger.want("ms of processor time for which the service itself holds up votes, all at once",
                sum(costs[name] for name in names), at_most=250)  # fmt: skip
    rate, seconds = 200, 5 if quick else 20
    for condition in ("as it is", "disk busy", "processors busy"):
        with tempfile.TemporaryDirectory() as folder:
            service = Service(Path(folder) / "votes.db")
            service.start()
            disturbances = [subprocess.Popen(command, cwd=folder) for command in _DISTURBANCES.get(condition, [])]
            probe = subprocess.Popen(python("programs/serve_probe.py", folder, seconds), stdout=subprocess.PIPE)
            load_average = os.getloadavg()[0]
            try:
                client = service.client(rate, 0, rate * seconds, 5, Path(folder) / "acknowledged")
                result = run(client, WISECROWD_TOKEN=service.token)
            finally:
                for process in disturbances:
                    process.kill()
                    process.wait()
            probed = json.loads(probe.communicate()[0])
            longest = service.longest_durations()
            service.kill(signal.SIGTERM)
        ledger.note(
            "Stalls", condition=condition, load_average=load_average, votes=result["votes"], p50=1e3 * result["vote_p50"],
            p99=1e3 * result["vote_p99"], p999=1e3 * result["vote_p99.9"], worst=1e3 * result["vote_worst"],
            transaction=longest["commit"], garbage=longest["gc"], adoption=longest["fit_adoption"],
            readers=longest["lock_wait"], probe_disk=1e3 * probed["fsync_worst"], probe_wake=1e3 * probed["wake_worst"],
        )  # fmt: skip


#: Programs that use the disk or the processors, by condition.
_DISTURBANCES = {
    "disk busy": [
        ["bash", "-c", f"while :; do dd if=/dev/zero of=disturbance{n} bs=1M count=512 conv=fsync 2>&1; done > log{n}"]
        for n in range(3)
    ],
    "processors busy": [[sys.executable, "-c", "while True: pass"]] * 2,
}


def throughput(ledger: Ledger, *, quick: bool) -> None:
    """Compare the limits of connections with the protocol of uvicorn, in turns."""
    n_repeats, n_votes, unlimited = (2, 3_000, 1e9) if quick else (8, 20_000, 1e9)
    programs = {"limits": ("-m", "wisecrowd"), "uvicorn": (str(HERE / "programs/serve_unlimited.py"),)}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for repeat in range(n_repeats):
        for name in programs if repeat % 2 else reversed(programs):
            with tempfile.TemporaryDirectory() as folder:
                service = Service(Path(folder) / "votes.db")
                service.start(program=programs[name])
                command = service.client(unlimited, 0, n_votes, 0, Path(folder) / "acknowledged")
                assert service.process is not None
                before = _usage(service.process.pid)["cpu_seconds"]
                result = run(command, WISECROWD_TOKEN=service.token)
                cpu_seconds = _usage(service.process.pid)["cpu_seconds"] - before
                service.kill(signal.SIGTERM)
            runs[name].append((result["per_second"], 1e6 * cpu_seconds / n_votes))
    medians = {}
    for name, rows in runs.items():
        rates, costs = zip(*rows, strict=True)
        medians[name] = statistics.median(costs)
        ledger.note(
            "Throughput", protocol=name, runs=len(rows), votes_per_second=statistics.median(rates), slowest=min(rates),
            fastest=max(rates), cpu_microseconds_per_vote=medians[name],
        )  # fmt: skip
    ledger.want(
        "processor time of a vote with limits, as a multiple of uvicorn",
        medians["limits"] / medians["uvicorn"],
        at_most=1.05,
    )


def kills(ledger: Ledger, *, quick: bool) -> None:
    """Send SIGKILL under load and count lost votes."""
    n_kills, rate = (3, 500) if quick else (20, 500)
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "votes.db")
        acknowledged = Path(folder) / "acknowledged"
        acknowledged.touch()
        first, starts, lost, unacknowledged = 0, [], 0, 0
        for turn in range(n_kills + 1):
            starts.append(service.start())
            client = subprocess.Popen(
                service.client(rate, first, first + 4 * rate, 5, acknowledged), stdout=subprocess.DEVNULL,
                env={**os.environ, "WISECROWD_TOKEN": service.token},
            )  # fmt: skip
            if turn < n_kills:
                time.sleep(0.3 + 3 * chance.random())
                service.kill()
            client.wait()
            acknowledged_votes, stored = set(map(int, acknowledged.read_text().split())), service.stored_votes()
            lost += len(acknowledged_votes - set(stored))
            unacknowledged += len(set(stored) - acknowledged_votes)
            # Votes without an acknowledgement are sent again, from the first gap on.
            first = next(n for n in range(max(acknowledged_votes, default=-1) + 2) if n not in acknowledged_votes)
        service.ask("POST", "/refit")
        labels = service.labels()
        stored = service.stored_votes()
        equal_share = _compare_with_batch(labels, stored)
        service.kill(signal.SIGTERM)
    ledger.note(
        "Kills", kills=n_kills, votes=len(stored), acknowledged_and_lost=lost, stored_but_not_acknowledged=unacknowledged,
        twice=len(stored) - len(set(stored)), seconds_to_start=max(starts), labels_equal_to_batch_fit=equal_share,
    )  # fmt: skip
    ledger.want("kills", n_kills, at_least=n_kills)
    ledger.want("acknowledged votes lost in kills", lost, at_most=0)
    ledger.want("share of labels equal to those of a batch fit", equal_share, at_least=1)


def fuzz(ledger: Ledger, *, quick: bool) -> None:
    """Send arbitrary requests and count errors of the service."""
    n_requests = 2_000 if quick else 100_000
    runs = [run(python("programs/serve_fuzz.py", n_requests // 2, seed)) for seed in (7, 9)]
    requests, errors = (sum(result[name] for result in runs) for name in ("requests", "errors"))
    answers = sum((Counter(result["answers"]) for result in runs), Counter())
    if errors:
        print(
            "first errors of the service:",
            *(runs[0]["first"] + runs[1]["first"]),
            sep="\n",
            file=sys.stderr,
        )
    statuses = ", ".join(f"{status}: {n:,}" for status, n in sorted(answers.items()))
    seconds = sum(result["seconds"] for result in runs)
    ledger.note("Fuzz", requests=requests, seconds=seconds, answers=statuses, errors=errors)
    ledger.want("fuzzed requests", requests, at_least=n_requests)
    ledger.want("errors of the service (500)", errors, at_most=0)


def replay(ledger: Ledger, *, quick: bool) -> None:
    """Compare labels after single votes with those of batch fits."""
    for name in ("sentiment_polarity", "trec2010_rf"):
        for method in ("one-coin", "ibcc", "dawid-skene"):
            result = run(python("programs/serve_replay.py", name, method, 0.51 if quick else 1.0))
            ledger.note("Replay", **result)
            metric = f"{name}, {method}: share of labels equal to those of a batch fit, before it"
            ledger.want(f"{metric}, mean", result["mean"], at_least=0.99)
            ledger.want(f"{metric}, worst", result["worst"], at_least=0.99)


def early(ledger: Ledger, *, quick: bool) -> None:
    """Measure the accuracy of labels while votes are few."""
    for name in EARLY[: 2 if quick else None]:
        for row in run(python("programs/serve_early.py", name))["rows"]:
            ledger.note("Early", **row)


def _usage(pid: int) -> dict[str, float]:
    """Return the processor seconds and the peak memory of a process."""
    nanoseconds = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            nanoseconds += int(path.read_text().split()[0])
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"cpu_seconds": nanoseconds / 1e9, "peak_MB": peak / 1e3}


def _compare_with_batch(labels: dict[str, str], stored: list[int]) -> float:
    """Return the share of tasks with the same label as a fit in memory to the same votes."""
    sys.path.insert(0, str(HERE / "programs"))
    from serve_client import make_vote

    import wisecrowd as wc

    votes = [make_vote(n) for n in stored]
    triples = [(vote["task"], vote["worker"], vote["label"]) for vote in votes]
    crowd = wc.Crowd.from_triples(triples, duplicates="last")
    batch = wc.DawidSkene().fit(crowd).labels_
    return float((batch == batch.index.map(labels)).mean())


PARTS = {
    "load": load,
    "stalls": stalls,
    "throughput": throughput,
    "kills": kills,
    "fuzz": fuzz,
    "replay": replay,
    "early": early,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small; nothing is written unless -o is given")
    parser.add_argument("-o", "--output", type=Path, default=None, help="folder of the results")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    folder = arguments.output or (None if arguments.quick else HERE / "results")
    path = folder / "serve.json" if folder else None
    results = json.loads(path.read_text()) if path and path.exists() else {"tables": {}, "of": {}}
    for part in arguments.parts or PARTS:
        ledger = Ledger()
        if part == "load":
            ledger.tables["Load"] = results["tables"].get("Load", [])
        load_average = os.getloadavg()[0]
        PARTS[part](ledger, quick=arguments.quick)
        results["of"][part] = {"targets": ledger.targets, "load": round(load_average, 1)}
        results["tables"].update(ledger.tables)
        results["machine"] = machine(names=("numpy", "pandas", "numba", "fastapi", "uvicorn", "sqlalchemy"))
        results["machine"]["load when a part began"] = ", ".join(
            f"{name} {result['load']}" for name, result in results["of"].items()
        )
        results["protocol"] = PROTOCOL
        results["targets"] = [target for result in results["of"].values() for target in result["targets"]]
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "serve.json").write_text(json.dumps(results, indent=2) + "\n")
            (folder / "serve.md").write_text(markdown("Service under load", results))
    print(markdown("Service under load", results))


if __name__ == "__main__":
    main()

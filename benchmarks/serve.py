"""What the service bears: a steady load, kills, and requests of any kind; and how far its answers are from a batch fit.

    python benchmarks/serve.py --quick            # every part, small
    python benchmarks/serve.py load kills         # some parts, in full

Parts: load (five minutes), kills, fuzz (a quarter of an hour), replay (half an hour) and early; the last two need WISECROWD_DATA.
What a part finds takes the place of what it found before, and runs of the load are added, in results/serve.json, from which
results/serve.md is written (--quick: nothing unless -o is given).
"""

from __future__ import annotations

import argparse
import json
import os
import random
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
    "*Load*: a program of its own sends votes at a steady rate over 64 connections, one in a request, whether or not those before",
    "were answered, and asks ten questions a second beside; a latency counts from the moment at which the vote was due, and an",
    "answer means that the vote is on the disk (SQLite, a write-ahead log, synchronous). Client, service and the",
    "process that fits share the machine. Afterwards the votes in the database are counted. Every run has a row.",
    "*Kills*: the service is sent SIGKILL",
    "at a random moment of such a load, and started again; votes not acknowledged are sent again. Every vote that was must",
    "be there, none twice, and the answers of a last fit must be those of a fit to the same votes in memory. *Fuzz*: requests by",
    "schemathesis, after the service's own description, right and wrong, and JSON and bytes of any kind. *Replay*: the first half",
    "of the votes of a public crowd, in random order (one seed), is there from the start, the others come one by one, and fits to",
    "all of them are made at the pace that the service chooses. Just before each, labels as the service has them are compared with",
    "those that it finds: *mean* and *worst* are the shares of labels that are the same, and *votes a second that it follows* the",
    "rate up to which fits come at that pace, when they may take a third of the time of one core. *Early*: accuracy with the first",
    "so many votes of public crowds, in random order (one seed), over tasks that have one.",
]

EARLY = (
    "labelme", "music_genre", "face_sentiment", "sentiment_polarity", "trec2010_rf", "rte", "dog", "bluebirds", "web_search",
    "weather_amt", "product_matching", "adult_content2", "wsd", "fact_eval", "d_possent",
)  # fmt: skip


class Service:
    """The service, in a process of its own."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.token = secrets.token_hex()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it and wait until it answers; seconds that it took."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "wisecrowd", "serve", str(self.database), "--port", str(self.port), "--quiet"]
        begun = time.perf_counter()
        self.process = subprocess.Popen(command, env={**os.environ, "WISECROWD_TOKEN": self.token})
        while True:
            with suppress(OSError):
                self.ask("GET", "/health")
                return time.perf_counter() - begun
            if self.process.poll() is not None:
                raise SystemExit("the service did not start")
            time.sleep(0.05)

    def ask(self, method: str, path: str) -> Any:
        """An answer, as JSON."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def client(self, *arguments: object) -> list[str]:
        return python("programs/serve_client.py", self.port, *arguments)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()

    def labels(self) -> dict[str, str]:
        """What the service says of every task."""
        found: dict[str, str] = {}
        start: int | None = 0
        while start is not None:
            page = self.ask("GET", f"/consensus?limit=1000&start={start}")
            found.update((row["task"], row["label"]) for row in page["answers"])
            start = page["next"]
        return found

    def kept(self) -> list[int]:
        """Numbers of the votes that are in the database."""
        with sqlite3.connect(self.database) as connection:
            rows = connection.execute("SELECT source FROM entries").fetchall()
        return sorted(int(json.loads(source.removeprefix("id:"))[1].removeprefix("v")) for (source,) in rows)


def load(ledger: Ledger, *, quick: bool) -> None:
    """A steady load; runs of it stand beside each other, for a shared machine has its moments."""
    rate, seconds = 1_000, 10 if quick else 300
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "votes.db")
        service.start()
        acknowledged = Path(folder) / "acknowledged"
        found = run(service.client(rate, 0, rate * seconds, 10, acknowledged), WISECROWD_TOKEN=service.token)
        figures = service.ask("GET", "/questions")[0]
        usage = _usage(service.process.pid) if service.process else {}
        sure = sorted(map(int, acknowledged.read_text().split()))
        kept = service.kept()
        service.kill(signal.SIGTERM)
    ledger.note(
        "Load", votes=found["votes"], seconds=found["seconds"], votes_per_second=found["per_second"], refused=found["refused"],
        ms_p50=1e3 * found["vote_p50"], ms_p99=1e3 * found["vote_p99"], ms_p999=1e3 * found["vote_p99.9"],
        ms_worst=1e3 * found["vote_worst"],
        reads=found["reads"], ms_read_p99=1e3 * found["read_p99"], fitted_votes=figures["fit"]["votes"], **usage,
    )  # fmt: skip
    ledger.want("votes per second", found["per_second"], at_least=0.99 * rate)
    runs = [row["ms_p99"] for row in ledger.tables["Load"]]
    what = "ms until 99 of 100 votes were acknowledged"
    ledger.want(f"{what}, median of the runs", statistics.median(runs), at_most=50)
    ledger.want(f"{what}, worst of the runs", max(runs), at_most=50)
    ledger.want(
        "votes acknowledged and not kept, or kept twice",
        len(set(sure) ^ set(kept)) + len(kept) - len(set(kept)),
        at_most=0,
    )


def kills(ledger: Ledger, *, quick: bool) -> None:
    """SIGKILL under load."""
    n_kills, rate = (3, 500) if quick else (20, 500)
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "votes.db")
        acknowledged = Path(folder) / "acknowledged"
        acknowledged.touch()
        first, starts, lost, unsure = 0, [], 0, 0
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
            sure, kept = set(map(int, acknowledged.read_text().split())), service.kept()
            lost += len(sure - set(kept))
            unsure += len(set(kept) - sure)
            # What was not acknowledged is sent again, from the first gap on.
            first = next(n for n in range(max(sure, default=-1) + 2) if n not in sure)
        service.ask("POST", "/refit")
        labels = service.labels()
        kept = service.kept()
        same = _same_as_batch(labels, kept)
        service.kill(signal.SIGTERM)
    ledger.note(
        "Kills", kills=n_kills, votes=len(kept), acknowledged_and_lost=lost, kept_but_not_acknowledged=unsure,
        twice=len(kept) - len(set(kept)), seconds_to_start=max(starts), labels_as_of_a_batch_fit=same,
    )  # fmt: skip
    ledger.want("kills", n_kills, at_least=n_kills)
    ledger.want("acknowledged votes lost in kills", lost, at_most=0)
    ledger.want("share of labels that equal those of a batch fit", same, at_least=1)


def fuzz(ledger: Ledger, *, quick: bool) -> None:
    """Requests of any kind."""
    wanted = 2_000 if quick else 100_000
    each = [run(python("programs/serve_fuzz.py", wanted // 2, seed)) for seed in (7, 9)]
    requests, errors = (sum(found[name] for found in each) for name in ("requests", "errors"))
    answers = sum((Counter(found["answers"]) for found in each), Counter())
    if errors:
        print(
            "errors of the service, the first of them:",
            *(each[0]["first"] + each[1]["first"]),
            sep="\n",
            file=sys.stderr,
        )
    told = ", ".join(f"{status}: {n:,}" for status, n in sorted(answers.items()))
    ledger.note("Fuzz", requests=requests, seconds=sum(found["seconds"] for found in each), answers=told, errors=errors)
    ledger.want("fuzzed requests", requests, at_least=wanted)
    ledger.want("errors of the service (500)", errors, at_most=0)


def replay(ledger: Ledger, *, quick: bool) -> None:
    """Votes one after the other, beside batch fits."""
    for name in ("sentiment_polarity", "trec2010_rf"):
        for method in ("one-coin", "ibcc", "dawid-skene"):
            found = run(python("programs/serve_replay.py", name, method, 0.51 if quick else 1.0))
            ledger.note("Replay", **found)
            what = f"{name}, {method}: labels that are those of a batch fit, just before it"
            ledger.want(f"{what}, mean", found["mean"], at_least=0.99)
            ledger.want(f"{what}, worst", found["worst"], at_least=0.99)


def early(ledger: Ledger, *, quick: bool) -> None:
    """What labels are worth while votes are few."""
    for name in EARLY[: 2 if quick else None]:
        for row in run(python("programs/serve_early.py", name))["rows"]:
            ledger.note("Early", **row)


def _usage(pid: int) -> dict[str, float]:
    """Processor seconds and memory of a process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    ticks = os.sysconf("SC_CLK_TCK")
    return {"cpu_seconds": (int(stat[11]) + int(stat[12])) / ticks, "peak_MB": peak / 1e3}


def _same_as_batch(labels: dict[str, str], kept: list[int]) -> float:
    """The share of tasks on which the service says what a fit in memory to the same votes says."""
    sys.path.insert(0, str(HERE / "programs"))
    from serve_client import vote

    import wisecrowd as wc

    votes = [vote(n) for n in kept]
    crowd = wc.Crowd.from_triples([(one["task"], one["worker"], one["label"]) for one in votes], duplicates="last")
    batch = wc.DawidSkene().fit(crowd).labels_
    return float((batch == batch.index.map(labels)).mean())


PARTS = {"load": load, "kills": kills, "fuzz": fuzz, "replay": replay, "early": early}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all unless given")
    parser.add_argument("--quick", action="store_true", help="small, and nothing is written unless -o is given")
    parser.add_argument("-o", "--output", type=Path, default=None, help="folder of the results")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    folder = asked.output or (None if asked.quick else HERE / "results")
    kept = folder / "serve.json" if folder else None
    results = json.loads(kept.read_text()) if kept and kept.exists() else {"tables": {}, "of": {}}
    for part in asked.parts or PARTS:
        ledger = Ledger()
        if part == "load":
            ledger.tables["Load"] = results["tables"].get("Load", [])
        begun = os.getloadavg()[0]
        PARTS[part](ledger, quick=asked.quick)
        results["of"][part] = {"targets": ledger.targets, "load": round(begun, 1)}
        results["tables"].update(ledger.tables)
        results["machine"] = machine(names=("numpy", "pandas", "numba", "fastapi", "uvicorn", "sqlalchemy"))
        results["machine"]["load when a part began"] = ", ".join(
            f"{name} {one['load']}" for name, one in results["of"].items()
        )
        results["protocol"] = PROTOCOL
        results["targets"] = [target for one in results["of"].values() for target in one["targets"]]
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "serve.json").write_text(json.dumps(results, indent=2) + "\n")
            (folder / "serve.md").write_text(markdown("What the service bears", results))
    print(markdown("What the service bears", results))


if __name__ == "__main__":
    main()

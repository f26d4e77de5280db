"""Speed of aggregation, compared with crowd-kit and with a textbook C kernel in the same run.

    python benchmarks/aggregate.py --quick            # up to a million votes, few repeats
    python benchmarks/aggregate.py                    # up to ten million, and real data when WISECROWD_DATA is set

Writes results/aggregate.json and results/aggregate.md beside this file (--quick: nothing unless -o is given).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import HERE, in_turns, machine, peer_python, python, run
from tables import Ledger, Row

CLASSES = 5
PROTOCOL = [
    "Votes: 5 per task on average, activity of workers by Zipf's law, 5 classes, string ids, rows shuffled.",
    "A *pass* takes both sums of Dawid-Skene's EM over the votes; an *iteration* adds the step from sums to parameters.",
    "The C kernel (`textbook.c`, `cc -O3 -march=native`) makes one fused pass in log space over votes that are sorted",
    "and coded already. *End to end* begins, after the imports, with a Parquet file and ends with labels in memory;",
    "*process* also counts the start of the interpreter and the imports. Contenders take turns; figures are medians;",
    "every end-to-end run is a process of its own, and its memory is the peak of that process. Seconds are of the clock,",
    "with the processor's beside them; ratios are of the processor's, which other programs disturb less.",
]

TEN = {"max_iter": 10, "tol": 0}
PEER_MOST = 1_000_000  # beyond, crowd-kit takes minutes and tells nothing new

#: Ours, its settings, theirs, its settings, votes, and how many times faster ours should be.
CONTESTS: list[tuple[str, Row, str, Row, int, float]] = [
    ("OneCoin", {}, "OneCoinDawidSkene", {"n_iter": 10}, 200_000, 50),
    ("MACE", {}, "MACE", {"n_restarts": 10, "n_iter": 50}, 200_000, 50),
    ("MMSR", {}, "MMSR", {}, 50_000, 10),
    ("GLAD", {}, "GLAD", {"n_iter": 1}, 200_000, 100),
]


def ours(votes: Path, truth: Path, method: str, **parameters: Any) -> list[str]:
    return python("programs/ours.py", votes, truth, method, json.dumps(parameters))


def workers_for(n_votes: int) -> int:
    return min(10_000, n_votes // 50)


class Benchmark(Ledger):
    """The parts of the benchmark, each of which notes its rows."""

    def __init__(self, folder: Path, peer: str, sizes: list[int], repeats: int) -> None:
        super().__init__()
        self.folder, self.peer, self.sizes, self.repeats = folder, peer, sizes, repeats

    def votes(self, n_votes: int, n_workers: int, n_classes: int) -> tuple[Path, Path]:
        folder = self.folder / f"{n_votes}-{n_workers}-{n_classes}"
        if not folder.exists():
            run(python("crowds.py", folder, n_votes, n_workers, n_classes))
        return folder / "votes.parquet", folder / "truth.parquet"

    def passes(self) -> None:
        for size in self.sizes:
            repeats = max(3, self.repeats if size > 1_000_000 else 2 * self.repeats)
            figures = run(python("passes.py", size, workers_for(size), CLASSES, repeats))
            for name, time in figures.items():
                what = name.split(", ")[1]
                base = figures[f"textbook C, {what}"]
                row = {"votes": size, "what": name, "ms": 1e3 * time["wall"], "cpu ms": 1e3 * time["cpu"]}
                self.note("One pass, one iteration", **row, **{"cpu / C": time["cpu"] / base["cpu"]})
            if size >= 1_000_000:
                limit = 0.7 if size == 1_000_000 else 1.0
                for name in ("compiled, pass", "DawidSkene, iteration"):
                    ratio = figures[name]["cpu"] / figures[f"textbook C, {name.split(', ')[1]}"]["cpu"]
                    self.want(f"{name} / textbook C, {size:,} votes", ratio, limit)
            if size >= 10_000_000:  # a pass of few milliseconds is not worth a second thread
                both = figures["compiled, pass, 2 threads"]["wall"] / figures["compiled, pass"]["wall"]
                self.want(f"pass with two threads / with one, {size:,} votes, by the clock", both, 0.8)

    def end_to_end(self) -> None:
        for size in self.sizes:
            votes, truth = self.votes(size, workers_for(size), CLASSES)
            repeats = self.repeats if size <= 1_000_000 else 1
            commands = {
                "wisecrowd": ours(votes, truth, "DawidSkene", **TEN),
                "wisecrowd, 2 threads": ours(votes, truth, "DawidSkene", **TEN, n_jobs=2),
            }
            if size <= PEER_MOST:
                commands["crowd-kit"] = self.theirs(votes, truth, "DawidSkene", n_iter=10, tol=0)
            fresh = {"WISECROWD_CACHE": str(self.folder / f"first-{size}")}
            figures = {"wisecrowd, first run ever": run(commands["wisecrowd"], **fresh), **in_turns(commands, repeats)}
            for name, row in figures.items():
                peer = figures.get("crowd-kit")
                times = {"times faster": "" if peer is None else peer["cpu"] / row["cpu"]}
                self.note("End to end, ten iterations", votes=size, what=name, **format_figures(row), **times)
            if size == 1_000_000:
                times = figures["crowd-kit"]["cpu"] / figures["wisecrowd"]["cpu"]
                self.want("times faster than crowd-kit end to end, 1,000,000 votes", times, at_least=30)
            if size == 10_000_000:
                self.want("GB at 10,000,000 votes", figures["wisecrowd"]["peak_bytes"] / 1e9, 1.5)

    def methods(self) -> None:
        """Ours to convergence or as they come; theirs with fewer iterations where they would take hours."""
        for ours_name, parameters, theirs_name, options, n_votes, at_least in CONTESTS:
            votes, truth = self.votes(n_votes, 1000, CLASSES)
            pair = {
                "wisecrowd": ours(votes, truth, ours_name, **parameters),
                "crowd-kit": self.theirs(votes, truth, theirs_name, **options),
            }
            figures = in_turns(pair, 1)
            times = figures["crowd-kit"]["cpu"] / figures["wisecrowd"]["cpu"]
            for name, settings in (("wisecrowd", parameters), ("crowd-kit", options)):
                shown = ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"
                row = {"votes": n_votes, "what": f"{name} {ours_name}", "settings": shown}
                self.note("Other methods, end to end", **row, **format_figures(figures[name]))
            self.want(f"times faster than crowd-kit, {ours_name}, {n_votes:,} votes", times, at_least=at_least)

    def theirs(self, votes: Path, truth: Path, method: str, **parameters: Any) -> list[str]:
        return python("programs/peer.py", votes, truth, method, json.dumps(parameters), interpreter=self.peer)

    def wide(self) -> None:
        for what, shape in {
            "1,000 classes": (100_000, 1_000, 1_000),
            "100,000 workers, 100 classes": (200_000, 100_000, 100),
        }.items():
            votes, truth = self.votes(*shape)
            figures = run(ours(votes, truth, "DawidSkene", **TEN))
            self.note("Many classes, many workers", votes=shape[0], what=what, **format_figures(figures))
            self.want(f"GB with {what}", figures["peak_bytes"] / 1e9, 2.0)

    def real(self) -> None:
        folder = Path(os.environ.get("WISECROWD_DATA", "")) / "pico_tokens"
        if not (folder / "annotations.parquet").exists():
            return print("pico_tokens is left out: WISECROWD_DATA does not hold it", file=sys.stderr)
        for jobs in (1, 2):
            command = ours(folder / "annotations.parquet", folder / "truth.parquet", "DawidSkene", n_jobs=jobs)
            figures = in_turns({"it": command}, min(3, self.repeats))["it"]
            name = f"wisecrowd, {jobs} thread{'s' * (jobs > 1)}"
            row = {"votes": int(figures["n_votes"]), "what": name, "iterations": int(figures["n_iter"])}
            self.note("pico_tokens, end to end to convergence", **row, **format_figures(figures))
        return None

    def first_use(self) -> None:
        votes, _ = self.votes(10_000, 200, CLASSES)
        start = "from wisecrowd.cli import main; main()"
        runs = []
        for turn in range(max(3, self.repeats)):
            folder = self.folder / f"first-use-{turn}"
            command = [sys.executable, "-c", start, "aggregate", str(votes), "-m", "dawid-skene", "-q", "-o"]
            cache = {"WISECROWD_CACHE": str(folder / "cache")}
            runs.append([run([*command, str(folder / out)], **cache)["wall"] for out in ("cold", "warm")])
        cold, warm = (sorted(column)[len(column) // 2] for column in zip(*runs, strict=True))
        self.note("The command on 10,000 votes", what="first run, nothing compiled yet", seconds=cold)
        self.note("The command on 10,000 votes", what="next run", seconds=warm)
        self.want("first run / next run of the command, 10,000 votes", cold / warm, 1.5)

    def imports(self) -> None:
        names = ("pandas", "wisecrowd")
        figures = in_turns({name: [sys.executable, "-c", f"import {name}"] for name in names}, 3 * self.repeats)
        for name in names:
            self.note("Import", what=f"import {name}", seconds=figures[name]["wall"])
        self.want("import wisecrowd / import pandas", figures["wisecrowd"]["wall"] / figures["pandas"]["wall"], 1.5)


def format_figures(figures: dict[str, Any]) -> Row:
    return {
        "seconds": figures["wall"],
        "cpu seconds": figures["cpu"],
        "process seconds": figures["process"],
        "peak GB": figures["peak_bytes"] / 1e9,
        "accuracy": figures["accuracy"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to a million votes, few repeats, no real data")
    parser.add_argument(
        "--sizes", type=lambda text: [int(float(size)) for size in text.split(",")], help="e.g. 1e5,1e6"
    )
    parser.add_argument("--repeats", type=int, help="runs of each contender")
    parser.add_argument(
        "--only", help="parts to run, comma-separated: passes,end_to_end,methods,wide,real,first_use,imports"
    )
    parser.add_argument("--peer-python", help="an interpreter with crowd-kit; without it, an environment is made")
    parser.add_argument("-o", "--output", type=Path, help="folder for aggregate.json and aggregate.md")
    options = parser.parse_args()

    parts = ["passes", "end_to_end", "first_use", "imports"] + ([] if options.quick else ["wide", "real", "methods"])
    if shutil.which("cc") is None:
        raise SystemExit("the benchmark compiles textbook.c, and there is no C compiler: install one that is called cc")
    peer = peer_python(options.peer_python)
    with tempfile.TemporaryDirectory(prefix="wisecrowd-benchmark-") as folder:
        sizes = options.sizes or ([100_000, 1_000_000] if options.quick else [100_000, 1_000_000, 10_000_000])
        benchmark = Benchmark(Path(folder), peer, sizes, options.repeats or (2 if options.quick else 5))
        for part in options.only.split(",") if options.only else parts:
            work: Callable[[], None] = getattr(benchmark, part)
            work()
    output = options.output or (None if options.quick or options.only or options.sizes else HERE / "results")
    benchmark.report("aggregate", "Speed", machine(peer), PROTOCOL, output)


if __name__ == "__main__":
    main()

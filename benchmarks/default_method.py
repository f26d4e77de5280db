"""Cost of the default method with confidence, relative to Dawid-Skene, from a hundred thousand votes to ten million.

    python benchmarks/default_method.py --quick       # up to a million votes, few repeats, nothing written
    python benchmarks/default_method.py               # up to ten million

Writes results/default_method.json and results/default_method.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import HERE, in_turns, machine, python, run
from tables import Ledger

CLASSES = 5
#: Number of votes at which the default is compared with Dawid-Skene, and the largest ratio.
COMPARED_VOTES, MAX_RATIO = 1_000_000, 5.0
#: Largest cost of a vote relative to that at `COMPARED_VOTES`, at any larger number of votes.
MAX_GROWTH = 1.3
DAWID_SKENE, DAWID_SKENE_CONFIDENCE, DEFAULT = "Dawid-Skene", "Dawid-Skene, confidence", "default, confidence"
PROTOCOL = [
    "Votes: 5 per task on average, activity of workers by Zipf's law, 5 classes, string ids, rows shuffled, Parquet.",
    "*End to end* begins, after the imports, with the file and ends with labels in memory: reading, the fit to convergence and,",
    "where it says so, the confidence of every label and the expected accuracy. *Command* is `wisecrowd aggregate` as a",
    "process, with start, imports and files; it always computes confidence. *Shards* is the same command on the same votes",
    "after `wisecrowd shard`. All take turns, each run is a process of its own, and figures are medians. Ratios are of",
    "processor seconds, which other programs disturb less than the clock.",
]


class Benchmark(Ledger):
    """The parts of the benchmark, each of which notes its rows."""

    def __init__(self, folder: Path, sizes: list[int], repeats: int) -> None:
        super().__init__()
        self.folder, self.sizes, self.repeats = folder, sizes, repeats

    def votes(self, size: int) -> tuple[Path, Path]:
        """Return the files of votes and truth, which are made if they do not exist."""
        folder = self.folder / str(size)
        if not folder.exists():
            run(python("crowds.py", folder, size, min(10_000, size // 50), CLASSES))
        return folder / "votes.parquet", folder / "truth.parquet"

    def end_to_end(self) -> None:
        """Compare from file to labels in memory."""
        cost_per_vote = {}
        for size in self.sizes:
            files = self.votes(size)
            commands = {
                DAWID_SKENE: python("programs/ours.py", *files, "DawidSkene", "{}"),
                DAWID_SKENE_CONFIDENCE: python("programs/ours.py", *files, "DawidSkene", "{}", "confidence"),
                DEFAULT: python("programs/ours.py", *files, "ModelAverage", "{}", "confidence"),
            }
            rows = in_turns(commands, self.repeats)
            for name, row in rows.items():
                ratio = row["cpu"] / rows[DAWID_SKENE]["cpu"]
                self.note(
                    "End to end", votes=size, what=name, iterations=int(row["n_iter"]),
                    **{"cpu seconds": row["cpu"], "peak GB": row["peak_bytes"] / 1e9, "accuracy": row["accuracy"], "ratio": ratio},
                )  # fmt: skip
            cost_per_vote[size] = rows[DEFAULT]["cpu"] / size
            if size >= COMPARED_VOTES:
                ratio = rows[DEFAULT]["cpu"] / rows[DAWID_SKENE]["cpu"]
                self.want(f"default with confidence / Dawid-Skene without, {size:,} votes", ratio, MAX_RATIO)
        for size in self.sizes:
            if size > COMPARED_VOTES in cost_per_vote:
                growth = cost_per_vote[size] / cost_per_vote[COMPARED_VOTES]
                self.want(f"cost of a vote, {size:,} votes / {COMPARED_VOTES:,} votes", growth, MAX_GROWTH)

    def command(self) -> None:
        """Compare ``wisecrowd aggregate`` on a file and on shards."""
        for size in self.sizes:
            if size < COMPARED_VOTES or size > 3 * COMPARED_VOTES:
                continue
            votes, _ = self.votes(size)
            program = [sys.executable, "-m", "wisecrowd"]
            shards = votes.with_name("shards")
            processor_seconds([*program, "shard", str(votes), "-o", str(shards), "-q"])
            for title, source in (("Command", votes), ("Command on shards", shards)):
                seconds: dict[str, list[float]] = {"dawid-skene": [], "model-average": []}
                for _ in range(self.repeats):
                    for method, times in seconds.items():
                        output = str(votes.with_name("results"))
                        times.append(
                            processor_seconds([*program, "aggregate", str(source), "-m", method, "-q", "-o", output])
                        )
                medians = {method: statistics.median(times) for method, times in seconds.items()}
                for method, median in medians.items():
                    ratio = {"ratio": median / medians["dawid-skene"]}
                    self.note(title, votes=size, what=f"-m {method}", **{"cpu seconds": median}, **ratio)
                ratio_of_medians = medians["model-average"] / medians["dawid-skene"]
                self.want(f"{title.lower()}: default / Dawid-Skene, {size:,} votes", ratio_of_medians, MAX_RATIO)


def processor_seconds(command: list[str]) -> float:
    """Run a command and return the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to a million votes, few repeats, nothing written")
    parser.add_argument("--repeats", type=int, help="runs of each contender")
    parser.add_argument("--folder", type=Path, help="folder of the simulated votes, kept for the next run")
    options = parser.parse_args()
    sizes = [100_000, 1_000_000] if options.quick else [100_000, 1_000_000, 3_000_000, 10_000_000]
    with tempfile.TemporaryDirectory(prefix="wisecrowd-benchmark-") as temporary:
        benchmark = Benchmark(options.folder or Path(temporary), sizes, options.repeats or (2 if options.quick else 5))
        benchmark.end_to_end()
        benchmark.command()
    output = None if options.quick else HERE / "results"
    benchmark.report("default_method", "Cost of the default method", machine(), PROTOCOL, output)


if __name__ == "__main__":
    main()

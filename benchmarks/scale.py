"""Cost of crowds that do not fit in memory or on one machine.

    python benchmarks/scale.py --quick                    # every part, small
    python benchmarks/scale.py engines kills              # some parts, in full
    python benchmarks/scale.py billion --folder /disk     # needs 8 GB there

Parts: engines, shards, costs, checks, billion, kills, cmm, bytes. The results of a part replace its earlier ones in
results/scale.json, from which results/scale.md is written (--quick: nothing unless -o is given). Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from measuring import HERE, machine, python, run
from tables import Ledger, markdown

PROTOCOL = [
    "Made crowds: five votes on every task, each by another worker, who is right with a probability of their own between",
    "0.5 and 0.95. *Engines*: contenders are processes that wait for their turn to make one pass of EM (K = 5, 10,000",
    "workers), each going on from its own last; all reach the same log-likelihood. Seconds are medians of the E-step with",
    "its sums, after a pass that does not count; shards come from a warm page cache. A ratio is to the crowd in memory with",
    "one thread, in the same run. Memory of Ray is that of the driver and its two actors together; *own* is what is not",
    "mapped from files, at rest. DuckDB holds votes(task, worker, label) in memory, adds logarithms in one join and",
    "posteriors in another, with a column for each class. *Billion*: `DawidSkene(max_iter=10, tol=0,",
    "n_jobs=2).fit(Crowd.open(folder))`, K = 4, beside it the accuracy on the first shard; `scale-billion.log` has every",
    "pass. *Kills*: SIGKILL at moments drawn at random; a driver is restarted until it ends, an actor is created again by",
    "the driver; results are compared by a digest of tally, prior and trace. *CMM*: in memory, three groups, four features,",
    "three classes, a worker for each task. *Checks*: one thread, five repeats, warm page cache. *Bytes*: counted on",
    "messages to and from two actors. The load is that of the machine when a part began: with other programs at work,",
    "trust ratios.",
]
#: Numbers of votes in a shard to try.
SHARD_SIZES = (2**24, 2**25, 2**26)
#: Limits of a fit to a billion votes; the memory limit also holds for ten million workers.
MAX_GB, MAX_MINUTES = 8, 5
#: Resolution of processor times in seconds.
TICK = 0.01
GB = 1e9


class Options(NamedTuple):
    """Settings of a part."""

    folder: Path
    share: float
    quick: bool
    output: Path | None
    keeps_crowds: bool
    """Whether crowds stay in the folder for another run."""

    def size(self, full: int) -> int:
        """Return a number of votes, tasks or workers, as a share of its full size."""
        return max(1_000, int(full * self.share))

    @property
    def shards(self) -> list[int]:
        """Numbers of votes in a shard to try."""
        return [self.size(votes) for votes in SHARD_SIZES]

    def crowd(self, n_votes: int, n_workers: int, n_classes: int, n_shards: int) -> Path:
        """Return a folder of shards, which is created if it does not exist."""
        place = self.folder / f"{n_votes}-{n_workers}-{n_classes}-{n_shards}"
        run(python("programs/scale_make.py", place, n_votes, n_workers, n_classes, n_shards))
        return place

    def delete_crowd(self, crowd: Path) -> None:
        if not self.keeps_crowds:
            shutil.rmtree(crowd)


def run_program(command: list[str]) -> list[str]:
    """Run a program and return its lines of output; its progress on standard error is shown at once."""
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}\n{process.stdout}")
    return process.stdout.splitlines()


class Contender:
    """Program that runs one pass per request."""

    def __init__(self, name: str, crowd: Path) -> None:
        command = python("programs/scale_pass.py", name, crowd)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.setup = self.read_line()["setup"]
        self.passes: list[dict[str, float]] = []

    def read_line(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended with {self.process.wait()}")
        results: dict[str, float] = json.loads(line)
        return results

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.passes.append(self.read_line())

    def end(self) -> dict[str, float]:
        """Return the medians of all passes but the first, and the figures that the program prints at its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        run_program = self.read_line()
        self.process.wait()
        keys = self.passes[0]
        return {key: statistics.median(one[key] for one in self.passes[1:]) for key in keys} | run_program


def in_turns(commands: dict[str, tuple[str, Path]], repeats: int) -> dict[str, dict[str, float]]:
    """Run the contenders in turns; all contenders on one crowd must reach the same log-likelihood."""
    contenders = {name: Contender(*command) for name, command in commands.items()}
    for _ in range(repeats + 1):
        for contender in contenders.values():
            contender.go()
    log_likelihoods: dict[Path, float] = {}
    for name, contender in contenders.items():
        results = contender.passes[-1]["log_likelihood"]
        stored = log_likelihoods.setdefault(commands[name][1], results)
        if abs(results - stored) > 1e-9 * abs(stored):
            raise SystemExit(f"{name} reached the log-likelihood {results}, another {stored}")
    return {name: contender.end() | {"setup": contender.setup} for name, contender in contenders.items()}


def engines(ledger: Ledger, options: Options) -> None:
    """Measure one pass in memory, from disk, on actors, and in SQL."""
    titles = {
        "memory": "in memory, one thread", "memory2": "in memory, two threads", "stream": "from shards, one thread",
        "ray": "two Ray actors",
        "duckdb1": "DuckDB, one thread", "duckdb2": "DuckDB, two threads",
    }  # fmt: skip
    cores = {"memory2": 2, "ray": 2, "duckdb2": 2}
    sizes = [(10**7, 7, list(titles)), (10**8, 5, ["memory", "memory2", "stream", "ray"])]
    for full, repeats, names in sizes[:1] if options.quick else sizes:
        n_votes = 10**6 if options.quick else options.size(full)
        crowd = options.crowd(n_votes, 10**4, 5, 8)
        results = in_turns({name: (name, crowd) for name in names}, repeats)
        ratios = {name: row["seconds"] / results["memory"]["seconds"] for name, row in results.items()}
        for name, row in results.items():
            columns = {
                "seconds": row["seconds"],
                "/ in memory": ratios[name],
                "x cores / in memory": cores.get(name, 1) * ratios[name],
                "cpu seconds": row["cpu"],
                "cpu / in memory": row["cpu"] / max(results["memory"]["cpu"], TICK),
                "M-step, seconds": row["m_step"],
                "peak GB": row["peak"] / GB,
                "own GB": row["resting"] / GB,
                "seconds to load": row["setup"],
            }
            ledger.note("Engines, one pass", votes=n_votes, engine=titles[name], **columns)
        ledger.want(f"from shards / in memory, {n_votes:,} votes", ratios["stream"], at_most=2)
        ledger.want(
            f"two Ray actors / in memory, {n_votes:,} votes", ratios["ray"], at_most=2.5 if full == 10**7 else 1
        )
        if full == 10**8:
            equal = ratios["ray"] / ratios["memory2"]
            ledger.want(f"two Ray actors / two threads in memory, {n_votes:,} votes", equal, at_most=1)
        if "duckdb1" in results:
            differs = max(results[name]["differs"] for name in ("duckdb1", "duckdb2"))
            ledger.want("share by which a tally in SQL differs from ours", differs, at_most=1e-6)
        options.delete_crowd(crowd)


def shards(ledger: Ledger, options: Options) -> None:
    """Measure passes by shard size: large shards amortise fixed costs, small ones can be shared by two threads."""
    n_votes, n_workers = options.size(10**8), options.size(10**6)
    numbers = {size: choose_shard_count(n_votes, size) for size in options.shards}
    crowds = {size: options.crowd(n_votes, n_workers, 4, number) for size, number in numbers.items()}
    ways = {(size, threads): f"{threads} threads, {size}" for size in options.shards for threads in (1, 2)}
    commands = {name: ("stream" if threads == 1 else "stream2", crowds[size]) for (size, threads), name in ways.items()}
    results = in_turns(commands, 3)
    # The start of a fit takes more memory than its passes.
    first_passes = {
        size: json.loads(run_program(python("programs/scale_fit.py", crowd, 1, 2))[-1])
        for size, crowd in crowds.items()
    }
    for (size, threads), name in ways.items():
        columns = {"seconds / pass": results[name]["seconds"], "cpu seconds": results[name]["cpu"]}
        if threads == 2:
            start = first_passes[size]["spent"]["start from the votes"]
            columns |= {"seconds before the first": start, "peak GB of a fit": first_passes[size]["peak"] / GB}
        ledger.note("Votes in a shard", size=size, votes=n_votes, shards=numbers[size], threads=threads, **columns)
    for crowd in crowds.values():
        options.delete_crowd(crowd)


def best_size(options: Options) -> int:
    """Return the shard size with which two threads were fastest within the memory limit."""
    place = None if options.output is None else options.output / "scale.json"
    stored = json.loads(place.read_text())["parts"] if place is not None and place.exists() else {}
    rows = stored.get("shards", {"tables": {"Votes in a shard": []}})["tables"]["Votes in a shard"]
    fit = [row for row in rows if row["threads"] == 2 and row["peak GB of a fit"] <= MAX_GB]
    return min((row["seconds / pass"], row["size"]) for row in fit)[1] if fit else options.shards[0]


def choose_shard_count(n_votes: int, per_shard: int) -> int:
    """Return an even number of shards, so that two threads get equally many."""
    return 2 * max(1, -(-n_votes // (2 * per_shard)))


def costs(ledger: Ledger, options: Options) -> None:
    """Measure the parts of a pass."""
    n_votes, n_workers = options.size(10**8), options.size(10**6)
    crowd = options.crowd(n_votes, n_workers, 4, choose_shard_count(n_votes, options.shards[0]))
    results = run(python("programs/scale_costs.py", crowd, 3))
    # Processor time is less affected by other programs; two threads share it.
    inside = results["all of the E-step, two threads"][1] / 2
    outside = (
        sum(results[what][1] for what in ("M-step", "prior density"))
        + results["extrapolation, every third pass"][1] / 3
    )
    for what, (wall, cpu) in results.items():
        columns = {"seconds": wall, "cpu seconds": cpu}
        ledger.note("Where a pass goes", votes=n_votes, workers=n_workers, what=what, **columns)
    ledger.want(f"share of a pass outside the E-step, {n_votes:,} votes", outside / (inside + outside), at_most=0.15)
    options.delete_crowd(crowd)


def checks(ledger: Ledger, options: Options) -> None:
    """Measure the cost of checking codes and digests."""
    n_votes = options.size(10**7)
    crowd = options.crowd(n_votes, options.size(10**4), 5, choose_shard_count(n_votes, options.shards[0]))
    results = run(python("programs/scale_checks.py", crowd, 5))
    for ids, seconds in results.items():
        one_pass, later = seconds["pass of the E-step"], seconds["later read"]
        for what, cpu in seconds.items():
            row = {"cpu milliseconds": 1e3 * cpu, "share of a pass": cpu / one_pass}
            ledger.note("Checks of shards", votes=n_votes, task_ids=ids, what=what, **row)
        if ids == "numbers":
            codes = seconds["first read, codes"] - later
            ledger.want(f"cost of checking codes once, in passes, {n_votes:,} votes", codes / one_pass, at_most=0.2)
    options.delete_crowd(crowd)
    options.delete_crowd(crowd.with_name(f"{crowd.name}-texts"))


def billion(ledger: Ledger, options: Options) -> None:
    """Measure a fit to a billion votes of a million workers."""
    n_votes, n_workers = options.size(10**9), options.size(10**6)
    n_shards = choose_shard_count(n_votes, best_size(options))
    crowd = options.crowd(n_votes, n_workers, 4, n_shards)
    size = sum(file.stat().st_size for file in crowd.rglob("*"))
    *lines, last = run_program(python("programs/scale_fit.py", crowd, 10, 2))
    print("\n".join(lines), file=sys.stderr)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "scale-billion.log").write_text("\n".join(lines) + "\n")
    row = json.loads(last)
    ledger.note(
        "A billion votes" if n_votes == 10**9 else "A billion votes, a part of them", votes=n_votes,
        tasks=row["tasks"], workers=n_workers, shards=n_shards, passes=row["passes"],
        **{"seconds": row["wall"], "cpu seconds": row["cpu"], "peak GB": row["peak"] / GB, "GB on disk": size / GB,
           "GB read from disk": row["fetched"] / GB, "page cache GB": row["cached"] / GB,
           "accuracy": row["accuracy"], "counting votes": row["accuracy_of_counting"]},
    )  # fmt: skip
    spent = row["spent"] | {"all else": row["wall"] - sum(row["spent"].values())}
    for what, took in spent.items():
        ledger.note("A billion votes, by kind of work", what=what, seconds=took, **{"/ all": took / row["wall"]})
    ledger.want(f"minutes of a fit to {n_votes:,} votes, 10 passes", row["wall"] / 60, at_most=MAX_MINUTES)
    ledger.want(f"GB at its peak, {n_votes:,} votes", row["peak"] / GB, at_most=MAX_GB)
    options.delete_crowd(crowd)


def kills(ledger: Ledger, options: Options) -> None:
    """Kill processes at random moments, and fill disks."""
    crowd = options.crowd(2 * 10**6 if not options.quick else 10**5, 2_000, 5, 20)
    how_often, passes = (6, 60) if options.quick else (50, 200)
    results = json.loads(run_program(python("programs/scale_kills.py", crowd, options.folder, how_often, passes))[-1])
    for row in results["rows"]:
        moments = ", ".join(f"{moment:.1f}" for moment in row["after seconds"])
        ledger.note("Fits that were killed", **row | {"after seconds": moments})
    equal = sum(row["kills"] for row in results["rows"] if row["result as undisturbed"])
    ledger.want("kills after which a fit ended as if undisturbed", equal, at_least=how_often)
    different = sum(not row["result as undisturbed"] for row in results["rows"])
    ledger.want("fits that ended otherwise", different, at_most=0)
    results = json.loads(run_program(python("programs/scale_full_disk.py", crowd, options.folder))[-1])
    for row in results["rows"]:
        ledger.note("A full disk", what=row["what"], ended=row["ended"], said=row["said"].replace("|", "/")[:300])
        if "good" in row:
            ledger.want(f"a full disk, {row['what']}: ended well", float(row["good"]), at_least=1)
    options.delete_crowd(crowd)


def cmm(ledger: Ledger, options: Options) -> None:
    """Measure CMM with ten million workers in memory, and with a tenth of them."""
    for part in (0.1, 1.0):
        size = options.size(int(part * 10**7))
        row = run(python("programs/scale_cmm.py", size, size, 4))
        ledger.note(
            "CMM, three groups", votes=5 * size, tasks=size, workers=size, passes=int(row["passes"]),
            **{"seconds / pass": row["pass"], "before": row["before"], "after": row["after"], "peak GB": row["peak"] / GB,
               "GB of data": row["data"] / GB, "accuracy": row["accuracy"]},
        )  # fmt: skip
    ledger.want(f"GB at the peak of CMM, {size:,} workers", row["peak"] / GB, at_most=MAX_GB)


def bytes_sent(ledger: Ledger, options: Options) -> None:
    """Count the bytes sent in an iteration."""
    for n_workers, votes in ((options.size(10**4), 100), (options.size(10**6), 4)):
        crowd = options.crowd(n_workers * votes, n_workers, 5, 2)
        results = json.loads(run_program(python("programs/scale_bytes.py", crowd))[-1])
        for name, row in results["methods"].items():
            ledger.note(
                "Bytes of an iteration", method=name, workers=n_workers, pairs=results["pairs"],
                **{"MB down to an actor": row["down"] / 1e6, "MB up from an actor": row["up"] / 1e6,
                   "calls": row["calls"], "iterates": "yes" if row["iterates"] else "no: a whole fit"},
            )  # fmt: skip
        options.delete_crowd(crowd)


PARTS: dict[str, Callable[[Ledger, Options], None]] = {
    "engines": engines, "shards": shards, "costs": costs, "checks": checks, "billion": billion, "kills": kills, "cmm": cmm,
    "bytes": bytes_sent,
}  # fmt: skip


def merge_results(name: str, ledger: Ledger, load: float, output: Path | None) -> str:
    """Return the page with the results of a part in place of its earlier ones."""
    place = None if output is None else output / "scale.json"
    parts: dict[str, Any] = json.loads(place.read_text())["parts"] if place is not None and place.exists() else {}
    here = machine(names=("numpy", "pandas", "pyarrow", "numba", "ray", "duckdb"))
    parts[name] = {"machine": here, "load": round(load, 1), "tables": ledger.tables, "targets": ledger.targets}
    results = {name: parts[name] for name in PARTS if name in parts}
    when = ", ".join(f"{name} {part['machine']['date']} at load {part['load']}" for name, part in results.items())
    results = {
        "machine": here | {"measured": when}, "protocol": PROTOCOL,
        "tables": {title: rows for part in results.values() for title, rows in part["tables"].items()},
        "targets": [row for part in results.values() for row in part["targets"]],
    }  # fmt: skip
    page = markdown("What scale costs", results)
    if output is not None and place is not None:
        output.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"parts": results}, indent=2) + "\n")
        (output / "scale.md").write_text(page)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, else all: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size, fewer repeats")
    parser.add_argument("--share", type=float, help="of the full size; 0.1 is a tenth")
    parser.add_argument("--folder", type=Path, help="where shards are put and stay; else a temporary one")
    parser.add_argument("-o", "--output", type=Path, help="folder for scale.json and scale.md")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    os.environ["OMP_NUM_THREADS"] = "1"
    share = arguments.share or (0.01 if arguments.quick else 1.0)
    output = arguments.output or (None if arguments.quick else HERE / "results")
    with tempfile.TemporaryDirectory(prefix="wisecrowd-scale-") as temporary:
        folder = Path(arguments.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.parts or PARTS:
            ledger, load = Ledger(), os.getloadavg()[0]
            PARTS[name](
                ledger, Options(folder, share, arguments.quick, output, keeps_crowds=arguments.folder is not None)
            )
            print(merge_results(name, ledger, load, output))


if __name__ == "__main__":
    main()

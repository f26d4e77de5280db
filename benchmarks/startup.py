"""Processor time of short commands, as a ratio to ``import pandas`` in the same run.

    python benchmarks/startup.py
    python benchmarks/startup.py -o benchmarks/results

Every command runs in its own process. All run once, so that bytecode is compiled; then they take turns, and
the median of each is reported. Times are processor times of user and system.
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

import measuring
from tables import Ledger

#: Votes of the file that ``wisecrowd aggregate`` reads.
N_TASKS, VOTES_PER_TASK = 2_000, 5


def processor_seconds(command: list[str], environment: dict[str, str], folder: str) -> float:
    """Run a command and return the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    program = [sys.executable, "-m", "wisecrowd"]
    simulate = [
        *program,
        "simulate",
        "-o",
        "votes.csv",
        "--tasks",
        str(N_TASKS),
        "--votes-per-task",
        str(VOTES_PER_TASK),
    ]
    commands = {
        "import pandas": [sys.executable, "-c", "import pandas"],
        "import wisecrowd": [sys.executable, "-c", "import wisecrowd"],
        "wisecrowd --version": [*program, "--version"],
        "wisecrowd check": [*program, "check", "votes.csv"],
        "wisecrowd aggregate": [*program, "aggregate", "votes.csv", "-o", "results"],
        "wisecrowd aggregate -m majority-vote": [
            *program,
            "aggregate",
            "votes.csv",
            "-m",
            "majority-vote",
            "-o",
            "results",
        ],
    }
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        for command in (simulate, *commands.values()):
            processor_seconds(command, environment, folder)
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.repeats):
            for name, command in commands.items():
                seconds[name].append(processor_seconds(command, environment, folder))
    unit = statistics.median(seconds["import pandas"])
    for name, times in seconds.items():
        median = statistics.median(times)
        ledger.note("Processor time", command=name, seconds=round(median, 3), ratio=round(median / unit, 2),
                    lowest=round(min(times), 3), highest=round(max(times), 3))  # fmt: skip
    ratio = statistics.median(seconds["wisecrowd aggregate"]) / unit
    ledger.want("wisecrowd aggregate / import pandas", round(ratio, 2), at_most=1.6)
    protocol = [
        f"`wisecrowd aggregate` reads {N_TASKS * VOTES_PER_TASK:,} simulated votes and writes labels, workers and the record.",
        f"Processor time of user and system; median of {options.repeats} runs in turns, after one to compile bytecode.",
    ]
    ledger.report("startup", "Start-up time", measuring.machine(), protocol, options.output)


if __name__ == "__main__":
    main()

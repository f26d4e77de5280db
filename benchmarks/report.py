"""Cost of a report, compared with Dawid-Skene on the same votes in the same run.

    python benchmarks/report.py --quick            # ten votes, and a hundred thousand simulated ones
    python benchmarks/report.py                    # also LabelMe and nine million votes (pico_tokens), with WISECROWD_DATA

Writes results/report.json and results/report.md beside this file (--quick: nothing unless -o is given).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from measuring import HERE, in_turns, machine, python, run
from tables import Ledger

PROTOCOL = [
    "`wisecrowd report` reads votes and writes the page, with the comparison of methods and without it (`--no-compare`);",
    "`wisecrowd aggregate -m dawid-skene` reads the same votes and writes labels. Each run is a process of its own, from the",
    "start of the interpreter to its end, with one thread; contenders take turns. Ten votes and LabelMe are measured three",
    "times, after a run of each command that does not count, and figures are medians; large crowds are measured once. Ratios,",
    "and what was wanted, are of the processor's seconds, which other programs disturb less than those of the clock. MB is",
    "the size of the page, peak GB that of the process. The simulated crowd has 100,000 votes of 2,000 workers, five for each",
    "task, and five classes.",
]

TEN = "task,worker,label\n" + "".join(
    f"t{number // 3},{('ann', 'bob', 'cy')[number % 3]},{'cat' if number % 4 else 'dog'}\n" for number in range(10)
)
#: Seconds that a report may take.
MAX_SECONDS = {"ten votes": 3.0, "simulated": 6.0, "labelme": 10.0, "pico_tokens": 40.0}


def measure_commands(ledger: Ledger, name: str, votes: Path, folder: Path, repeats: int) -> None:
    """Measure all commands on the same votes."""
    page, bare = folder / "page.html", folder / "bare.html"
    commands = {
        "aggregate -m dawid-skene": ["aggregate", votes, "-m", "dawid-skene", "-o", folder / "labels"],
        "report --no-compare": ["report", votes, "--no-compare", "-o", bare],
        "report": ["report", votes, "-o", page],
    }
    programs = {what: python("programs/command.py", *words, "-q") for what, words in commands.items()}
    # Bytecode is cached as in an installation, but outside of the source tree.
    environment = {
        "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
    }  # fmt: skip
    if repeats > 1:
        for program in programs.values():
            run(program, **environment)
    figures = in_turns(programs, repeats, **environment)
    base = figures["aggregate -m dawid-skene"]["cpu"]
    for what, row in figures.items():
        size = {"report": page, "report --no-compare": bare}.get(what)
        ledger.note(
            name,
            what=what,
            **{"seconds": row["wall"], "cpu seconds": row["cpu"], "/ aggregate": row["cpu"] / base},
            **{"peak GB": row["peak"] / 1e9, "MB": None if size is None else size.stat().st_size / 1e6},
        )
    if name in MAX_SECONDS:
        ledger.want(
            f"seconds of the processor for a report of {name}", figures["report"]["cpu"], at_most=MAX_SECONDS[name]
        )
    ledger.want(f"MB of the page of {name}", page.stat().st_size / 1e6, at_most=6)


def crowds(folder: Path, *, quick: bool) -> dict[str, tuple[Path, int]]:
    """Return the votes and the number of repeats by name."""
    ten = folder / "ten.csv"
    ten.write_text(TEN)
    run(python("crowds.py", folder / "made", 100_000, 2_000, 5))
    votes_by_name = {"ten votes": (ten, 3), "simulated": (folder / "made" / "votes.parquet", 1)}
    if quick:
        return {name: (votes, 1) for name, (votes, _) in votes_by_name.items()}
    for name, repeats in (("labelme", 3), ("pico_tokens", 1)):
        data = Path(os.environ.get("WISECROWD_DATA", "")) / name
        if (data / "annotations.parquet").exists():
            votes_by_name[name] = (data, repeats)
        else:
            print(f"{name} is left out: WISECROWD_DATA does not hold it", file=sys.stderr)
    return votes_by_name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small crowds, once")
    parser.add_argument("--only", help="crowds to measure, comma-separated, such as 'ten votes,labelme'")
    parser.add_argument("--repeats", type=int, help="runs of each contender")
    parser.add_argument("-o", "--output", type=Path, help="folder for report.json and report.md")
    options = parser.parse_args()
    ledger = Ledger()
    with tempfile.TemporaryDirectory(prefix="wisecrowd-benchmark-") as home:
        for name, (votes, repeats) in crowds(Path(home), quick=options.quick).items():
            if options.only is None or name in options.only.split(","):
                folder = Path(home) / name.replace(" ", "-")
                folder.mkdir(exist_ok=True)
                measure_commands(ledger, name, votes, folder, options.repeats or repeats)
    output = options.output or (None if options.quick or options.only else HERE / "results")
    ledger.report("report", "What a report costs", machine(), PROTOCOL, output)


if __name__ == "__main__":
    main()

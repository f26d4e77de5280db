"""Cost of a training step of deep learners, compared with a dense implementation of CrowdLayer in the same run.

    python benchmarks/learn.py --quick
    python benchmarks/learn.py

Writes results/learn.json and results/learn.md beside this file (--quick: nothing unless -o is given).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from measuring import HERE, in_turns, machine, python
from tables import Ledger

PROTOCOL = [
    "Tasks with 64 features, 10 classes and 3 labels each; a step is 64 tasks through a network with 128 hidden units, one",
    "thread. *Dense* is CrowdLayer with an answer of every worker on every task of a batch, masked where nobody voted, and",
    "Adam over all matrices. Contenders take turns, each in a process of its own; figures are medians, milliseconds those of",
    "the processor per step after the first epoch, memory what training added to the peak of the process once everything",
    "was imported and a small network had been trained. *Experts* are those of MMLC, ten of 128 and 32 units; votes are filled",
    "in by it for 747 workers on 50,000 tasks of 8 classes with three labels each, and the peak is that of the whole process.",
]
#: One network of CCC beside one network of CrowdLayer; corrections from the first epoch on.
CORRECTED = {"warmup": 0}


def training_command(
    method: str, n_workers: int, n_tasks: int, epochs: int = 4, labels: int = 3, **parameters: object
) -> list[str]:
    return python("programs/train.py", method, n_workers, n_tasks, epochs, json.dumps(parameters), labels)


def flat(ledger: Ledger, n_tasks: int, repeats: int) -> None:
    """Measure a step by the number of workers."""
    sizes = (100, 1_000, 10_000, 100_000)
    figures = in_turns({str(size): training_command("CrowdLayer", size, n_tasks) for size in sizes}, repeats)
    for size in sizes:
        row = figures[str(size)]
        ledger.note("CrowdLayer, by workers", workers=size, **{"ms / step": row["ms"], "added MB": row["added"] / 1e6})
    ledger.want("a step with 100,000 workers / with 100", figures["100000"]["ms"] / figures["100"]["ms"], at_most=1.2)


def beside_dense(ledger: Ledger, n_tasks: int, repeats: int) -> None:
    """Compare with a dense implementation."""
    for size in (100, 1_000, 10_000):
        few = n_tasks if size < 10_000 else max(640, n_tasks // 10)  # a step is a step
        pair = {"wisecrowd": training_command("CrowdLayer", size, few), "dense": training_command("dense", size, few)}
        figures = in_turns(pair, repeats)
        for name, row in figures.items():
            columns = {"ms / step": row["ms"], "added MB": row["added"] / 1e6}
            ledger.note("Beside a dense mask", workers=size, what=name, **columns)
    times = figures["dense"]["ms"] / figures["wisecrowd"]["ms"]
    ledger.want("times faster than the dense mask, 10,000 workers", times, at_least=20)
    lighter = figures["dense"]["added"] / figures["wisecrowd"]["added"]
    ledger.want("times lighter than the dense mask, 10,000 workers", lighter, at_least=5)


def meta_step(ledger: Ledger, n_tasks: int, repeats: int) -> None:
    """Measure the cost of the correction of CCC."""
    commands = {
        "CrowdLayer": training_command("CrowdLayer", 250, n_tasks),
        "CCC, gamma 0": training_command("CCC", 250, n_tasks, gamma=0.0),
        "CCC, head": training_command("CCC", 250, n_tasks, **CORRECTED),
        "CCC, full": training_command("CCC", 250, n_tasks, meta="full", **CORRECTED),
    }
    figures = in_turns(commands, repeats)
    plain = figures["CrowdLayer"]["ms"]
    for name, row in figures.items():
        each = row["ms"] if name == "CrowdLayer" else row["ms"] / 2
        ledger.note("The meta step of CCC", what=name, **{"ms / step and network": each, "/ CrowdLayer": each / plain})
    added = (figures["CCC, head"]["ms"] - figures["CCC, gamma 0"]["ms"]) / 2
    ledger.want("what a head-only correction adds to a step / a step of CrowdLayer", added / plain, at_most=2)


def experts(ledger: Ledger, n_tasks: int, repeats: int) -> None:
    """Measure MMLC by the number of votes per task."""
    numbers = (1, 3, 10)
    figures = in_turns({str(n): training_command("MMLC", 100, n_tasks, labels=n) for n in numbers}, repeats)
    for n in numbers:
        row = figures[str(n)]
        columns = {"ms / step": row["ms"], "of them experts, forward": row["forward"], "added MB": row["added"] / 1e6}
        ledger.note("MMLC, by labels per task", **{"labels per task": n}, **columns)
    ledger.want(
        "experts with 10 labels per task / with one", figures["10"]["forward"] / figures["1"]["forward"], at_most=1.2
    )
    many = 100_000 if n_tasks > 2_000 else 10_000
    large = in_turns({str(n): training_command("MMLC", 100, many, epochs=2, labels=n) for n in (1, 10)}, 1)
    for n in (1, 10):
        ledger.note("MMLC, memory by votes", tasks=many, votes=n * many, **{"added MB": large[str(n)]["added"] / 1e6})
    further = (large["10"]["added"] - large["1"]["added"]) / (9 * many)
    ledger.want("bytes for each further vote / for 64 features in single precision", further / (64 * 4), at_most=0.75)


def filling(ledger: Ledger, n_tasks: int, _repeats: int) -> None:
    """Measure the memory of MMLCFill for 747 workers."""
    many = 50_000 if n_tasks > 2_000 else 2_000
    ways = {"as one crowd": "fill", "chunk by chunk": "stream"}
    figures = in_turns({title: python("programs/fill.py", how, 747, many) for title, how in ways.items()}, 1)
    for title, row in figures.items():
        columns = {"seconds": row["seconds"], "peak MB": row["peak"] / 1e6}
        ledger.note("MMLCFill, 747 workers", tasks=many, what=title, filled=int(row["filled"]), **columns)
    ledger.want("GB at the peak of filling in, as one crowd", figures["as one crowd"]["peak"] / 1e9, at_most=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tasks and repeats")
    parser.add_argument("-o", "--output", type=Path, help="folder for learn.json and learn.md")
    options = parser.parse_args()
    n_tasks, repeats = (1_920, 1) if options.quick else (6_400, 3)
    ledger = Ledger()
    for part in (flat, beside_dense, meta_step, experts, filling):
        part(ledger, n_tasks, repeats)
    output = options.output or (None if options.quick else HERE / "results")
    ledger.report("learn", "What a step costs", machine(names=("numpy", "torch")), PROTOCOL, output)


if __name__ == "__main__":
    main()

"""Learners beside those of scikit-activeml, cleanlab and crowd-kit with the same network in the same run.

All of them run in one environment, in which wisecrowd is on the path:

    python -m venv peers && peers/bin/pip install torch scikit-activeml skorch cleanlab "crowd-kit[learning]" pyarrow rich typer
    python benchmarks/learner_peers.py --peers peers/bin/python

Needs the datasets labelme and cifar10n (WISECROWD_DATA). Writes results/learner-peers.json and results/learner-peers.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from measuring import HERE, machine
from tables import Ledger

import wisecrowd as wc

PROTOCOL = [
    "One hidden layer of 128 units with dropout, batches of 64 tasks, Adam, the same number of epochs, one thread. Seconds are",
    "those of the processor for the fit, without imports: the median of three seeds. Accuracy is that on the test tasks, and",
    "for CROWDLAB, which both libraries compute from the same class probabilities, that of the consensus on the training tasks;",
    "ours also trains a classifier for new tasks. *LabelMe* has 1,000 tasks and 59 workers, *CIFAR-10N* here its first 10,000",
    "tasks and 747 workers. Ours also computes the posterior of the training tasks and the confusion matrices of workers.",
]
#: Number of tasks of CIFAR-10N, and epochs by dataset.
N_CIFAR_TASKS = 10_000
EPOCHS = {"LabelMe": 50, "CIFAR-10N": 5}
CONTENDERS = {
    "crowd-layer": ("wisecrowd", "skactiveml", "crowd-kit"),
    "annot-mix": ("wisecrowd", "skactiveml"),
    "conal": ("wisecrowd", "crowd-kit"),
    "crowdlab": ("wisecrowd", "cleanlab"),
}
#: Speed over every peer that we aim at.
GOAL = 5


def write_data(name: str, path: Path, n_tasks: int | None) -> None:
    """Write votes as a table of tasks and workers, and the features."""
    dataset = wc.load_dataset(name, duplicates="distinct")
    assert dataset.truth is not None
    assert dataset.features is not None
    assert dataset.splits is not None
    crowd = dataset.crowd if n_tasks is None else dataset.crowd[np.arange(n_tasks)]
    votes = np.full((crowd.n_tasks, crowd.n_workers), -1)
    votes[crowd.task, crowd.worker] = crowd.label
    test = dataset.splits.index[dataset.splits == "test"]
    classes = crowd.classes
    np.savez(
        path, X=dataset.features.loc[crowd.tasks].to_numpy(np.float32), votes=votes,
        X_test=dataset.features.loc[test].to_numpy(np.float32), y_test=classes.get_indexer(dataset.truth.loc[test]),
        y_train=classes.get_indexer(dataset.truth.loc[crowd.tasks]),
    )  # fmt: skip


def run(python: str, data: Path, contender: str, epochs: int, seed: int) -> dict[str, float] | None:
    """Run a contender; None if its library is not there or fails."""
    command = [python, str(HERE / "programs" / "learner_peers.py"), str(data), contender, str(epochs), str(seed)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(wc.__file__).parents[1])}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if finished.returncode:
        print(f"{contender}: {finished.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    figures: dict[str, float] = json.loads(finished.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python of an environment with the peers")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results", help="folder for the results")
    options = parser.parse_args()
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        for data, name, n_tasks in (("LabelMe", "labelme", None), ("CIFAR-10N", "cifar10n", N_CIFAR_TASKS)):
            path = Path(folder) / f"{name}.npz"
            write_data(name, path, n_tasks)
            for method, libraries in CONTENDERS.items():
                seconds = {}
                for library in libraries:
                    figures = [
                        run(options.peers, path, f"{library} {method}", EPOCHS[data], seed)
                        for seed in range(options.seeds)
                    ]
                    complete = [figure for figure in figures if figure is not None]
                    if not complete:
                        continue
                    seconds[library] = statistics.median(figure["seconds"] for figure in complete)
                    accuracy = [figure["accuracy"] for figure in complete]
                    ledger.note(
                        "Beside other libraries", data=data, method=method, library=library, seconds=seconds[library],
                        accuracy=statistics.mean(accuracy), **{"/ wisecrowd": seconds[library] / seconds["wisecrowd"]},
                    )  # fmt: skip
                for library in list(seconds)[1:]:
                    times = seconds[library] / seconds["wisecrowd"]
                    ledger.want(f"{method} on {data}: times faster than {library}", times, at_least=GOAL)
    versions = machine(names=("numpy", "torch"))
    ledger.report("learner-peers", "Learners beside other libraries", versions, PROTOCOL, options.output)


if __name__ == "__main__":
    main()

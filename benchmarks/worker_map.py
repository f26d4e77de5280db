"""Draw the worker map of MMLC on LabelMe with the oracle (figure 4 of Han et al. 2025).

python benchmarks/worker_map.py            # writes docs/worker-map.svg; needs the dataset and the extras 'learn' and 'plot'
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd import MMLC, load_dataset, plot

PICTURE = Path(__file__).parents[1] / "docs" / "worker-map.svg"


def table() -> pd.DataFrame:
    """Return coordinates, number of votes and true accuracy of every worker; those of the oracle are NaN."""
    labelme = load_dataset("labelme", duplicates="distinct")
    assert labelme.truth is not None
    model = MMLC().fit(labelme.features, labelme.crowd)
    votes = labelme.crowd.to_frame()
    right = votes["label"] == votes["task"].map(labelme.truth)
    return model.worker_map().assign(accuracy=right.groupby(votes["worker"]).mean())


def nearness(workers: pd.DataFrame, min_votes: int = 20) -> float:
    """Return the rank correlation of accuracy with nearness to the oracle, for workers with enough votes."""
    away = np.hypot(*(workers[axis] - workers.loc["(oracle)", axis] for axis in "xy"))
    busy = workers["n_votes"] >= min_votes
    return -float(away[busy].rank().corr(workers["accuracy"][busy].rank()))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    workers = table()
    ax = plot.worker_map(workers, by="accuracy")
    ax.set_title(f"{len(workers) - 1} workers of LabelMe and the oracle")
    plot.save(ax, PICTURE)
    print(f"wrote {PICTURE}; accuracy and nearness to the oracle have a rank correlation of {nearness(workers):.2f}")

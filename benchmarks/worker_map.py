"""Draw LabelMe's workers as MMLC sees them: in the plane, with the oracle among them (figure 4 of Han et al. 2025).

python benchmarks/worker_map.py            # writes docs/worker-map.svg; needs the dataset and the extras 'learn' and 'plot'
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd import MMLC, load_dataset, plot

PICTURE = Path(__file__).parents[1] / "docs" / "worker-map.svg"


def table() -> pd.DataFrame:
    """Place, number of labels and true accuracy of every worker; the oracle's are NaN."""
    labelme = load_dataset("labelme", duplicates="distinct")
    assert labelme.truth is not None
    model = MMLC().fit(labelme.features, labelme.crowd)
    votes = labelme.crowd.to_frame()
    right = votes["label"] == votes["task"].map(labelme.truth)
    return model.worker_map().assign(accuracy=right.groupby(votes["worker"]).mean())


def nearness(workers: pd.DataFrame, fewest: int = 20) -> float:
    """Rank correlation of accuracy with nearness to the oracle, among workers with so many labels."""
    away = np.hypot(*(workers[axis] - workers.loc["(oracle)", axis] for axis in "xy"))
    busy = workers["n_votes"] >= fewest
    return -float(away[busy].rank().corr(workers["accuracy"][busy].rank()))


if __name__ == "__main__":
    found = table()
    ax = plot.worker_map(found, by="accuracy")
    ax.set_title(f"{len(found) - 1} workers of LabelMe and the oracle")
    plot.save(ax, PICTURE)
    print(f"wrote {PICTURE}; accuracy and nearness to the oracle have a rank correlation of {nearness(found):.2f}")

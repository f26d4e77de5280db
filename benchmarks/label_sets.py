"""Label sets: macro F1 on simulated crowds, and the log loss of held-out votes on CrowdTruth relations.

WISECROWD_DATA=... python benchmarks/label_sets.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

METHODS = {
    "majority": wc.BinaryRelevance(model="majority"),
    "binary-relevance": wc.BinaryRelevance(),
    "label-set-mixture": wc.LabelSetMixture(),
}
SEEDS = 5


def macro_f1(chosen: np.ndarray, truth: np.ndarray) -> float:
    hits, total = (chosen & truth).sum(axis=0), chosen.sum(axis=0) + truth.sum(axis=0)
    return float(np.divide(2 * hits, total, out=np.ones(len(hits)), where=total > 0).mean())


def main() -> None:
    rows = []
    for n_groups in (1, 4, 8):
        for seed in range(SEEDS):
            simulation = wc.simulate_label_sets(
                n_tasks=600, n_workers=30, n_labels=12, votes_per_task=3, n_groups=n_groups, labels_per_task=3, hit_rate=0.65,
                false_alarm_rate=0.12, random_state=seed,
            )  # fmt: skip
            for name, method in METHODS.items():
                with ignore_fit_warnings():
                    fitted = method.clone_unfitted().fit(simulation.crowd)
                score = macro_f1(fitted.label_probs_ >= fitted.threshold_, simulation.truth.to_numpy())
                rows.append((n_groups, name, score))
    table = pd.DataFrame(rows, columns=["groups", "method", "macro F1"])
    print(f"Simulated crowds, {SEEDS} seeds; with one group, labels are independent\n")
    print(table.groupby(["groups", "method"], sort=False)["macro F1"].agg(["mean", "std"]).round(4).to_string())
    marks = pd.read_parquet(
        Path(os.environ["WISECROWD_DATA"]) / "crowdtruth_relations_multilabel" / "annotations.parquet"
    )
    crowd = wc.LabelSetCrowd.from_marks(marks, empty_label="none")
    visible, heldout = crowd.hide(0.2, random_state=0)
    print(f"\n{crowd}\n20 % of the votes held out, seed 0\n")
    for name, method in METHODS.items():
        with ignore_fit_warnings():
            print(f"{name:20s} {method.clone_unfitted().fit(visible).heldout_log_loss(heldout):.4f}")


if __name__ == "__main__":
    main()

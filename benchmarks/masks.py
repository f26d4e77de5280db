"""Masks and polygons: overlap with the truth, confidence and rates of workers on simulated crowds.

python benchmarks/masks.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

SEEDS = 5
#: Errors at boundaries only, errors of single pixels only, and few votes by unequal workers.
CROWDS: dict[str, dict[str, Any]] = {
    "boundaries": {"sensitivity": 1.0, "specificity": 1.0, "boundary_noise": 0.1},
    "pixels": {"sensitivity": 0.8, "specificity": 0.9, "boundary_noise": 0.0, "worker_spread": 1.0},
    "both": {},
    "3 unequal workers": {
        "sensitivity": 1.0,
        "specificity": 1.0,
        "boundary_noise": 0.2,
        "worker_spread": 1.0,
        "votes_per_task": 3,
    },
}
METHODS: dict[str, Any] = {
    "one worker": None,
    "majority": wc.MaskMajority(),
    "majority, weights of the task (RASA)": wc.MaskMajority(weights="task"),
    "majority, weights of workers": wc.MaskMajority(weights="worker"),
    "em": wc.MaskEM(),
    "em of Lee et al.": wc.MaskEM(shared=False, prior="pixel", region="union", shrinkage=0),
    "staple": wc.Staple(),
    "staple of Warfield et al.": wc.Staple(shared=False, prior="votes", region="image", shrinkage=0),
}


def measure_masks() -> None:
    rows = []
    for crowd_name, options in CROWDS.items():
        for seed in range(SEEDS):
            made = wc.simulate_masks(n_tasks=100, random_state=seed, **options)
            for name, method in METHODS.items():
                if method is None:
                    iou = wc.score_masks(made.crowd.masks, made.truth.take(made.crowd.task))["iou"].mean()
                    rows.append((crowd_name, name, iou, np.nan, np.nan, np.nan))
                    continue
                with ignore_fit_warnings():
                    fitted = method.clone_unfitted().fit(made.crowd)
                iou = wc.score_masks(fitted.runs_, made.truth)["iou"].mean()
                errors = [
                    np.abs(fitted.workers_[rate] - made.workers[rate]).mean() for rate in ("sensitivity", "specificity")
                ]
                rows.append((crowd_name, name, iou, fitted.expected_iou_.mean(), *errors))
    columns = ["crowd", "method", "IoU", "expected IoU", "|sensitivity|", "|specificity|"]
    table = pd.DataFrame(rows, columns=columns).groupby(["crowd", "method"], sort=False)
    print(f"Simulated masks, 100 images, {SEEDS} seeds: intersection over union, and mean absolute errors of rates\n")
    print(table.mean().round(3).to_string())
    print("\nstandard deviation over seeds\n")
    print(table["IoU"].std().unstack("crowd").round(3).to_string())


def measure_polygons() -> None:
    rows = []
    for seed in range(SEEDS):
        made = wc.simulate_polygons(n_tasks=200, difficult_share=0.2, boundary_error=0.05, random_state=seed)
        marks = made.crowd.to_frame().dropna()
        one = marks[marks["worker"] == marks["worker"].iloc[0]]
        for name, method in {
            "half of the workers": wc.PolygonConsensus(model="majority", threshold="half"),
            "consensus": wc.PolygonConsensus(),
        }.items():
            with ignore_fit_warnings():
                fitted = method.fit(made.crowd)
            candidates = fitted.candidates_
            score = wc.score_objects(candidates, made.truth, kind="polygons")
            confidence = candidates["confidence"].to_numpy()
            bins = np.minimum((confidence * 10).astype(int), 9)
            error = np.abs(np.bincount(bins, confidence - score.is_match)).sum() / len(bins)
            f1, precise = (
                wc.score_objects(fitted.objects_, made.truth, kind="polygons", min_iou=iou) for iou in (0.5, 0.85)
            )
            single = wc.score_objects(
                one, made.truth[made.truth["task"].isin(one["task"])], kind="polygons", min_iou=0.85
            )
            rows.append((name, f1.f1, precise.precision, single.precision, error))
    columns = ["method", "F1", "share with IoU 0.85", "of one worker", "ECE"]
    print("\nSimulated polygons, 200 images\n")
    print(pd.DataFrame(rows, columns=columns).groupby("method", sort=False).agg(["mean", "std"]).round(3).to_string())


def measure_choice() -> None:
    """Print the intersection over union that is lost by the choice of `compare_methods`, and by always using one method."""
    rows = []
    for crowd_name, options in CROWDS.items():
        for seed in range(SEEDS):
            made = wc.simulate_masks(n_tasks=100, random_state=seed, **options)
            comparison = wc.compare_methods(made.crowd, truth=made.truth)
            lost = comparison.table["iou"].max() - comparison.table["iou"]
            rows.append((crowd_name, lost[comparison.best], lost["staple"], lost["mask-majority"]))
    columns = ["crowd", "chosen", "staple", "majority"]
    print("\nLoss of intersection over union against the best of four methods\n")
    print(pd.DataFrame(rows, columns=columns).groupby("crowd", sort=False).mean().round(4).to_string())


if __name__ == "__main__":
    measure_masks()
    measure_choice()
    measure_polygons()

"""Processor seconds of wisecrowd on masks or texts in a folder: ``structured_ours.py FOLDER NAME...``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

#: Settings that do the same work as the peer's methods, and our defaults.
METHODS: dict[str, Any] = {
    "majority": wc.MaskMajority(),
    "em": wc.MaskEM(shared=False, prior="pixel", region="union", shrinkage=0, max_iter=10, tol=1e-5),
    "rasa": wc.MaskMajority(weights="task", max_iter=10, tol=1e-5),
    "staple": wc.Staple(),
    "rover": wc.Rover(weighted=False),
    "weighted rover": wc.Rover(),
    # crowd-kit computes ten means of vectors and weights; its last weights change no text.
    "text rasa": wc.TextMedoid(model="rasa", max_iter=9, tol=0.0),
    "text hrrasa": wc.TextMedoid(model="hrrasa", max_iter=9, tol=0.0),
    "medoid": wc.TextMedoid(),
}


def fit_masks(folder: Path, names: list[str]) -> dict[str, dict[str, float]]:
    votes = pd.read_parquet(folder / "votes.parquet")
    arrays = list(np.load(folder / "masks.npy"))
    warm_up = wc.MaskCrowd.from_arrays(["a", "a"], ["x", "y"], [np.eye(2), np.eye(2)])
    begin = time.process_time()
    crowd = wc.MaskCrowd.from_arrays(votes["task"].tolist(), votes["worker"].tolist(), arrays)
    conversion = time.process_time() - begin
    figures = {}
    for name in names:
        METHODS[name].clone_unfitted().fit(warm_up)
        begin = time.process_time()
        fitted = METHODS[name].fit(crowd)
        figures[name] = {"seconds": time.process_time() - begin, "conversion": conversion}
        np.save(folder / f"ours-{name}.npy", np.stack([fitted.runs_.to_array(row) for row in range(crowd.n_tasks)]))
    return figures


def fit_texts(folder: Path, names: list[str]) -> dict[str, dict[str, float]]:
    votes = pd.read_parquet(folder / "texts.parquet")
    vectors = pd.read_parquet(folder / "vectors.parquet")
    figures = {}
    for name in names:
        inputs = (vectors,) if name in ("text rasa", "text hrrasa") else ()
        METHODS[name].clone_unfitted().fit(votes.head(20), *inputs)
        begin = time.process_time()
        fitted = METHODS[name].fit(votes, *inputs)
        figures[name] = {"seconds": time.process_time() - begin, "conversion": 0.0}
        fitted.texts_.to_frame().to_parquet(folder / f"ours-{name}.parquet")
    return figures


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with ignore_fit_warnings():
        fit = fit_masks if (folder / "masks.npy").exists() else fit_texts
        print(json.dumps(fit(folder, sys.argv[2:])))

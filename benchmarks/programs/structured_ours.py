"""Processor seconds of wisecrowd on masks or texts in a folder: ``structured_ours.py NAME FOLDER``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.errors import ignore_fit_warnings

#: Settings that do the same work as the peer's methods.
METHODS: dict[str, Any] = {
    "majority": wc.MaskMajority(),
    "em": wc.MaskEM(shared=False, prior="pixel", region="union", shrinkage=0, max_iter=10, tol=1e-5),
    "rasa": wc.MaskMajority(weights="task", max_iter=10, tol=1e-5),
    "staple": wc.Staple(),
    "rover": wc.Rover(weighted=False),
    "weighted rover": wc.Rover(),
    "medoid": wc.TextMedoid(),
}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    method = METHODS[name]
    if (folder / "masks.npy").exists():
        votes = pd.read_parquet(folder / "votes.parquet")
        arrays = np.load(folder / "masks.npy")
        warm_up = wc.MaskCrowd.from_arrays(["a", "a"], ["x", "y"], [np.eye(2), np.eye(2)])
        with ignore_fit_warnings():
            method.clone_unfitted().fit(warm_up)
            begin = time.process_time()
            crowd = wc.MaskCrowd.from_arrays(votes["task"].tolist(), votes["worker"].tolist(), list(arrays))
            middle = time.process_time()
            fitted = method.fit(crowd)
            end = time.process_time()
        np.save(folder / f"ours-{name}.npy", np.stack([fitted.runs_.to_array(row) for row in range(crowd.n_tasks)]))
        assert isinstance(fitted.runs_, MaskRuns)
        print(json.dumps({"seconds": end - middle, "conversion": middle - begin}))
        return
    votes = pd.read_parquet(folder / "texts.parquet")
    with ignore_fit_warnings():
        method.clone_unfitted().fit(votes.head(20))
        begin = time.process_time()
        fitted = method.fit(votes)
        end = time.process_time()
    fitted.texts_.to_frame().to_parquet(folder / f"ours-{name}.parquet")
    print(json.dumps({"seconds": end - begin, "conversion": 0.0}))


if __name__ == "__main__":
    main()

"""Held-out comparisons of LLMFAO: log loss and accuracy of all methods for comparisons, over five random splits.

WISECROWD_ANSWER_TYPES=... python benchmarks/comparisons.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pandas as pd

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

METHODS = {
    "win-rate": wc.WinRate(),
    "elo": wc.Elo(),
    "bradley-terry": wc.BradleyTerry(interval="none"),
    "crowd-bradley-terry": wc.CrowdBradleyTerry(),
    "judge-aware, without prompts": wc.JudgeAwareBradleyTerry(interval="none", task_effects=False),
    "judge-aware": wc.JudgeAwareBradleyTerry(interval="none"),
}
SPLITS = 5


def main() -> None:
    frame = pd.read_parquet(Path(os.environ["WISECROWD_ANSWER_TYPES"]) / "llmfao" / "comparisons.parquet")
    people = wc.Comparisons.from_frame(frame[frame["kind"] == "person"], task="task")
    rows = []
    for seed in range(SPLITS):
        visible, heldout = people.hide(0.2, random_state=seed)
        for name, method in METHODS.items():
            begin = time.process_time()
            with ignore_fit_warnings():
                fitted = method.clone_unfitted().fit(visible)
            seconds = time.process_time() - begin
            best = fitted.predict_proba(heldout).to_numpy().argmax(axis=1)
            accuracy = float((best == heldout.outcome).mean())
            rows.append((name, seed, fitted.heldout_log_loss(heldout), accuracy, seconds))
    table = pd.DataFrame(rows, columns=["method", "split", "log loss", "accuracy", "processor seconds"])
    summary = table.groupby("method", sort=False)[["log loss", "accuracy", "processor seconds"]].agg(["mean", "std"])
    print(f"{people}\n20 % of the comparisons held out, {SPLITS} splits (seeds 0 to {SPLITS - 1})\n")
    print(summary.round(4).to_string())


if __name__ == "__main__":
    main()

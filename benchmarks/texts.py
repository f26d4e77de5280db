"""Texts: word error rates on CrowdSpeech dev, and on simulated transcriptions.

WISECROWD_ANSWER_TYPES=... python benchmarks/texts.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from structured_speed import embed

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

METHODS = {
    "medoid": wc.TextMedoid(weighted=False),
    "weighted medoid": wc.TextMedoid(),
    "rover, equal weights": wc.Rover(weighted=False),
    "rover": wc.Rover(),
}
#: Methods that compare vectors, here counts of groups of three letters.
VECTOR_METHODS = {
    "medoid of vectors": wc.TextMedoid(),
    "rasa, equal weights": wc.TextMedoid(model="rasa", weighted=False),
    "rasa": wc.TextMedoid(model="rasa"),
    "rasa, quantile 0.025": wc.TextMedoid(model="rasa", quantile=0.025),
    "hrrasa": wc.TextMedoid(model="hrrasa"),
}
SEEDS = 5


def encode(texts: list[str]) -> np.ndarray:
    """Return vectors of texts without case and punctuation."""
    lower = pd.Series(texts).str.lower().str.replace(r"[^a-z0-9' ]", "", regex=True)
    return embed(lower.str.split().str.join(" ")).to_numpy()


def main() -> None:
    folder = Path(os.environ["WISECROWD_ANSWER_TYPES"]) / "crowdspeech_dev"
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")
    crowd = wc.TextCrowd.from_frame(pd.read_parquet(folder / "answers.parquet"))
    print(crowd)
    is_clean = truth["split"].loc[crowd.tasks].to_numpy() == "dev-clean"
    reference = truth["text"].loc[crowd.tasks].to_numpy()[crowd.task]
    single = wc.compute_error_rates(crowd.text, reference)
    print(
        f"  {'one worker':24s} WER {single[is_clean[crowd.task]].mean():.4f} {single[~is_clean[crowd.task]].mean():.4f}"
    )
    for name, method in {**METHODS, **VECTOR_METHODS}.items():
        inputs = (encode,) if name in VECTOR_METHODS else ()
        start = time.process_time()
        with ignore_fit_warnings():
            fitted = method.clone_unfitted().fit(crowd, *inputs)
        seconds = time.process_time() - start
        rates = wc.compute_error_rates(fitted.texts_, truth["text"])
        print(
            f"  {name:24s} WER {rates[is_clean].mean():.4f} {rates[~is_clean].mean():.4f}  {seconds:.1f} processor s, "
            f"{fitted.n_iter_} iterations",
            flush=True,
        )
    rows = []
    for seed in range(SEEDS):
        simulation = wc.simulate_texts(
            n_tasks=300, votes_per_task=4, accuracy=0.6, worker_spread=2.0, random_state=seed
        )
        for name, method in METHODS.items():
            fitted = method.clone_unfitted().fit(simulation.crowd)
            error = np.abs(fitted.workers_["accuracy"] - simulation.workers["accuracy"]).mean()
            rows.append((name, wc.compute_error_rates(fitted.texts_, simulation.truth).mean(), error))
    table = pd.DataFrame(rows, columns=["method", "WER", "|accuracy|"]).groupby("method", sort=False)
    print(f"\nSimulated transcriptions, {SEEDS} seeds\n")
    print(table.agg(["mean", "std"]).round(4).to_string())


if __name__ == "__main__":
    main()

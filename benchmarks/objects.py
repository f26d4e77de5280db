"""Boxes and spans: F1 scores on public marks, calibration and workers on simulated ones, and processor time of large crowds.

WISECROWD_ANSWER_TYPES=... WISECROWD_DATA=... python benchmarks/objects.py [public] [simulated] [large] [pico]
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

#: Workers of ner_mturk_spans whose marks were drawn from the truth.
FALSE_WORKERS = ["w0001", "w0002", "w0003", "w0004"]
SEEDS = 5


def fit(method: Any, crowd: Any, *documents: Any) -> Any:
    with ignore_fit_warnings():
        return method.fit(crowd, *documents)


def measure_public(folder: Path) -> None:
    boxes, assignments, truth = (
        pd.read_parquet(folder / "boxes_praznat" / f"{name}.parquet")
        for name in ("boxes", "assignments", "truth_boxes")
    )
    crowd = wc.BoxCrowd.from_frame(boxes, assignments=assignments)
    print(crowd)
    methods = {
        "half of the workers": wc.BoxConsensus(model="majority", threshold="half"),
        "consensus": wc.BoxConsensus(),
    }
    methods |= {f"consensus, min_similarity {value}": wc.BoxConsensus(min_similarity=value) for value in (0.4, 0.6)}
    for name, method in methods.items():
        print(f"  {name:36s} F1 {wc.score_objects(fit(method, crowd).objects_, truth, kind='boxes').f1:.4f}")
    spans, assignments, truth = (
        pd.read_parquet(folder / "ner_mturk_spans" / f"{name}.parquet")
        for name in ("spans", "assignments", "truth_spans")
    )
    documents = pd.read_parquet(folder / "ner_mturk_spans" / "documents.parquet")
    for without in ([], FALSE_WORKERS):
        parts = (table[~table["worker"].isin(without)] for table in (spans, assignments))
        marks, seen = parts
        span_crowd = wc.SpanCrowd.from_frame(marks, assignments=seen)
        print(span_crowd)
        span_methods = {
            "half of the workers": (wc.SpanConsensus(model="majority", threshold="half"),),
            "consensus": (wc.SpanConsensus(),),
            "bayesian-sequence": (wc.BayesianSequence(),),
            "bayesian-sequence with documents": (wc.BayesianSequence(), documents),
            "hmm-crowd with documents": (wc.HMMCrowd(), documents),
        }
        for name, (span_method, *texts) in span_methods.items():
            score = wc.score_objects(fit(span_method, span_crowd, *texts).objects_, truth, kind="spans")
            print(f"  {name:36s} F1 {score.f1:.4f}  precision {score.precision:.3f}  recall {score.recall:.3f}")


def measure_simulated() -> None:
    rows = []
    for kind, simulate, method in (
        ("boxes", wc.simulate_boxes, wc.BoxConsensus),
        ("spans", wc.simulate_spans, wc.SpanConsensus),
        ("points", wc.simulate_points, wc.PointConsensus),
    ):
        for options in ({}, {"votes_per_task": 3}, {"difficult_share": 0.4}):
            for seed in range(SEEDS):
                made = simulate(n_tasks=500, random_state=seed, **options)  # type: ignore[arg-type]  # mixed types
                fitted = fit(method(), made.crowd)
                candidates = fitted.candidates_
                radius = 15 if kind == "points" else None
                score = wc.score_objects(candidates, made.truth, kind=kind, radius=radius)  # type: ignore[arg-type]
                confidence = candidates["confidence"].to_numpy()
                bins = np.minimum((confidence * 10).astype(int), 9)
                error = np.abs(np.bincount(bins, confidence - score.is_match)).sum() / len(bins)
                f1 = wc.score_objects(fitted.objects_, made.truth, kind=kind, radius=radius).f1  # type: ignore[arg-type]
                rates = np.abs(fitted.workers_ - made.workers).mean()
                rows.append((kind, str(options), f1, error, rates["detection_rate"], rates["false_alarms"]))
    columns = ["kind", "options", "F1", "ECE", "|detection|", "|false alarms|"]
    table = pd.DataFrame(rows, columns=columns).groupby(["kind", "options"], sort=False)
    print(f"\nSimulated crowds, {SEEDS} seeds; ECE of the confidence, mean absolute error of workers' rates\n")
    print(table.mean().round(4).to_string())
    print("\nworst seed\n", table["ECE"].max().round(4).to_string())


def measure_large() -> None:
    print("\nProcessor seconds, 5 votes per task")
    for n_tasks in (10_000, 100_000):
        for simulate, method in ((wc.simulate_boxes, wc.BoxConsensus()), (wc.simulate_spans, wc.SpanConsensus())):
            crowd = simulate(n_tasks=n_tasks, n_workers=200, random_state=0).crowd
            start = time.process_time()
            fitted = fit(method, crowd)
            print(f"  {method.name:16s} {crowd!r}: {time.process_time() - start:.1f} s, {fitted.n_iter_} iterations")


def find_runs(tags: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the runs of tokens with label 1 as spans; a task is document:token."""
    parts = tags["task"].astype(str).str.rpartition(":")
    table = tags.assign(task=parts[0].to_numpy(), token=parts[2].astype(np.int32).to_numpy())
    table = table[table["label"].astype(str) == "1"].sort_values([*by, "token"])
    codes = [pd.factorize(table[name])[0] for name in by]
    breaks = np.logical_or.reduce([np.diff(code) != 0 for code in codes]) | (np.diff(table["token"]) != 1)
    first = np.flatnonzero(np.append(True, breaks))
    last = np.append(first[1:], len(table)) - 1
    spans = table.iloc[first][by].reset_index(drop=True)
    return spans.assign(start=table["token"].to_numpy()[first], end=table["token"].to_numpy()[last] + 1)


def measure_pico(folder: Path) -> None:
    tags = pd.read_parquet(folder / "pico_tokens" / "annotations.parquet")
    truth = pd.read_parquet(folder / "pico_tokens" / "truth.parquet")
    documents = tags["task"].astype(str).str.rpartition(":")[0]
    assignments = pd.DataFrame({"task": documents, "worker": tags["worker"]}).drop_duplicates()
    crowd = wc.SpanCrowd.from_frame(find_runs(tags, ["task", "worker"]), assignments=assignments)
    gold = set(truth["task"].astype(str).str.rpartition(":")[0])
    true_spans = find_runs(truth, ["task"])
    print(f"\npico_tokens, {len(tags):,} token labels\n{crowd}")
    methods: dict[str, Any] = {
        "half of the workers": wc.SpanConsensus(model="majority", threshold="half"),
        "consensus": wc.SpanConsensus(),
        "bayesian-sequence": wc.BayesianSequence(),
    }
    for name, method in methods.items():
        start = time.process_time()
        fitted = fit(method, crowd)
        seconds = time.process_time() - start
        objects = fitted.objects_.drop(columns="label")
        scores = [
            wc.score_objects(objects[objects["task"].isin(gold)], true_spans, kind="spans", min_iou=iou).f1
            for iou in (1.0, 0.5)
        ]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  {name:24s} F1 exact {scores[0]:.3f}, IoU 0.5 {scores[1]:.3f}  {seconds:.1f} processor s, "
            f"{fitted.n_iter_} iterations, {'converged' if fitted.converged_ else 'not converged'}, "
            f"peak {peak:.1f} GB with reading",
            flush=True,
        )


if __name__ == "__main__":
    parts = sys.argv[1:] or ["public", "simulated"]
    if "public" in parts:
        measure_public(Path(os.environ["WISECROWD_ANSWER_TYPES"]))
    if "simulated" in parts:
        measure_simulated()
    if "large" in parts:
        measure_large()
    if "pico" in parts:
        measure_pico(Path(os.environ["WISECROWD_DATA"]))

"""Spans: figures on real spans, and calibrated confidence on simulated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import SpanConsensus, SpanCrowd, simulate_spans
from wisecrowd.evaluate.object_metrics import score_objects

#: Workers of the release that are no people; their marks are drawn from the truth.
FALSE_WORKERS = ["w0001", "w0002", "w0003", "w0004"]


@pytest.mark.data
@pytest.mark.parametrize(("without", "least"), [([], 0.78), (FALSE_WORKERS, 0.765)])
def test_real_spans_are_better_than_votes_on_tokens(
    answer_types_folder: Path, without: list[str], least: float
) -> None:
    """Dawid–Skene on tokens has an F1 score of 0.734 on these spans."""
    folder = answer_types_folder / "ner_mturk_spans"
    names = ("spans", "assignments", "truth_spans")
    spans, assignments, truth = (pd.read_parquet(folder / f"{name}.parquet") for name in names)
    spans, assignments = (table[~table["worker"].isin(without)] for table in (spans, assignments))
    fitted = SpanConsensus().fit(SpanCrowd.from_frame(spans, assignments=assignments))
    assert score_objects(fitted.objects_, truth, kind="spans").f1 >= least


@pytest.mark.parametrize("options", [{}, {"difficult_share": 0.4}, {"n_classes": 1}], ids=str)
@pytest.mark.slow
def test_confidence_is_the_probability_of_the_exact_span(options: dict[str, float]) -> None:
    simulation = simulate_spans(n_tasks=400, random_state=1, **options)  # type: ignore[arg-type]  # mixed types
    fitted = SpanConsensus().fit(simulation.crowd)
    candidates = fitted.candidates_
    is_match = score_objects(candidates, simulation.truth, kind="spans").is_match
    confidence = candidates["confidence"].to_numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    assert np.abs(np.bincount(bins, confidence - is_match)).sum() / len(bins) <= 0.05
    errors = np.abs(fitted.workers_ - simulation.workers[["detection_rate", "boundary_error"]]).mean()
    assert errors["detection_rate"] <= 0.06
    assert errors["boundary_error"] <= 0.05


def test_nested_spans_stay_apart() -> None:
    rows = [(f"d{n}", worker, start, end, label) for n in range(10) for worker in "abcd" for start, end, label in
            [(0, 6, "ORG"), (4, 6, "LOC")]]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"])
    objects = SpanConsensus().fit(frame).objects_
    assert objects.groupby("task").size().eq(2).all()
    assert set(zip(objects["start"], objects["end"], objects["label"], strict=True)) == {(0, 6, "ORG"), (4, 6, "LOC")}

"""HMM-Crowd: below Bayesian sequence combination on real spans, as published, and above votes on tokens."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from wisecrowd import HMMCrowd, SpanCrowd, simulate_spans
from wisecrowd.evaluate.object_metrics import score_objects


@pytest.mark.data
def test_real_spans_have_the_published_score(answer_types_folder: Path) -> None:
    """Nguyen et al. (2017) report 74.8."""
    folder = answer_types_folder / "ner_mturk_spans"
    names = ("spans", "assignments", "truth_spans", "documents")
    spans, assignments, truth, documents = (pd.read_parquet(folder / f"{name}.parquet") for name in names)
    fitted = HMMCrowd().fit(SpanCrowd.from_frame(spans, assignments=assignments), documents)
    assert score_objects(fitted.objects_, truth, kind="spans").f1 == pytest.approx(0.748, abs=0.01)


def test_simulated_spans_are_found() -> None:
    simulation = simulate_spans(n_tasks=200, random_state=3)
    assert score_objects(HMMCrowd().fit(simulation.crowd).objects_, simulation.truth, kind="spans").f1 > 0.85

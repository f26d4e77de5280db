"""Benchmark of the calibration of learners."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import simulate_crowd
from wisecrowd.bench.papers import learner_calibration
from wisecrowd.bench.papers.learner_calibration import (
    ECE,
    ECE_CALIBRATED,
    FIGURES,
    NLL,
    NLL_CALIBRATED,
    CalibrateLearner,
)
from wisecrowd.io.datasets import Dataset


def test_an_entry_scores_the_same_fit_with_and_without_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    made = simulate_crowd(n_tasks=150, n_workers=8, n_classes=2, votes_per_task=3, random_state=0)
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"x": (made.truth == "c1") + rng.normal(size=150)}, index=made.truth.index)
    data = (features, made.truth, made.truth.index[100:])
    monkeypatch.setattr(learner_calibration, "get_classification_data", lambda dataset: data)
    dataset = Dataset(name="simulated", crowd=made.crowd, truth=made.truth)
    figures = CalibrateLearner("raykar")(dataset, 0)
    assert set(figures) == set(FIGURES)
    plain = CalibrateLearner("raykar", {"calibration": 0.0})(dataset, 0)
    assert plain[NLL] == plain[NLL_CALIBRATED] == pytest.approx(figures[NLL])
    assert plain[ECE] == plain[ECE_CALIBRATED] == pytest.approx(figures[ECE])
    assert figures[NLL_CALIBRATED] != figures[NLL]


def test_findings_count_learners_that_improve() -> None:
    rows = [
        {"entry": name, "data": "Music", "figures": dict(zip(FIGURES, figures, strict=True))}
        for name, figures in {"a": (0.5, 0.4, 0.1, 0.05), "b": (0.3, 0.4, 0.1, 0.05)}.items()
    ]
    (sentence,) = learner_calibration.findings(rows)
    assert "mean NLL .400, calibrated .400" in sentence
    assert "NLL of 1 of 2 learners and the ECE of 2" in sentence

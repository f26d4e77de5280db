from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from wisecrowd import simulate_crowd
from wisecrowd.bench.confidence_prior import FAMILIES, GoldPart
from wisecrowd.bench.papers import confidence
from wisecrowd.bench.papers.confidence import AUDIT, ENTRIES, Assessment, findings
from wisecrowd.errors import InputError
from wisecrowd.io.datasets import Dataset


@pytest.fixture
def rte(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Crowds of 300 gold tasks that are alike."""
    rng = np.random.default_rng(0)
    parts = []
    for name in list(FAMILIES)[:20]:
        features = rng.normal([2.0, 1.0], 1.0, size=(300, 2))
        p = expit(-0.5 + features @ [0.6, 0.8])
        right = (rng.random(300) < p).astype(float)
        parts.append(GoldPart(name, 100, features, right, np.zeros(300, dtype=int), np.full(300, 0.99)))
    monkeypatch.setattr(confidence, "measure_crowds", lambda shares: tuple(parts))
    monkeypatch.setattr(confidence, "N_SAMPLES", 10)
    confidence._score.cache_clear()
    confidence._fit_without.cache_clear()
    made = simulate_crowd(n_tasks=5, random_state=0)
    return Dataset(name="rte", crowd=made.crowd, truth=made.truth)


def test_confidence_beats_an_overconfident_posterior(rte: Dataset) -> None:
    posterior = ENTRIES["posterior"](rte, 0)
    calibrated = ENTRIES["confidence"](rte, 0)
    assert posterior["gap"] > 0.1 > 0.06 > calibrated["gap"]
    assert calibrated["covered"] == 1.0


def test_gold_narrows_intervals_and_audits_beat_random_samples(rte: Dataset) -> None:
    gold, audit = ENTRIES["50 gold tasks"](rte, 0), ENTRIES[AUDIT](rte, 0)
    assert gold["width"] < gold["width of gold alone"]
    assert audit["variance ratio"] < 1
    with pytest.raises(InputError, match="fewer than 400 gold tasks"):
        ENTRIES["200 gold tasks"](rte, 0)
    with pytest.raises(InputError, match="too few gold tasks"):
        Assessment("confidence", share=5)(rte, 0)


def test_findings_name_means_intervals_and_ratios(rte: Dataset) -> None:
    rows = [
        {"entry": title, "data": "rte", "figures": ENTRIES[title](rte, 0)}
        for title in ("posterior", "confidence", "50 gold tasks", AUDIT)
    ]
    text = "\n".join(findings(rows))
    assert "posterior: gap ." in text
    assert "100 % of intervals contain the accuracy" in text
    assert "at most .75 on" in text
    assert findings([]) == ()

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.bench import confidence_prior
from wisecrowd.bench.confidence_prior import FAMILIES, GoldPart, fit_prior, measure_part, take_part
from wisecrowd.io.datasets import Dataset


def make_parts(shift_scale: float) -> list[GoldPart]:
    """Crowds whose labels are right with probability σ(−0.5 + 0.6 evidence + 0.8 agreement + shift)."""
    rng = np.random.default_rng(0)
    parts = []
    for name in FAMILIES:
        features = rng.normal([2.0, 1.0], [1.0, 0.7], size=(400, 2))
        p = expit(-0.5 + features @ [0.6, 0.8] + shift_scale * rng.normal())
        parts.append(GoldPart(name, 100, features, (rng.random(400) < p).astype(float), rng.integers(0, 3, 400), p))
    return parts


@pytest.mark.slow
def test_coefficients_and_spread_are_recovered() -> None:
    prior = fit_prior(make_parts(0.6))
    assert prior.evidence == pytest.approx(0.6, abs=0.2)
    assert prior.agreement == pytest.approx(0.8, abs=0.25)
    assert 0.3 < prior.shift_scale < 0.9
    assert fit_prior(make_parts(0.0)).shift_scale < 0.25


def test_a_part_has_some_votes_and_the_truth() -> None:
    made = simulate_crowd(n_tasks=200, n_workers=8, votes_per_task=5, random_state=0)
    truth = made.truth.copy()
    truth.iloc[0] = "nobody chose this"
    part = take_part(Dataset(name="rte", crowd=made.crowd, truth=truth[:150]), 30)
    assert 0.2 < part.crowd.n_votes / made.crowd.n_votes < 0.4
    assert (part.truth == -1).sum() == 50
    assert (part.truth == -2).sum() == 1
    measured = measure_part("rte", part, 30, "majority-vote")
    assert measured.family == "rte"
    assert len(measured.right) <= 150
    assert 0.5 < measured.right.mean() < 1
    assert len(measured.sample(20).right) == 20
    assert measured.sample(1_000) is measured


def test_large_crowds_are_limited_to_gold_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence_prior, "MAX_VOTES", 10)
    crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    part = take_part(Dataset(name="rte", crowd=crowd, truth=pd.Series({1: 1, 4: 0})), 100)
    assert part.crowd.tasks.tolist() == [1, 4]
    assert part.truth.tolist() == [1, 0]


@pytest.mark.slow
def test_classes_that_differ_widen_the_class_scale() -> None:
    parts = make_parts(0.2)
    rng = np.random.default_rng(1)
    spread = []
    for part in parts:
        p = expit(-0.5 + part.features @ [0.6, 0.8] + rng.normal(0, 1.0, 3)[part.label])
        spread.append(replace(part, right=(rng.random(400) < p).astype(float)))
    assert fit_prior(spread).class_scale > fit_prior(parts).class_scale

"""Cumulative-link likelihood: probabilities, gradient, special cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from wisecrowd.aggregate.ordinal._graded_likelihood import GradedLikelihood
from wisecrowd.em.score_grid import make_score_grid
from wisecrowd.simulate.ratings import simulate_ratings

CROWD = simulate_ratings(n_tasks=40, n_workers=6, n_classes=4, votes_per_task=4, random_state=0).crowd
NODES, WEIGHTS = make_score_grid(15)


def make_model(n_classes: int = 4, **options: float) -> GradedLikelihood:
    sds = {"discrimination_sd": 0.5, "severity_sd": 0.7, "spread_sd": 0.4} | options
    return GradedLikelihood(CROWD.pairs, n_classes, NODES, **sds)  # type: ignore[arg-type]


def make_point(model: GradedLikelihood, seed: int = 0) -> np.ndarray:
    noise = 0.3 * np.random.default_rng(seed).standard_normal(len(model.prior.mean))
    return np.where(model.prior.free, model.initial_point(np.full(4, 0.25)) + noise, model.prior.mean)


def test_probabilities_are_differences_of_cumulative_ones() -> None:
    model = make_model()
    point = make_point(model)
    a, b, w, c = model.get_parameters(point)
    edges = np.concatenate([[-np.inf], c, [np.inf]])
    pairs = CROWD.pairs
    slope, place = a[pairs.worker, None], NODES - b[pairs.worker, None]
    low, high = ((w[pairs.worker] * edges[pairs.label + step])[:, None] for step in (0, 1))
    expected = expit(slope * (place - low)) - expit(slope * (place - high))
    assert np.allclose(model.label_probs(point), expected, atol=1e-12)


def test_thresholds_ascend_around_their_centre() -> None:
    model = make_model()
    point = make_point(model)
    thresholds = model.get_parameters(point).thresholds
    assert (np.diff(thresholds) > 0).all()
    assert thresholds.mean() == pytest.approx(point[3 * CROWD.n_workers + 1])


def test_the_initial_point_reproduces_the_shares_of_labels() -> None:
    model, shares = make_model(), np.array([0.1, 0.2, 0.5, 0.2])
    a, _, _, c = model.get_parameters(model.initial_point(shares))
    above = (WEIGHTS[:, None] * expit(a[0] * (NODES[:, None] - c))).sum(axis=0)
    assert np.allclose(above, [0.9, 0.7, 0.2], atol=0.02)


def test_the_gradient_is_right() -> None:
    model = make_model()
    point, tally = make_point(model), np.random.default_rng(1).random((len(CROWD.pairs), len(NODES)))
    _, gradient = model.expected_log_joint(point, tally)
    for coordinate in range(len(point)):
        step = 1e-5 * np.eye(len(point))[coordinate]
        up, down = (model.expected_log_joint(point + sign * step, tally)[0] for sign in (1, -1))
        assert gradient[coordinate] == pytest.approx((up - down) / 2e-5, abs=1e-4, rel=1e-5)


def test_severity_scores_are_derivatives() -> None:
    model = make_model()
    point, n = make_point(model), CROWD.n_workers
    step = np.zeros_like(point)
    step[n : 2 * n] = 1e-5
    up, down = (np.log(model.label_probs(point + sign * step)) for sign in (1, -1))
    assert np.allclose(model.severity_scores(point), (up - down) / 2e-5, atol=1e-5)


def test_a_standard_deviation_of_zero_fixes_a_parameter() -> None:
    model = make_model(severity_sd=0.0)
    _, gradient = model.expected_log_joint(make_point(model), np.ones((len(CROWD.pairs), len(NODES))))
    n = CROWD.n_workers
    assert (gradient[n : 2 * n] == 0).all()
    assert np.isinf(model.curvature(np.ones(n))[n : 2 * n]).all()


def test_far_scores_keep_positive_probabilities() -> None:
    model = make_model()
    point = make_point(model)
    point[3 * CROWD.n_workers] = 4.0  # discriminations around 55
    value, gradient = model.expected_log_joint(point, np.ones((len(CROWD.pairs), len(NODES))))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()

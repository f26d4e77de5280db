"""The mean by precision (LFC_N)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from wisecrowd import Crowd, Mean, WeightedMean, load_dataset
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.metrics import mae, rmse


def simulated(n_tasks: int, n_workers: int, seed: int) -> tuple[Crowd, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth, scale = rng.normal(size=n_tasks), rng.uniform(0.1, 2, n_workers)
    label_probs = truth[:, None] + scale * rng.normal(size=(n_tasks, n_workers))
    votes = [(t, w, label_probs[t, w]) for t in range(n_tasks) for w in range(n_workers)]
    return Crowd.from_triples(votes, numeric=True), truth, scale


def log_marginal(crowd: Crowd, variance: np.ndarray) -> float:
    """log ∫ Π N(y; z, v) dz, task by task, by the density of the labels' differences from the first."""
    total = 0.0
    for task in range(crowd.n_tasks):
        mine = crowd.task == task
        label_probs, spread = crowd.label[mine], variance[crowd.worker[mine]]
        if len(label_probs) > 1:
            covariance = np.diag(spread[1:]) + spread[0]
            total += multivariate_normal(np.zeros(len(label_probs) - 1), covariance).logpdf(
                label_probs[1:] - label_probs[0]
            )
    return total


def test_the_objective_is_the_marginal_likelihood_up_to_a_constant() -> None:
    crowd, _, _ = simulated(12, 4, 0)
    gaps = []
    for passes in (1, 2, 3):
        with pytest.warns(NotConverged):
            fitted = WeightedMean(smoothing=0, max_iter=passes, tol=1e-15, accelerate=False).fit(crowd)
        with pytest.warns(NotConverged):  # its last objective is that of the weights one pass earlier
            later = WeightedMean(smoothing=0, max_iter=passes + 1, tol=1e-15, accelerate=False).fit(crowd)
        gaps.append(later.trace_[-1] - log_marginal(crowd, 1 / fitted.weight_))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8)


# (Without pseudo-labels and without uncertainty, the likelihood of a dense crowd has no peak.)
@pytest.mark.parametrize(("smoothing", "integrate"), [(0, True), (1, True), (5, True), (1, False), (5, False)])
def test_it_ends_where_its_equations_hold_and_never_falls(smoothing: float, integrate: bool) -> None:
    crowd, _, _ = simulated(60, 8, 0)
    fitted = WeightedMean(smoothing=smoothing, integrate=integrate, tol=1e-14, max_iter=5000).fit(crowd)
    assert (np.diff(fitted.trace_) >= -1e-9 * np.abs(fitted.trace_[1:])).all()
    weight = fitted.weight_[crowd.worker]
    known = np.bincount(crowd.task, weight)
    np.testing.assert_allclose(fitted.estimates_, np.bincount(crowd.task, weight * crowd.label) / known, atol=1e-9)
    error = (crowd.label - fitted.estimates_[crowd.task]) ** 2 + (1 / known[crowd.task] if integrate else 0)
    usual = np.mean((crowd.label - Mean().fit(crowd).estimates_[crowd.task]) ** 2)
    variance = (np.bincount(crowd.worker, error) + smoothing * usual) / (60 + smoothing)
    np.testing.assert_allclose(fitted.weight_, 1 / variance, rtol=1e-4)


def test_precision_is_found_ever_better_and_estimates_become_as_good_as_with_known_precision() -> None:
    gaps = []
    for tasks in (30, 300, 3000):
        crowd, truth, scale = simulated(tasks, 15, 1)
        fitted = WeightedMean().fit(crowd)
        gaps.append(np.abs(np.log(fitted.weight_ * scale**2)).mean())
        oracle = np.bincount(crowd.task, (crowd.label / scale[crowd.worker] ** 2)) / (1 / scale**2).sum()
        if tasks == 3000:
            assert rmse(truth, fitted.estimates_) < 1.05 * rmse(truth, oracle)
            assert rmse(truth, fitted.estimates_) == pytest.approx(fitted.standard_error_.mean(), rel=0.05)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.15


def test_one_worker_takes_over_unless_estimates_are_known_to_be_uncertain() -> None:
    crowd, _, _ = simulated(500, 8, 2)
    shares = [(w := WeightedMean(integrate=how).fit(crowd).weight_).max() / w.sum() for how in (True, False)]
    assert shares[1] > 0.97
    assert shares[0] < 0.9


def test_equal_workers_make_it_a_mean() -> None:
    votes = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0)]
    np.testing.assert_allclose(WeightedMean().fit(Crowd.from_triples(votes, numeric=True)).estimates_, [1.5, 1.5])


def test_a_single_label_has_the_standard_error_of_its_worker() -> None:
    crowd, _, _ = simulated(200, 5, 3)
    more = Crowd.concat([crowd, Crowd.from_triples([(999, 2, 0.0)], numeric=True)])
    fitted = WeightedMean().fit(more)
    assert fitted.tasks_.loc[999, "standard_error"] == pytest.approx(1 / np.sqrt(fitted.weight_[2]))


def test_parameters_are_checked_and_haste_is_reported() -> None:
    crowd, _, _ = simulated(50, 5, 4)
    with pytest.raises(UsageError, match="smoothing"):
        WeightedMean(smoothing=-1).fit(crowd)
    with pytest.raises(UsageError, match="max_iter"):
        WeightedMean(max_iter=0).fit(crowd)
    with pytest.warns(NotConverged, match="stopped after 2 iterations.*raise max_iter"):
        assert not WeightedMean(max_iter=2).fit(crowd).converged_


# Zheng et al. (2017), LFC_N on N_Emotion: maximum likelihood.
@pytest.mark.data
def test_published_errors(data_folder: Path) -> None:
    data = load_dataset(data_folder / "headline_emotions")
    fitted = WeightedMean(smoothing=0, integrate=False).fit(data.crowd)
    assert mae(data.truth, fitted) == pytest.approx(12.20, abs=0.006)
    assert rmse(data.truth, fitted) == pytest.approx(18.97, abs=0.006)

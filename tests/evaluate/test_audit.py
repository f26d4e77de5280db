from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import DawidSkene, draw_audit_sample, estimate_confidence, evaluate_audit, simulate_crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.audit import (
    allocate_checks,
    assign_strata,
    count_further_checks,
    estimate_prediction_powered,
    sampling_rates,
)
from wisecrowd.evaluate.confidence import LabelConfidence
from wisecrowd.simulate import Simulation


@pytest.fixture
def made() -> Simulation:
    return simulate_crowd(n_tasks=400, n_workers=15, n_classes=3, votes_per_task=4, random_state=5)


@pytest.fixture
def estimate(made: Simulation) -> LabelConfidence:
    return estimate_confidence(DawidSkene().fit(made.crowd), made.crowd)


def test_weights_stand_for_all_tasks(estimate: LabelConfidence) -> None:
    for size in (1, 7, 50, 390, 1_000):
        sample = draw_audit_sample(estimate, size)
        assert len(sample) == min(size, 400)
        assert sample.index.is_unique
        assert sample["weight"].sum() == pytest.approx(400)
        assert (sample["weight"] >= 1).all()


def test_uncertain_tasks_are_drawn_more_often(estimate: LabelConfidence) -> None:
    drawn = pd.concat([draw_audit_sample(estimate, 40, random_state=seed) for seed in range(30)])
    confidence = pd.Series(estimate.confidence, index=estimate.tasks)
    assert confidence[drawn.index].mean() < confidence.mean() - 0.02
    np.testing.assert_allclose(
        np.average(confidence[drawn.index], weights=drawn["weight"]), confidence.mean(), atol=0.01
    )


def test_a_draw_is_repeatable_and_leaves_out_what_is_known(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    checked = made.truth[:100]
    estimate = estimate_confidence(fitted, made.crowd, checked=checked)
    sample = draw_audit_sample(estimate, 50, random_state=3)
    assert not sample.index.isin(checked.index).any()
    pd.testing.assert_frame_equal(sample, draw_audit_sample(estimate, 50, random_state=3))
    with pytest.raises(InputError, match="no tasks to check"):
        draw_audit_sample(estimate_confidence(fitted, made.crowd, checked=made.truth), 5)
    with pytest.raises(UsageError, match="at least 1"):
        draw_audit_sample(estimate, 0)


def test_rates_have_mean_one_and_never_vanish() -> None:
    rates = sampling_rates(np.array([0.5, 0.9, 1.0, 1.0]))
    assert rates.mean() == pytest.approx(1.0)
    assert rates.min() >= 0.1
    np.testing.assert_allclose(sampling_rates(np.full(5, 0.7)), 1.0)


def stratified_variance(right: NDArray[np.float64], confidence: NDArray[np.float64], size: int) -> float:
    """Variance of the weighted share of right labels over all samples, relative to a simple random sample."""
    stratum = assign_strata(confidence, size, np.random.default_rng(0))
    n_checks = allocate_checks(np.bincount(stratum), size)
    total = 0.0
    for number in range(len(n_checks)):
        own = right[stratum == number]
        total += (len(own) / len(right)) ** 2 * own.var(ddof=1) / n_checks[number] * (1 - n_checks[number] / len(own))
    return total / (right.var(ddof=1) / size * (1 - size / len(right)))


def test_strata_make_the_estimate_more_precise() -> None:
    """True confidence halves the variance, and confidence that says nothing costs little."""
    rng = np.random.default_rng(0)
    confidence = 1 - 0.5 * rng.beta(0.5, 1.5, 4_000)
    right = (rng.random(4_000) < confidence).astype(np.float64)
    assert stratified_variance(right, confidence, 50) < 0.75
    assert stratified_variance(right, np.full(4_000, 0.9), 50) == pytest.approx(1.0, abs=0.05)
    assert stratified_variance(rng.permutation(right), confidence, 50) < 1.5


@pytest.mark.slow
def test_the_variance_over_draws_is_that_of_the_formula(made: Simulation, estimate: LabelConfidence) -> None:
    right = (estimate.table["label"] == made.truth[estimate.tasks]).astype(float)
    samples = [draw_audit_sample(estimate, 40, random_state=seed) for seed in range(400)]
    shares = [np.average(right[sample.index], weights=sample["weight"]) for sample in samples]
    expected = stratified_variance(right.to_numpy(), estimate.confidence, 40) * right.var() / 40 * (1 - 40 / len(right))
    assert np.mean(shares) == pytest.approx(right.mean(), abs=0.01)
    assert np.var(shares) == pytest.approx(expected, rel=0.25)


def test_strata_have_equal_shares_of_the_checks() -> None:
    confidence = np.linspace(0.5, 0.99, 1_000)
    n_tasks = np.bincount(assign_strata(confidence, 50, np.random.default_rng(0)))
    assert len(n_tasks) == 10
    assert (np.diff(n_tasks) >= 0).all()
    assert allocate_checks(n_tasks, 50).tolist() == [5] * 10
    assert allocate_checks(np.array([1, 0, 9]), 4).tolist() == [1, 0, 3]


def test_an_audit_finds_the_accuracy(made: Simulation, estimate: LabelConfidence) -> None:
    fitted = DawidSkene().fit(made.crowd)
    sample = draw_audit_sample(estimate, 100, random_state=1)
    result = evaluate_audit(fitted, made.crowd, made.truth[sample.index], weight=sample["weight"])
    accuracy = (fitted.labels_ == made.truth).mean()
    assert result.n_checked == 100
    assert result.accuracy.low <= accuracy <= result.accuracy.high
    assert result.checks_alone.low <= accuracy <= result.checks_alone.high
    assert result.accuracy.high - result.accuracy.low < estimate.accuracy.high - estimate.accuracy.low
    assert set(result.accuracy_by_class.index) == {"c0", "c1", "c2"}


def test_further_checks_reach_the_target(made: Simulation, estimate: LabelConfidence) -> None:
    fitted = DawidSkene().fit(made.crowd)
    few = evaluate_audit(fitted, made.crowd, made.truth[:30], half_width=0.03)
    many = evaluate_audit(fitted, made.crowd, made.truth[:200], half_width=0.03)
    assert few.n_more > many.n_more
    reached = evaluate_audit(fitted, made.crowd, made.truth[: 30 + few.n_more], half_width=0.03)
    assert (reached.accuracy.high - reached.accuracy.low) / 2 < 0.045
    assert count_further_checks(estimate, 0.49) == 0
    assert evaluate_audit(fitted, made.crowd, made.truth).n_more == 0


def test_prediction_powered_estimate_equals_the_formula() -> None:
    """Angelopoulos et al. (2023), equation of the mean with λ = 1, and the finite-population factor."""
    rng = np.random.default_rng(0)
    prediction = rng.uniform(0.5, 1.0, 2_000)
    rows = rng.choice(2_000, 100, replace=False)
    right = rng.random(100) < prediction[rows] - 0.1
    found = estimate_prediction_powered(prediction, prediction[rows], right)
    error = right - prediction[rows]
    half = 1.6448536269514722 * np.sqrt(error.var(ddof=1) / 100 * (1 - 100 / 2_000))
    assert found.accuracy == pytest.approx(prediction.mean() + error.mean())
    assert found.high - found.accuracy == pytest.approx(half)


@pytest.mark.parametrize(
    ("is_weighted", "accuracy", "low", "high"),
    [(False, 0.75049987, 0.65733531, 0.84366444), (True, 0.74725994, 0.64618919, 0.8483307)],
)
def test_prediction_powered_estimate_is_that_of_ppi_python(
    is_weighted: bool, accuracy: float, low: float, high: float
) -> None:
    """Figures of ``ppi_mean_ci(right, checked, population, alpha=0.1, lam=1, w=weight)`` in ppi-python 0.2.3.

    It divides by n instead of n − 1 and knows no finite population, so the population is large.
    """
    position = np.arange(60)
    population = 0.55 + 0.4 * np.sin(np.arange(200_000)) ** 2
    checked = 0.55 + 0.4 * np.sin(7 * position) ** 2
    weight = 1.0 + position % 3 if is_weighted else None
    found = estimate_prediction_powered(population, checked, position % 4 > 0, weight)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-8)
    assert found.high - found.accuracy == pytest.approx((high - accuracy) * np.sqrt(60 / 59), rel=1e-3)
    assert found.accuracy - found.low == pytest.approx((accuracy - low) * np.sqrt(60 / 59), rel=1e-3)


def test_without_predictions_it_is_the_textbook_proportion() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    right = np.arange(200) < 150
    found = estimate_prediction_powered(np.full(10**9 // 10**3, 0.5), np.full(200, 0.5), right)
    low, high = proportion.proportion_confint(150, 200, alpha=0.1, method="normal")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-3)


def test_equal_outcomes_do_not_make_a_point_of_the_interval() -> None:
    found = estimate_prediction_powered(np.full(500, 0.9), np.full(20, 0.9), np.ones(20))
    assert found.high - found.low > 0.01


def test_bad_checks_are_refused(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    with pytest.raises(UsageError, match="half_width must lie"):
        evaluate_audit(fitted, made.crowd, made.truth[:5], half_width=2)
    with pytest.raises(InputError, match="no positive weight"):
        evaluate_audit(fitted, made.crowd, made.truth[:5], weight=pd.Series(1.0, index=made.crowd.tasks[:3]))

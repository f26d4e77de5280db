from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import DawidSkene, draw_audit_sample, estimate_confidence, evaluate_audit, simulate_crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.audit import count_further_checks, estimate_prediction_powered, sampling_rates
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
    assert rates.min() > 0.25


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

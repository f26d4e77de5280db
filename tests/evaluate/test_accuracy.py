from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from wisecrowd.em.label_support import LabelSupport
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.accuracy import (
    SHIFTS,
    SLOPES,
    AccuracyEstimate,
    ConfidencePrior,
    CrowdCalibration,
    grid_log_likelihood,
)

PRIOR = ConfidencePrior(
    intercept=-0.5,
    evidence=0.5,
    agreement=0.6,
    shift_scale=0.5,
    degrees_of_freedom=4.0,
    slope_scale=0.3,
    class_scale=0.5,
)


def test_the_committed_prior_prefers_more_support() -> None:
    prior = ConfidencePrior.load()
    assert prior.evidence > 0
    assert prior.agreement > 0
    assert ConfidencePrior(**prior.to_dict()) == prior


def test_the_score_is_linear_in_the_support() -> None:
    support = LabelSupport(np.array([0]), np.array([2.0]), np.array([1.5]), np.array([3]))
    assert PRIOR.score(support)[0] == pytest.approx(-0.5 + 0.5 * np.arcsinh(2.0) + 0.6 * 1.5)


def test_the_likelihood_is_that_of_a_logistic_regression() -> None:
    scores, right = np.array([0.5, -1.0]), np.array([1.0, 0.0])
    grid = grid_log_likelihood(scores, right)
    p = expit(SLOPES[3] * scores + SHIFTS[40])
    assert grid[3, 40] == pytest.approx(np.log(p[0]) + np.log(1 - p[1]))


def test_many_outcomes_are_summed_in_parts() -> None:
    rng = np.random.default_rng(0)
    scores, right = rng.normal(size=950), rng.random(950) < 0.5
    halves = grid_log_likelihood(scores[:500], right[:500]) + grid_log_likelihood(scores[500:], right[500:])
    np.testing.assert_allclose(grid_log_likelihood(scores, right), halves)


def test_confidence_rises_with_the_score_and_stays_a_probability() -> None:
    confidence = CrowdCalibration.from_outcomes(PRIOR).confidence(np.linspace(-50, 50, 101))
    assert (np.diff(confidence) >= 0).all()
    assert confidence.min() > 0
    assert confidence.max() < 1
    assert len(CrowdCalibration.from_outcomes(PRIOR).confidence([])) == 0


def test_outcomes_move_the_confidence_toward_the_truth_of_the_crowd() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(1.5, 1.0, size=4_000)
    right = rng.random(4_000) < expit(0.7 * scores - 1.0)
    calibration = CrowdCalibration.from_outcomes(PRIOR, scores[:2_000], right[:2_000])
    assert calibration.n_gold == 2_000
    np.testing.assert_allclose(calibration.confidence([0.0, 2.0]), expit([-1.0, 0.4]), atol=0.04)
    estimate = calibration.expect_accuracy(scores[2_000:])
    assert estimate.low < right[2_000:].mean() < estimate.high
    assert estimate.high - estimate.low < 0.06


def test_the_expected_accuracy_is_the_mean_confidence() -> None:
    scores = np.random.default_rng(2).normal(1.0, 1.0, size=3_000)
    calibration = CrowdCalibration.from_outcomes(PRIOR)
    estimate = calibration.expect_accuracy(scores)
    assert estimate.accuracy == pytest.approx(calibration.confidence(scores).mean(), abs=1e-3)
    assert 0 <= estimate.low < estimate.accuracy < estimate.high <= 1


@pytest.mark.slow
def test_intervals_cover_crowds_of_the_prior() -> None:
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(300):
        scores = rng.normal(1.0, 1.0, size=400)
        slope, shift = np.exp(rng.normal(0, PRIOR.slope_scale)), PRIOR.shift_scale * rng.standard_t(4)
        accuracy = (rng.random(400) < expit(slope * scores + shift)).mean()
        estimate = CrowdCalibration.from_outcomes(PRIOR).expect_accuracy(scores)
        covered.append(estimate.low <= accuracy <= estimate.high)
    assert 0.85 < np.mean(covered) < 0.95


def test_counts_stand_for_repeated_scores() -> None:
    calibration = CrowdCalibration.from_outcomes(PRIOR)
    repeated = calibration.expect_accuracy([1.0, 1.0, 1.0, -1.0])
    counted = calibration.expect_accuracy([1.0, -1.0, 5.0], [3, 1, 0])
    assert counted == repeated


def test_known_labels_leave_no_doubt() -> None:
    calibration = CrowdCalibration.from_outcomes(PRIOR)
    known = calibration.expect_accuracy([], n_known=4, n_known_right=3)
    assert (known.low, known.accuracy, known.high) == (0.75, 0.75, 0.75)
    half = calibration.expect_accuracy([1.0] * 50, n_known=50, n_known_right=50)
    none = calibration.expect_accuracy([1.0] * 50)
    assert half.accuracy == pytest.approx(0.5 + none.accuracy / 2)


def test_a_class_without_outcomes_is_less_certain_than_the_crowd() -> None:
    scores = np.full(200, 1.0)
    crowd = CrowdCalibration.from_outcomes(PRIOR, scores, np.arange(200) < 150)
    unseen = crowd.for_class([], []).expect_accuracy(scores)
    seen = crowd.for_class(scores[:50], np.ones(50)).expect_accuracy(scores)
    overall = crowd.expect_accuracy(scores)
    assert unseen.high - unseen.low > overall.high - overall.low
    assert seen.accuracy > overall.accuracy
    assert crowd.accuracy_variance(scores) < CrowdCalibration.from_outcomes(PRIOR).accuracy_variance(scores)


def test_impossible_requests_are_refused() -> None:
    calibration = CrowdCalibration.from_outcomes(PRIOR)
    with pytest.raises(UsageError, match="no labels"):
        calibration.expect_accuracy([])
    with pytest.raises(UsageError, match="level must lie between 0 and 1"):
        calibration.expect_accuracy([1.0], level=90)


def test_a_narrow_interval_is_shown_with_a_decimal() -> None:
    assert str(AccuracyEstimate(0.9, 0.88, 0.92, 0.9, 10, 5)) == "90.0 % (90 % interval: 88.0 to 92.0 %)"
    estimate = AccuracyEstimate(0.9, 0.8, 0.95, 0.8, 10, 5)
    assert str(estimate) == "90 % (80 % interval: 80 to 95 %)"
    assert AccuracyEstimate.from_dict(estimate.to_dict()) == estimate

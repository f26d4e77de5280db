"""The Davidson model: probabilities, gradient and information against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd.aggregate.pairwise._davidson import ComparisonRows, DavidsonModel, Effects, outcome_probs
from wisecrowd.simulate.comparisons import simulate_comparisons

SMALL = simulate_comparisons(
    n_items=4, n_workers=3, votes_per_worker=20, n_tasks=2, discrimination_spread=0.3, lean_spread=0.5, random_state=1
)
ALL_EFFECTS = [
    Effects(lean, ties, workers, tasks) for lean, ties, workers, tasks in itertools.product((False, True), repeat=4)
]


def make_model(effects: Effects, covariates: bool = False) -> DavidsonModel:
    comparisons = SMALL.comparisons
    values = np.random.default_rng(2).normal(size=(comparisons.n_votes, 2)) if covariates else None
    rows = ComparisonRows.summed(comparisons, workers=effects.workers, tasks=effects.tasks, covariates=values)
    if not effects.ties:
        rows = rows.split_ties()
    return DavidsonModel(rows, comparisons.n_items, comparisons.n_workers, comparisons.n_tasks, effects)


def test_probabilities_are_those_of_the_formula() -> None:
    difference, tie = np.array([-3.0, 0.0, 1.5, 2000.0]), np.array([-1.0, 0.0, 2.0, 0.0])
    probs = np.stack(outcome_probs(difference, tie), axis=1)
    weights = np.exp(np.stack([difference / 2, -difference / 2, tie], axis=1)[:3])
    assert np.allclose(probs[:3], weights / weights.sum(axis=1, keepdims=True))
    assert probs[3].tolist() == [1.0, 0.0, 0.0]


def test_information_is_the_variance_of_the_score() -> None:
    probs = outcome_probs(np.array([0.7]), np.array([-0.3]))
    p = np.concatenate(probs)
    by_difference, by_tie = (np.array([0.5, -0.5, 0]) - 0.5 * probs.lead), (np.array([0, 0, 1]) - probs.tie)
    assert p @ by_difference**2 == pytest.approx(float(probs.difference_information[0]))
    assert p @ by_tie**2 == pytest.approx(float(probs.tie_information[0]))
    assert p @ (by_difference * by_tie) == pytest.approx(float(probs.cross_information[0]))


@pytest.mark.parametrize("effects", ALL_EFFECTS, ids=str)
def test_gradient_is_that_of_finite_differences(effects: Effects) -> None:
    for covariates in (False, True):
        model = make_model(effects, covariates)
        rng = np.random.default_rng(0)
        parameters, precisions = rng.normal(size=model.n_parameters) * 0.5, rng.uniform(size=model.n_parameters)
        _, gradient = model.objective(parameters, precisions)
        step = 1e-6
        for place in range(model.n_parameters):
            shift = np.zeros(model.n_parameters)
            shift[place] = step
            high, _ = model.objective(parameters + shift, precisions)
            low, _ = model.objective(parameters - shift, precisions)
            assert gradient[place] == pytest.approx((high - low) / (2 * step), abs=1e-4)


def test_summing_rows_keeps_the_likelihood() -> None:
    comparisons = SMALL.comparisons
    summed = ComparisonRows.summed(comparisons, workers=False, tasks=False)
    single = ComparisonRows.summed(
        comparisons, workers=False, tasks=False, covariates=np.zeros((comparisons.n_votes, 1))
    )
    assert len(summed.left) < len(single.left) == comparisons.n_votes
    assert summed.weight.sum() == comparisons.n_votes
    parameters = np.array([0.3, -0.1, 0.5, -0.7, -0.2])
    value, _ = DavidsonModel(summed, 4, 0, 0, Effects()).objective(parameters, np.zeros(5))
    model = DavidsonModel(single, 4, 0, 0, Effects())
    value_of_single, _ = model.objective(np.insert(parameters, 4, 9.0), np.zeros(6))
    assert value == pytest.approx(value_of_single)


def test_cluster_scores_add_up_to_the_gradient() -> None:
    model = make_model(Effects(lean=True))
    parameters = np.linspace(-0.5, 0.5, model.n_parameters)
    cluster = np.arange(len(model.rows.left)) % 3
    scores = model.cluster_scores(parameters, cluster, 3)
    _, gradient = model.objective(parameters, np.zeros(model.n_parameters))
    assert np.allclose(np.asarray(scores.sum(axis=0)).ravel(), -gradient)


def test_the_optimum_has_no_gradient() -> None:
    model = make_model(Effects(lean=True))
    precisions = model.prior_precisions({"score": 0.1})
    result = model.maximize(model.initial_parameters(), precisions, max_iter=500, tol=1e-8)
    value, gradient = model.objective(result.parameters, precisions)
    assert result.converged
    assert np.abs(gradient).max() < 1e-9
    assert result.log_posterior == pytest.approx(-value)


def test_discriminations_have_the_geometric_mean_one() -> None:
    model = make_model(Effects(workers=True))
    slopes = model.worker_slopes(np.random.default_rng(0).normal(size=model.n_parameters))
    assert np.log(slopes).mean() == pytest.approx(0, abs=1e-12)

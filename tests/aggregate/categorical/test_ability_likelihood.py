"""Likelihood of abilities and difficulties against sums over votes and numerical derivatives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from wisecrowd import Crowd
from wisecrowd.aggregate.categorical._ability_likelihood import AbilityLikelihood, AbilitySpec, get_guess_prob
from wisecrowd.aggregate.categorical.glad import compute_glad_line
from wisecrowd.aggregate.categorical.rasch import compute_rasch_line
from wisecrowd.aggregate.categorical.two_pl import compute_two_pl_line
from wisecrowd.errors import UsageError

RNG = np.random.default_rng(0)
TASK, WORKER = np.nonzero(RNG.random((6, 4)) < 0.7)
CROWD = Crowd.from_codes(
    TASK, WORKER, RNG.integers(3, size=len(TASK)), weight=RNG.uniform(0.5, 2, len(TASK)), tasks=range(7), workers=range(4),
    classes=range(3),
)  # fmt: skip
POSTERIOR = RNG.dirichlet(np.ones(3), 7)
SPECS = {
    "rasch": AbilitySpec(compute_rasch_line, (1.0, 1.0), ((0.0, 2.0),)),
    "rasch with luck": AbilitySpec(compute_rasch_line, (1.0, 1.0), ((0.0, 2.0),), guess_prob=0.3),
    "glad": AbilitySpec(compute_glad_line, (1.0, 1.0), ((1.0, 1.0),)),
    "2pl with luck": AbilitySpec(compute_two_pl_line, (1.0, 1.0), ((0.0, 1.0), (0.0, 0.5)), guess_prob=0.1),
}


@pytest.fixture(params=SPECS)
def spec(request: pytest.FixtureRequest) -> AbilitySpec:
    return SPECS[request.param]


@pytest.fixture
def model(spec: AbilitySpec) -> AbilityLikelihood:
    return AbilityLikelihood(CROWD, None, spec)


@pytest.fixture
def point(model: AbilityLikelihood) -> Any:
    return np.random.default_rng(1).normal(0.4, 0.7, len(model.prior.mean))


def vote_probs(model: AbilityLikelihood, spec: AbilitySpec, point: Any) -> Any:
    """Return P(label of the vote | class) of every vote and class."""
    ability, tasks = model.split_point(point)
    line = spec.compute_line(tasks)
    probs = np.empty((CROWD.n_votes, 3))
    for vote, (task, worker, label) in enumerate(zip(CROWD.task, CROWD.worker, CROWD.label, strict=True)):
        skill = expit(line.slope[task] * ability[worker] - line.shift[task])
        right = spec.guess_prob + (1 - spec.guess_prob) * skill
        probs[vote] = [right if k == label else (1 - right) / 2 for k in range(3)]
    return probs


def test_evidence_is_the_product_over_votes(model: AbilityLikelihood, spec: AbilitySpec, point: Any) -> None:
    expected = np.zeros((7, 3))
    np.add.at(expected, CROWD.task, CROWD.weight[:, None] * np.log(vote_probs(model, spec, point)))
    np.testing.assert_allclose(model.log_evidence(point), expected, atol=1e-12)


def test_expected_log_likelihood_and_its_gradient(model: AbilityLikelihood, spec: AbilitySpec, point: Any) -> None:
    value, gradient = model.expected_log_likelihood(point, POSTERIOR)
    terms = (POSTERIOR[CROWD.task] * np.log(vote_probs(model, spec, point))).sum(axis=1)
    assert value == pytest.approx(float(CROWD.weight @ terms))
    numerical = approx_fprime(point, lambda x: model.expected_log_likelihood(x, POSTERIOR)[0])
    np.testing.assert_allclose(gradient, numerical, atol=1e-5)


def test_the_prior_is_added_to_value_and_gradient(model: AbilityLikelihood, point: Any) -> None:
    value, gradient = model.expected_log_joint(point, POSTERIOR)
    alone, _ = model.expected_log_likelihood(point, POSTERIOR)
    deviation = (point - model.prior.mean) * np.sqrt(model.prior.precision)
    assert value - alone == pytest.approx(-float(deviation @ deviation) / 2)
    numerical = approx_fprime(point, lambda x: model.expected_log_joint(x, POSTERIOR)[0])
    np.testing.assert_allclose(gradient, numerical, atol=1e-5)


def test_observed_information_is_the_curvature_of_the_likelihood() -> None:
    """Without luck, and with a slope of one, the information does not depend on labels that were not drawn."""
    crowd = Crowd.from_codes(CROWD.task, CROWD.worker, CROWD.label, tasks=range(7), workers=range(4), classes=range(3))
    model = AbilityLikelihood(crowd, None, SPECS["rasch"])
    point = np.random.default_rng(1).normal(0.4, 0.7, 4 + 7)

    def log_likelihood(x: Any) -> float:
        return float(np.log(np.exp(model.log_evidence(x)).sum(axis=1) / 3).sum())

    evidence = np.exp(model.log_evidence(point))
    information = model.observed_information(point, evidence / evidence.sum(axis=1, keepdims=True))
    step = 1e-4
    for coordinate, unit in enumerate(np.eye(len(point)) * step):
        second = (log_likelihood(point + unit) - 2 * log_likelihood(point) + log_likelihood(point - unit)) / step**2
        assert information[coordinate] == pytest.approx(-second, abs=1e-4)


def test_the_first_posterior_treats_workers_and_tasks_alike() -> None:
    model = AbilityLikelihood(CROWD, None, SPECS["rasch"])
    posterior = model.initial_posterior()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    np.testing.assert_allclose(posterior[6], 1 / 3)
    for task, (first, second) in itertools.product(range(6), itertools.combinations(range(3), 2)):
        votes = CROWD.vote_counts[task]
        assert math.isclose(votes[first], votes[second]) or (votes[first] > votes[second]) == (
            posterior[task, first] > posterior[task, second]
        )


def test_values_of_a_point_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, count = AbilityLikelihood(CROWD, None, SPECS["rasch"]), []
    line = model.compute_line
    monkeypatch.setattr(model, "compute_line", lambda tasks: count.append(1) or line(tasks))
    point = model.initial_point()
    model.log_evidence(point), model.expected_log_joint(point, POSTERIOR), model.curvature(point, POSTERIOR)
    assert len(count) == 1


def test_a_prior_of_no_spread_fixes_a_coordinate() -> None:
    spec = AbilitySpec(compute_rasch_line, (1.0, 0.0), ((0.0, np.inf),))
    abilities, tasks = spec.make_priors(2, 3)
    assert not abilities.free.any()
    assert tasks.precision.tolist() == [0, 0, 0]


@pytest.mark.parametrize("prior", [(np.nan, 1.0), (0.0, -1.0), (np.inf, 1.0)])
def test_other_priors_are_refused(prior: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="a finite mean and a standard deviation of 0 or more"):
        AbilitySpec(compute_rasch_line, prior, ((0.0, 1.0),))


def test_luck_by_name_or_number() -> None:
    assert get_guess_prob("chance", 5) == 0.2
    assert get_guess_prob(0, 5) == 0
    for wrong in (1, -0.1, "lucky", None):
        with pytest.raises(UsageError, match="guessing must be 'chance', or a probability below 1"):
            get_guess_prob(wrong, 5)  # type: ignore[arg-type]

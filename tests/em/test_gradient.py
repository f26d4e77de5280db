"""Climbing, and the EM around it, against scipy, finite differences and brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize, rosen, rosen_der

from wisecrowd import GLAD, Crowd, MajorityVote, MinimaxEntropy, Rasch, TwoPL, simulate_crowd
from wisecrowd.em import loop
from wisecrowd.em.gradient import GradientEM, maximize_lbfgs, normalize_evidence
from wisecrowd.errors import InputError, NotConverged, UsageError

METHODS = [
    GLAD(),
    Rasch(),
    Rasch(guessing="chance"),
    TwoPL(),
    TwoPL(guessing=0.1),
    MinimaxEntropy(gamma=0.1),
    MinimaxEntropy(gamma=0.1, task_terms="vector"),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=repr)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "assert_monotone", True)


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((9, 5)) < 0.6)
    return Crowd.from_codes(task, worker, rng.integers(3, size=len(task)), tasks=range(10), workers=range(6), classes=range(3),
                 weight=rng.uniform(0.5, 2, len(task)))  # fmt: skip


def somewhere(land: Any) -> Any:
    return land.initial_point() + np.random.default_rng(1).normal(0, 0.5, len(land.initial_point()))


def belief(crowd: Crowd) -> Any:
    return np.random.default_rng(2).dirichlet(np.ones(crowd.n_classes), crowd.n_tasks)


def test_it_reaches_the_top_that_scipy_finds() -> None:
    def hill(point: Any) -> tuple[float, Any]:
        return -rosen(point), -rosen_der(point)

    start = np.array([-1.2, 1.0, 0.5, -0.3])
    top = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B").x
    np.testing.assert_allclose(maximize_lbfgs(hill, start, np.ones(4) * 100, 500), top, atol=1e-3)


def test_a_climb_never_ends_lower_and_leaves_what_is_fixed() -> None:
    def hill(point: Any) -> tuple[float, Any]:
        return -rosen(point), -rosen_der(point)

    start = np.array([-1.2, 1.0])
    for steps in range(8):
        end = maximize_lbfgs(hill, start, np.array([1e-6, np.inf]), steps)  # a curvature that is far too small
        assert hill(end)[0] >= hill(start)[0]
        assert end[1] == start[1]


@each_method
def test_gradients_are_those_of_finite_differences(method: Any, crowd: Crowd) -> None:
    land = method._make_model(crowd)
    point, posterior = somewhere(land), belief(crowd)
    value, gradient = land.expected_log_joint(point, posterior)
    np.testing.assert_allclose(
        gradient, approx_fprime(point, lambda at: land.expected_log_joint(at, posterior)[0], 1e-6), rtol=1e-4, atol=1e-4
    )
    assert value == pytest.approx((posterior * land.log_evidence(point)).sum() + land.log_prior(point))


@each_method
def test_the_slope_of_the_objective_is_that_of_the_m_step(method: Any, crowd: Crowd) -> None:
    """Fisher's identity: what EM climbs and what it wants have the same slope at the posterior."""
    land = method._make_model(crowd)
    point, prior = somewhere(land), np.full(3, 1 / 3)

    def objective(at: Any) -> float:
        return float(normalize_evidence(land.log_evidence(at), prior, None)[1].sum()) + land.log_prior(at)

    posterior = normalize_evidence(land.log_evidence(point), prior, None)[0]
    np.testing.assert_allclose(
        land.expected_log_joint(point, posterior)[1], approx_fprime(point, objective, 1e-6), rtol=1e-4, atol=1e-4
    )


@each_method
def test_answers_are_distributions(method: Any) -> None:
    """For one vote, the probabilities of all the things it could have said add up to one, whatever is true."""
    total = np.zeros((1, 3))
    for label_probs in range(3):
        land = method._make_model(Crowd.from_codes([0], [0], [label_probs], tasks=[0], workers=[0], classes=range(3)))
        total += np.exp(land.log_evidence(somewhere(land)))
    np.testing.assert_allclose(total, 1)


@each_method
def test_the_objective_is_the_brute_force_likelihood(method: Any) -> None:
    rng = np.random.default_rng(3)
    task, worker = np.nonzero(np.ones((3, 3)))
    votes = Crowd.from_codes(task, worker, rng.integers(2, size=9), tasks=range(3), workers=range(3), classes=range(2))
    land = method._make_model(votes)
    point, prior = somewhere(land), np.array([0.3, 0.7])
    evidence = land.log_evidence(point)
    total = sum(
        math.prod(prior[z] * math.exp(evidence[i, z]) for i, z in enumerate(truths))
        for truths in itertools.product(range(2), repeat=3)
    )
    assert normalize_evidence(evidence, prior, None)[1].sum() == pytest.approx(math.log(total))


@each_method
@pytest.mark.slow
def test_it_stops_at_a_top(method: Any, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[Any] = []
    fit = type(method)(**method.get_params() | {"tol": 1e-14, "max_iter": 3000})
    run = GradientEM.run

    def record(em: GradientEM, land: Any, *rest: Any) -> Any:
        result = run(em, land, *rest)
        ends.append((land, result.point))
        return result

    monkeypatch.setattr(GradientEM, "run", record)
    fit.fit(crowd)
    ((land, point),) = ends
    assert np.abs(land.expected_log_joint(point, fit.posterior_)[1]).max() < 1e-3
    assert (
        np.abs(land.expected_log_joint(land.initial_point(), fit.posterior_)[1]).max() > 0.1
    )  # where it began was none


@each_method
def test_gold_teaches_and_starts_are_taken(method: Any) -> None:
    made = simulate_crowd(60, 10, 3, votes_per_task=4, random_state=5)
    fit = type(method)(**method.get_params())
    gold = made.truth[:20]
    fitted = fit.fit(made.crowd, truth=gold)
    assert (fitted.labels_[:20] == gold).all()
    again = type(method)(**method.get_params()).fit(made.crowd, truth=gold, start=fitted)
    # Task scores of minimax entropy are not carried over, so it has more of the way to go again.
    assert isinstance(method, MinimaxEntropy) or again.n_iter_ <= fitted.n_iter_
    np.testing.assert_allclose(again.posterior_, fitted.posterior_, atol=0.02)
    plain = type(method)(**method.get_params()).fit(made.crowd, start=MajorityVote().fit(made.crowd).proba_)
    assert np.isfinite(plain.posterior_).all()


def test_knowledge_carries_over_by_id() -> None:
    made = simulate_crowd(200, 10, 3, votes_per_task=5, random_state=6)
    known = GLAD().fit(made.crowd[:150])
    rest = GLAD(max_iter=1, tol=0).fit(made.crowd[150:], start=known)
    cold = GLAD(max_iter=1, tol=0).fit(made.crowd[150:])
    assert np.corrcoef(rest.ability_, known.ability_)[0, 1] > np.corrcoef(cold.ability_, known.ability_)[0, 1]


def test_what_is_wrong_is_refused_with_a_reason(crowd: Crowd) -> None:
    with pytest.raises(UsageError, match=r"start=fitted\.proba_"):
        GLAD().fit(crowd, start=MajorityVote().fit(crowd))
    with pytest.raises(UsageError, match="not fitted"):
        GLAD().fit(crowd, start=GLAD())
    with pytest.raises(InputError, match="posterior"):
        GLAD().fit(crowd, start=np.ones((2, 2)))
    with pytest.raises(UsageError, match="m_steps"):
        GLAD(m_steps=0).fit(crowd)
    with pytest.raises(UsageError, match="prior must give"):
        GLAD(prior=[1, 2]).fit(crowd)


def test_stopping_early_warns_where_the_caller_is(crowd: Crowd) -> None:
    with pytest.warns(NotConverged, match="raise max_iter") as caught:
        fitted = GLAD(max_iter=1).fit(crowd)
    assert caught[0].filename == __file__
    assert not fitted.converged_
    assert fitted.n_iter_ == len(fitted.trace_) == 1


def test_a_class_prior_can_be_given_and_estimated() -> None:
    made = simulate_crowd(300, 10, 2, votes_per_task=3, prior=[0.9, 0.1], random_state=7)
    estimated = Rasch(prior="estimate").fit(made.crowd)
    assert estimated.prior_[0] > 0.7
    given = Rasch(prior={"c0": 3, "c1": 1}).fit(made.crowd)
    np.testing.assert_allclose(given.prior_, [0.75, 0.25])


@each_method
def test_tables_survive_the_disk(method: Any, tmp_path: Any) -> None:
    from wisecrowd import load

    made = simulate_crowd(30, 6, 3, votes_per_task=4, random_state=8)
    fitted = type(method)(**method.get_params()).fit(made.crowd)
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").tasks_, fitted.tasks_)

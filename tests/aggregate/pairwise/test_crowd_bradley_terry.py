"""Workers with reliabilities, adversaries among them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from wisecrowd import BradleyTerry, Comparisons, CrowdBradleyTerry
from wisecrowd.errors import UsageError
from wisecrowd.simulate.comparisons import simulate_comparisons


def reverse(comparisons: Comparisons, workers: list[int]) -> Comparisons:
    """Return comparisons in which some workers say the opposite."""
    assert comparisons.worker is not None
    outcome = comparisons.outcome.copy()
    is_reversed = np.isin(comparisons.worker, workers) & (outcome < 2)
    outcome[is_reversed] = 1 - outcome[is_reversed]
    workers_of = {"worker": comparisons.worker, "workers": comparisons.workers}
    return Comparisons(comparisons.left, comparisons.right, outcome, items=comparisons.items, **workers_of)


def test_adversaries_are_found_and_used() -> None:
    made = simulate_comparisons(
        n_items=8, n_workers=10, votes_per_worker=100, score_spread=2, tie_utility=None, random_state=0
    )
    mixed = reverse(made.comparisons, [0, 1, 2, 3])
    fitted = CrowdBradleyTerry().fit(mixed)
    reliability = fitted.workers_["reliability"].to_numpy()
    assert (reliability[:4] < 0.3).all()
    assert (reliability[4:] > 0.7).all()
    assert np.corrcoef(fitted.score_, made.scores)[0, 1] > 0.95
    assert np.corrcoef(BradleyTerry().fit(mixed).score_, made.scores)[0, 1] < 0.9


def test_the_objective_never_falls() -> None:
    made = simulate_comparisons(n_items=6, n_workers=5, votes_per_worker=30, random_state=1)
    trace = CrowdBradleyTerry().fit(reverse(made.comparisons, [0])).trace_
    assert (np.diff(trace) > -1e-9).all()


def test_the_optimum_is_that_of_direct_maximisation() -> None:
    made = simulate_comparisons(n_items=4, n_workers=3, votes_per_worker=40, tie_utility=None, random_state=2)
    comparisons = reverse(made.comparisons, [2])
    fitted = CrowdBradleyTerry(tol=1e-9, max_iter=5000).fit(comparisons)
    winner = np.where(comparisons.outcome == 0, comparisons.left, comparisons.right)
    loser = np.where(comparisons.outcome == 0, comparisons.right, comparisons.left)

    def loss(parameters: np.ndarray) -> float:
        score, eta = parameters[:4], expit(parameters[4:])
        prob = expit(score[winner] - score[loser])
        eta_of_vote = eta[comparisons.worker]
        likelihood = np.log(eta_of_vote * prob + (1 - eta_of_vote) * (1 - prob)).sum()
        return -(likelihood + (3 * np.log(eta) + np.log(1 - eta)).sum() - 0.05 * (score @ score))

    start = np.concatenate([fitted.score_ * 0.9, [1.0, 1.0, -1.0]])
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-8}).x
    assert np.allclose(best[:4], fitted.score_, atol=1e-3)
    assert np.allclose(expit(best[4:]), fitted.reliability_, atol=1e-3)


def test_priors_are_checked() -> None:
    with pytest.raises(UsageError, match=r"alpha and beta more than 1; got 0\.1, 1 and 2"):
        CrowdBradleyTerry(alpha=1).fit([("ann", "a", "b", "a")])

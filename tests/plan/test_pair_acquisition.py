"""Plans of comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BradleyTerry, Comparisons, CrowdBradleyTerry, JudgeAwareBradleyTerry
from wisecrowd.errors import UsageError
from wisecrowd.plan import pair_acquisition
from wisecrowd.plan.pair_acquisition import plan_comparisons
from wisecrowd.simulate.comparisons import simulate_comparisons

SMALL = simulate_comparisons(n_items=6, n_workers=5, votes_per_worker=30, tie_utility=None, random_state=0).comparisons


@pytest.fixture(autouse=True)
def no_random_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_acquisition, "RANDOM_SHARE", 0.0)


def test_the_first_pair_is_the_best_of_all() -> None:
    fitted = BradleyTerry(interval="fisher").fit(SMALL)
    covariance, best, best_gain = fitted.covariance_, None, -1.0
    assert covariance is not None
    for one in range(6):
        for other in range(one + 1, 6):
            prob = 1 / (1 + np.exp(fitted.score_[other] - fitted.score_[one]))
            variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
            gain = 0.5 * np.log1p(prob * (1 - prob) * variance)
            if gain > best_gain:
                best, best_gain = {fitted.item_index_[one], fitted.item_index_[other]}, gain
    plan = plan_comparisons(fitted, 1)
    assert {plan["left"][0], plan["right"][0]} == best
    assert plan["gain"][0] == pytest.approx(best_gain)


def test_later_gains_account_for_earlier_comparisons() -> None:
    """The sum of the gains is the whole reduction of the entropy of the scores."""
    fitted = BradleyTerry(interval="fisher", ridge=0.5).fit(SMALL)
    plan = plan_comparisons(fitted, 15)
    assert (np.diff(plan["gain"]) <= 1e-12).all()
    assert fitted.covariance_ is not None
    centre = np.eye(6)[:, :5] - 1 / 6
    before = np.linalg.slogdet(centre.T @ fitted.covariance_ @ centre)[1]
    covariance = fitted.covariance_
    for row in plan.itertuples():
        x = np.zeros(6)
        x[fitted.item_index_.get_loc(row.left)], x[fitted.item_index_.get_loc(row.right)] = 1, -1
        prob = fitted.win_probability(row.left, row.right)
        information = prob * (1 - prob)
        covariance = covariance - np.outer(covariance @ x, covariance @ x) * information / (
            1 + information * x @ covariance @ x
        )
    after = np.linalg.slogdet(centre.T @ covariance @ centre)[1]
    assert plan["gain"].sum() == pytest.approx((before - after) / 2)


def test_planned_comparisons_tell_more_than_random_ones() -> None:
    """The determinant of the covariance after 100 further comparisons with outcomes of the true scores."""
    made = simulate_comparisons(n_items=10, n_workers=10, votes_per_worker=20, tie_utility=None, random_state=1)
    fitted = BradleyTerry(interval="fisher").fit(made.comparisons)
    score = made.scores.to_numpy()

    def spread(left: np.ndarray, right: np.ndarray) -> float:
        is_left = np.random.default_rng(0).random(len(left)) < 1 / (1 + np.exp(score[right] - score[left]))
        more = Comparisons(left, right, np.where(is_left, 0, 1), items=made.comparisons.items)
        joined = Comparisons.concat([Comparisons.from_frame(made.comparisons.to_frame(), worker=None), more])
        covariance = BradleyTerry(interval="fisher").fit(joined).covariance_
        centre = np.eye(10)[:, :9] - 1 / 10
        return float(np.linalg.slogdet(centre.T @ covariance @ centre)[1])

    plan = plan_comparisons(fitted, 100)
    rng = np.random.default_rng(0)
    left = rng.integers(0, 10, 100)
    planned = [made.comparisons.items.get_indexer(plan[side]) for side in ("left", "right")]
    assert spread(*planned) < spread(left, (left + rng.integers(1, 10, 100)) % 10)


def test_the_best_judges_come_first_within_their_limit() -> None:
    made = simulate_comparisons(n_items=6, n_workers=4, votes_per_worker=150, discrimination_spread=1.0, random_state=0)
    fitted = JudgeAwareBradleyTerry().fit(made.comparisons)
    plan = plan_comparisons(fitted, 6, per_worker=3)
    best = fitted.workers_["discrimination"].sort_values(ascending=False).index[:2]
    assert plan["worker"].tolist() == [best[0]] * 3 + [best[1]] * 3
    with pytest.raises(
        UsageError, match="4 workers with at most 1 comparison each cannot make the 6 of the budget; raise"
    ):
        plan_comparisons(fitted, 6, per_worker=1)


def test_random_pairs_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_acquisition, "RANDOM_SHARE", 1.0)
    assert plan_comparisons(BradleyTerry().fit(SMALL), 5)["is_random"].all()


@pytest.mark.parametrize(
    ("method", "budget", "message"),
    [(BradleyTerry(), 0, "budget must be 1"), (CrowdBradleyTerry(), 1, "has no intervals, which a plan needs")],
)
def test_impossible_plans_are_refused(method: BradleyTerry, budget: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_comparisons(method.fit(SMALL), budget)

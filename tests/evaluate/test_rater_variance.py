from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.evaluate.rater_variance import estimate_rater_variance


def simulate(n_items: int, n_raters: int, per_item: int, between: float, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    rater = np.concatenate([rng.choice(n_raters, per_item, replace=False) for _ in range(n_items)])
    item = np.repeat(np.arange(n_items), per_item)
    severity = rng.normal(0, np.sqrt(between), n_raters)
    return item, rater, rng.normal(size=n_items)[item] + severity[rater] + rng.normal(0, 0.8, len(item))


@pytest.mark.parametrize("per_item", [2, 3])
@pytest.mark.parametrize("between", [0.0, 0.5])
def test_components_are_unbiased(per_item: int, between: float) -> None:
    estimates = [estimate_rater_variance(*simulate(80, 12, per_item, between, seed)) for seed in range(60)]
    mean = np.mean([estimate.between for estimate in estimates])
    assert mean == pytest.approx(between, abs=0.08)  # a little above 0, because no estimate is negative
    assert np.mean([estimate.within for estimate in estimates]) == pytest.approx(0.64, abs=0.05)


def test_balanced_design_equals_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 1)) + rng.normal(0, 1, 4) + rng.normal(0, 0.5, (30, 4))
    item, rater = np.divmod(np.arange(120), 4)
    estimate = estimate_rater_variance(item, rater, table.ravel())
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    within = (residual**2).sum() / (29 * 3)
    between = (30 * table.mean(axis=0).var(ddof=1) - within) / 30
    assert (estimate.between, estimate.within) == pytest.approx((between, within))


def test_raters_on_different_items_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(0)
    rater = np.repeat(np.arange(20), 30)
    estimate = estimate_rater_variance(np.arange(600), rater, rng.normal(0, 0.7, 20)[rater] + rng.normal(size=600))
    assert 0.25 < estimate.between < 0.8
    assert not estimate.on_common_items


def test_one_rater_and_fresh_raters_have_no_variance_between() -> None:
    values = np.array([0.0, 1.0, 1.0])
    assert estimate_rater_variance(np.arange(3), np.zeros(3, dtype=int), values).between == 0
    assert estimate_rater_variance(np.arange(3), np.arange(3), values).between == 0


def test_the_only_raters_of_all_items() -> None:
    item, rater = np.divmod(np.arange(200), 2)
    noise = np.random.default_rng(0).normal(0, 0.1, 200)
    estimate = estimate_rater_variance(item, rater, np.where(rater == 0, 1.0, 0.0) + noise)
    assert estimate.between == pytest.approx(0.5, abs=0.1)
    assert estimate.degrees_of_freedom == 1

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wisecrowd.errors import UsageError
from wisecrowd.simulate.activity import ACTIVITIES, resolve_activity


@pytest.mark.parametrize("shape", [*ACTIVITIES, "zipf(2.5)", "beta(0.5, 4)"])
def test_every_shape_is_a_positive_distribution_and_repeats_with_its_seed(shape: str) -> None:
    share = resolve_activity(shape, 200, 5)
    assert share.min() > 0
    assert share.sum() == pytest.approx(1)
    assert (share == resolve_activity(shape, 200, 5)).all()


def test_zipf_falls_with_the_rank_and_anybody_may_be_first() -> None:
    ranked = np.sort(resolve_activity("zipf(1.5)", 50))[::-1]
    slope = np.polyfit(np.log(np.arange(1, 51)), np.log(ranked), 1)[0]
    assert slope == pytest.approx(-1.5)
    assert len({int(resolve_activity("zipf", 50, seed).argmax()) for seed in range(20)}) > 5


def test_zipf_survives_an_exponent_that_underflows() -> None:
    share = resolve_activity("zipf(1000)", 10)
    assert np.isfinite(share).all()
    assert np.count_nonzero(share) == 10


def test_beta_is_beta() -> None:
    share = resolve_activity("beta(1.5, 3)", 3000)
    shape = share / share.mean() / 3  # the mean of Beta(1.5, 3) is a third
    assert stats.kstest(shape, stats.beta(1.5, 3).cdf).pvalue > 1e-3


def test_huge_activities_do_not_overflow() -> None:
    assert resolve_activity([1e308, 1e308, 0], 3).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("activity", "message"),
    [
        ("zpf", "Did you mean 'zipf'"),
        ("zipf(-1)", "exponent"),
        ("beta(0, 1)", "two positive numbers"),
        ([1.0, 2.0], "one entry per worker, 3"),
        ([1.0, -1.0, 1.0], "not negative"),
        ([1.0, np.nan, 1.0], "finite"),
        ([0.0, 0.0, 0.0], "positive for at least one worker"),
    ],
)
def test_bad_activity(activity: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_activity(activity, 3)  # type: ignore[arg-type]  # that is the test

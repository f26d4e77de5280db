"""Covariance of scores: bootstrap, sandwich and information."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BradleyTerry, Comparisons
from wisecrowd.errors import UsageError
from wisecrowd.simulate.comparisons import simulate_comparisons


@pytest.mark.slow
def test_bootstrap_and_sandwich_agree() -> None:
    made = simulate_comparisons(n_items=8, n_workers=40, votes_per_worker=40, lean_spread=0.5, random_state=1)
    sandwich, bootstrap = (
        BradleyTerry(interval=interval, n_bootstrap=100).fit(made.comparisons).scores_["standard_error"]  # type: ignore[arg-type]
        for interval in ("sandwich", "bootstrap")
    )
    assert (bootstrap / sandwich).between(0.75, 1.3).all()


def test_duplicated_comparisons_halve_the_fisher_variance_only() -> None:
    made = simulate_comparisons(n_items=6, n_workers=30, votes_per_worker=40, random_state=5)
    once, twice = made.comparisons, Comparisons.concat([made.comparisons] * 2)

    def variances(interval: str) -> list[float]:
        fits = [BradleyTerry(ridge=0, interval=interval).fit(part) for part in (once, twice)]  # type: ignore[arg-type]
        return [float(np.diagonal(fitted.covariance_).mean()) for fitted in fits]  # type: ignore[arg-type]

    fisher, sandwich = variances("fisher"), variances("sandwich")
    assert fisher[1] == pytest.approx(fisher[0] / 2, rel=1e-4)
    assert sandwich[1] == pytest.approx(sandwich[0], rel=1e-4)


def test_the_kind_follows_the_number_of_workers() -> None:
    few = simulate_comparisons(n_items=5, n_workers=4, votes_per_worker=60, random_state=0).comparisons
    many = simulate_comparisons(n_items=5, n_workers=40, votes_per_worker=20, random_state=0).comparisons

    def equal(comparisons: Comparisons, kind: str) -> bool:
        fits = [BradleyTerry(interval=name).fit(comparisons).covariance_ for name in ("auto", kind)]  # type: ignore[arg-type]
        return bool(np.array_equal(*fits))

    assert equal(few, "fisher")
    assert equal(many, "sandwich")
    assert BradleyTerry(interval="none").fit(few).covariance_ is None


def test_one_worker_gives_no_robust_interval() -> None:
    with pytest.raises(UsageError, match="needs the comparisons of two or more workers or tasks; use 'fisher'"):
        BradleyTerry(interval="sandwich").fit([("ann", "a", "b", "a"), ("ann", "b", "c", "b")])

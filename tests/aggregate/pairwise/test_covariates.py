"""Covariates of items: matching by id, and separation from quality."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BradleyTerry, Comparisons
from wisecrowd.aggregate.pairwise._covariates import Covariates
from wisecrowd.errors import InputError


def test_a_covariate_is_separated_from_quality() -> None:
    """Judges who like length: the coefficient is found, and the scores no longer follow the length."""
    rng = np.random.default_rng(0)
    n, items = 4000, [f"m{number}" for number in range(6)]
    quality, length = np.linspace(-1, 1, 6), rng.normal(size=(20, 6))
    task, left = rng.integers(0, 20, n), rng.integers(0, 6, n)
    right = (left + rng.integers(1, 6, n)) % 6
    logit = quality[left] - quality[right] + 0.8 * (length[task, left] - length[task, right])
    outcome = (rng.random(n) > 1 / (1 + np.exp(-logit))).astype(int)
    comparisons = Comparisons(left, right, outcome, items=pd.Index(items), task=task, tasks=pd.RangeIndex(20))
    table = pd.DataFrame(
        {"length": length.ravel()}, index=pd.MultiIndex.from_product([range(20), items], names=["task", "item"])
    )
    fitted = BradleyTerry().fit(comparisons, table)
    assert fitted.covariate_coefficients_ == pytest.approx([0.8], abs=0.12)
    assert np.allclose(fitted.score_, quality, atol=0.2)
    with pytest.raises(InputError, match=r"have no row for"):
        BradleyTerry().fit(comparisons, table.iloc[:-1])
    with pytest.raises(InputError, match="indexed by item, or by task and item"):
        BradleyTerry().fit(comparisons, length)


def test_covariates_by_item_are_differences() -> None:
    comparisons = Comparisons.from_tuples([("ann", "a", "b", "a"), ("bob", "c", "a", "c")])
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=["a", "b", "c"])
    covariates = Covariates.match(table, comparisons)
    assert covariates.names == ["x"]
    assert covariates.difference.tolist() == [[-1.0], [3.0]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"x": ["long", "short"]}, index=["a", "b"]), "must be numbers"),
        (pd.DataFrame({"x": [1.0, np.nan]}, index=["a", "b"]), "must be finite"),
        (pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["a", "b", "a"]), "repeat 'a'"),
        (pd.DataFrame({"x": [1.0]}, index=["a"]), "no row for 'b'"),
        (pd.DataFrame({"x": [1.0]}, index=pd.MultiIndex.from_tuples([("t", "a")])), "these comparisons have no tasks"),
    ],
)
def test_unusable_tables_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Covariates.match(table, Comparisons.from_tuples([("ann", "a", "b", "a")]))

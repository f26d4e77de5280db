"""Inputs of the laws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, MajorityVote
from wisecrowd.base.law_inputs import (
    assert_close,
    copy_fitted,
    make_degenerate_crowds,
    make_features,
    rebuild_crowd,
    shuffle_names,
)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [2, 3, 7])
def test_new_names_have_another_order(n: int, seed: int) -> None:
    """A law of names that keeps their order would hold for every method."""
    names = shuffle_names(pd.Index([f"name {i}" for i in range(n)]), seed)
    assert len(set(names.values())) == n
    assert list(names.values()) != sorted(names.values())


def test_a_single_name_is_renamed() -> None:
    assert shuffle_names(pd.Index(["ann"]), 0) == {"ann": "n0000"}


def test_features_of_the_first_tasks_do_not_depend_on_the_number_of_tasks() -> None:
    few, many = make_features(pd.RangeIndex(3)), make_features(pd.RangeIndex(9))
    pd.testing.assert_frame_equal(few, many.iloc[:3])


def test_rebuilt_crowds_keep_vocabularies_and_weights() -> None:
    crowd = Crowd.from_codes(
        [0, 0, 1], [0, 1, 0], [0, 1, 1], weight=[1.0, 2.0, 3.0], tasks=["a", "b", "unused"], workers=["x", "y"], classes=["p", "q"]
    )  # fmt: skip
    assert rebuild_crowd(crowd, crowd.to_frame().iloc[::-1]) == crowd


def test_degenerate_crowds_have_votes_and_differ() -> None:
    crowds = make_degenerate_crowds()
    assert all(crowd.n_votes for crowd in crowds)
    assert len({crowd.digest for crowd in crowds}) == len(crowds)


class TestAssertClose:
    def test_differences_are_named(self) -> None:
        assert_close(np.ones(2) + 1e-9, np.ones(2), "nothing")
        with pytest.raises(AssertionError, match=r"a new name changed a result by up to 0\.5"):
            assert_close([1.0, 1.5], [1.0, 1.0], "a new name")

    def test_nan_equals_nan_only(self) -> None:
        assert_close([np.nan, 1.0], [np.nan, 1.0], "nothing")
        with pytest.raises(AssertionError, match="a new name changed the cells that are NaN"):
            assert_close([np.nan], [0.0], "a new name")

    def test_empty_tables_are_equal(self) -> None:
        assert_close(np.empty((0, 2)), np.empty((0, 2)), "nothing")


def test_copies_have_parameters_and_results() -> None:
    method = MajorityVote(ties="first")
    fitted = MajorityVote(ties="first").fit(Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 1)]))
    for copied in copy_fitted(method, fitted):
        assert copied is not fitted
        assert copied.ties == "first"
        assert copied.posterior_.tolist() == [[1, 0]]

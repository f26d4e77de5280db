"""Class priors, vote shares, gold and given posteriors as starting points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.em.initialization import align_posterior, apply_gold, compute_vote_shares, make_class_prior
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples(
    [("t1", "ann", "a"), ("t1", "bob", "b"), ("t1", "cy", "b"), ("t3", "ann", "c")], tasks=["t1", "t2", "t3"]
)


class TestClassPrior:
    COUNTS = np.array([6.0, 3.0, 1.0])

    def test_options(self) -> None:
        assert make_class_prior("estimate", self.COUNTS).tolist() == [0.6, 0.3, 0.1]
        assert make_class_prior("uniform", self.COUNTS).tolist() == [1 / 3] * 3
        assert make_class_prior([2, 1, 1], self.COUNTS).tolist() == [0.5, 0.25, 0.25]
        assert make_class_prior({2: 1, 0: 3, 1: 0}, self.COUNTS).tolist() == [0.75, 0, 0.25]

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ("uniformly", "prior"),
            ([1, 1], "3 non-negative numbers, one per class"),
            ([0, 0, 0], "3 non-negative numbers"),
            ([1, -1, 1], "3 non-negative numbers"),
            ([1, float("nan"), 1], "3 non-negative numbers"),
            ({"a": 1, "b": 1}, "must name every class once"),
            ({"a": 1, "b": 1, "c": 1, "d": 1}, "must name every class once"),
        ],
    )
    def test_other_options_are_refused(self, option: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            make_class_prior(option, self.COUNTS, pd.Index(["a", "b", "c"]))


class TestVoteShares:
    def test_tasks_without_votes_are_uniform(self) -> None:
        expected = [[1 / 3, 2 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]]
        np.testing.assert_allclose(compute_vote_shares(CROWD), expected)
        assert compute_vote_shares(CROWD, np.float32).dtype == np.float32

    def test_weights_count(self) -> None:
        weighted = Crowd.from_codes(
            [0, 0], [0, 1], [0, 1], weight=[3.0, 1.0], tasks=["t1"], workers=["a", "b"], classes=["x", "y"]
        )
        np.testing.assert_allclose(compute_vote_shares(weighted), [[0.75, 0.25]])


def test_gold_replaces_the_posterior_in_place() -> None:
    posterior = np.full((3, 2), 0.5)
    assert apply_gold(posterior, np.array([-1, 1, 0], dtype=np.int32)) is posterior
    assert posterior.tolist() == [[0.5, 0.5], [0, 1], [1, 0]]
    assert apply_gold(posterior, None).tolist() == [[0.5, 0.5], [0, 1], [1, 0]]


class TestAlignPosterior:
    def test_tables_are_aligned_by_name_and_arrays_by_position(self) -> None:
        rows = np.array([[1.0, 2, 1], [1, 1, 2], [4, 0, 0]])
        table = pd.DataFrame(rows, index=["t3", "t1", "t2"], columns=["c", "a", "b"])
        np.testing.assert_allclose(align_posterior(table, CROWD), [[0.25, 0.5, 0.25], [0, 0, 1], [0.5, 0.25, 0.25]])
        np.testing.assert_allclose(align_posterior(rows.tolist(), CROWD), rows / 4)

    def test_the_table_of_the_caller_is_not_changed(self) -> None:
        rows = np.full((3, 3), 2.0)
        align_posterior(rows, CROWD)
        assert (rows == 2).all()

    @pytest.mark.parametrize(
        "posterior",
        [
            np.ones((2, 3)),
            np.full((3, 3), np.nan),
            pd.DataFrame(np.ones((2, 3)), index=["t1", "t2"], columns=["a", "b", "c"]),
            pd.DataFrame(np.ones((3, 2)), index=["t1", "t2", "t3"], columns=["a", "b"]),
        ],
    )
    def test_missing_tasks_classes_and_values_are_refused(self, posterior: Any) -> None:
        with pytest.raises(InputError, match="3 tasks x 3 classes without missing values"):
            align_posterior(posterior, CROWD)

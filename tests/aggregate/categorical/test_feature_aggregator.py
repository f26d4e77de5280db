"""Shared parts of aggregators with features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import Crowd, DawidSkene, LabelPropagation, MajorityVote, Mean, simulate_crowd
from wisecrowd.aggregate.categorical._feature_aggregator import FeatureAggregator, infer_initial_posterior
from wisecrowd.base.fields import method_class
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "b"), ("t2", "ann", "b")], tasks=["t1", "t2", "t3", "t4"])
X = np.arange(8.0).reshape(4, 2)


@method_class
class Recorder(FeatureAggregator):
    """Records the arguments of `_infer` and gives every class the same probability."""

    def _infer(self, crowd: Crowd, gold: Any, X: Any, informed: Any, start: Any) -> NDArray[np.float64]:
        self.arguments = (gold, X, informed, start)
        return np.full((crowd.n_tasks, crowd.n_classes), 0.5)


def test_rows_are_aligned_and_flat() -> None:
    images = np.arange(24.0).reshape(4, 2, 3)
    method = Recorder().fit(CROWD, images)
    assert method.arguments[1].tolist() == images.reshape(4, 6).tolist()
    table = pd.DataFrame(X, index=["t4", "t3", "t2", "t1"])
    assert Recorder().fit(CROWD, table).arguments[1].tolist() == X[::-1].tolist()


def test_tasks_with_votes_or_gold_are_informed_and_gold_is_kept() -> None:
    method = Recorder().fit(CROWD, X, truth={"t4": "b"})
    assert method.arguments[2].tolist() == [True, True, False, True]
    assert method.proba_.loc["t4"].tolist() == [0, 1]
    assert Recorder().fit(CROWD, X).arguments[2].tolist() == [True, True, False, False]


def test_features_are_needed() -> None:
    with pytest.raises(UsageError, match=r"Recorder uses the features of tasks as well as votes; call fit\(crowd, X\)"):
        Recorder().fit(CROWD)


class TestInitialPosterior:
    def test_an_aggregator_by_name_or_as_an_object(self) -> None:
        made = simulate_crowd(20, 5, 2, votes_per_task=3, random_state=0).crowd
        expected = DawidSkene(smoothing=0.5).fit(made).posterior_
        aggregator = DawidSkene(smoothing=0.5)
        posterior = infer_initial_posterior(aggregator, made, None, np.zeros((20, 1)), None)
        np.testing.assert_array_equal(posterior, expected)
        assert not hasattr(aggregator, "posterior_"), "the aggregator of the caller is not fitted"
        by_name = infer_initial_posterior("majority-vote", made, None, np.zeros((20, 1)), None)
        np.testing.assert_array_equal(by_name, MajorityVote().fit(made).posterior_)

    def test_features_reach_an_aggregator_that_uses_them(self) -> None:
        posterior = infer_initial_posterior(LabelPropagation(aggregator="majority-vote", k=2), CROWD, None, X, None)
        assert posterior.shape == (4, 2)

    def test_a_start_takes_precedence_and_gold_is_kept(self) -> None:
        gold = np.array([-1, -1, -1, 1], dtype=np.int32)
        start = np.array([[3.0, 1.0]] * 4)
        posterior = infer_initial_posterior("no such method", CROWD, gold, X, start)
        assert posterior.tolist() == [[0.75, 0.25]] * 3 + [[0, 1]]
        fitted = MajorityVote().fit(CROWD)
        np.testing.assert_array_equal(infer_initial_posterior(None, CROWD, None, X, fitted), fitted.posterior_)

    def test_other_aggregators_are_refused(self) -> None:
        with pytest.raises(UsageError, match=r"Mean.* is not an aggregator for categorical labels; set"):
            infer_initial_posterior(Mean(), CROWD, None, X, None)
        with pytest.raises(
            InputError, match="aggregator is dawid-skene, which needs worker ids, and this crowd has none"
        ):
            infer_initial_posterior("dawid-skene", CROWD.drop_workers(), None, X, None)

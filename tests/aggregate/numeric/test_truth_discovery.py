"""Alternation between weights and truth, with a rule of weights that is easy to follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.aggregate.numeric._numeric_aggregator import NumericVotes
from wisecrowd.aggregate.numeric._truth_discovery import TruthDiscovery
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError

NUMBERS = Crowd.from_triples(
    [("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t1", "cy", 6.0), ("t2", "ann", 4.0), ("t2", "bob", 4.0), ("t2", "cy", 9.0)],
    numeric=True, workers=["ann", "bob", "cy", "idle"],
)  # fmt: skip
CLASSES = Crowd.from_triples(
    [("t1", "ann", "a"), ("t1", "bob", "a"), ("t1", "cy", "b"), ("t2", "ann", "b"), ("t2", "cy", "a"), ("t2", "bob", "b"),
     ("t3", "ann", "a"), ("t3", "cy", "b")]
)  # fmt: skip


def squared(votes: NumericVotes, estimate: Any) -> Any:
    return (votes.crowd.label - estimate[votes.crowd.task]) ** 2


def discovery(**options: Any) -> TruthDiscovery:
    return TruthDiscovery(
        lambda loss, total, unit: total / (loss + unit), **{"max_iter": 500, "tol": 1e-12, "title": "test"} | options
    )


def test_numbers_end_where_weights_and_truth_agree() -> None:
    votes = NumericVotes(NUMBERS)
    result = discovery().discover_numbers(votes, squared, lambda votes, weight: votes.mean(np.nan_to_num(weight)))
    assert result.converged
    assert np.isnan(result.weight[3]), "a worker without votes has no weight"
    losses = votes.sum_by_worker(squared(votes, result.truth))[:3]
    unit = votes.sum_by_worker(squared(votes, votes.median())).sum() / 6
    np.testing.assert_allclose(result.weight[:3], 2 / (losses + unit), rtol=1e-6)
    np.testing.assert_allclose(result.truth, votes.mean(np.nan_to_num(result.weight)), rtol=1e-9)
    assert result.weight[0] > result.weight[2], "cy is far from the others"


def test_classes_are_the_weighted_vote() -> None:
    result = discovery(max_iter=50).discover_classes(Poll(CLASSES))
    assert result.converged
    assert result.truth.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert result.weight[0] > result.weight[2]


def test_it_stops_at_the_limit_of_rounds() -> None:
    votes = NumericVotes(NUMBERS)
    result = discovery(max_iter=1, tol=0).discover_numbers(
        votes, squared, lambda votes, weight: votes.mean(np.nan_to_num(weight))
    )
    assert result.n_iter == 1
    assert not result.converged
    with pytest.raises(UsageError, match="max_iter must be 1 or more; got 0"):
        discovery(max_iter=0).discover_classes(Poll(CLASSES))


def test_unanimous_votes_are_no_division_by_zero() -> None:
    agreed = Crowd.from_triples([(task, worker, 3.0) for task in range(3) for worker in range(3)], numeric=True)
    received = []

    def weigh(loss: Any, total: Any, unit: float) -> Any:
        received.append((loss.tolist(), total.tolist(), unit))
        return np.ones(len(total))

    result = TruthDiscovery(weigh, 5, 1e-9, "test").discover_numbers(
        NumericVotes(agreed), squared, lambda votes, weight: votes.mean(weight)
    )
    assert received[0] == ([0, 0, 0], [3, 3, 3], 1.0)
    assert result.truth.tolist() == [3, 3, 3]
